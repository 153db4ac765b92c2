//! `atomic extension new`: a crate that builds and passes its one test without network access
//! to anything but the crates of its lock file, and without an API key.

use super::{lock, sdk};
use crate::{card::Card, paths::Paths};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

const LIB: &str = include_str!("../../templates/extension/lib.rs");
const README: &str = include_str!("../../templates/extension/README.md");
const VERSION: &str = "0.1.0";
/// Of the manifest below, without versions.
const DEPENDENCIES: [&str; 3] = ["atomic-plugin-api", "serde", "serde_json"];

pub fn run(paths: &Paths, name: &str, place: Option<&Path>) -> Result<String, Card> {
    check_name(name)?;
    let dir = place.map_or_else(|| paths.cwd.join(name), |p| paths.cwd.join(p));
    let api = sdk::unpack(&paths.home.join("sdk"))?;
    write(&dir, name, &api)?;
    let shown = dir.strip_prefix(&paths.cwd).unwrap_or(&dir).display();
    Ok(format!(
        "Wrote the extension '{name}' to {shown}, against plugin-api {} in\n{}\n\n\
         Next:\n  cd {shown}\n  cargo test                            its one test\n  \
         atomic extension install .            build it and install it\n  \
         atomic -e . --offline                 or try it without installing\n",
        sdk::SDK_VERSION,
        api.display(),
    ))
}

/// What cargo takes as a package name and Atomic as an extension's.
fn check_name(name: &str) -> Result<(), Card> {
    let refuse = |what: String, help: &str| Err(Card::new("extension::bad_name", what).help(help));
    let begins = name.starts_with(|c: char| c.is_ascii_lowercase());
    let rest = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_'));
    if !begins || !rest || name.len() > 64 {
        return refuse(
            format!("'{name}' cannot be the name of an extension"),
            "use lower-case letters, digits, - and _, beginning with a letter, at most 64 of them",
        );
    }
    if lock::is_taken(name) || matches!(name, "std" | "core" | "alloc" | "test" | "self" | "crate" | "super")
    {
        return refuse(
            format!("'{name}' is the name of a crate that extensions depend on"),
            "choose another name",
        );
    }
    Ok(())
}

/// Only into a folder that is not there, or empty.
pub fn write(dir: &Path, name: &str, api: &Path) -> Result<(), Card> {
    let fail = |e: io::Error| {
        Card::new("extension::new", "the crate could not be written").file(dir).why(e.to_string())
    };
    if fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(Card::new("extension::exists", "there is something already")
            .file(dir)
            .help("choose another name, or give an empty folder with --path DIR"));
    }
    let own = lock::Own {
        name,
        version: VERSION,
        dependencies: DEPENDENCIES.iter().map(|d| (*d).to_owned()).collect(),
    };
    let fill =
        |template: &str| template.replace("{{name}}", name).replace("{{crate}}", &name.replace('-', "_"));
    let files: [(PathBuf, String); 5] = [
        (dir.join("Cargo.toml"), manifest(name, api)),
        (dir.join("Cargo.lock"), lock::with(&[own])),
        (dir.join(".gitignore"), "/target\n".to_owned()),
        (dir.join("README.md"), fill(README)),
        (dir.join("src/lib.rs"), fill(LIB)),
    ];
    fs::create_dir_all(dir.join("src")).map_err(fail)?;
    for (path, text) in files {
        fs::write(path, text).map_err(fail)?;
    }
    Ok(())
}

fn manifest(name: &str, api: &Path) -> String {
    let api = quoted(api);
    format!(
        r#"[package]
name = "{name}"
version = "{VERSION}"
edition = "2024"
publish = false

[lib]
# The shared library is the extension; the other form is for its tests.
crate-type = ["cdylib", "rlib"]

[dependencies]
# The SDK of this program, unpacked once. To build elsewhere, let `atomic extension new` unpack it
# there too and change the path.
atomic-plugin-api = {{ path = {api} }}
# For derives of your own; parameters of tools need only `#[params]`.
serde = {{ version = "1", features = ["derive"] }}
serde_json = "1"

[dev-dependencies]
atomic-plugin-api = {{ path = {api}, features = ["testing"] }}

[profile.release]
# Panics are contained at the boundary; a library built with `abort` is refused.
panic = "unwind"
strip = true

# A workspace of its own, wherever it lies.
[workspace]
"#
    )
}

/// A path as a TOML string.
pub fn quoted(path: &Path) -> String {
    format!("\"{}\"", path.display().to_string().replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_cargo_or_the_host_would_refuse_are_refused_first() {
        for bad in ["", "My", "1x", "a b", "../x", "serde", "core"] {
            assert!(check_name(bad).is_err(), "{bad:?}");
        }
        assert!(check_name("my-first_2").is_ok());
    }

    #[test]
    fn nothing_is_written_over() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("precious"), "x").unwrap();
        let card = write(dir.path(), "mine", Path::new("/sdk")).unwrap_err();
        assert_eq!(card.code, "extension::exists");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_path_with_backslashes_and_quotes_is_a_toml_string() {
        assert_eq!(quoted(Path::new(r#"C:\a "b""#)), r#""C:\\a \"b\"""#);
    }
}

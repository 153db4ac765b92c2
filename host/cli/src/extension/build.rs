//! Builds a crate with the user's own cargo and says which libraries came out.

use crate::{card::Card, paths};
use serde_json::Value;
use std::{
    env::consts::DLL_SUFFIX,
    io::{self, BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

#[derive(Debug, Default, Clone)]
pub struct Build {
    pub release: bool,
    pub offline: bool,
    pub target_dir: Option<PathBuf>,
    /// Every member of the workspace, not the crate at `dir` alone.
    pub workspace: bool,
    /// Progress is not shown.
    pub quiet: bool,
    /// Cargo may write the lock file: a dependency was added while one develops.
    pub may_lock: bool,
    /// So many lines of cargo's errors go into the card instead of stderr.
    pub kept: Option<usize>,
}

/// A shared library that cargo made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    pub package: String,
    pub library: PathBuf,
}

impl Build {
    /// Cargo's own messages go to stderr. With a lock file it is obeyed, never changed.
    pub fn run(&self, dir: &Path) -> Result<Vec<Built>, Card> {
        let cargo = paths::cargo();
        let locked = !self.may_lock && dir.ancestors().any(|d| d.join("Cargo.lock").is_file());
        if locked && dir.join("Cargo.lock").is_file() {
            // The crate's own version stands in the lock file too, and changes with each release:
            // that alone is brought up to date. Whether it worked is seen below.
            let mut own = Command::new(&cargo);
            own.current_dir(dir).args(["update", "--workspace", "--offline", "--quiet"]);
            let _ = own.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        }
        let mut command = Command::new(&cargo);
        command.current_dir(dir).args(["build", "--lib", "--message-format=json-render-diagnostics"]);
        for (wanted, flag) in [
            (self.release, "--release"),
            (self.offline, "--offline"),
            (self.workspace, "--workspace"),
            (self.quiet, "--quiet"),
            (locked, "--locked"),
        ] {
            if wanted {
                command.arg(flag);
            }
        }
        if let Some(target) = &self.target_dir {
            command.arg("--target-dir").arg(target);
        }
        if self.kept.is_some() {
            command.env("CARGO_TERM_COLOR", "never").stderr(Stdio::piped());
        }
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().map_err(|e| no_cargo(&cargo, &e))?;
        let errors = child
            .stderr
            .take()
            .map(|stderr| std::thread::spawn(move || io::read_to_string(stderr).unwrap_or_default()));
        let mut built = Vec::new();
        if let Some(stdout) = child.stdout.take() {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                built.extend(serde_json::from_str(&line).ok().and_then(|v| library(&v)));
            }
        }
        let failed = |why: String| {
            Card::new("extension::build", "the crate does not build")
                .file(dir.join("Cargo.toml"))
                .why(why)
                .help(format!(
                    "cargo's own messages are above; try: cd {} && cargo build --lib{}",
                    dir.display(),
                    if locked {
                        "\n(that also brings its Cargo.lock up to date, which is obeyed here)"
                    } else {
                        ""
                    }
                ))
        };
        let status = child.wait().map_err(|e| failed(e.to_string()))?;
        let errors = errors.and_then(|e| e.join().ok());
        if let (false, Some(errors), Some(kept)) = (status.success(), errors, self.kept) {
            let lines: Vec<&str> = errors.lines().take(kept).collect();
            return Err(failed(lines.join("\n")));
        }
        if !status.success() {
            return Err(failed(format!("cargo build ended with {status}")));
        }
        if built.is_empty() {
            return Err(Card::new(
                "extension::no_cdylib",
                "the crate builds, but no shared library comes out",
            )
            .file(dir.join("Cargo.toml"))
            .help("add to it:\n[lib]\ncrate-type = [\"cdylib\", \"rlib\"]"));
        }
        Ok(built)
    }
}

fn no_cargo(cargo: &std::ffi::OsStr, e: &io::Error) -> Card {
    Card::new("extension::no_cargo", format!("cannot run {} to build the extension", cargo.display()))
        .why(e.to_string())
        .help("install Rust from https://rustup.rs, or give a library that is already built")
}

/// The cdylib of one line of cargo's JSON.
fn library(message: &Value) -> Option<Built> {
    let target = message.get("target")?;
    let is_cdylib = target.get("kind")?.as_array()?.iter().any(|k| k == "cdylib");
    if message.get("reason")? != "compiler-artifact" || !is_cdylib {
        return None;
    }
    let files = message.get("filenames")?.as_array()?.iter().filter_map(Value::as_str);
    let library = files.map(PathBuf::from).find(|f| f.to_string_lossy().ends_with(DLL_SUFFIX))?;
    let manifest = Path::new(message.get("manifest_path")?.as_str()?);
    let package = message.get("package_id").and_then(Value::as_str).and_then(package_name);
    let package = package.or_else(|| Some(manifest.parent()?.file_name()?.to_string_lossy().into_owned()))?;
    Some(Built { package, library })
}

/// `path+file:///x/hello#0.1.0` or `path+file:///x/y#hello@0.1.0`.
fn package_name(id: &str) -> Option<String> {
    let (url, fragment) = id.rsplit_once('#')?;
    let name = match fragment.split_once('@') {
        Some((name, _)) => name,
        None => url.rsplit('/').next()?,
    };
    Some(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_library_is_read_from_what_cargo_says() {
        let library_file = format!("/t/debug/libhello{DLL_SUFFIX}");
        let line = json!({
            "reason": "compiler-artifact", "package_id": "path+file:///x/y#hello@0.1.0",
            "manifest_path": "/x/y/Cargo.toml", "target": {"kind": ["cdylib", "rlib"]},
            "filenames": [library_file, "/t/debug/libhello.rlib"],
        });
        let built = library(&line).unwrap();
        assert_eq!(built, Built { package: "hello".into(), library: library_file.into() });
        assert_eq!(library(&json!({"reason": "compiler-artifact", "target": {"kind": ["lib"]}})), None);
        assert_eq!(package_name("path+file:///x/hello#0.1.0").as_deref(), Some("hello"));
    }

    #[test]
    fn a_folder_that_is_no_crate_is_a_card_that_says_what_to_try() {
        let dir = tempfile::tempdir().unwrap();
        let card = Build { quiet: true, ..Build::default() }.run(dir.path()).unwrap_err();
        assert_eq!(card.code, "extension::build");
    }
}

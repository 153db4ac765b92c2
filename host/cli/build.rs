//! Embeds the source of plugin-api (the SDK that `extension new` depends on) and of the
//! first-party extensions that the demo builds.

use std::{
    env, fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

fn main() -> io::Result<()> {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let root = here.join("../..");
    let api = root.join("plugin-api");
    let mut files = Vec::new();
    for part in ["Cargo.toml", "build.rs", "src", "derive/Cargo.toml", "derive/src"] {
        collect(&api.join(part), &mut files)?;
    }
    let manifest = fs::read_to_string(api.join("Cargo.toml"))?;
    let version = manifest.lines().find_map(|l| l.strip_prefix("version = \"")?.split('"').next());

    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let mut code = fs::File::create(out.join("embedded.rs"))?;
    writeln!(code, "pub const SDK_VERSION: &str = {:?};", version.unwrap_or("0.0.0"))?;
    table(&mut code, "SDK", &api, &files)?;
    for (constant, plugin) in [("EVENT_LOG", "event-log"), ("PERMISSION_GATE", "permission-gate")] {
        let dir = root.join("plugins").join(plugin);
        let mut files = Vec::new();
        collect(&dir.join("Cargo.toml"), &mut files)?;
        collect(&dir.join("src"), &mut files)?;
        table(&mut code, constant, &dir, &files)?;
    }
    println!("cargo:rerun-if-changed=build.rs");
    Ok(())
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    println!("cargo:rerun-if-changed={}", path.display());
    if path.is_dir() {
        let mut entries = fs::read_dir(path)?.map(|e| Ok(e?.path())).collect::<io::Result<Vec<_>>>()?;
        entries.sort();
        for entry in entries {
            collect(&entry, files)?;
        }
    } else if path.is_file() {
        files.push(path.to_owned());
    }
    Ok(())
}

/// Relative path (with `/`) and bytes of each file.
fn table(code: &mut fs::File, name: &str, base: &Path, files: &[PathBuf]) -> io::Result<()> {
    writeln!(code, "pub static {name}: &[(&str, &[u8])] = &[")?;
    for file in files {
        let relative = file.strip_prefix(base).unwrap_or(file).to_string_lossy().replace('\\', "/");
        let full = file.canonicalize()?;
        writeln!(code, "    ({relative:?}, include_bytes!({:?})),", full.display().to_string())?;
    }
    writeln!(code, "];")
}

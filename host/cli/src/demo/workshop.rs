//! Where the demo builds its extensions: the first-party ones from embedded source, `greet`
//! from a template whose code it changes, all against the embedded SDK.
//!
//! They have a target folder of their own, kept between runs: inside the source tree's, or in
//! the cache of Atomic's home. It is not the tree's itself, since a crate outside of the
//! workspace has other features and would overwrite the tree's libraries of the same name.

use crate::{
    card::Card,
    extension::{
        build::{Build, Built},
        lock, quoted, sdk,
    },
    paths::Paths,
};
use std::{
    fs::{self, File},
    io,
    path::PathBuf,
};

const WORKSPACE: &str = include_str!("../../templates/demo/Cargo.toml");
const GREET_MANIFEST: &str = include_str!("../../templates/demo/greet.toml");
const GREET: &str = include_str!("../../templates/demo/greet.rs");

pub struct Workshop {
    dir: PathBuf,
    target: PathBuf,
    /// One demo at a time builds here.
    _lock: File,
}

impl Workshop {
    pub fn open(paths: &Paths) -> Result<Self, Card> {
        let base = match paths.target_dir() {
            Some(target) => target.join("sdk-builds"),
            None => paths.home.join("cache").join("sdk-builds"),
        };
        let dir = base.join("demo");
        let open = || -> io::Result<File> {
            fs::create_dir_all(&dir)?;
            let lock = File::create(base.join("demo.lock"))?;
            lock.lock()?;
            Ok(lock)
        };
        let _lock = open().map_err(|e| cannot_write(&dir, &e))?;
        Ok(Workshop { target: base.join("target"), dir, _lock })
    }

    /// Writes everything down, with `greet` as it is at first.
    pub fn set_up(&self) -> Result<(), Card> {
        let api = sdk::unpack(&self.dir.join("sdk"))?;
        let workspace = WORKSPACE.replace("{{api}}", &quoted(&api));
        let write = || -> io::Result<()> {
            for (name, files) in [("event-log", sdk::EVENT_LOG), ("permission-gate", sdk::PERMISSION_GATE)] {
                sdk::write_tree(&self.dir.join(name), files)?;
            }
            fs::create_dir_all(self.dir.join("greet/src"))?;
            fs::write(self.dir.join("Cargo.toml"), workspace)
        };
        write().map_err(|e| cannot_write(&self.dir, &e))?;
        self.write_greet(1)
    }

    /// The code, the manifest and the lock file of that version.
    pub fn write_greet(&self, version: u32) -> Result<(), Card> {
        let own = [
            lock::Own {
                name: "event-log",
                version: workspace_version(),
                dependencies: dependencies(manifest(sdk::EVENT_LOG)),
            },
            lock::Own {
                name: "permission-gate",
                version: workspace_version(),
                dependencies: dependencies(manifest(sdk::PERMISSION_GATE)),
            },
            lock::Own {
                name: "greet",
                version: &format!("{version}.0.0"),
                dependencies: dependencies(GREET_MANIFEST),
            },
        ];
        let manifest = GREET_MANIFEST.replace("\"1.0.0\"", &format!("\"{version}.0.0\""));
        let files = [
            ("Cargo.lock", lock::with(&own)),
            ("greet/Cargo.toml", manifest),
            ("greet/src/lib.rs", GREET.replace("greet v1", &format!("greet v{version}"))),
        ];
        for (name, text) in files {
            fs::write(self.dir.join(name), text).map_err(|e| cannot_write(&self.dir.join(name), &e))?;
        }
        Ok(())
    }

    pub fn build(&self) -> Result<Vec<Built>, Card> {
        let build = Build { workspace: true, target_dir: Some(self.target.clone()), ..Build::default() };
        build.run(&self.dir)
    }

    pub fn greet_source(&self) -> PathBuf {
        self.dir.join("greet/src/lib.rs")
    }
}

fn cannot_write(path: &std::path::Path, e: &io::Error) -> Card {
    Card::new("demo::workshop", "the demo's crates could not be written")
        .file(path)
        .why(e.to_string())
        .help("set ATOMIC_HOME to a folder that can be written")
}

fn manifest(files: &'static [(&'static str, &'static [u8])]) -> &'static str {
    let found = files.iter().find(|(name, _)| *name == "Cargo.toml");
    found.and_then(|(_, bytes)| std::str::from_utf8(bytes).ok()).unwrap_or_default()
}

fn workspace_version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// Names in the tables of dependencies.
fn dependencies(manifest: &str) -> Vec<String> {
    let mut inside = false;
    let mut names = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = matches!(line.trim(), "[dependencies]" | "[dev-dependencies]");
        } else if let (true, Some((key, _))) = (inside, line.split_once('=')) {
            names.push(key.split('.').next().unwrap_or_default().trim().to_owned());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_extensions_need_nothing_that_the_lock_file_has_not() {
        for files in [sdk::EVENT_LOG, sdk::PERMISSION_GATE] {
            let names = dependencies(manifest(files));
            assert!(names.contains(&"atomic-plugin-api".to_owned()));
            for name in names {
                assert!(
                    lock::is_taken(&name),
                    "{name} is in no lock file: regenerate templates/extension/Cargo.lock"
                );
            }
        }
    }

    #[test]
    fn the_demos_workspace_says_what_the_trees_says() {
        let root = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml")).unwrap();
        let package = WORKSPACE.split("\n[").find(|s| s.starts_with("workspace.package]")).unwrap();
        for line in package.lines().skip(1).filter(|l| l.contains(" = ")) {
            assert!(root.lines().any(|l| l == line), "not in the tree's Cargo.toml: {line}");
        }
    }
}

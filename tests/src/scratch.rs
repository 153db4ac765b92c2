//! Where a test has its home: a folder of its own that goes with it, or, for tests that build
//! extensions with cargo, one place for all, so that the second build there is a quick one.

use crate::libs::profile_dir;
use std::{
    ffi::OsString,
    fs::{self, File},
    path::{Path, PathBuf},
};
use tempfile::TempDir;

pub(crate) enum Scratch {
    Own(TempDir),
    /// One test at a time: it holds the lock.
    Shared {
        dir: PathBuf,
        _lock: File,
    },
}

/// As the demo's workspace has it, so that its dependencies are these; and an `install` that
/// takes no optimising.
const CARGO_CONFIG: &str = "[profile.dev]
debug = \"line-tables-only\"
[profile.dev.package.\"*\"]
debug = false
[profile.release]
opt-level = 0
";

impl Scratch {
    pub fn own() -> Self {
        Scratch::Own(tempfile::Builder::new().prefix("atomic-test-").tempdir().unwrap())
    }

    /// Empty but for `kept`. Crates under it are built in the target folder of the demo.
    pub fn shared(kept: &str) -> Self {
        let dir = builds().join("tests");
        fs::create_dir_all(&dir).unwrap();
        let lock = File::create(builds().join("tests.lock")).unwrap();
        lock.lock().unwrap();
        clear(&dir, &dir.join(kept));
        fs::create_dir_all(dir.join(".cargo")).unwrap();
        fs::write(dir.join(".cargo/config.toml"), CARGO_CONFIG).unwrap();
        Scratch::Shared { dir, _lock: lock }
    }

    pub fn path(&self) -> &Path {
        match self {
            Scratch::Own(dir) => dir.path(),
            Scratch::Shared { dir, .. } => dir,
        }
    }

    /// What cargo is to be told about it.
    pub fn environment(&self) -> Option<(OsString, OsString)> {
        match self {
            Scratch::Own(_) => None,
            Scratch::Shared { .. } => Some(("CARGO_TARGET_DIR".into(), builds().join("target").into())),
        }
    }
}

fn builds() -> PathBuf {
    profile_dir().parent().unwrap().join("sdk-builds")
}

fn clear(dir: &Path, kept: &Path) {
    for path in fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).filter(|p| p != kept) {
        if kept.starts_with(&path) {
            clear(&path, kept);
        } else if path.is_dir() {
            fs::remove_dir_all(path).unwrap();
        } else {
            fs::remove_file(path).unwrap();
        }
    }
}

//! The source of plugin-api, embedded in the program and unpacked once for path dependencies,
//! so that an extension can be written and built without a registry that knows of Atomic.

use crate::card::Card;
use sha2::{Digest, Sha256};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

mod embedded {
    include!(concat!(env!("OUT_DIR"), "/embedded.rs"));
}
pub use embedded::{EVENT_LOG, PERMISSION_GATE, SDK_VERSION};

/// Makes sure that `<parent>/<version>/plugin-api` holds exactly the embedded source, and names it.
/// Another content under that version (an older build) is moved aside first, never edited.
pub fn unpack(parent: &Path) -> Result<PathBuf, Card> {
    let place = parent.join(SDK_VERSION).join("plugin-api");
    if content(&place).is_ok_and(|found| found == embedded_content()) {
        return Ok(place);
    }
    write_anew(parent, &place).map_err(|e| {
        Card::new("extension::sdk", "the source of plugin-api could not be unpacked")
            .file(&place)
            .why(e.to_string())
            .help("make that folder writable, or set ATOMIC_HOME to one that is")
    })?;
    Ok(place)
}

fn write_anew(parent: &Path, place: &Path) -> io::Result<()> {
    fs::create_dir_all(parent)?;
    let scratch = tempfile::Builder::new().prefix(".sdk-").tempdir_in(parent)?;
    let fresh = scratch.path().join("plugin-api");
    write_tree(&fresh, embedded::SDK)?;
    if let Some(dir) = place.parent() {
        fs::create_dir_all(dir)?;
    }
    let old = scratch.path().join("old");
    match fs::rename(place, &old) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    match fs::rename(&fresh, place) {
        // Another process was quicker, with the same bytes.
        Err(_) if content(place).is_ok_and(|found| found == embedded_content()) => Ok(()),
        other => other,
    }
}

/// Writes embedded files below `dir`.
pub fn write_tree(dir: &Path, files: &[(&str, &[u8])]) -> io::Result<()> {
    for (relative, bytes) in files {
        let path = dir.join(relative);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(path, bytes)?;
    }
    Ok(())
}

fn embedded_content() -> Vec<u8> {
    digest(embedded::SDK.iter().map(|(name, bytes)| (*name, bytes.to_vec())))
}

/// The embedded files as they lie on disk; a file too many does not matter, one too few does.
fn content(place: &Path) -> io::Result<Vec<u8>> {
    let mut found = Vec::new();
    for (name, _) in embedded::SDK {
        found.push((*name, fs::read(place.join(name))?));
    }
    Ok(digest(found.into_iter()))
}

fn digest<'a>(files: impl Iterator<Item = (&'a str, Vec<u8>)>) -> Vec<u8> {
    let mut hash = Sha256::new();
    for (name, bytes) in files {
        hash.update((name.len() as u64).to_le_bytes());
        hash.update(name);
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(&bytes);
    }
    hash.finalize().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_unpacked_once_and_left_alone_after() {
        let home = tempfile::tempdir().unwrap();
        let place = unpack(home.path()).unwrap();
        assert!(place.join("Cargo.toml").is_file() && place.join("src/lib.rs").is_file());
        assert!(place.join("derive/src/lib.rs").is_file());
        let mark = place.join("mark");
        fs::write(&mark, "").unwrap();
        assert_eq!(unpack(home.path()).unwrap(), place);
        assert!(mark.exists(), "an intact copy was replaced");
    }

    #[test]
    fn a_copy_with_other_content_is_replaced_whole() {
        let home = tempfile::tempdir().unwrap();
        let place = unpack(home.path()).unwrap();
        fs::write(place.join("src/lib.rs"), "old").unwrap();
        unpack(home.path()).unwrap();
        assert_ne!(fs::read(place.join("src/lib.rs")).unwrap(), b"old");
        let left = fs::read_dir(home.path()).unwrap().count();
        assert_eq!(left, 1, "temporary folders were left behind");
    }
}

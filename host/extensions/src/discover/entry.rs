//! What one entry of an extension directory is: a library, a folder that says
//! which library is its, a folder with exactly one, a script of another program,
//! or nothing of ours.

use super::note::Refusal;
use crate::filecheck;
use serde::Deserialize;
use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs,
    io::Read,
    path::{Component, Path, PathBuf},
};

/// What `extension.json` says about its library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    pub name: String,
    pub version: String,
}

pub(super) enum Entry {
    Library { path: PathBuf, declared: Option<Declared> },
    Script(PathBuf),
    Refused(Refusal),
    Nothing,
}

const MANIFEST: &str = "extension.json";
const MAX_MANIFEST: u64 = 64 * 1024;

#[derive(Deserialize)]
struct FolderManifest {
    name: String,
    version: String,
    library: BTreeMap<String, String>,
}

fn has_extension(path: &Path, of: &[&str]) -> bool {
    path.extension().and_then(OsStr::to_str).is_some_and(|extension| of.contains(&extension))
}

/// By its name alone.
pub(super) fn is_library(path: &Path) -> bool {
    has_extension(path, &[std::env::consts::DLL_EXTENSION])
}

pub(super) fn is_script(path: &Path) -> bool {
    has_extension(path, &["ts", "mts", "cts", "js", "mjs", "cjs"])
}

fn is_foreign_library(path: &Path) -> bool {
    has_extension(path, &["so", "dylib", "dll"]) && !is_library(path)
}

/// `target` is the host's triple.
pub(super) fn examine(entry: &Path, target: &str) -> Entry {
    let is_dir = match fs::metadata(entry) {
        Ok(metadata) => metadata.is_dir(),
        // A link to nowhere, with the name of a library.
        Err(error) if is_library(entry) => return Entry::Refused(Refusal::Unreadable(error.to_string())),
        Err(_) => return Entry::Nothing,
    };
    if is_dir {
        return examine_folder(entry, target);
    }
    if is_library(entry) {
        Entry::Library { path: entry.to_owned(), declared: None }
    } else if is_foreign_library(entry) {
        Entry::Refused(Refusal::OtherSystem)
    } else if is_script(entry) {
        Entry::Script(entry.to_owned())
    } else {
        Entry::Nothing
    }
}

fn examine_folder(folder: &Path, target: &str) -> Entry {
    let manifest = folder.join(MANIFEST);
    if fs::symlink_metadata(&manifest).is_ok() {
        return match declared_library(folder, &manifest, target) {
            Ok((path, declared)) => Entry::Library { path, declared: Some(declared) },
            Err(refusal) => Entry::Refused(refusal),
        };
    }
    let entries = match super::entries(folder) {
        Ok(entries) => entries,
        Err(error) => return Entry::Refused(Refusal::Unreadable(error.to_string())),
    };
    let mut libraries: Vec<PathBuf> = entries.iter().filter(|path| is_library(path)).cloned().collect();
    match (libraries.len(), libraries.pop()) {
        (1, Some(path)) => Entry::Library { path, declared: None },
        (0, _) => match entries.into_iter().find(|path| is_script(path)) {
            Some(script) => Entry::Script(script),
            None => Entry::Nothing,
        },
        (count, _) => Entry::Refused(Refusal::Ambiguous(count)),
    }
}

fn declared_library(folder: &Path, manifest: &Path, target: &str) -> Result<(PathBuf, Declared), Refusal> {
    let bad = |why: String| Refusal::BadManifest(why);
    // It decides what is loaded, so it is checked like a library.
    let opened = filecheck::open(manifest).map_err(|refusal| Refusal::Unsafe(refusal.to_string()))?;
    let mut text = String::new();
    opened.file.take(MAX_MANIFEST + 1).read_to_string(&mut text).map_err(|error| bad(error.to_string()))?;
    if text.len() as u64 > MAX_MANIFEST {
        return Err(bad("it is longer than 64 KiB".to_owned()));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let says: FolderManifest = serde_json::from_str(text).map_err(|error| bad(error.to_string()))?;
    let short = format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH);
    let Some(relative) = says.library.get(target).or_else(|| says.library.get(&short)) else {
        let has = says.library.into_keys().collect::<Vec<_>>().join(", ");
        return Err(Refusal::OtherTargets { wanted: target.to_owned(), has });
    };
    let escapes = || Refusal::Escapes(relative.clone());
    let inside =
        Path::new(relative).components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir));
    if !inside || relative.is_empty() {
        return Err(escapes());
    }
    let path = folder.join(relative);
    let unreadable = |error: std::io::Error| Refusal::Unreadable(format!("{relative}: {error}"));
    // Links inside the folder must not lead out of it either; the folder itself may be one.
    let real = fs::canonicalize(&path).map_err(unreadable)?;
    if !real.starts_with(fs::canonicalize(folder).map_err(unreadable)?) {
        return Err(escapes());
    }
    Ok((path, Declared { name: says.name, version: says.version }))
}

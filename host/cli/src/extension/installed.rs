//! What lies in the extension directories, told from manifests alone.

use crate::{card::Card, paths::Paths};
use atomic_extensions::{Inspection, Refusal};
use serde_json::Value;
use std::{
    env::consts::{ARCH, DLL_SUFFIX, OS},
    fs,
    path::{Path, PathBuf},
};

/// An entry of an extension directory.
pub struct Found {
    pub scope: &'static str,
    /// What `remove` moves: the file, or the folder around it.
    pub entry: PathBuf,
    pub library: PathBuf,
    pub manifest: Result<Inspection, Refusal>,
}

impl Found {
    pub fn id(&self) -> Option<&str> {
        self.manifest.as_ref().ok().map(|i| i.manifest.name.as_str())
    }
}

/// All scopes in load order. A directory that is not there holds nothing.
pub fn scan(paths: &Paths) -> Vec<Found> {
    let user = paths.user_dirs().map(|d| ("user", d));
    let global = paths.global.iter().map(|d| ("global", d.clone()));
    let bundled = paths.bundled().map(|d| ("bundled", d));
    let all = user.into_iter().chain(global).chain(bundled).chain([("project", paths.project_dir())]);
    all.flat_map(|(scope, dir)| scan_dir(scope, &dir)).collect()
}

pub fn scan_dir(scope: &'static str, dir: &Path) -> Vec<Found> {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(dir).into_iter().flatten().flatten().map(|e| e.path()).collect();
    entries.sort_by(|a, b| a.as_os_str().as_encoded_bytes().cmp(b.as_os_str().as_encoded_bytes()));
    let found = |entry: PathBuf| {
        let library = library(&entry)?;
        Some(Found { scope, manifest: atomic_extensions::inspect(&library), library, entry })
    };
    entries.into_iter().filter_map(found).collect()
}

/// The library of an entry: itself, or the one its folder names or holds.
pub fn library(entry: &Path) -> Option<PathBuf> {
    if !entry.is_dir() {
        return is_library(entry).then(|| entry.to_owned());
    }
    if let Ok(text) = fs::read_to_string(entry.join("extension.json")) {
        let json: Value = serde_json::from_str(&text).ok()?;
        let by_platform = json.get("library")?;
        let keys = [atomic_plugin_api::manifest::TARGET.to_owned(), format!("{OS}-{ARCH}")];
        let named = keys.iter().find_map(|k| by_platform.get(k)?.as_str())?;
        let library = entry.join(named).canonicalize().ok()?;
        return library.starts_with(entry.canonicalize().ok()?).then_some(library);
    }
    let inside = fs::read_dir(entry).ok()?.flatten().map(|e| e.path());
    let mut libraries: Vec<PathBuf> = inside.filter(|p| is_library(p)).collect();
    (libraries.len() == 1).then(|| libraries.remove(0))
}

pub fn is_library(path: &Path) -> bool {
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    !name.starts_with('.') && name.ends_with(DLL_SUFFIX) && path.is_file()
}

/// One line each, and one card for each that would be refused.
pub fn list(paths: &Paths) -> (String, Vec<Card>) {
    let found = scan(paths);
    let mut text = String::new();
    let mut warnings = Vec::new();
    let mut seen: Vec<String> = Vec::new();
    for f in &found {
        match &f.manifest {
            Ok(i) => {
                let m = &i.manifest;
                let shadowed =
                    if seen.contains(&m.name) { "  (not loaded: the name is taken above)" } else { "" };
                let path = f.entry.display();
                text += &format!("{:<24} {:<10} {:<8} {path}{shadowed}\n", m.name, m.version, f.scope);
                seen.push(m.name.clone());
            }
            Err(refusal) => warnings.push(Card::from(refusal)),
        }
    }
    if found.is_empty() {
        text = format!(
            "No extensions are installed. They live in {}\n\
             `atomic extension new NAME` writes one, `atomic extension install PATH` installs one.\n",
            paths.extensions().display()
        );
    }
    (text, warnings)
}

pub fn inspect(path: &Path) -> Result<String, Card> {
    let library = library(path).unwrap_or_else(|| path.to_owned());
    let inspection = atomic_extensions::inspect(&library).map_err(|r| Card::from(&r))?;
    Ok(describe(&library, &inspection))
}

/// What a manifest says, a field a line.
pub fn describe(library: &Path, inspection: &Inspection) -> String {
    let m = &inspection.manifest;
    let list = |names: &[String]| if names.is_empty() { "-".to_owned() } else { names.join(", ") };
    let rows = [
        ("name", m.name.clone()),
        ("version", m.version.clone()),
        ("api", format!("{} (this program: {})", m.api_version, atomic_plugin_api::manifest::API_VERSION)),
        ("target", m.target.clone()),
        ("built with", format!("{} ({}, panic = {})", m.rustc, m.profile, m.panic)),
        ("events", list(&m.events)),
        ("provides", list(&m.provides)),
        ("requires", list(&m.requires)),
        ("file", format!("{} ({} KB)", library.display(), inspection.size.div_ceil(1024))),
        ("sha256", inspection.sha256.clone()),
    ];
    let mut text: String = rows.iter().map(|(key, value)| format!("{key:<12}{value}\n")).collect();
    for note in &inspection.notes {
        text += &format!("note        {note}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_a_library_or_a_folder_with_one() {
        let dir = tempfile::tempdir().unwrap();
        let lib = |name: &str| dir.path().join(format!("{name}{DLL_SUFFIX}"));
        fs::write(lib("a"), "").unwrap();
        fs::create_dir(dir.path().join("b")).unwrap();
        fs::write(dir.path().join("b").join(format!("libb{DLL_SUFFIX}")), "").unwrap();
        fs::write(dir.path().join("readme.md"), "").unwrap();
        assert_eq!(library(&lib("a")), Some(lib("a")));
        assert!(library(&dir.path().join("b")).is_some());
        assert_eq!(library(&dir.path().join("readme.md")), None);
        fs::write(dir.path().join("b").join(format!("libc{DLL_SUFFIX}")), "").unwrap();
        assert_eq!(library(&dir.path().join("b")), None, "two libraries, and nobody says which");
    }

    #[test]
    fn a_library_outside_its_folder_is_not_taken() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(format!("x{DLL_SUFFIX}")), "").unwrap();
        let folder = dir.path().join("f");
        fs::create_dir(&folder).unwrap();
        let json = serde_json::json!({"library": {format!("{OS}-{ARCH}"): format!("../x{DLL_SUFFIX}")}});
        fs::write(folder.join("extension.json"), json.to_string()).unwrap();
        assert_eq!(library(&folder), None);
    }
}

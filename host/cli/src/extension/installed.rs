//! What lies in the extension directories, told from manifests alone.

use crate::{
    card::Card,
    paths::Paths,
    settings::{Around, Settings},
    trust,
};
use atomic_extensions::{
    Inspection, Refusal, Scope,
    discover::{self, Note, Places},
    trust::Surroundings,
};
use std::{
    env::consts::DLL_SUFFIX,
    fs,
    path::{Path, PathBuf},
};

/// An entry of an extension directory.
pub struct Found {
    pub scope: Scope,
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

/// All scopes that need no trust, in load order, as a start would find them; a trusted
/// project's after them.
pub fn scan(paths: &Paths, trusted: bool) -> (Vec<Found>, Vec<Note>) {
    let places = places(paths);
    let safe = discover::discover(&places);
    let project = match trusted {
        true => {
            let before: Vec<PathBuf> = safe.candidates.iter().map(|c| c.real.clone()).collect();
            let listed = Around { paths: paths.clone() }.listed(&paths.cwd);
            discover::discover_project(&places, &paths.cwd, listed.as_ref(), &before)
        }
        false => Default::default(),
    };
    let notes = safe.notes.into_iter().chain(project.notes).collect();
    let all = safe.candidates.into_iter().chain(project.candidates);
    let found = all.map(|c| Found {
        scope: c.scope,
        manifest: atomic_extensions::inspect(&c.path),
        library: c.path,
        entry: c.entry,
    });
    (found.collect(), notes)
}

pub fn places(paths: &Paths) -> Places {
    let settings = Settings::read(paths).unwrap_or_default();
    Places {
        cli: Vec::new(),
        cwd: paths.cwd.clone(),
        home: paths.home.clone(),
        global_dirs: paths.global.clone(),
        bundled_dir: paths.bundled(),
        no_extensions: false,
        listed: settings.listed,
        lenders: Vec::new(),
        target: atomic_plugin_api::manifest::TARGET.to_owned(),
    }
}

/// What the user installed.
pub fn of_user(paths: &Paths) -> Vec<Found> {
    let (mut found, _) = scan(paths, false);
    found.retain(|f| f.scope == Scope::User);
    found
}

/// The entries of any other directory, in the order of their names.
pub fn scan_dir(dir: &Path) -> Vec<Found> {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(dir).into_iter().flatten().flatten().map(|e| e.path()).collect();
    entries.sort_by(|a, b| a.as_os_str().as_encoded_bytes().cmp(b.as_os_str().as_encoded_bytes()));
    let found = |entry: PathBuf| {
        let library = library(&entry)?;
        Some(Found { scope: Scope::Cli, manifest: atomic_extensions::inspect(&library), library, entry })
    };
    entries.into_iter().filter_map(found).collect()
}

/// The library that a path means: itself, or the only one in its folder.
pub fn library(entry: &Path) -> Option<PathBuf> {
    if !entry.is_dir() {
        return is_library(entry).then(|| entry.to_owned());
    }
    let inside = fs::read_dir(entry).ok()?.flatten().map(|e| e.path());
    let mut libraries: Vec<PathBuf> = inside.filter(|p| is_library(p)).collect();
    (libraries.len() == 1).then(|| libraries.remove(0))
}

pub fn is_library(path: &Path) -> bool {
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    !name.starts_with('.') && name.ends_with(DLL_SUFFIX) && path.is_file()
}

/// One line each, and one card for each that would not be loaded.
pub fn list(paths: &Paths) -> (String, Vec<Card>) {
    let trusted = trust::standing(paths);
    let disabled = Settings::read(paths).map(|s| s.disabled).unwrap_or_default();
    let (found, notes) = scan(paths, trusted);
    let mut text = String::new();
    let mut warnings: Vec<Card> = notes.iter().map(|n| Card::told(n.code(), &n.to_string())).collect();
    let mut seen: Vec<String> = Vec::new();
    for f in &found {
        match &f.manifest {
            Ok(i) => {
                let m = &i.manifest;
                let shadowed = match (seen.contains(&m.name), disabled.contains(&m.name)) {
                    (true, _) => "  (not loaded: the name is taken above)",
                    (false, true) => "  (disabled)",
                    (false, false) => "",
                };
                let (scope, path) = (f.scope.name(), f.entry.display());
                text += &format!("{:<24} {:<10} {scope:<8} {path}{shadowed}\n", m.name, m.version);
                seen.push(m.name.clone());
            }
            Err(refusal) => warnings.push(Card::from(refusal)),
        }
    }
    let of_project = if trusted { Vec::new() } else { discover::list_project(&places(paths), &paths.cwd) };
    for path in &of_project {
        text += &format!(
            "{:<24} {:<10} {:<8} {}  (not trusted: not opened)\n",
            "?",
            "?",
            "project",
            path.display()
        );
    }
    if text.is_empty() {
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
}

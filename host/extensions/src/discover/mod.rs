//! Which libraries there are, from where, in which order (decisions.md, "Names
//! and places"). Reads directories and `extension.json`, never a library, and
//! of a project nothing at all before it is trusted.
//!
//! Where to look is told: nothing of the environment is read here.

mod entry;
mod identity;
mod note;
#[cfg(test)]
mod tests;

pub use entry::Declared;
pub use identity::{Resolved, resolve_identity};
pub use note::{Note, Refusal, Severity};

use entry::{Entry, examine};
use std::{
    collections::HashSet,
    ffi::{OsStr, OsString},
    fs, io,
    path::{Path, PathBuf},
};

/// Where a library was found; also the order of loading and dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// `-e PATH`.
    Cli,
    /// `$ATOMIC_HOME/extensions`, then `$ATOMIC_HOME/agent/extensions`.
    User,
    /// `$ATOMIC_GLOBAL_EXTENSIONS`, for the whole machine.
    Global,
    /// `extensions/` beside the executable.
    Bundled,
    /// `<cwd>/.atomic/extensions`, once the project is trusted.
    Project,
}

impl Scope {
    pub fn name(self) -> &'static str {
        match self {
            Self::Cli => "cli",
            Self::User => "user",
            Self::Global => "global",
            Self::Bundled => "bundled",
            Self::Project => "project",
        }
    }
}

/// Where to look.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// `-e` in the order given; relative ones start at `cwd`.
    pub cli: Vec<PathBuf>,
    pub cwd: PathBuf,
    /// `$ATOMIC_HOME`.
    pub home: PathBuf,
    /// The machine-wide directories, in order; a relative one is never searched.
    pub global_dirs: Vec<PathBuf>,
    /// `extensions/` beside the executable.
    pub bundled_dir: Option<PathBuf>,
    /// `--no-extensions`: only what `-e` names.
    pub no_extensions: bool,
    /// Target triple of this host, the first key looked for in `extension.json`.
    pub target: String,
}

/// A library to look at: nothing of it was opened yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub scope: Scope,
    /// The entry: what was named or found in the directory, a library or its folder.
    /// Orders candidates inside a directory, and is what a user is told.
    pub entry: PathBuf,
    /// The library as it is to be opened.
    pub path: PathBuf,
    /// The same with all links resolved.
    pub real: PathBuf,
    /// What `extension.json` says; its library must agree.
    pub declared: Option<Declared>,
}

/// What was found, in load order.
#[derive(Debug, Default)]
pub struct Found {
    pub candidates: Vec<Candidate>,
    pub notes: Vec<Note>,
}

impl Places {
    /// The trust-safe directories in load order.
    pub fn directories(&self) -> Vec<(Scope, PathBuf)> {
        let mut all = vec![
            (Scope::User, self.home.join("extensions")),
            (Scope::User, self.home.join("agent").join("extensions")),
        ];
        let global = self.global_dirs.iter().filter(|dir| dir.is_absolute()).cloned();
        all.extend(global.map(|dir| (Scope::Global, dir)));
        all.extend(self.bundled_dir.clone().map(|dir| (Scope::Bundled, dir)));
        all
    }

    pub fn project_directory(&self) -> PathBuf {
        self.cwd.join(".atomic").join("extensions")
    }
}

/// Everything that needs no trust: CLI, user, global, bundled.
pub fn discover(places: &Places) -> Found {
    let mut search = Search::new(places);
    for path in &places.cli {
        search.named(path);
    }
    if !places.no_extensions {
        for (scope, dir) in places.directories() {
            search.directory(scope, &dir);
        }
    }
    search.finish()
}

/// The project's libraries, to be asked for only once the project is trusted.
/// What `before` reached already is not repeated.
pub fn discover_project(places: &Places, before: &Found) -> Found {
    let mut search = Search::new(places);
    for candidate in &before.candidates {
        search.is_new(&candidate.real);
    }
    if !places.no_extensions {
        search.directory(Scope::Project, &places.project_directory());
    }
    search.finish()
}

/// Names in the project's extension directory, for the question whether to trust
/// it: the directory is listed, nothing in it is opened, no link is followed.
pub fn list_project(places: &Places) -> Vec<PathBuf> {
    if places.no_extensions {
        return Vec::new();
    }
    let mut names = entries(&places.project_directory()).unwrap_or_default();
    names.retain(|path| {
        let kind = fs::symlink_metadata(path).map(|metadata| metadata.file_type());
        entry::is_library(path) || kind.is_ok_and(|kind| kind.is_dir() || kind.is_symlink())
    });
    names
}

struct Search<'a> {
    places: &'a Places,
    /// Canonical paths and, where there are any, device and inode: links of both kinds.
    seen: HashSet<PathBuf>,
    seen_files: HashSet<(u64, u64)>,
    scripts: Vec<PathBuf>,
    found: Found,
}

impl<'a> Search<'a> {
    fn new(places: &'a Places) -> Self {
        Self {
            places,
            seen: HashSet::new(),
            seen_files: HashSet::new(),
            scripts: Vec::new(),
            found: Found::default(),
        }
    }

    /// A path of `-e`: not to be there is an error, unlike an empty directory.
    fn named(&mut self, path: &Path) {
        let entry = self.places.cwd.join(path);
        match fs::metadata(&entry) {
            Ok(metadata) if metadata.is_file() && !entry::is_script(&entry) => {
                self.library(Scope::Cli, &entry, &entry, None);
            }
            Ok(_) => self.entry(Scope::Cli, &entry),
            Err(source) => self.refuse(Scope::Cli, entry, Refusal::Unreadable(source.to_string())),
        }
    }

    fn directory(&mut self, scope: Scope, dir: &Path) {
        match entries(dir) {
            Ok(entries) => entries.iter().for_each(|entry| self.entry(scope, entry)),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
            Err(error) => self.refuse(scope, dir.to_owned(), Refusal::Unreadable(error.to_string())),
        }
    }

    fn entry(&mut self, scope: Scope, entry: &Path) {
        match examine(entry, &self.places.target) {
            Entry::Library { path, declared } => self.library(scope, entry, &path, declared),
            Entry::Script(path) if scope == Scope::Cli => self.refuse(scope, path, Refusal::Script),
            Entry::Script(path) => self.scripts.push(path),
            Entry::Refused(refusal) => self.refuse(scope, entry.to_owned(), refusal),
            Entry::Nothing if scope == Scope::Cli => self.refuse(scope, entry.to_owned(), Refusal::NoLibrary),
            Entry::Nothing => {}
        }
    }

    fn library(&mut self, scope: Scope, entry: &Path, path: &Path, declared: Option<Declared>) {
        match fs::canonicalize(path) {
            Ok(real) => {
                if self.is_new(&real) {
                    let (entry, path) = (entry.to_owned(), path.to_owned());
                    self.found.candidates.push(Candidate { scope, entry, path, real, declared });
                }
            }
            Err(error) => self.refuse(scope, entry.to_owned(), Refusal::Unreadable(error.to_string())),
        }
    }

    /// False: this file was reached before, under whatever name.
    fn is_new(&mut self, real: &Path) -> bool {
        let path = self.seen.insert(real.to_owned());
        let file = file_id(real).is_none_or(|id| self.seen_files.insert(id));
        path && file
    }

    fn refuse(&mut self, scope: Scope, path: PathBuf, refusal: Refusal) {
        self.found.notes.push(Note::Refused { scope, path, refusal });
    }

    fn finish(mut self) -> Found {
        if !self.scripts.is_empty() {
            self.found.notes.push(Note::Scripts { paths: self.scripts });
        }
        self.found
    }
}

/// The entries of a directory in byte order of their names; hidden ones are not ours.
fn entries(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut names: Vec<OsString> = Vec::new();
    for entry in fs::read_dir(dir)? {
        names.push(entry?.file_name());
    }
    names.retain(|name| !name.as_encoded_bytes().starts_with(b"."));
    names.sort_by(|a: &OsString, b: &OsString| bytes(a).cmp(bytes(b)));
    Ok(names.into_iter().map(|name| dir.join(name)).collect())
}

fn bytes(name: &OsStr) -> &[u8] {
    name.as_encoded_bytes()
}

#[cfg(unix)]
fn file_id(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn file_id(_: &Path) -> Option<(u64, u64)> {
    None
}

//! `trust.json`: which directories were answered for (events.md B.3). One flat object from
//! canonical paths to true, false or null; the nearest answer above a directory counts. What
//! cannot be read trusts nothing and is left as it is.

use super::kept_json::{self, FileError, Keys};
use serde_json::{Map, Value};
use std::path::{Component, Path, PathBuf};

/// The file of one agent directory.
#[derive(Clone, Debug)]
pub struct TrustStore {
    path: PathBuf,
}

/// What stands in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Saved {
    /// Keys as they are written, and normalised; `None` is null.
    answers: Vec<(String, PathBuf, Option<bool>)>,
}

/// An answer and the directory it was given for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub trusted: bool,
    pub at: PathBuf,
}

/// What becomes of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    Yes,
    No,
    /// As if it were not there: what is said above it counts.
    Null,
    Remove,
}

/// The one spelling of a directory: links resolved where they can be.
pub fn canonical(dir: &Path) -> PathBuf {
    let real = std::fs::canonicalize(dir).or_else(|_| std::path::absolute(dir));
    normal(&real.unwrap_or_else(|_| dir.to_owned()))
}

/// A spelling without what only looks different: `.`, doubled and final separators, and what
/// Windows writes in several ways. Follows no link.
fn normal(path: &Path) -> PathBuf {
    let path =
        if cfg!(windows) { PathBuf::from(windows_key(&path.to_string_lossy())) } else { path.to_owned() };
    path.components().filter(|c| *c != Component::CurDir).collect()
}

/// `c:/users/u/p` and `\\?\C:\Users\u\p` are one place.
fn windows_key(path: &str) -> String {
    let path = path.replace('/', "\\");
    let path = match path.strip_prefix(r"\\?\UNC\") {
        Some(share) => format!(r"\\{share}"),
        None => path.strip_prefix(r"\\?\").unwrap_or(&path).to_owned(),
    };
    path.to_lowercase()
}

impl TrustStore {
    /// Of `$ATOMIC_HOME/agent`.
    pub fn of(agent_dir: &Path) -> Self {
        TrustStore { path: agent_dir.join("trust.json") }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn read(&self) -> Result<Saved, FileError> {
        let map = kept_json::read(&self.path, Keys::Once)?;
        self.understand(&map)
    }

    fn understand(&self, map: &Map<String, Value>) -> Result<Saved, FileError> {
        let mut answers = Vec::new();
        for (key, value) in map {
            let path = Path::new(key);
            let answer = match value {
                Value::Bool(yes) => Some(*yes),
                Value::Null => None,
                // A key of a later version; a path with something else is no answer at all.
                _ if !is_absolute(path) => continue,
                other => {
                    let why = format!("{key:?} is {other}, not true, false or null");
                    return Err(FileError::Broken { path: self.path.clone(), why });
                }
            };
            if is_absolute(path) {
                answers.push((key.clone(), normal(path), answer));
            }
        }
        Ok(Saved { answers })
    }

    /// All changes or none. Other spellings of the same directories go.
    pub fn set(&self, changes: &[(PathBuf, Entry)]) -> Result<(), FileError> {
        kept_json::update(&self.path, Keys::Once, |map| {
            let saved = self.understand(map)?;
            for (dir, entry) in changes {
                let dir = canonical(dir);
                for (key, at, _) in &saved.answers {
                    if *at == dir || canonical(at) == dir {
                        map.remove(key);
                    }
                }
                let value = match entry {
                    Entry::Yes => Value::Bool(true),
                    Entry::No => Value::Bool(false),
                    Entry::Null => Value::Null,
                    Entry::Remove => continue,
                };
                map.insert(dir.to_string_lossy().into_owned(), value);
            }
            map.sort_keys();
            Ok(())
        })
    }
}

/// Of either kind of system: the file may have been written on the other.
fn is_absolute(path: &Path) -> bool {
    path.is_absolute() || path.has_root()
}

impl Saved {
    /// The nearest answer: the directory's own, else that of the first one above it.
    pub fn lookup(&self, dir: &Path) -> Option<Answer> {
        let dir = canonical(dir);
        dir.ancestors().find_map(|at| Some(Answer { trusted: self.own(at)?, at: at.to_owned() }))
    }

    /// What is said of this directory itself. A no counts through whatever spelling it was given;
    /// a yes that is spelled through a link does not, since the link may lead elsewhere tomorrow.
    pub fn own(&self, canonical_dir: &Path) -> Option<bool> {
        let said = |yes: bool| {
            self.answers.iter().any(|(_, at, answer)| {
                *answer == Some(yes) && (at == canonical_dir || (!yes && canonical(at) == canonical_dir))
            })
        };
        if said(false) {
            return Some(false);
        }
        said(true).then_some(true)
    }

    /// As they are written.
    pub fn all(&self) -> impl Iterator<Item = (&str, Option<bool>)> {
        self.answers.iter().map(|(key, _, answer)| (key.as_str(), *answer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    struct Place(tempfile::TempDir);

    impl Place {
        fn new() -> Self {
            Place(tempfile::tempdir().unwrap())
        }
        fn dir(&self, below: &str) -> PathBuf {
            let dir = self.0.path().canonicalize().unwrap().join(below);
            fs::create_dir_all(&dir).unwrap();
            dir
        }
        fn store(&self) -> TrustStore {
            TrustStore::of(&self.dir("agent"))
        }
        fn with(&self, entries: &[(PathBuf, &str)]) -> TrustStore {
            let rows: Vec<String> =
                entries.iter().map(|(dir, value)| format!("{:?}: {value}", dir.to_str().unwrap())).collect();
            fs::write(self.store().path(), format!("{{{}}}", rows.join(","))).unwrap();
            self.store()
        }
    }

    fn trusted(store: &TrustStore, dir: &Path) -> Option<bool> {
        store.read().unwrap().lookup(dir).map(|a| a.trusted)
    }

    #[test]
    fn b04_the_nearest_answer_above_a_canonical_path_counts() {
        let p = Place::new();
        let (home, dotfiles, other) = (p.dir("kun"), p.dir("kun/pi-dotfiles"), p.dir("kun/other"));
        let store = p.with(&[(home, "false"), (dotfiles.clone(), "true")]);
        assert_eq!(trusted(&store, &dotfiles), Some(true));
        assert_eq!(trusted(&store, &p.dir("kun/pi-dotfiles/sub")), Some(true));
        assert_eq!(trusted(&store, &other), Some(false));
        assert_eq!(trusted(&store, &p.dir("elsewhere")), None);
        #[cfg(unix)]
        {
            let link = p.dir("kun").join("lnk");
            std::os::unix::fs::symlink(&dotfiles, &link).unwrap();
            assert_eq!(trusted(&store, &link), Some(true));
        }
    }

    #[test]
    fn null_hands_the_question_up() {
        let p = Place::new();
        let (outer, inner) = (p.dir("a"), p.dir("a/b"));
        let store = p.with(&[(outer.clone(), "true"), (inner.clone(), "null")]);
        let found = store.read().unwrap().lookup(&inner).unwrap();
        assert_eq!((found.trusted, found.at), (true, outer));
    }

    #[test]
    fn a_name_that_only_begins_alike_is_another_directory() {
        let p = Place::new();
        let store = p.with(&[(p.dir("work"), "true")]);
        assert_eq!(trusted(&store, &p.dir("workshop")), None);
    }

    #[cfg(unix)]
    #[test]
    fn a_no_counts_through_a_link_and_a_yes_does_not() {
        let p = Place::new();
        let real = p.dir("real");
        let link = p.dir("links").join("l");
        std::os::unix::fs::symlink(&real, &link).unwrap();
        assert_eq!(trusted(&p.with(&[(link.clone(), "false")]), &real), Some(false));
        assert_eq!(trusted(&p.with(&[(link.clone(), "true")]), &real), None);
        // Two spellings that disagree: no.
        assert_eq!(trusted(&p.with(&[(real.clone(), "true"), (link, "false")]), &real), Some(false));
        let doubled = PathBuf::from(format!("{}/./", real.display()));
        assert_eq!(trusted(&p.with(&[(doubled, "true")]), &real), Some(true));
    }

    #[test]
    fn b04_windows_spellings_of_a_directory_are_one_key() {
        let keys = [r"C:\Users\u\p", "c:/users/u/p", r"\\?\C:\Users\u\p"].map(windows_key);
        assert_eq!(keys[0], keys[1]);
        assert_eq!(keys[0], keys[2]);
        assert_eq!(windows_key(r"\\?\UNC\host\share"), windows_key(r"\\host\share"));
    }

    #[test]
    fn it_is_written_sorted_with_two_spaces_and_a_last_newline_and_other_spellings_go() {
        let p = Place::new();
        let (a, b) = (p.dir("a"), p.dir("b"));
        let store =
            p.with(&[(PathBuf::from(format!("{}/", b.display())), "false"), (PathBuf::from("note"), "[1]")]);
        store.set(&[(b.clone(), Entry::Yes), (a.clone(), Entry::Null)]).unwrap();
        let text = fs::read_to_string(store.path()).unwrap();
        assert_eq!(
            text,
            format!(
                "{{\n  {:?}: null,\n  {:?}: true,\n  \"note\": [\n    1\n  ]\n}}\n",
                a.to_str().unwrap(),
                b.to_str().unwrap()
            )
        );
        store.set(&[(b.clone(), Entry::Remove)]).unwrap();
        assert_eq!(trusted(&store, &b), None);
    }

    #[test]
    fn a_broken_file_or_a_value_that_is_no_answer_trusts_nothing_and_stays() {
        let p = Place::new();
        let dir = p.dir("a");
        let key = dir.to_str().unwrap();
        for text in [
            format!("{{\"{key}\":true,\"{key}\":true}}"),
            format!("{{\"{key}\":\"true\"}}"),
            format!("{{\"{key}\":true"),
            "[]".to_owned(),
        ] {
            let store = p.store();
            fs::write(store.path(), &text).unwrap();
            assert!(store.read().is_err(), "{text}");
            assert!(store.set(&[(dir.clone(), Entry::Yes)]).is_err(), "{text}");
            assert_eq!(fs::read_to_string(store.path()).unwrap(), text);
        }
    }
}

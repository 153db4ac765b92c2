//! `library-pins.json`: which bytes of a project's libraries a remembered yes was given for
//! (decisions.md "Pinning"). `{canonical project: {path inside it: sha256}}`, under the same rules
//! of reading and writing as trust.json.

use super::{
    kept_json::{self, FileError, Keys},
    store::canonical,
};
use serde_json::{Map, Value};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

/// Path inside the project to hash.
pub type Hashes = BTreeMap<String, String>;

/// The file of one agent directory.
#[derive(Clone, Debug)]
pub struct Pins {
    path: PathBuf,
}

/// How a library differs from what was pinned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    Added,
    Changed { from: String },
}

impl Pins {
    /// Of `$ATOMIC_HOME/agent`.
    pub fn of(agent_dir: &Path) -> Self {
        Pins { path: agent_dir.join("library-pins.json") }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All pinned projects.
    pub fn all(&self) -> Result<BTreeMap<PathBuf, Hashes>, FileError> {
        let map = kept_json::read(&self.path, Keys::Once)?;
        self.understand(&map)
    }

    fn understand(&self, map: &Map<String, Value>) -> Result<BTreeMap<PathBuf, Hashes>, FileError> {
        let broken = |why: String| FileError::Broken { path: self.path.clone(), why };
        let read = map.iter().map(|(project, pins)| {
            // Not as if nothing had been pinned: that would let in what was never shown.
            let pins = pins.as_object().ok_or_else(|| broken(format!("{project:?} has no libraries")))?;
            let hashes = pins.iter().map(|(library, hash)| {
                let hash = hash.as_str().ok_or_else(|| broken(format!("{library:?} has no hash")))?;
                Ok((library.clone(), hash.to_owned()))
            });
            Ok((PathBuf::from(project), hashes.collect::<Result<Hashes, FileError>>()?))
        });
        read.collect()
    }

    /// `None`: nothing was ever pinned for it.
    pub fn get(&self, project: &Path) -> Result<Option<Hashes>, FileError> {
        Ok(self.all()?.remove(&canonical(project)))
    }

    /// These and no others. `None` forgets the project.
    pub fn set(&self, project: &Path, hashes: Option<&Hashes>) -> Result<(), FileError> {
        let key = canonical(project).to_string_lossy().into_owned();
        if hashes.is_none() && !self.path.exists() {
            return Ok(());
        }
        kept_json::update(&self.path, Keys::Once, |map| {
            self.understand(map)?;
            match hashes {
                Some(hashes) => {
                    let pins = hashes.iter().map(|(library, hash)| (library.clone(), hash.clone().into()));
                    map.insert(key, Value::Object(pins.collect()));
                }
                None => drop(map.shift_remove(&key)),
            }
            map.sort_keys();
            Ok(())
        })
    }
}

/// How a library is called in the pins of its project.
pub fn name_in(project: &Path, library: &Path) -> String {
    let inside = library.strip_prefix(project).or_else(|_| library.strip_prefix(canonical(project)));
    inside.unwrap_or(library).to_string_lossy().replace('\\', "/")
}

/// What is there and was not pinned like this. What is gone is no difference that could act.
pub fn differences(pinned: &Hashes, found: &Hashes) -> BTreeMap<String, Difference> {
    let differs = found.iter().filter_map(|(library, hash)| match pinned.get(library) {
        Some(pin) if pin == hash => None,
        Some(pin) => Some((library.clone(), Difference::Changed { from: pin.clone() })),
        None => Some((library.clone(), Difference::Added)),
    });
    differs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashes(of: &[(&str, &str)]) -> Hashes {
        of.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    #[test]
    fn pins_of_several_projects_stand_side_by_side_and_are_forgotten_one_by_one() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        let pins = Pins::of(dir.path());
        assert_eq!(pins.get(&a).unwrap(), None);
        pins.set(&a, None).unwrap();
        assert!(!pins.path().exists(), "nothing to forget writes nothing");
        pins.set(&a, Some(&hashes(&[("x.so", "1")]))).unwrap();
        pins.set(&b, Some(&hashes(&[]))).unwrap();
        assert_eq!(pins.get(&a).unwrap(), Some(hashes(&[("x.so", "1")])));
        assert_eq!(pins.get(&b).unwrap(), Some(hashes(&[])), "pinned, and nothing may load");
        pins.set(&a, None).unwrap();
        assert_eq!(pins.get(&a).unwrap(), None);
        assert_eq!(pins.all().unwrap().len(), 1);
    }

    #[test]
    fn new_and_changed_libraries_differ_and_missing_ones_do_not() {
        let pinned = hashes(&[("same", "1"), ("changed", "2"), ("gone", "3")]);
        let found = hashes(&[("same", "1"), ("changed", "9"), ("new", "4")]);
        let expected = [
            ("changed".to_owned(), Difference::Changed { from: "2".into() }),
            ("new".to_owned(), Difference::Added),
        ];
        assert_eq!(differences(&pinned, &found), expected.into());
    }

    #[test]
    fn a_broken_file_pins_nothing_and_is_left_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let pins = Pins::of(dir.path());
        for text in [
            "{\"/p\":5}",
            "{\"/p\":null}",
            "{\"/p\":[]}",
            "{\"/p\":{\"x\":1}}",
            "{\"/p\":{},\"/p\":{}}",
            "nonsense",
        ] {
            std::fs::write(pins.path(), text).unwrap();
            assert!(pins.get(Path::new("/p")).is_err(), "{text}");
            assert!(pins.set(Path::new("/q"), Some(&hashes(&[]))).is_err(), "{text}");
            assert_eq!(std::fs::read_to_string(pins.path()).unwrap(), text);
        }
    }

    #[test]
    fn a_library_is_named_from_its_project() {
        assert_eq!(
            name_in(Path::new("/p"), Path::new("/p/.atomic/extensions/x.so")),
            ".atomic/extensions/x.so"
        );
        assert_eq!(name_in(Path::new("/p"), Path::new("/elsewhere/x.so")), "/elsewhere/x.so");
    }
}

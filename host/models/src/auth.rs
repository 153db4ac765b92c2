//! `auth.json`: keys that a person stored with `atomic auth login`. Only its owner can read it;
//! writers take turns by a lock beside it; what it says of other things is kept.

use crate::{config, credential::Secret, file};
use serde_json::{Map, Value, json};
use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

const TYPE: &str = "type";
const API_KEY: &str = "api_key";

/// The file of one home. Need not exist.
#[derive(Clone, Debug)]
pub struct AuthStore {
    path: PathBuf,
}

/// What the file has of one provider.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Stored {
    /// As written: it may name a variable or a command like `apiKey` of `models.json`.
    Key(Secret),
    /// A login of another kind; its name.
    Other(String),
}

/// Why `auth.json` is not used, or not written. Its bytes are as they were.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AuthError {
    #[error("cannot read {}: {reason}", path.display())]
    Unreadable { path: PathBuf, reason: String },
    #[error("{}:{line}:{column}: {reason}\n  the file is left as it is; correct this place", path.display())]
    Syntax { path: PathBuf, line: usize, column: usize, reason: String },
    #[error("cannot write {}: {reason}\n  it is as it was", path.display())]
    NotWritten { path: PathBuf, reason: String },
}

impl AuthError {
    /// Stable; `atomic explain` knows it.
    pub fn code(&self) -> &'static str {
        match self {
            AuthError::Unreadable { .. } => "models::auth_unreadable",
            AuthError::Syntax { .. } => "models::auth_syntax",
            AuthError::NotWritten { .. } => "models::auth_not_written",
        }
    }
}

impl AuthStore {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        AuthStore { path: path.into() }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    fn map(&self) -> Result<Map<String, Value>, AuthError> {
        let bytes = match file::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Map::new()),
            Err(error) => {
                return Err(AuthError::Unreadable { path: self.path.clone(), reason: error.to_string() });
            }
        };
        let syntax =
            |(line, column, reason)| AuthError::Syntax { path: self.path.clone(), line, column, reason };
        let text = config::text(&bytes).map_err(syntax)?;
        if text.trim().is_empty() {
            return Ok(Map::new());
        }
        config::strict_object(text).map_err(|e| syntax((e.line(), e.column(), config::reason(&e))))
    }

    /// # Errors
    /// The file cannot be read or does not parse.
    pub(crate) fn read(&self) -> Result<Vec<(String, Stored)>, AuthError> {
        let stored = |entry: &Value| match (entry.get(TYPE).and_then(Value::as_str), entry.get("key")) {
            (Some(API_KEY) | None, Some(Value::String(key))) => Stored::Key(Secret::new(key)),
            (kind, _) => Stored::Other(kind.unwrap_or("unknown").to_owned()),
        };
        Ok(self.map()?.iter().map(|(name, entry)| (name.clone(), stored(entry))).collect())
    }

    /// Names of the providers that have something stored, and of what kind it is.
    ///
    /// # Errors
    /// The file cannot be read or does not parse.
    pub fn providers(&self) -> Result<Vec<(String, String)>, AuthError> {
        let kind = |s: Stored| match s {
            Stored::Key(_) => API_KEY.to_owned(),
            Stored::Other(kind) => kind,
        };
        Ok(self.read()?.into_iter().map(|(name, stored)| (name, kind(stored))).collect())
    }

    /// Stores a key, in the place of what was there of this provider.
    ///
    /// # Errors
    /// As of reading; then nothing is written. Or it cannot be written.
    pub fn set_key(&self, provider: &str, key: &str) -> Result<(), AuthError> {
        self.update(|map| {
            map.insert(provider.to_owned(), json!({TYPE: API_KEY, "key": key}));
        })
    }

    /// False: there was nothing of this provider.
    ///
    /// # Errors
    /// As of `set_key`.
    pub fn remove(&self, provider: &str) -> Result<bool, AuthError> {
        let mut was_there = self.map()?.contains_key(provider);
        if was_there {
            self.update(|map| was_there = map.shift_remove(provider).is_some())?;
        }
        Ok(was_there)
    }

    fn update(&self, change: impl FnOnce(&mut Map<String, Value>)) -> Result<(), AuthError> {
        let failed = |e: &io::Error| AuthError::NotWritten { path: self.path.clone(), reason: e.to_string() };
        // A link stays one; what it leads to is written.
        let target = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        let dir = target.parent().unwrap_or(Path::new(".")).to_owned();
        fs::create_dir_all(&dir).map_err(|e| failed(&e))?;
        let mut lock = target.clone().into_os_string();
        lock.push(".lock");
        let lock =
            File::options().create(true).truncate(false).write(true).open(lock).map_err(|e| failed(&e))?;
        lock.lock().map_err(|e| failed(&e))?;
        let mut map = self.map()?;
        change(&mut map);
        let write = || -> io::Result<()> {
            // Made for its owner alone.
            let mut new = tempfile::NamedTempFile::new_in(&dir)?;
            serde_json::to_writer_pretty(&mut new, &map)?;
            new.write_all(b"\n")?;
            new.as_file().sync_all()?;
            new.persist(&target)?;
            Ok(())
        };
        write().map_err(|e| failed(&e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(text: Option<&str>) -> (tempfile::TempDir, AuthStore) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agent").join("auth.json");
        if let Some(text) = text {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
        }
        (dir, AuthStore::new(path))
    }

    #[test]
    fn a_key_is_stored_for_its_owner_alone_and_what_else_is_there_is_kept() {
        let (_dir, store) = store(Some(
            "\u{feff}{\"later\":{\"type\":\"oauth\",\"refresh\":\"r\"},\"openai\":{\"key\":\"old\"},\"x\":1}",
        ));
        store.set_key("anthropic", "sk-1").unwrap();
        store.set_key("openai", "sk-2").unwrap();
        let text = fs::read_to_string(store.path()).unwrap();
        let map: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(map["later"], json!({"type": "oauth", "refresh": "r"}));
        assert_eq!(map["x"], 1);
        assert_eq!(map["openai"], json!({"type": "api_key", "key": "sk-2"}));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(fs::metadata(store.path()).unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert!(store.remove("openai").unwrap() && !store.remove("openai").unwrap());
        let kinds = store.providers().unwrap();
        assert_eq!(kinds[0], ("later".into(), "oauth".into()));
        assert_eq!(kinds[2], ("anthropic".into(), "api_key".into()));
    }

    #[test]
    fn a_broken_file_is_named_with_its_place_and_never_written() {
        for (text, line, words) in [
            ("{\n \"a\": ,}", 2, "expected value"),
            ("[]", 1, "this is a list"),
            ("\"x\"", 1, "expected an object"),
        ] {
            let (_dir, store) = store(Some(text));
            let error = store.set_key("a", "k").unwrap_err();
            assert_eq!(error.code(), "models::auth_syntax");
            let shown = error.to_string();
            assert!(shown.contains(&format!("auth.json:{line}:")) && shown.contains(words), "{shown}");
            assert!(store.remove("a").is_err());
            assert_eq!(fs::read_to_string(store.path()).unwrap(), text);
        }
    }

    #[test]
    fn many_writers_lose_nothing() {
        let (_dir, store) = store(None);
        let writers: Vec<_> = (0..8)
            .map(|n| {
                let store = store.clone();
                std::thread::spawn(move || store.set_key(&format!("p{n}"), "key").unwrap())
            })
            .collect();
        for writer in writers {
            writer.join().unwrap();
        }
        assert_eq!(store.providers().unwrap().len(), 8);
    }
}

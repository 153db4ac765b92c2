//! JSON files that a person may edit as well: trust, pins, settings. A byte order mark is
//! accepted, unknown keys stay, a file that cannot be read is never written over. Changes are
//! made under a lock beside the file and arrive in one rename. Knows nothing of what they mean.

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::{
    fmt,
    fs::{self, File, TryLockError},
    io::{self, Write},
    path::{Path, PathBuf},
    time::Duration,
};

const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(20);

/// Why a file was not read or not written. It is as it was.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("{} cannot be read: {source}", .path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// No JSON object, or a key twice where that could mean two things.
    #[error("{} cannot be used: {why}\nrepair or remove it; it was left as it is", .path.display())]
    Broken { path: PathBuf, why: String },
    #[error("{} is being changed by another process; try again", .path.display())]
    Busy { path: PathBuf },
    #[error("{} cannot be written: {source}", .path.display())]
    Unwritable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

impl FileError {
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "file::unreadable",
            Self::Broken { .. } => "file::broken",
            Self::Busy { .. } => "file::busy",
            Self::Unwritable { .. } => "file::unwritable",
        }
    }
}

/// Whether a key may stand twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// The last one counts, as JSON readers do.
    LastWins,
    /// Twice is broken: nobody can say which one was meant.
    Once,
}

/// A file that is not there is an empty object.
pub fn read(path: &Path, keys: Keys) -> Result<Map<String, Value>, FileError> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Map::new()),
        Err(source) => return Err(FileError::Unreadable { path: path.to_owned(), source }),
    };
    parse(&bytes, keys).map_err(|why| FileError::Broken { path: path.to_owned(), why })
}

fn parse(bytes: &[u8], keys: Keys) -> Result<Map<String, Value>, String> {
    let text = std::str::from_utf8(bytes).map_err(|e| format!("it is not UTF-8: {e}"))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    let value = match keys {
        Keys::LastWins => serde_json::from_str::<Value>(text).map_err(|e| e.to_string())?,
        Keys::Once => serde_json::from_str::<Unique>(text).map_err(|e| e.to_string())?.0,
    };
    match value {
        Value::Object(map) => Ok(map),
        _ => Err("it holds no JSON object".to_owned()),
    }
}

/// Reads, changes and writes under the lock; two processes never lose each other's change.
/// What `change` refuses is not written.
pub fn update<R, E: From<FileError>>(
    path: &Path,
    keys: Keys,
    change: impl FnOnce(&mut Map<String, Value>) -> Result<R, E>,
) -> Result<R, E> {
    // A link is somebody's way to keep the file elsewhere: what it points to is changed.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let unwritable = |source| FileError::Unwritable { path: path.clone(), source };
    let dir = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(dir).map_err(unwritable)?;
    let _lock = lock(&path)?;
    let before = read(&path, keys)?;
    let mut map = before.clone();
    let result = change(&mut map)?;
    if map != before {
        write(dir, &path, &map).map_err(unwritable)?;
    }
    Ok(result)
}

fn lock(path: &Path) -> Result<File, FileError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let unwritable = |source| FileError::Unwritable { path: path.to_owned(), source };
    let file = File::options().create(true).append(true).open(PathBuf::from(name)).map_err(unwritable)?;
    for n in 1.. {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::WouldBlock) if n < TRIES => std::thread::sleep(PAUSE),
            Err(TryLockError::WouldBlock) => return Err(FileError::Busy { path: path.to_owned() }),
            Err(TryLockError::Error(source)) => return Err(unwritable(source)),
        }
    }
    Ok(file)
}

fn write(dir: &Path, path: &Path, map: &Map<String, Value>) -> io::Result<()> {
    let mut text = serde_json::to_vec_pretty(map)?;
    text.push(b'\n');
    // Private from the first byte on; a file that others may read stays one.
    let mut file = tempfile::Builder::new().prefix(".tmp-").tempfile_in(dir)?;
    file.write_all(&text)?;
    if let Ok(old) = fs::metadata(path) {
        fs::set_permissions(file.path(), old.permissions())?;
    }
    file.persist(path).map_err(|e| e.error)?;
    Ok(())
}

/// A JSON value in which no object has a key twice.
struct Unique(Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(UniqueVisitor).map(Unique)
    }
}

struct UniqueVisitor;

impl<'de> Visitor<'de> for UniqueVisitor {
    type Value = Value;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }
    fn visit_bool<E>(self, v: bool) -> Result<Value, E> {
        Ok(v.into())
    }
    fn visit_i64<E>(self, v: i64) -> Result<Value, E> {
        Ok(v.into())
    }
    fn visit_u64<E>(self, v: u64) -> Result<Value, E> {
        Ok(v.into())
    }
    fn visit_f64<E>(self, v: f64) -> Result<Value, E> {
        Ok(v.into())
    }
    fn visit_str<E>(self, v: &str) -> Result<Value, E> {
        Ok(v.into())
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(Unique(value)) = seq.next_element()? {
            all.push(value);
        }
        Ok(Value::Array(all))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let Unique(value) = map.next_value()?;
            if all.contains_key(&key) {
                return Err(A::Error::custom(format_args!("the key {key:?} stands there twice")));
            }
            all.insert(key, value);
        }
        Ok(Value::Object(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.json");
        fs::write(&path, text).unwrap();
        (dir, path)
    }

    fn set(path: &Path, key: &str, value: Value) -> Result<(), FileError> {
        update(path, Keys::Once, |map| {
            map.insert(key.to_owned(), value);
            Ok(())
        })
    }

    #[test]
    fn a_byte_order_mark_and_unknown_keys_survive_a_change() {
        let (_dir, path) = file("\u{feff}{\"later\":{\"a\":[1,null]},\"b\":1}");
        set(&path, "b", json!(2)).unwrap();
        let map = read(&path, Keys::Once).unwrap();
        assert_eq!(Value::Object(map), json!({"later": {"a": [1, null]}, "b": 2}));
    }

    #[test]
    fn what_cannot_be_read_is_never_written_over() {
        for broken in ["{", "[]", "7", "{\"a\":1,\"a\":1}", "{\"a\":{\"b\":1,\"b\":2}}", "\u{0}", "{} x"] {
            let (_dir, path) = file(broken);
            assert!(matches!(read(&path, Keys::Once), Err(FileError::Broken { .. })), "{broken}");
            assert!(set(&path, "b", json!(2)).is_err(), "{broken}");
            assert_eq!(fs::read_to_string(&path).unwrap(), broken);
        }
        let (_dir, path) = file("{\"a\":1,\"a\":2}");
        assert_eq!(read(&path, Keys::LastWins).unwrap()["a"], 2);
    }

    #[test]
    fn changes_of_many_threads_are_all_there() {
        let (dir, path) = file("{}");
        std::thread::scope(|s| {
            for n in 0..4 {
                let path = &path;
                s.spawn(move || {
                    for m in 0..10 {
                        // Busy is an answer too: whoever gets it tries again.
                        while matches!(set(path, &format!("{n}-{m}"), json!(n)), Err(FileError::Busy { .. }))
                        {
                        }
                    }
                });
            }
        });
        assert_eq!(read(&path, Keys::Once).unwrap().len(), 40);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "the file and its lock, nothing else");
    }

    #[test]
    fn somebody_who_keeps_the_lock_is_waited_for_and_then_named() {
        let (_dir, path) = file("{}");
        let held = lock(&path).unwrap();
        assert!(matches!(set(&path, "a", json!(1)), Err(FileError::Busy { .. })));
        drop(held);
        set(&path, "a", json!(1)).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_linked_file_is_changed_where_it_lies() {
        let (dir, path) = file("{}");
        let link = dir.path().join("link.json");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        set(&link, "a", json!(1)).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(read(&path, Keys::Once).unwrap()["a"], 1);
    }
}

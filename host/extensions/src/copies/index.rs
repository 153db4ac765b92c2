//! What is remembered of files: `index.json`, and the same in memory.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use std::{
    collections::BTreeMap,
    fs::Metadata,
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

const VERSION: u32 = 1;
/// Files nobody asked about for so long are forgotten.
const FORGET_DAYS: u64 = 30;

/// Which file it is and whether it changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stamp {
    dev: u64,
    ino: u64,
    size: u64,
    /// Nanoseconds since 1970.
    mtime: i64,
    ctime: i64,
}

impl Stamp {
    /// None where there is no ctime: nothing can be remembered there, since the
    /// other times can be set by anybody.
    #[cfg(unix)]
    pub(super) fn of(metadata: &Metadata) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        let nanos = |seconds: i64, nanos: i64| seconds.saturating_mul(1_000_000_000).saturating_add(nanos);
        Some(Self {
            dev: metadata.dev(),
            ino: metadata.ino(),
            size: metadata.size(),
            mtime: nanos(metadata.mtime(), metadata.mtime_nsec()),
            ctime: nanos(metadata.ctime(), metadata.ctime_nsec()),
        })
    }

    #[cfg(not(unix))]
    pub(super) fn of(_: &Metadata) -> Option<Self> {
        None
    }

    /// Both times lie longer ago than `age` (and not in the future).
    pub(super) fn older_than(&self, age: Duration, now: SystemTime) -> bool {
        let now = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        u128::try_from(self.mtime.max(self.ctime)).unwrap_or(0) + age.as_nanos() <= now
    }

    fn key(&self) -> String {
        format!("{}:{}", self.dev, self.ino)
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    stamp: Stamp,
    sha256: String,
    manifest: Box<RawValue>,
    /// Day since 1970 of the last time somebody asked.
    used: u64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Index {
    version: u32,
    files: BTreeMap<String, Entry>,
    #[serde(skip)]
    dirty: bool,
}

impl Index {
    /// Whatever is wrong with it, it is only a cache.
    pub(super) fn load(path: &Path) -> Self {
        let read = std::fs::read(path).ok().and_then(|bytes| serde_json::from_slice::<Self>(&bytes).ok());
        let mut index = read.filter(|index| index.version == VERSION).unwrap_or_default();
        // The hash becomes part of a path.
        index.files.retain(|_, entry| {
            entry.sha256.len() == 64 && entry.sha256.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
        });
        index
    }

    pub(super) fn get<T: DeserializeOwned>(&mut self, stamp: &Stamp, now: SystemTime) -> Option<(String, T)> {
        let entry = self.files.get_mut(&stamp.key()).filter(|entry| entry.stamp == *stamp)?;
        let manifest = serde_json::from_str(entry.manifest.get()).ok()?;
        if entry.used != day(now) {
            entry.used = day(now);
            self.dirty = true;
        }
        Some((entry.sha256.clone(), manifest))
    }

    pub(super) fn put<T: Serialize>(&mut self, stamp: Stamp, sha256: &str, manifest: &T, now: SystemTime) {
        let Ok(manifest) = serde_json::value::to_raw_value(manifest) else { return };
        let entry = Entry { sha256: sha256.to_owned(), manifest, used: day(now), stamp };
        self.files.insert(entry.stamp.key(), entry);
        self.dirty = true;
    }

    pub(super) fn is_dirty(&self) -> bool {
        self.dirty
    }

    pub(super) fn to_json(&self, now: SystemTime) -> Vec<u8> {
        let files = self.files.iter().filter(|(_, entry)| entry.used + FORGET_DAYS >= day(now)).collect();
        let kept = Kept { version: VERSION, files };
        serde_json::to_vec(&kept).unwrap_or_default()
    }
}

#[derive(Serialize)]
struct Kept<'a> {
    version: u32,
    files: BTreeMap<&'a String, &'a Entry>,
}

fn day(now: SystemTime) -> u64 {
    now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() / 86_400)
}

//! Private copies of libraries, named by their content, and what is remembered
//! of files so that an unchanged one is neither read nor hashed nor decoded again.
//!
//! The host never maps the author's file: a compiler may write into it at any
//! time. Knows bytes and paths; what a manifest is, the caller says.

mod index;
mod prune;
#[cfg(test)]
mod swap;
#[cfg(test)]
mod tests;

use crate::filecheck::{self, Opened};
use index::{Index, Stamp};
use serde::{Serialize, de::DeserializeOwned};
use sha2::{Digest, Sha256};
use std::{
    collections::HashSet,
    fs::{self, File},
    io::{self, Read, Seek, Write},
    path::{Path, PathBuf},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, SystemTime},
};

pub use prune::Pruned;

/// A library longer than this is not one.
const MAX_BYTES: u64 = 1 << 30;
/// A file may still change within its own time stamp while it is this young.
const YOUNG: Duration = Duration::from_secs(2);
/// A copy in use is marked so at most once in this time.
const MARK: Duration = Duration::from_secs(24 * 60 * 60);

/// Why there is no copy.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    #[error("{} cannot be read: {source}", .path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} is larger than 1 GiB and was not read", .path.display())]
    TooBig { path: PathBuf },
    /// It is not what was hashed, and perhaps shown to the user, a moment ago.
    #[error("{} changed while it was being loaded; start again, or /reload", .path.display())]
    Changed { path: PathBuf },
    #[error("no private copy of {} could be written to {}: {source}", .path.display(), .to.display())]
    Unwritable {
        path: PathBuf,
        to: PathBuf,
        #[source]
        source: io::Error,
    },
}

impl CopyError {
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "extension::unreadable",
            Self::TooBig { .. } => "extension::too_big",
            Self::Changed { .. } => "extension::changed",
            Self::Unwritable { .. } => "extension::copy_failed",
        }
    }
}

/// A file that was identified, or a caller's own reason why it is no library.
#[derive(Debug)]
pub enum NotIdentified<E> {
    Copy(CopyError),
    Manifest(E),
}

/// A library whose content is known, still open.
#[derive(Debug)]
pub struct Identified<T> {
    pub path: PathBuf,
    /// Lower-case hex.
    pub sha256: String,
    pub manifest: T,
    file: File,
    size: u64,
    /// What was hashed, unless the hash was remembered.
    bytes: Option<Vec<u8>>,
}

impl<T> Identified<T> {
    /// Neither read nor hashed: the file is the one that is remembered.
    pub fn was_remembered(&self) -> bool {
        self.bytes.is_none()
    }

    pub fn size(&self) -> u64 {
        self.size
    }

    /// Gives up what was read: `place` reads the open file again and refuses other bytes.
    pub fn release(&mut self) {
        self.bytes = None;
    }
}

type Clock = Box<dyn Fn() -> SystemTime + Send + Sync>;

pub struct Copies {
    /// The index and, if they can be written there, the copies.
    cache: PathBuf,
    /// Where copies go.
    dir: PathBuf,
    /// Why `dir` is not `cache`.
    problem: Option<String>,
    _temp: Option<tempfile::TempDir>,
    index: Mutex<Index>,
    /// Copies of this process, which pruning leaves alone.
    placed: Mutex<HashSet<PathBuf>>,
    /// Buffers between two libraries: fresh pages for each would cost a quarter of the reading.
    spare: Mutex<Vec<Vec<u8>>>,
    clock: Clock,
}

impl Copies {
    /// `home` is `$ATOMIC_HOME`. Never fails: what cannot be kept there goes to a
    /// private temporary directory, and what cannot be read is not remembered.
    pub fn open(home: &Path) -> Self {
        Self::with_clock(home, Box::new(SystemTime::now))
    }

    fn with_clock(home: &Path, clock: Clock) -> Self {
        let cache = home.join("cache").join("extensions");
        let index = Index::load(&cache.join(INDEX));
        let (dir, temp, problem) = match usable(&cache) {
            Ok(()) => (cache.clone(), None, None),
            Err(why) => {
                let temp =
                    tempfile::Builder::new().prefix(&format!("{TEMP_DIR}{}-", std::process::id())).tempdir();
                let dir = temp.as_ref().map_or_else(|_| cache.clone(), |temp| temp.path().to_owned());
                (dir, temp.ok(), Some(why))
            }
        };
        Self {
            cache,
            dir,
            problem,
            _temp: temp,
            index: Mutex::new(index),
            placed: Mutex::default(),
            spare: Mutex::default(),
            clock,
        }
    }

    /// Why copies of this run are kept in a temporary directory, if they are.
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// Hash and manifest of an opened file: remembered if device, inode, size and
    /// both times are the same and it was old enough when it was hashed, else read.
    /// `always_hash` is for files that are pinned.
    pub fn identify<T, E>(
        &self,
        opened: Opened,
        always_hash: bool,
        decode: impl FnOnce(&[u8]) -> Result<T, E>,
    ) -> Result<Identified<T>, NotIdentified<E>>
    where
        T: Serialize + DeserializeOwned,
    {
        let Opened { path, mut file, metadata } = opened;
        let now = (self.clock)();
        let stamp = Stamp::of(&metadata);
        let known = stamp.as_ref().filter(|stamp| !always_hash && stamp.older_than(YOUNG, now));
        if let Some((sha256, manifest)) = known.and_then(|stamp| lock(&self.index).get(stamp, now)) {
            return Ok(Identified { path, sha256, manifest, file, size: metadata.len(), bytes: None });
        }
        let bytes = self.read(&path, &mut file, metadata.len()).map_err(NotIdentified::Copy)?;
        let sha256 = sha256_hex(&bytes);
        let manifest = decode(&bytes).map_err(NotIdentified::Manifest)?;
        // Looked at again: what was written meanwhile must not be remembered as this.
        let after = file.metadata().ok().and_then(|metadata| Stamp::of(&metadata));
        if let Some(stamp) =
            stamp.filter(|stamp| Some(stamp) == after.as_ref() && stamp.older_than(YOUNG, now))
        {
            lock(&self.index).put(stamp, &sha256, &manifest, now);
        }
        Ok(Identified { path, sha256, manifest, file, size: bytes.len() as u64, bytes: Some(bytes) })
    }

    /// The private copy to open. `mapping` 0 is the first; another number gives
    /// the same bytes another name, for a library whose last mapping may not be used again.
    pub fn place<T>(&self, library: &mut Identified<T>, mapping: u32) -> Result<PathBuf, CopyError> {
        let folder = match mapping {
            0 => library.sha256.clone(),
            n => format!("{}-{n}", library.sha256),
        };
        let name = library.path.file_name().unwrap_or("library".as_ref());
        let copy = self.dir.join(folder).join(name);
        if !self.is_there(&copy, library.size) {
            let bytes = match &library.bytes {
                Some(bytes) => bytes,
                None => {
                    let bytes = self.read(&library.path, &mut library.file, library.size)?;
                    if sha256_hex(&bytes) != library.sha256 {
                        return Err(CopyError::Changed { path: library.path.clone() });
                    }
                    library.bytes.insert(bytes)
                }
            };
            write_private(&self.dir, &copy, bytes).map_err(|source| CopyError::Unwritable {
                path: library.path.clone(),
                to: copy.clone(),
                source,
            })?;
        }
        lock(&self.placed).insert(copy.clone());
        // The bytes have served: with fifty libraries they would be the peak of the memory.
        if let Some(bytes) = library.bytes.take() {
            lock(&self.spare).push(bytes);
        }
        Ok(copy)
    }

    /// The whole file, in a buffer that an earlier one has left.
    fn read(&self, path: &Path, file: &mut File, size: u64) -> Result<Vec<u8>, CopyError> {
        let mut bytes = lock(&self.spare).pop().unwrap_or_default();
        read(path, file, size, &mut bytes)?;
        Ok(bytes)
    }

    /// Keeps what was learned for the next start. Once per start; a directory
    /// that cannot be written is not an error.
    pub fn save(&self) {
        lock(&self.spare).clear();
        let index = lock(&self.index);
        if !index.is_dirty() || self.problem.is_some() {
            return;
        }
        if let Err(error) =
            write_private(&self.cache, &self.cache.join(INDEX), &index.to_json((self.clock)()))
        {
            tracing::debug!("the index of extension files was not saved: {error}");
        }
    }

    /// Removes copies nobody used for 30 days, the oldest of more than 1 GB, and
    /// what dead processes left half-written. May take its time: not before the first prompt.
    pub fn prune(&self) -> Pruned {
        let placed = lock(&self.placed).clone();
        let pruned = prune::copies(&self.dir, &placed, (self.clock)());
        prune::temp_dirs(&std::env::temp_dir());
        pruned
    }

    /// A whole copy of ours is there. Says of a copy that it is in use.
    fn is_there(&self, copy: &Path, size: u64) -> bool {
        let Ok(metadata) = fs::symlink_metadata(copy) else { return false };
        // No fsync: a power cut may have left it short.
        if !metadata.is_file() || metadata.len() != size {
            return false;
        }
        let now = (self.clock)();
        let marked = metadata.modified().ok().and_then(|marked| now.duration_since(marked).ok());
        if marked.is_none_or(|ago| ago > MARK) {
            let _ = File::open(copy).and_then(|file| file.set_modified(now));
        }
        true
    }
}

const INDEX: &str = "index.json";
/// Names that carry the process id, so that leftovers can be told from work in progress.
const TEMP_FILE: &str = ".tmp-";
const TEMP_DIR: &str = "atomic-extensions-";

/// Makes the directory, private, and sees that nobody else can write to it.
fn usable(dir: &Path) -> Result<(), String> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir).map_err(|error| format!("{} cannot be made: {error}", dir.display()))?;
    filecheck::check_directory(dir).map_err(|refusal| refusal.to_string())?;
    let probe = dir.join(format!("{TEMP_FILE}{}-probe", std::process::id()));
    File::create(&probe).map_err(|error| format!("{} cannot be written: {error}", dir.display()))?;
    let _ = fs::remove_file(probe);
    Ok(())
}

fn read(path: &Path, file: &mut File, size: u64, bytes: &mut Vec<u8>) -> Result<(), CopyError> {
    let unreadable = |source| CopyError::Unreadable { path: path.to_owned(), source };
    if size > MAX_BYTES {
        return Err(CopyError::TooBig { path: path.to_owned() });
    }
    file.rewind().map_err(unreadable)?;
    bytes.clear();
    bytes.reserve_exact(usize::try_from(size).unwrap_or(0) + 1);
    file.take(MAX_BYTES + 1).read_to_end(bytes).map_err(unreadable)?;
    match bytes.len() as u64 > MAX_BYTES {
        true => Err(CopyError::TooBig { path: path.to_owned() }),
        false => Ok(()),
    }
}

/// Writes under another name in `dir` and renames: readers see all or nothing.
/// No fsync: what a power cut loses is made again.
fn write_private(dir: &Path, to: &Path, bytes: &[u8]) -> io::Result<()> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let temp = dir.join(format!("{TEMP_FILE}{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed)));
    let written = (|| {
        if let Some(parent) = to.parent() {
            let mut builder = fs::DirBuilder::new();
            builder.recursive(true);
            #[cfg(unix)]
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            builder.create(parent)?;
        }
        let mut options = File::options();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o700);
        options.open(&temp)?.write_all(bytes)?;
        fs::rename(&temp, to)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&temp);
    }
    written
}

pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let digits = Sha256::digest(bytes);
    digits.iter().flat_map(|b| [HEX[usize::from(b >> 4)], HEX[usize::from(b & 15)]]).map(char::from).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

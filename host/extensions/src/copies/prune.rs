//! What a start removes from the copies.

use super::{TEMP_DIR, TEMP_FILE};
use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

const UNUSED: Duration = Duration::from_secs(30 * 24 * 60 * 60);
const MAX_BYTES: u64 = 1_000_000_000;

/// What was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    pub copies: usize,
    pub bytes: u64,
    pub temporary: usize,
}

pub(super) fn copies(dir: &Path, placed: &HashSet<PathBuf>, now: SystemTime) -> Pruned {
    copies_over(dir, placed, now, MAX_BYTES)
}

pub(super) fn copies_over(dir: &Path, placed: &HashSet<PathBuf>, now: SystemTime, max: u64) -> Pruned {
    let mut pruned = Pruned::default();
    let mut kept: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if let Some(rest) = name.strip_prefix(TEMP_FILE) {
            if owner_is_dead(rest) && fs::remove_file(&path).is_ok() {
                pruned.temporary += 1;
            }
        } else if is_copy(&name) && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let (used, bytes) = measure(&path);
            kept.push((used.unwrap_or(SystemTime::UNIX_EPOCH), bytes, path));
        }
    }
    kept.sort();
    let mut total: u64 = kept.iter().map(|(_, bytes, _)| bytes).sum();
    for (used, bytes, path) in kept {
        let unused = now.duration_since(used).is_ok_and(|ago| ago > UNUSED);
        let ours = placed.iter().any(|copy| copy.starts_with(&path));
        if (unused || total > max) && !ours && fs::remove_dir_all(&path).is_ok() {
            total -= bytes;
            pruned.copies += 1;
            pruned.bytes += bytes;
        }
    }
    pruned
}

/// Private directories of processes that could not use the cache.
pub(super) fn temp_dirs(dir: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        // Those of other users cannot be removed, which is fine.
        if name.strip_prefix(TEMP_DIR).is_some_and(owner_is_dead) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// `<sha256>` or `<sha256>-<n>`: nothing else in there is touched.
fn is_copy(name: &str) -> bool {
    let (hash, mapping) = name.split_once('-').unwrap_or((name, "0"));
    hash.len() == 64
        && hash.bytes().all(|b| b.is_ascii_hexdigit())
        && mapping.bytes().all(|b| b.is_ascii_digit())
}

fn measure(copy: &Path) -> (Option<SystemTime>, u64) {
    let files = fs::read_dir(copy).into_iter().flatten().flatten().filter_map(|entry| entry.metadata().ok());
    files.fold((None, 0), |(used, bytes), file| (used.max(file.modified().ok()), bytes + file.len()))
}

/// `<pid>-...` of a process that is gone. A reused pid only delays the removal.
#[cfg(unix)]
fn owner_is_dead(rest: &str) -> bool {
    use rustix::{io::Errno, process};
    let pid = rest.split('-').next().and_then(|pid| pid.parse().ok()).and_then(process::Pid::from_raw);
    pid.is_some_and(|pid| process::test_kill_process(pid) == Err(Errno::SRCH))
}

/// Nobody is asked there: leftovers stay until somebody empties the cache.
#[cfg(not(unix))]
fn owner_is_dead(_: &str) -> bool {
    false
}

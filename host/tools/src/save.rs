//! Replacing a file without ever losing it: the new bytes are complete beside it before they take its
//! place. Shared by `write` and `edit`, which also queue here for one file.

use crate::{aborted, path};
use atomic_agent::tool::ToolError;
use std::{
    collections::HashMap,
    fs::{self, File, Metadata, OpenOptions},
    io::{self, ErrorKind, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};
use tokio::sync::OwnedMutexGuard;
use tokio_util::sync::CancellationToken;

/// One queue a file. The loop already keeps calls with one key apart; this also holds when a gate has
/// changed the path since.
#[derive(Debug, Default)]
pub struct FileLocks(Mutex<HashMap<PathBuf, Arc<tokio::sync::Mutex<()>>>>);

impl FileLocks {
    pub async fn turn(
        &self,
        file: &Path,
        cancel: &CancellationToken,
    ) -> Result<OwnedMutexGuard<()>, ToolError> {
        let file = path::canonical(file);
        let queue = {
            let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            all.retain(|_, queue| Arc::strong_count(queue) > 1);
            all.entry(file).or_default().clone()
        };
        tokio::select! {
            biased;
            _ = cancel.cancelled() => Err(aborted()),
            turn = queue.lock_owned() => Ok(turn),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("it is a directory")]
    Directory,
    #[error("it is no regular file; use bash to write to devices and pipes")]
    Special,
    #[error("Operation aborted")]
    Aborted,
}

/// Writes `content` to what `file` points at and answers that path. Makes parents, follows links, keeps
/// permissions. Blocking. A cancel that comes before the very replacement leaves everything as it was.
pub fn replace(file: &Path, content: &[u8], cancel: &CancellationToken) -> Result<PathBuf, SaveError> {
    let target = follow(file)?;
    let existing = match fs::metadata(&target) {
        Ok(meta) if meta.is_dir() => return Err(SaveError::Directory),
        Ok(meta) if !meta.is_file() => return Err(SaveError::Special),
        Ok(meta) => Some(meta),
        Err(e) if e.kind() == ErrorKind::NotFound => None,
        Err(e) => return Err(e.into()),
    };
    if existing.is_some() {
        // A rename would also replace files that this user may not write; the open asks the system.
        match OpenOptions::new().write(true).open(&target) {
            Err(e) if matches!(e.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem) => {
                return Err(e.into());
            }
            _ => {}
        }
    }
    let dir = target.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(dir)?;
    if cancel.is_cancelled() {
        return Err(SaveError::Aborted);
    }
    match existing {
        Some(meta) if links(&meta) > 1 => in_place(&target, content)?,
        existing => match beside(dir, content, existing.as_ref()) {
            Ok(temp) if !cancel.is_cancelled() => take_place(temp, &target)?,
            Ok(_) => return Err(SaveError::Aborted),
            // The file may be written, its directory may not.
            Err(e) if existing.is_some() && e.kind() == ErrorKind::PermissionDenied => {
                in_place(&target, content)?
            }
            Err(e) => return Err(e.into()),
        },
    }
    Ok(path::canonical(&target))
}

/// The file at the end of the links, which may not exist yet.
fn follow(file: &Path) -> io::Result<PathBuf> {
    let mut file = file.to_path_buf();
    for _ in 0..40 {
        match fs::read_link(&file) {
            Ok(to) => file = file.parent().unwrap_or(Path::new("/")).join(to),
            Err(_) => return Ok(file),
        }
    }
    Err(io::Error::other("too many levels of symbolic links"))
}

fn beside(dir: &Path, content: &[u8], existing: Option<&Metadata>) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".atomic-").suffix(".tmp");
    #[cfg(unix)]
    {
        // New files get what the user's umask leaves, not the private mode of temporary ones.
        use std::os::unix::fs::PermissionsExt;
        let mode = if existing.is_some() { 0o600 } else { 0o666 };
        builder.permissions(fs::Permissions::from_mode(mode));
    }
    let mut temp = builder.tempfile_in(dir)?;
    temp.write_all(content)?;
    if let Some(existing) = existing {
        keep_owner(temp.as_file(), existing)?;
        temp.as_file().set_permissions(existing.permissions())?;
    }
    temp.as_file().sync_data()?;
    Ok(temp)
}

#[cfg(unix)]
fn links(meta: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::nlink(meta)
}

#[cfg(not(unix))]
fn links(_: &Metadata) -> u64 {
    1
}

/// Fails with `PermissionDenied` when the owner cannot be kept, which makes the caller write in place.
#[cfg(unix)]
fn keep_owner(temp: &File, existing: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let made = temp.metadata()?;
    if (made.uid(), made.gid()) == (existing.uid(), existing.gid()) {
        return Ok(());
    }
    std::os::unix::fs::fchown(temp, Some(existing.uid()), Some(existing.gid()))
}

#[cfg(not(unix))]
fn keep_owner(_: &File, _: &Metadata) -> io::Result<()> {
    Ok(())
}

fn take_place(temp: tempfile::NamedTempFile, target: &Path) -> io::Result<()> {
    let mut temp = temp.into_temp_path();
    // Windows refuses while another process (a scanner, an editor) holds the target open (field case B80).
    let attempts = if cfg!(windows) { 20 } else { 1 };
    for attempt in 1.. {
        match temp.persist(target) {
            Ok(()) => break,
            Err(e) if attempt < attempts => {
                temp = e.path;
                std::thread::sleep(std::time::Duration::from_millis(50));
            }
            Err(e) => return Err(e.error),
        }
    }
    Ok(())
}

/// For files whose directory entry must stay: hard links, foreign owners, closed directories.
fn in_place(target: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).truncate(true).open(target)?;
    file.write_all(content)?;
    file.sync_data()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn save(file: &Path, content: &str) -> Result<PathBuf, SaveError> {
        replace(file, content.as_bytes(), &CancellationToken::new())
    }

    #[cfg(unix)]
    #[test]
    fn permissions_and_links_survive_a_replacement() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("run.sh"), dir.path().join("link"));
        fs::write(&real, "old").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o751)).unwrap();
        symlink("run.sh", &link).unwrap();

        let resolved = save(&link, "new").unwrap();

        assert_eq!(resolved, real.canonicalize().unwrap());
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&real).unwrap(), "new");
        assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o751);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "no temporary file is left");
    }

    #[cfg(unix)]
    #[test]
    fn a_dangling_link_makes_the_file_it_points_at() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("sub/real", dir.path().join("link")).unwrap();
        save(&dir.path().join("link"), "x").unwrap();
        assert_eq!(fs::read_to_string(dir.path().join("sub/real")).unwrap(), "x");
    }

    #[cfg(unix)]
    #[test]
    fn hard_links_go_on_sharing_one_file() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        fs::write(&a, "old and longer").unwrap();
        fs::hard_link(&a, &b).unwrap();
        save(&a, "new").unwrap();
        assert_eq!(fs::read_to_string(&b).unwrap(), "new");
    }

    #[cfg(unix)]
    #[test]
    fn a_device_or_a_directory_is_no_file_to_write() {
        assert!(matches!(save(Path::new("/dev/null"), "x"), Err(SaveError::Special)));
        assert!(matches!(save(&std::env::temp_dir(), "x"), Err(SaveError::Directory)));
    }

    #[test]
    fn a_cancelled_replacement_leaves_the_old_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        fs::write(&file, "old").unwrap();
        let cancel = CancellationToken::new();
        cancel.cancel();
        assert!(matches!(replace(&file, b"new", &cancel), Err(SaveError::Aborted)));
        assert_eq!(fs::read_to_string(&file).unwrap(), "old");
    }
}

//! Putting a library among the user's extensions and taking it away again. Never in place:
//! a process that is loading the file sees the old bytes or the new ones.

use crate::{card::Card, paths::Paths};
use std::{
    env::consts::{DLL_PREFIX, DLL_SUFFIX},
    fs, io,
    path::{Path, PathBuf},
};

/// The file that an extension of this name is installed as.
pub fn file_name(id: &str) -> String {
    format!("{DLL_PREFIX}{}{DLL_SUFFIX}", id.replace(['-', '.'], "_"))
}

/// Copies `library` to `dir/name` through a temporary file and a rename.
pub fn put(library: &Path, dir: &Path, name: &str) -> Result<PathBuf, Card> {
    let place = dir.join(name);
    copy(library, dir, &place).map_err(|e| {
        Card::new("extension::install", "the library could not be copied")
            .file(&place)
            .why(e.to_string())
            .help("see that the folder can be written and the disk is not full")
    })?;
    Ok(place)
}

fn copy(library: &Path, dir: &Path, place: &Path) -> io::Result<()> {
    create_private(dir)?;
    let mut from = fs::File::open(library)?;
    let mut to = tempfile::Builder::new().prefix(".install-").tempfile_in(dir)?;
    io::copy(&mut from, to.as_file_mut())?;
    set_mode(to.path(), 0o755)?;
    to.as_file().sync_all()?;
    to.persist(place).map_err(|e| e.error)?;
    Ok(())
}

/// Not writable by others whatever the umask says: a library in such a folder is refused.
fn create_private(dir: &Path) -> io::Result<()> {
    let missing: Vec<_> = dir.ancestors().take_while(|d| !d.exists()).map(Path::to_owned).collect();
    for folder in missing.iter().rev() {
        match fs::create_dir(folder) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
            _ => set_mode(folder, 0o755)?,
        }
    }
    Ok(())
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

#[cfg(windows)]
fn set_mode(_: &Path, _: u32) -> io::Result<()> {
    Ok(())
}

/// Moves a file or folder into the trash of Atomic's home; says where to.
pub fn discard(paths: &Paths, installed: &Path, id: &str) -> io::Result<PathBuf> {
    let stamp = atomic_agent::message::now_ms();
    let folder = paths.trash().join(format!("{}-{stamp}", id.replace(['/', '\\'], "_")));
    fs::create_dir_all(&folder)?;
    let to = folder.join(installed.file_name().unwrap_or(installed.as_os_str()));
    fs::rename(installed, &to)?;
    Ok(to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_installed_library_replaces_the_old_one_in_one_step_and_leaves_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let source = dir.path().join("new.so");
        fs::write(&source, "new").unwrap();
        let extensions = dir.path().join("home/extensions");
        let place = put(&source, &extensions, "libx.so").unwrap();
        fs::write(&source, "newer").unwrap();
        put(&source, &extensions, "libx.so").unwrap();
        assert_eq!(fs::read(&place).unwrap(), b"newer");
        assert_eq!(fs::read_dir(&extensions).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn no_other_user_can_write_what_was_installed() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let source = dir.path().join("x.so");
        fs::write(&source, "x").unwrap();
        fs::set_permissions(&source, fs::Permissions::from_mode(0o777)).unwrap();
        let place = put(&source, &dir.path().join("home/extensions"), "libx.so").unwrap();
        for path in [place.clone(), place.parent().unwrap().to_owned()] {
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o022, 0, "{path:?}");
        }
    }
}

//! May a file be trusted to be what its owner put there? A library, or a
//! directory on its path, that another user could write is refused, as ssh does
//! with keys. Decided on the opened descriptor: what is checked is what is read.
//!
//! Knows nothing about extensions. On systems without unix modes everything passes.

use std::{
    fs::{File, Metadata},
    io,
    path::{Component, Path, PathBuf},
};

/// Why another user could change what is here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writable {
    ByEveryone,
    ByGroup,
    /// The owner is neither this user nor root.
    ByOwner(u32),
}

impl std::fmt::Display for Writable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::ByEveryone => f.write_str("every user may write it"),
            Self::ByGroup => f.write_str("its group may write it"),
            Self::ByOwner(uid) => write!(f, "it belongs to another user (uid {uid})"),
        }
    }
}

/// A file that is not opened, and why.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// It or a directory on its path could be changed by somebody else.
    #[error("{} is not used: {}: {why}; {}", .path.display(), .place.display(), advice(.place, *.why))]
    WritableByOthers { path: PathBuf, place: PathBuf, why: Writable },
    /// A directory, pipe, socket or device.
    #[error("{} is not a file", .path.display())]
    NotAFile { path: PathBuf },
    #[error("{} cannot be read: {source}", .path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

impl Refusal {
    pub fn code(&self) -> &'static str {
        match self {
            Self::WritableByOthers { .. } => "extension::writable_by_others",
            Self::NotAFile { .. } => "extension::not_a_file",
            Self::Unreadable { .. } => "extension::unreadable",
        }
    }
}

fn advice(place: &Path, why: Writable) -> String {
    match why {
        Writable::ByEveryone | Writable::ByGroup => format!("`chmod go-w {}` repairs that", place.display()),
        Writable::ByOwner(_) => "copy it to a place of your own".to_owned(),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    File,
    Directory,
    Link,
}

/// The rule: `uid` owns the thing, `me` asks.
pub fn writable_by_others(kind: Kind, mode: u32, uid: u32, me: u32) -> Option<Writable> {
    const STICKY: u32 = 0o1000;
    const EVERYONE: u32 = 0o002;
    const GROUP: u32 = 0o020;
    if uid != me && uid != 0 {
        return Some(Writable::ByOwner(uid));
    }
    // In a sticky directory nobody replaces what is ours; a link has no mode of its own.
    let exempt = match kind {
        Kind::File => false,
        Kind::Directory => mode & STICKY != 0,
        Kind::Link => true,
    };
    if exempt {
        None
    } else if mode & EVERYONE != 0 {
        Some(Writable::ByEveryone)
    } else if mode & GROUP != 0 {
        Some(Writable::ByGroup)
    } else {
        None
    }
}

/// A file that passed, still open.
#[derive(Debug)]
pub struct Opened {
    /// As it was asked for.
    pub path: PathBuf,
    pub file: File,
    pub metadata: Metadata,
}

/// Opens `path` (absolute) and checks the descriptor and every directory and
/// link on the way to it.
pub fn open(path: &Path) -> Result<Opened, Refusal> {
    open_as(path, me())
}

/// Checks a directory and the way to it, without opening anything in it.
pub fn check_directory(path: &Path) -> Result<(), Refusal> {
    check_way(path, path, me())
}

fn open_as(path: &Path, me: u32) -> Result<Opened, Refusal> {
    let unreadable = |source| Refusal::Unreadable { path: path.to_owned(), source };
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        // Opening a pipe must not wait for somebody to write to it.
        let flags = i32::try_from((OFlags::NONBLOCK | OFlags::NOCTTY).bits()).unwrap_or(0);
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags);
    }
    let file = options.open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(Refusal::NotAFile { path: path.to_owned() });
    }
    if let Some(why) = judge(Kind::File, &metadata, me) {
        return Err(Refusal::WritableByOthers { path: path.to_owned(), place: path.to_owned(), why });
    }
    check_way(path, path, me)?;
    Ok(Opened { path: path.to_owned(), file, metadata })
}

/// Walks to `to` one component at a time, through links, looking at each.
fn check_way(path: &Path, to: &Path, me: u32) -> Result<(), Refusal> {
    /// As the kernel does.
    const LINKS: usize = 40;
    let unreadable = |source| Refusal::Unreadable { path: path.to_owned(), source };
    let mut left: Vec<Step> = steps(to);
    let mut here = PathBuf::new();
    let mut links = 0;
    while let Some(step) = left.pop() {
        match step {
            Step::Root(root) => here = root,
            Step::Up => {
                here.pop();
                continue;
            }
            Step::Into(name) => here.push(name),
        }
        let metadata = std::fs::symlink_metadata(&here).map_err(unreadable)?;
        let kind = match metadata.file_type() {
            kind if kind.is_symlink() => Kind::Link,
            kind if kind.is_dir() => Kind::Directory,
            _ => Kind::File,
        };
        if let Some(why) = judge(kind, &metadata, me) {
            return Err(Refusal::WritableByOthers { path: path.to_owned(), place: here, why });
        }
        if kind == Kind::Link {
            links += 1;
            if links > LINKS {
                return Err(unreadable(io::Error::other("too many symbolic links")));
            }
            let target = std::fs::read_link(&here).map_err(unreadable)?;
            here.pop();
            left.extend(steps(&target));
        }
    }
    Ok(())
}

enum Step {
    Root(PathBuf),
    Up,
    Into(PathBuf),
}

/// The steps of a path, last first.
fn steps(path: &Path) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut root = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Prefix(_) | Component::RootDir => root.push(component),
            Component::CurDir => {}
            Component::ParentDir => steps.push(Step::Up),
            Component::Normal(name) => steps.push(Step::Into(name.into())),
        }
    }
    if root.has_root() {
        steps.insert(0, Step::Root(root));
    }
    steps.reverse();
    steps
}

#[cfg(unix)]
fn judge(kind: Kind, metadata: &Metadata, me: u32) -> Option<Writable> {
    use std::os::unix::fs::MetadataExt;
    writable_by_others(kind, metadata.mode(), metadata.uid(), me)
}

#[cfg(not(unix))]
fn judge(_: Kind, _: &Metadata, _: u32) -> Option<Writable> {
    None
}

#[cfg(unix)]
fn me() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg(not(unix))]
fn me() -> u32 {
    0
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use std::{
        fs::{self, Permissions},
        os::unix::fs::{PermissionsExt, symlink},
    };

    /// Another user, whoever runs the tests.
    const OTHER: u32 = 4_000_000_000;

    #[test]
    fn every_mode_and_owner_is_judged_by_the_one_rule() {
        for mode in 0..0o10000u32 {
            for (uid, me) in [(0, 0), (0, 7), (7, 7), (8, 7), (8, 0)] {
                for kind in [Kind::File, Kind::Directory, Kind::Link] {
                    let foreign = uid == 8;
                    let open = kind == Kind::File || (kind == Kind::Directory && mode & 0o1000 == 0);
                    let expected = match (foreign, open && mode & 0o002 != 0, open && mode & 0o020 != 0) {
                        (true, ..) => Some(Writable::ByOwner(8)),
                        (false, true, _) => Some(Writable::ByEveryone),
                        (false, false, true) => Some(Writable::ByGroup),
                        (false, false, false) => None,
                    };
                    assert_eq!(
                        writable_by_others(kind, mode, uid, me),
                        expected,
                        "{kind:?} {mode:o} {uid} {me}"
                    );
                }
            }
        }
    }

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    /// `dir/inner/x.so`, safe to begin with.
    fn library() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("inner");
        fs::create_dir(&inner).unwrap();
        mode(&inner, 0o755);
        let file = inner.join("x.so");
        fs::write(&file, "x").unwrap();
        mode(&file, 0o644);
        (dir, file)
    }

    fn refused(path: &Path) -> (PathBuf, Writable) {
        match open(path) {
            Err(Refusal::WritableByOthers { place, why, .. }) => (place, why),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_file_of_mine_in_directories_of_mine_is_opened() {
        let (_dir, file) = library();
        assert_eq!(open(&file).unwrap().metadata.len(), 1);
    }

    #[test]
    fn b81_a_writable_file_or_directory_on_the_way_is_refused_and_named() {
        let (dir, file) = library();
        mode(&file, 0o666);
        assert_eq!(refused(&file), (file.clone(), Writable::ByEveryone));
        mode(&file, 0o664);
        assert_eq!(refused(&file), (file.clone(), Writable::ByGroup));
        mode(&file, 0o644);
        mode(&dir.path().join("inner"), 0o777);
        assert_eq!(refused(&file), (dir.path().join("inner"), Writable::ByEveryone));
        mode(&dir.path().join("inner"), 0o755);
        mode(dir.path(), 0o770);
        assert_eq!(refused(&file), (dir.path().to_owned(), Writable::ByGroup));
    }

    #[test]
    fn a_sticky_directory_on_the_way_is_fine() {
        let (dir, file) = library();
        mode(dir.path(), 0o1777);
        assert!(open(&file).is_ok());
    }

    #[test]
    fn b81_a_link_is_followed_and_every_place_it_passes_is_looked_at() {
        let (dir, file) = library();
        let open_to_all = dir.path().join("shared");
        fs::create_dir(&open_to_all).unwrap();
        let hop = open_to_all.join("hop");
        symlink(&file, &hop).unwrap();
        let link = dir.path().join("inner/link.so");
        symlink("../shared/hop", &link).unwrap();
        assert!(open(&link).is_ok());
        // The file and both of its ends are safe, the place in between is not.
        mode(&open_to_all, 0o777);
        assert_eq!(refused(&link), (open_to_all, Writable::ByEveryone));
    }

    #[test]
    fn what_belongs_to_somebody_else_is_refused() {
        let (dir, file) = library();
        let owner = std::os::unix::fs::MetadataExt::uid(&fs::metadata(&file).unwrap());
        let refused = open_as(&file, OTHER);
        if owner == 0 {
            assert!(refused.is_ok(), "root may write everywhere anyway");
            rustix::fs::chown(&file, Some(rustix::fs::Uid::from_raw(OTHER)), None).unwrap();
            assert_eq!(self::refused(&file), (file.clone(), Writable::ByOwner(OTHER)));
        } else {
            assert!(matches!(refused, Err(Refusal::WritableByOthers { why: Writable::ByOwner(_), .. })));
        }
        drop(dir);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_pipe_is_no_file_and_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("x.so");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
        assert!(matches!(open(&pipe), Err(Refusal::NotAFile { .. })));
        assert!(matches!(open(dir.path()), Err(Refusal::NotAFile { .. })));
    }

    #[test]
    fn the_refusal_says_which_place_why_and_what_to_type() {
        let (_dir, file) = library();
        mode(&file, 0o666);
        let said = open(&file).unwrap_err();
        let file = file.display();
        assert_eq!(
            said.to_string(),
            format!("{file} is not used: {file}: every user may write it; `chmod go-w {file}` repairs that")
        );
        assert_eq!(said.code(), "extension::writable_by_others");
    }
}

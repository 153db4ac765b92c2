//! Where the page lives: in a file that a reader maps too, or in private memory.

#![allow(unsafe_code)]

use super::page::{MAGIC, Page};
use memmap2::{Mmap, MmapMut};
use std::{
    fs::{File, OpenOptions},
    io,
    ops::Deref,
    path::Path,
    sync::atomic::{
        AtomicPtr,
        Ordering::{AcqRel, Acquire, Release},
    },
};

/// Used until a page is installed, and for good when none is.
static PRIVATE: Page = Page::new();
/// Null: `PRIVATE`.
static CURRENT: AtomicPtr<Page> = AtomicPtr::new(std::ptr::null_mut());

pub(super) fn current() -> &'static Page {
    let page = CURRENT.load(Acquire);
    if page.is_null() {
        return &PRIVATE;
    }
    // SAFETY: (SAFETY.md 11) only `install` stores here, the address of a mapping of the size of
    // Page that is never unmapped; every bit pattern is a valid Page.
    unsafe { &*page }
}

/// Maps the page of this process into `path`, emptied; with None it stays private.
/// Once per process, before the first frame: threads that have a slot keep it.
pub fn install(path: Option<&Path>) -> io::Result<&'static Page> {
    if let Some(path) = path {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path)?;
        file.set_len(size_of::<Page>() as u64)?;
        // SAFETY: (SAFETY.md 11) the file was made and sized here; other processes may write it
        // (they are ours), and an atomic load of any value is fine.
        let mut mapping = unsafe { MmapMut::map_mut(&file)? };
        let address = mapping.as_mut_ptr().cast::<Page>();
        if CURRENT.compare_exchange(std::ptr::null_mut(), address, AcqRel, Acquire).is_err() {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "a breadcrumb page is installed already",
            ));
        }
        // Threads write to it until the very end of the process.
        std::mem::forget(mapping);
    }
    let page = current();
    page.pid.store(u64::from(std::process::id()), Release);
    page.magic.store(MAGIC, Release);
    Ok(page)
}

/// The page of another process, or of an earlier one.
pub struct Mapped(Mmap);

impl Deref for Mapped {
    type Target = Page;

    fn deref(&self) -> &Page {
        // SAFETY: (SAFETY.md 11) `open` checked the length; a mapping is page aligned, and every
        // bit pattern is a valid Page of atomics.
        unsafe { &*self.0.as_ptr().cast::<Page>() }
    }
}

/// Maps a page to read it, also while its process runs. None: not a page (of this version).
pub fn open(path: &Path) -> io::Result<Option<Mapped>> {
    let file = File::open(path)?;
    if file.metadata()?.len() != size_of::<Page>() as u64 {
        return Ok(None);
    }
    // SAFETY: (SAFETY.md 11) the length is checked; only programs of ours write such files and
    // none shortens one that exists longer than its process.
    let mapped = Mapped(unsafe { Mmap::map(&file)? });
    Ok((mapped.magic.load(Acquire) == MAGIC).then_some(mapped))
}

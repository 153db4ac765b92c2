//! Systems without signals. An exception filter is not written yet: a crash here
//! leaves no fault in the page, only who was running.

use std::{
    io,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

/// See the unix twin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFatal {
    Die,
    PrintAndExit,
}

/// Installs nothing and says so.
pub fn catch_fatal_signals(_then: OnFatal) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) struct Stack;

impl Stack {
    pub(super) fn install() -> Option<Self> {
        None
    }
}

/// Only has to tell the threads of this process apart: nobody faults by it here.
pub(super) fn thread_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local!(static ID: u64 = NEXT.fetch_add(1, Relaxed));
    ID.try_with(|id| *id).unwrap_or(u64::MAX)
}

/// See the unix twin: the lines go to stderr here.
pub fn last_words_to(_: std::fs::File) {}

/// See the unix twin.
pub fn last_words(text: &str) {
    eprint!("{text}");
}

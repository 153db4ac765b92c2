//! Who runs on which thread: a page in memory that outlives a crash, so that
//! whoever looks afterwards can name the extension and the event.
//!
//! Pushing a frame is two stores. The page may be a file, read by the process
//! that watches this one or by the next start; everything in it is an atomic
//! integer and every bit pattern is valid. Knows nothing about generations,
//! events or libraries, only their numbers and the names it was told.
//!
//! Linux: all of it. macOS: no library ranges. Windows: frames, names and the
//! `clean` flag only, no fatal-signal handler yet; blame then goes by the list
//! of suspects.

mod blame;
#[cfg(unix)]
mod exit;
#[cfg(not(unix))]
#[path = "exit_other.rs"]
mod exit;
#[cfg(target_os = "linux")]
mod library;
#[cfg(not(target_os = "linux"))]
#[path = "library_other.rs"]
mod library;
mod map;
mod page;
mod pulse;
#[cfg(unix)]
mod signal;
#[cfg(not(unix))]
#[path = "signal_other.rs"]
mod signal;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;
mod thread;

pub use blame::{Blame, By, Fault, Suspect, blame};
pub use exit::{leave_in_order, watch_for_exit};
pub use library::note_library;
pub use map::{Mapped, install, open};
pub use page::{Page, kind};
pub use pulse::{BEAT, Held, Vitals};
pub use signal::{OnFatal, catch_fatal_signals};
pub use thread::{Crumb, crumb, pop, push, thread_start, thread_stop};

/// The page of this process: the one that was installed, or one in private memory.
pub fn page() -> &'static Page {
    map::current()
}

/// Tells readers of the page what the extension with this number is called.
pub fn name_extension(owner: u64, name: &str) {
    page().extensions.set(owner, name);
}

/// Tells readers of the page what an event (numbers from [`kind::EVENTS`]) is called.
pub fn name_event(event: u16, name: &str) {
    page().events.set(u64::from(event), name);
}

/// The process ends in an orderly way; whatever runs now is nobody's fault.
pub fn mark_clean() {
    page().set_clean();
    leave_in_order();
}

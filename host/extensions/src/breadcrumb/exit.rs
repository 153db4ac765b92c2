//! An extension that ends the process by `exit`: a script would take code 0 for an answer. One
//! line names it, and the code is that of a crash. `_exit` and its like run nothing of ours.

#![allow(unsafe_code)]

use super::{
    blame::{Fault, culprit, running},
    signal::{EXIT, Line, thread_id},
};
use std::sync::{
    Once,
    atomic::{AtomicBool, Ordering::SeqCst},
};

/// The program has not said that it is leaving.
static WATCHING: AtomicBool = AtomicBool::new(false);

/// From here on, leaving without [`leave_in_order`] is somebody's fault (print and json mode).
pub fn watch_for_exit() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: (SAFETY.md 11) the handler is a function of this program, which is never unloaded.
        let watched = unsafe { libc::atexit(at_exit) };
        WATCHING.store(watched == 0, SeqCst);
    });
}

/// The program itself leaves now, on whatever path.
pub fn leave_in_order() {
    WATCHING.store(false, SeqCst);
}

extern "C" fn at_exit() {
    if !WATCHING.swap(false, SeqCst) {
        return;
    }
    let page = super::page();
    let thread = Fault { signal: 0, tid: thread_id(), address: 0, ip: 0 };
    let mut line = Line::new();
    match culprit(page, thread) {
        Some(found) => {
            line.put(b"atomic: extension ");
            line.name(page, found.owner);
            line.put(b" ended the program (exit called");
            if let Some(event) = page.kind_name(found.kind) {
                line.put(b" in ");
                line.put(event.as_bytes());
            }
            line.put(b")");
        }
        // The program's own first thread: a panic of ours on its way out.
        None if on_first_thread() => return,
        None => {
            line.put(b"atomic: something called exit on a thread of its own");
            let mut lead: &[u8] = b", while these extensions ran: ";
            for frame in running(page).take(4) {
                line.put(lead);
                line.name(page, frame.owner());
                lead = b", ";
            }
        }
    }
    line.put(b"; the session can be opened again with --continue\n");
    line.write();
    // SAFETY: (SAFETY.md 11) ends the process here; whoever registered before us is not run.
    unsafe { libc::_exit(EXIT) };
}

#[cfg(target_os = "linux")]
fn on_first_thread() -> bool {
    thread_id() == u64::from(std::process::id())
}

/// Not known: nobody is accused.
#[cfg(not(target_os = "linux"))]
fn on_first_thread() -> bool {
    true
}

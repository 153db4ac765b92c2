//! Whose fault it was: the faulting thread's crumb, else the library of the
//! instruction pointer, else everybody who was running.

use super::page::{Frame, Page, SLOTS, kind};
use std::sync::atomic::Ordering::{Acquire, Relaxed};

/// How the guess was made; the surer ones first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The process ended in order.
    Nobody,
    /// The faulting thread was in this frame.
    Crumb,
    /// The faulting instruction lies in this library.
    Library,
    /// No fault was recorded, or nowhere near an extension: whoever was running then.
    Suspects,
}

/// In the place of a signal's number: `exit` was called.
pub const EXITED: i32 = 0x1000;

/// What the signal handler wrote down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    pub signal: i32,
    pub tid: u64,
    pub address: u64,
    pub ip: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suspect {
    pub owner: u64,
    /// The declared name, if the page knows it.
    pub extension: Option<String>,
    /// The event or activity.
    pub event: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blame {
    pub by: By,
    /// None: no handler ran (killed, exited, or a crash without a signal stack).
    pub fault: Option<Fault>,
    /// One for `Crumb` and `Library`; any number for `Suspects`.
    pub suspects: Vec<Suspect>,
}

/// What can be said without allocating, in a signal handler.
#[derive(Clone, Copy)]
pub(super) struct Verdict {
    pub(super) by: By,
    pub(super) owner: u64,
    /// 0: unknown.
    pub(super) kind: u16,
}

pub(super) fn fault(page: &Page) -> Option<Fault> {
    let signal = page.signal.load(Acquire) as i32;
    (signal != 0).then(|| Fault {
        signal,
        tid: page.fault_tid.load(Relaxed),
        address: page.fault_address.load(Relaxed),
        ip: page.fault_ip.load(Relaxed),
    })
}

/// The one who did it, when that is known.
pub(super) fn culprit(page: &Page, fault: Fault) -> Option<Verdict> {
    let slot = page.slots[..SLOTS - 1].iter().find(|slot| slot.tid.load(Acquire) == fault.tid);
    if let Some(frame) = slot.and_then(|slot| slot.innermost()) {
        return Some(Verdict { by: By::Crumb, owner: frame.owner(), kind: frame.kind() });
    }
    let owner = page.owner_of(fault.ip)?;
    Some(Verdict { by: By::Library, owner, kind: 0 })
}

/// Frames of all threads, innermost of each.
pub(super) fn running(page: &Page) -> impl Iterator<Item = Frame> + '_ {
    page.slots.iter().filter_map(|slot| slot.innermost())
}

/// What threads of this extension are inside of now, other than `but`; by name.
pub fn busy(page: &Page, owner: u64, but: u16) -> Option<String> {
    let inside = |f: &Frame| f.owner() == owner & 0xff_ffff && f.kind() != kind::THREAD && f.kind() != but;
    let found = running(page).find(inside)?;
    page.kind_name(found.kind()).map(|name| name.text())
}

/// Reads a page after the end of its process (or of its patience).
pub fn blame(page: &Page) -> Blame {
    let fault = fault(page);
    if fault.is_none() && page.is_clean() {
        return Blame { by: By::Nobody, fault, suspects: Vec::new() };
    }
    if let Some(Verdict { by, owner, kind }) = fault.and_then(|fault| culprit(page, fault)) {
        return Blame { by, fault, suspects: vec![suspect(page, owner, kind)] };
    }
    let mut suspects = Vec::new();
    for frame in running(page) {
        let one = suspect(page, frame.owner(), frame.kind());
        if !suspects.contains(&one) {
            suspects.push(one);
        }
    }
    Blame { by: By::Suspects, fault, suspects }
}

fn suspect(page: &Page, owner: u64, kind: u16) -> Suspect {
    Suspect {
        owner,
        extension: page.extensions.get(owner).map(|name| name.text()),
        event: page.kind_name(kind).map(|name| name.text()),
    }
}

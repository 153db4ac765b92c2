//! Frames of the current thread, and what a thread of an extension needs: a base
//! crumb and a signal stack of its own (a library's std makes none).

use super::{
    page::{DEPTH, Frame, SLOTS, Slot, kind},
    signal,
};
use std::{
    cell::{Cell, RefCell},
    marker::PhantomData,
    sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release},
};

thread_local! {
    /// Without a destructor, so that reading it is one load.
    static SLOT: Cell<Option<&'static Slot>> = const { Cell::new(None) };
    static OWN: RefCell<Own> = const { RefCell::new(Own { slot: None, stack: None }) };
}

/// What the thread gives back when it ends.
struct Own {
    slot: Option<&'static Slot>,
    stack: Option<signal::Stack>,
}

impl Drop for Own {
    fn drop(&mut self) {
        SLOT.with(|slot| slot.set(None));
        // Still in a frame, or still an extension's: `exit` was called from in there, and
        // these are the destructors of the process's last thread. Keep the evidence.
        if let Some(slot) = self.slot.take().filter(|slot| slot.innermost().is_none()) {
            slot.clear();
        }
    }
}

#[inline]
fn slot() -> &'static Slot {
    match SLOT.with(Cell::get) {
        Some(slot) => slot,
        None => take_slot(),
    }
}

#[cold]
fn take_slot() -> &'static Slot {
    let page = super::page();
    let tid = signal::thread_id();
    // The last one is shared by all for which there is none: its frames are a hint at best.
    let shared = &page.slots[SLOTS - 1];
    let free = page.slots[..SLOTS - 1].iter().find(|slot| {
        slot.tid.load(Relaxed) == 0 && slot.tid.compare_exchange(0, tid, AcqRel, Acquire).is_ok()
    });
    let Some(free) = free else { return shared };
    // While the thread's destructors run it can no longer be given back: use the shared one.
    let owned = OWN.try_with(|own| own.borrow_mut().slot = Some(free)).is_ok();
    if !owned {
        free.clear();
        return shared;
    }
    SLOT.with(|slot| slot.set(Some(free)));
    free
}

/// A frame on the current thread; it ends when this is dropped.
#[must_use]
pub struct Crumb {
    slot: &'static Slot,
    depth: u32,
    /// Belongs to its thread.
    _thread: PhantomData<*const ()>,
}

impl Drop for Crumb {
    #[inline]
    fn drop(&mut self) {
        self.slot.depth.store(self.depth, Release);
    }
}

/// `owner` runs here, doing `kind` (an activity of [`kind`], or an event).
#[inline]
pub fn crumb(owner: u64, kind: u16) -> Crumb {
    let slot = slot();
    Crumb { slot, depth: enter(slot, owner, kind), _thread: PhantomData }
}

/// As [`crumb`], for callers that cannot hold a guard: the answer goes to [`pop`].
#[inline]
pub fn push(owner: u64, kind: u16) -> u64 {
    u64::from(enter(slot(), owner, kind))
}

/// Ends a frame of the current thread, and all that were pushed after it.
#[inline]
pub fn pop(frame: u64) {
    slot().depth.store(frame as u32, Release);
}

#[inline]
fn enter(slot: &'static Slot, owner: u64, kind: u16) -> u32 {
    let depth = slot.depth.load(Relaxed);
    let seq = slot.seq.load(Relaxed).wrapping_add(1);
    slot.seq.store(seq, Relaxed);
    // Deeper frames are counted but not kept: the outer ones explain how it came to them.
    if let Some(frame) = slot.frames.get(depth as usize) {
        frame.store(Frame::new(owner, kind, seq).0, Relaxed);
    }
    slot.depth.store(depth.wrapping_add(1), Release);
    depth
}

/// The current thread belongs to an extension from here on. Gives it a signal
/// stack, unless it has one.
pub fn thread_start(owner: u64) {
    slot().base.store(Frame::new(owner, kind::THREAD, 0).0, Release);
    let _ = OWN.try_with(|own| {
        let mut own = own.borrow_mut();
        if own.stack.is_none() {
            own.stack = signal::Stack::install();
        }
    });
}

/// It belongs to nobody again; its signal stack and slot are given back.
pub fn thread_stop() {
    let _ = OWN.try_with(|own| {
        let mut own = own.borrow_mut();
        own.stack = None;
        if let Some(slot) = own.slot.take() {
            slot.clear();
        }
    });
    SLOT.with(|slot| slot.set(None));
}

const _: () = assert!(DEPTH * 8 + 24 == size_of::<Slot>(), "a slot is two cache lines, full");

//! Signs of life of the process that writes the page: a beat of a thread that does nothing else,
//! a beat of the loop that takes ops, and which call of an extension holds the session's thread.
//! Whoever watches the process reads them; nobody asks it anything.

use super::page::Page;
use std::{
    sync::atomic::{
        AtomicU64,
        Ordering::{Acquire, Relaxed, Release},
    },
    time::Duration,
};

/// Time between two beats.
pub const BEAT: Duration = Duration::from_millis(50);

#[repr(C)]
pub(super) struct Pulse {
    beat: AtomicU64,
    loop_beat: AtomicU64,
    /// 0: no extension is inside.
    held_call: AtomicU64,
    held_owner: AtomicU64,
    held_kind: AtomicU64,
    /// The beat at which it was first seen inside.
    held_since: AtomicU64,
}

impl Pulse {
    pub(super) const fn new() -> Self {
        Self {
            beat: AtomicU64::new(0),
            loop_beat: AtomicU64::new(0),
            held_call: AtomicU64::new(0),
            held_owner: AtomicU64::new(0),
            held_kind: AtomicU64::new(0),
            held_since: AtomicU64::new(0),
        }
    }
}

/// What a look at the page says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vitals {
    pub beat: u64,
    pub loop_beat: u64,
    pub held: Option<Held>,
}

/// A handler that is called on the session's own thread and has not come back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    pub call: u64,
    pub extension: Option<String>,
    pub event: Option<String>,
    /// To within a beat.
    pub time: Duration,
}

impl Page {
    /// One beat; `held` is the call that is inside now: its number, owner and kind.
    pub fn beat(&self, held: Option<(u64, u64, u16)>) {
        let p = &self.pulse;
        let now = p.beat.load(Relaxed) + 1;
        match held {
            None => p.held_call.store(0, Release),
            Some((call, owner, kind)) if p.held_call.load(Relaxed) != call => {
                p.held_owner.store(owner, Relaxed);
                p.held_kind.store(u64::from(kind), Relaxed);
                p.held_since.store(now, Relaxed);
                p.held_call.store(call, Release);
            }
            Some(_) => {}
        }
        p.beat.store(now, Release);
    }

    /// The loop that takes ops has had a turn.
    pub fn loop_beat(&self) {
        self.pulse.loop_beat.fetch_add(1, Release);
    }

    pub fn vitals(&self) -> Vitals {
        let p = &self.pulse;
        let beat = p.beat.load(Acquire);
        let call = p.held_call.load(Acquire);
        let held = (call != 0).then(|| Held {
            call,
            extension: self.extensions.get(p.held_owner.load(Relaxed)).map(|n| n.text()),
            event: u16::try_from(p.held_kind.load(Relaxed))
                .ok()
                .and_then(|k| self.kind_name(k))
                .map(|n| n.text()),
            time: BEAT.saturating_mul(
                u32::try_from(beat.saturating_sub(p.held_since.load(Relaxed))).unwrap_or(u32::MAX),
            ),
        });
        Vitals { beat, loop_beat: p.loop_beat.load(Acquire), held }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_stays_inside_is_seen_with_the_time_it_has_been_there() {
        let page = Box::new(Page::new());
        page.beat(None);
        assert_eq!(page.vitals().held, None);
        for _ in 0..6 {
            page.beat(Some((7, 1, super::super::kind::TOOL)));
        }
        let held = page.vitals().held.unwrap();
        assert_eq!((held.call, held.event.as_deref(), held.time), (7, Some("a tool"), BEAT * 5));
        page.beat(Some((8, 1, super::super::kind::TOOL)));
        assert_eq!(page.vitals().held.unwrap().time, Duration::ZERO, "another call starts anew");
    }
}

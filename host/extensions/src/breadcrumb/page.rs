//! The layout of the page: plain atomics at fixed places.

use super::pulse::Pulse;
use std::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

/// What a frame is about. Numbers below `EVENTS` are activities of the host's own.
pub mod kind {
    /// A thread of an instance, between frames.
    pub const THREAD: u16 = 1;
    /// Opening the library: its constructors run.
    pub const LOAD: u16 = 2;
    pub const ACTIVATE: u16 = 3;
    pub const SHUTDOWN: u16 = 4;
    /// Destructors of what the extension left with the host.
    pub const DROP: u16 = 5;
    /// A future of the extension is polled.
    pub const TASK: u16 = 6;
    pub const TOOL: u16 = 7;
    pub const COMMAND: u16 = 8;
    /// A call of a shared service.
    pub const SERVICE: u16 = 9;
    pub const CANCEL: u16 = 10;
    /// The first number for events; their names are told with `name_event`.
    pub const EVENTS: u16 = 64;

    pub(crate) const NAMES: [&str; 11] = [
        "",
        "a thread of its own",
        "load",
        "activate",
        "shutdown",
        "drop",
        "a background task",
        "a tool",
        "a command",
        "a shared service",
        "cancel",
    ];
}

pub(super) const MAGIC: u64 = u64::from_le_bytes(*b"ATCRUMB2");
pub(super) const SLOTS: usize = 512;
pub(super) const DEPTH: usize = 13;
const NAME_WORDS: usize = 8;
const RANGES: usize = 1024;

/// Who, what, which: 24 bits owner, 16 bits kind, 24 bits sequence of the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame(pub(super) u64);

impl Frame {
    pub(super) fn new(owner: u64, kind: u16, seq: u32) -> Self {
        Self((owner & 0xff_ffff) << 40 | u64::from(kind) << 24 | u64::from(seq & 0xff_ffff))
    }

    pub(super) fn owner(self) -> u64 {
        self.0 >> 40
    }

    pub(super) fn kind(self) -> u16 {
        (self.0 >> 24) as u16
    }
}

/// One thread. Only that thread writes.
#[repr(C, align(64))]
pub(super) struct Slot {
    /// 0: free.
    pub(super) tid: AtomicU64,
    pub(super) depth: AtomicU32,
    pub(super) seq: AtomicU32,
    /// Who the thread belongs to when no frame is on it; 0: the host.
    pub(super) base: AtomicU64,
    pub(super) frames: [AtomicU64; DEPTH],
}

impl Slot {
    const fn new() -> Self {
        Self {
            tid: AtomicU64::new(0),
            depth: AtomicU32::new(0),
            seq: AtomicU32::new(0),
            base: AtomicU64::new(0),
            frames: [const { AtomicU64::new(0) }; DEPTH],
        }
    }

    /// The innermost frame, else the base.
    pub(super) fn innermost(&self) -> Option<Frame> {
        let depth = (self.depth.load(Acquire) as usize).min(DEPTH);
        let frame = match depth {
            0 => self.base.load(Relaxed),
            _ => self.frames[depth - 1].load(Relaxed),
        };
        (frame != 0).then_some(Frame(frame))
    }

    pub(super) fn clear(&self) {
        self.depth.store(0, Relaxed);
        self.base.store(0, Relaxed);
        self.tid.store(0, Release);
    }
}

struct NameRow {
    key: AtomicU64,
    bytes: [AtomicU64; NAME_WORDS],
}

/// Numbers and what they are called, cut at 64 bytes.
#[repr(C)]
pub(super) struct Names<const N: usize> {
    rows: [NameRow; N],
}

/// A name read without allocating: safe in a signal handler.
#[derive(Clone, Copy)]
pub(super) struct Name {
    bytes: [u8; NAME_WORDS * 8],
    len: usize,
}

impl Name {
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(self.as_bytes()).into_owned()
    }
}

impl<const N: usize> Names<N> {
    const fn new() -> Self {
        Self {
            rows: [const { NameRow { key: AtomicU64::new(0), bytes: [const { AtomicU64::new(0) }; NAME_WORDS] } };
                N],
        }
    }

    pub(super) fn set(&self, key: u64, name: &str) {
        let free = self.rows.iter().find(|row| {
            row.key.load(Acquire) == key || row.key.compare_exchange(0, key, Release, Relaxed).is_ok()
        });
        // Full: an old number gives way.
        let row = free.unwrap_or(&self.rows[key as usize % N]);
        row.key.store(key, Release);
        let mut bytes = [0u8; NAME_WORDS * 8];
        for (to, from) in bytes.iter_mut().zip(name.bytes()) {
            // It may be written to a terminal by a signal handler.
            *to = if from.is_ascii_graphic() || from == b' ' { from } else { b'?' };
        }
        for (word, chunk) in row.bytes.iter().zip(bytes.chunks_exact(8)) {
            let mut raw = [0u8; 8];
            raw.copy_from_slice(chunk);
            word.store(u64::from_ne_bytes(raw), Relaxed);
        }
    }

    pub(super) fn get(&self, key: u64) -> Option<Name> {
        let row = self.rows.iter().find(|row| row.key.load(Acquire) == key)?;
        let mut name = Name { bytes: [0; NAME_WORDS * 8], len: 0 };
        for (word, to) in row.bytes.iter().zip(name.bytes.chunks_exact_mut(8)) {
            to.copy_from_slice(&word.load(Relaxed).to_ne_bytes());
        }
        name.len = name.bytes.iter().position(|b| *b == 0).unwrap_or(name.bytes.len());
        (name.len > 0).then_some(name)
    }
}

/// Addresses of one loaded library.
pub(super) struct Range {
    start: AtomicU64,
    end: AtomicU64,
    owner: AtomicU64,
}

/// The page. Zeroed memory is an empty page.
#[repr(C)]
pub struct Page {
    pub(super) magic: AtomicU64,
    pub(super) pid: AtomicU64,
    clean: AtomicU64,
    pub(super) signal: AtomicU64,
    pub(super) fault_tid: AtomicU64,
    pub(super) fault_address: AtomicU64,
    pub(super) fault_ip: AtomicU64,
    next_range: AtomicU64,
    pub(super) pulse: Pulse,
    pub(super) slots: [Slot; SLOTS],
    pub(super) extensions: Names<256>,
    pub(super) events: Names<192>,
    ranges: [Range; RANGES],
}

impl Page {
    pub(super) const fn new() -> Self {
        Self {
            magic: AtomicU64::new(0),
            pid: AtomicU64::new(0),
            clean: AtomicU64::new(0),
            signal: AtomicU64::new(0),
            fault_tid: AtomicU64::new(0),
            fault_address: AtomicU64::new(0),
            fault_ip: AtomicU64::new(0),
            next_range: AtomicU64::new(0),
            pulse: Pulse::new(),
            slots: [const { Slot::new() }; SLOTS],
            extensions: Names::new(),
            events: Names::new(),
            ranges: [const { Range { start: AtomicU64::new(0), end: AtomicU64::new(0), owner: AtomicU64::new(0) } };
                RANGES],
        }
    }

    /// The process that wrote it said that it ended in order.
    pub fn is_clean(&self) -> bool {
        self.clean.load(Acquire) == 1
    }

    pub(super) fn set_clean(&self) {
        self.clean.store(1, Release);
    }

    /// The process that writes it.
    pub fn pid(&self) -> u32 {
        self.pid.load(Acquire) as u32
    }

    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    pub(super) fn add_range(&self, owner: u64, start: u64, end: u64) {
        let at = self.next_range.fetch_add(1, Relaxed) as usize % RANGES;
        self.ranges[at].owner.store(owner, Relaxed);
        self.ranges[at].start.store(start, Relaxed);
        self.ranges[at].end.store(end, Release);
    }

    /// Whose library this address is in; the newest if a mapping is used again.
    pub(super) fn owner_of(&self, address: u64) -> Option<u64> {
        let last = self.next_range.load(Acquire) as usize;
        let count = last.min(RANGES);
        (0..count).map(|back| &self.ranges[(last - 1 - back) % RANGES]).find_map(|range| {
            let inside = range.start.load(Relaxed) <= address && address < range.end.load(Acquire);
            inside.then(|| range.owner.load(Relaxed))
        })
    }

    pub(super) fn kind_name(&self, kind: u16) -> Option<Name> {
        match kind::NAMES.get(usize::from(kind)) {
            Some(text) => {
                let mut name = Name { bytes: [0; NAME_WORDS * 8], len: text.len() };
                name.bytes[..text.len()].copy_from_slice(text.as_bytes());
                (kind != 0).then_some(name)
            }
            None => self.events.get(u64::from(kind)),
        }
    }
}

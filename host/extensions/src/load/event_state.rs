//! One state of an event's chain: its JSON is made at most once, by the first handler
//! that reads it, and shared by all (boundary.md 4).

use atomic_plugin_api::abi::{
    abi_stable::prefix_type::{PrefixRef, WithMetadata},
    frozen::{Borrowed, EventHandle, EventVt, EventVtRef},
};
use std::sync::{Arc, OnceLock};

type Make = Box<dyn Fn() -> Vec<u8> + Send + Sync>;

pub(crate) struct EventState {
    make: Option<Make>,
    json: OnceLock<Vec<u8>>,
}

impl EventState {
    /// `make` runs when somebody reads, never before.
    pub(crate) fn lazy(make: impl Fn() -> Vec<u8> + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(EventState { make: Some(Box::new(make)), json: OnceLock::new() })
    }
    pub(crate) fn ready(json: Vec<u8>) -> Arc<Self> {
        let cell = OnceLock::new();
        let _ = cell.set(json);
        Arc::new(EventState { make: None, json: cell })
    }
    pub(crate) fn json(&self) -> &[u8] {
        self.json.get_or_init(|| self.make.as_ref().map(|m| m()).unwrap_or_default())
    }
    pub(super) fn handle(self: &Arc<Self>) -> EventHandle {
        // SAFETY: (SAFETY.md 1) the raw pointer carries one strong count, which `release` gives back.
        unsafe { EventHandle::new(Arc::into_raw(self.clone()).cast(), EventVtRef(PrefixRef::from_ref(VT))) }
    }
}

static VT: &WithMetadata<EventVt> = &WithMetadata::new(EventVt { retain, release, json });

extern "C" fn retain(state: *const ()) {
    // SAFETY: (SAFETY.md 1) `state` came from `handle` and a count is held by the caller.
    unsafe { Arc::increment_strong_count(state.cast::<EventState>()) }
}

extern "C" fn release(state: *const ()) {
    // SAFETY: (SAFETY.md 1) as in `retain`; the caller gives its count up.
    unsafe { Arc::decrement_strong_count(state.cast::<EventState>()) }
}

extern "C" fn json(state: *const ()) -> Borrowed {
    // SAFETY: (SAFETY.md 1) the caller holds a count for as long as it uses the bytes.
    let state = unsafe { &*state.cast::<EventState>() };
    // Host code made of serde alone; should it panic all the same, the event reads as empty.
    let bytes = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| state.json())).unwrap_or(&[]);
    Borrowed { ptr: bytes.as_ptr(), len: bytes.len() }
}

//! The other side of the boundary, in the same process: `testing` goes through the real
//! tables and entries with it. One host table for all; who is meant is told by the owner.

use super::{
    contain::contained,
    entry,
    frozen::*,
    instance::{Outcome, State, from_reply, panicked, share, to_reply},
};
use crate::{
    error::{Error, Result},
    extension::Extension,
};
use abi_stable::{
    prefix_type::{PrefixRef, WithMetadata},
    std_types::{ROption, RResult, RSlice, RStr, RVec},
};
use std::{
    collections::HashMap,
    sync::{
        Arc, LazyLock, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

/// What a test host does; safe code in `crate::testing`.
pub(crate) trait Desk: Send + Sync {
    fn call(&self, caller: Caller, op: &str, body: &[u8]) -> Outcome;
    /// `None`: answered later, through the way back.
    fn request(&self, caller: Caller, back: Back, op: &str, body: &[u8]) -> Option<Outcome>;
    fn cancelled(&self, ticket: u64);
    fn completed(&self, call: u64, outcome: Outcome);
    fn lookup(&self, key: &str, major: u32, scope: &str) -> Result<Arc<dyn Service>>;
}

/// A row of the test host's table.
pub(crate) trait Service: Send + Sync {
    fn live(&self) -> bool;
    fn call(&self, op: &str, body: &[u8]) -> Outcome;
    fn describe(&self) -> Vec<u8>;
}

/// Where an answer goes that comes later. It keeps the instance alive, which a host does
/// not need to: it drops a token only after its last answer.
pub(crate) struct Back {
    state: Arc<State>,
    pub(crate) ticket: u64,
}

impl Back {
    pub(crate) fn answer(self, outcome: Outcome) {
        self.state.complete(self.ticket, to_reply(outcome));
    }
}

static DESKS: LazyLock<Mutex<HashMap<u64, Arc<dyn Desk>>>> = LazyLock::new(Mutex::default);
static NEXT: AtomicU64 = AtomicU64::new(1);

/// Unique in the process, as owners, generations and calls must be.
pub(crate) fn number() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

fn desks() -> std::sync::MutexGuard<'static, HashMap<u64, Arc<dyn Desk>>> {
    DESKS.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn at<R>(caller: Caller, f: impl FnOnce(&dyn Desk) -> R) -> Result<R> {
    let desk = desks().get(&caller.owner).cloned().ok_or_else(Error::stale)?;
    contained(|| f(&*desk)).map_err(|text| Error::new("panic", text))
}

extern "C" fn call(caller: Caller, op: RStr<'_>, body: RSlice<'_, u8>, _flags: u64) -> Reply {
    contained(|| to_reply(at(caller, |d| d.call(caller, op.as_str(), body.as_slice())).and_then(|r| r)))
        .unwrap_or_else(|text| panicked(&text))
}

extern "C" fn request(
    caller: Caller,
    instance: Instance,
    ticket: u64,
    op: RStr<'_>,
    body: RSlice<'_, u8>,
    _flags: u64,
) -> Answer {
    contained(|| {
        let back = Back { state: share(instance), ticket };
        match at(caller, |d| d.request(caller, back, op.as_str(), body.as_slice())) {
            Ok(Some(outcome)) => ROption::RSome(to_reply(outcome)),
            Ok(None) => ROption::RNone,
            Err(e) => ROption::RSome(to_reply(Err(e))),
        }
    })
    .unwrap_or_else(|text| ROption::RSome(panicked(&text)))
}

extern "C" fn query(_caller: Caller, id: RStr<'_>, version: u32) -> ROption<Interface> {
    contained(|| match (id.as_str(), version) {
        ("answers", 1) => ROption::RSome(AnswersV1Ref(PrefixRef::from_ref(ANSWERS)).to_interface()),
        ("tables", 1) => ROption::RSome(TablesV1Ref(PrefixRef::from_ref(TABLES)).to_interface()),
        _ => ROption::RNone,
    })
    .unwrap_or(ROption::RNone)
}

extern "C" fn complete(caller: Caller, reply: Reply) {
    let _ = contained(|| at(caller, |d| d.completed(caller.call, from_reply(reply))));
}

extern "C" fn cancel(caller: Caller, ticket: u64) {
    let _ = contained(|| at(caller, |d| d.cancelled(ticket)));
}

extern "C" fn lookup(
    caller: Caller,
    key: RStr<'_>,
    major: u32,
    scope: RStr<'_>,
) -> RResult<RowHandle, RVec<u8>> {
    let found = contained(|| at(caller, |d| d.lookup(key.as_str(), major, scope.as_str())).and_then(|r| r));
    match found.unwrap_or_else(|text| Err(Error::new("panic", text))) {
        Ok(service) => {
            let state = Arc::into_raw(Arc::new(service)).cast();
            // SAFETY: (SAFETY.md 1) `state` is one count of what the functions of `ROWS` expect.
            RResult::ROk(unsafe { RowHandle::new(state, RowVtRef(PrefixRef::from_ref(ROWS))) })
        }
        Err(e) => RResult::RErr(e.to_bytes().into()),
    }
}

/// Counted functions over an `Arc<T>` behind a thin pointer.
mod counted {
    use super::Arc;
    pub(super) extern "C" fn retain<T>(state: *const ()) {
        // SAFETY: (SAFETY.md 1) `state` came from `Arc::<T>::into_raw`, and the caller holds a count.
        unsafe { Arc::increment_strong_count(state.cast::<T>()) }
    }
    pub(super) extern "C" fn release<T>(state: *const ()) {
        // SAFETY: (SAFETY.md 1) as above; the count that is given back is the caller's.
        let _ = super::contained(|| drop(unsafe { Arc::from_raw(state.cast::<T>()) }));
    }
    pub(super) fn borrow<'a, T>(state: *const ()) -> &'a T {
        // SAFETY: (SAFETY.md 1) as above; no borrow outlives the call it serves.
        unsafe { &*state.cast::<T>() }
    }
}

type Row = Arc<dyn Service>;

extern "C" fn row_live(state: *const ()) -> bool {
    contained(|| counted::borrow::<Row>(state).live()).unwrap_or(false)
}
extern "C" fn row_call(state: *const (), op: RStr<'_>, body: RSlice<'_, u8>) -> Reply {
    contained(|| to_reply(counted::borrow::<Row>(state).call(op.as_str(), body.as_slice())))
        .unwrap_or_else(|text| panicked(&text))
}
extern "C" fn row_describe(state: *const ()) -> RVec<u8> {
    contained(|| counted::borrow::<Row>(state).describe()).unwrap_or_default().into()
}
extern "C" fn event_json(state: *const ()) -> Borrowed {
    let json = counted::borrow::<Vec<u8>>(state);
    Borrowed { ptr: json.as_ptr(), len: json.len() }
}

#[cfg(feature = "newer")]
extern "C" fn later(x: u64) -> u64 {
    x
}

static HOST: &WithMetadata<HostApi> = &WithMetadata::new(HostApi {
    call,
    request,
    query,
    #[cfg(feature = "newer")]
    later,
});
static ANSWERS: &WithMetadata<AnswersV1> = &WithMetadata::new(AnswersV1 { complete, cancel });
static TABLES: &WithMetadata<TablesV1> = &WithMetadata::new(TablesV1 { lookup });
static ROWS: &WithMetadata<RowVt> = &WithMetadata::new(RowVt {
    retain: counted::retain::<Row>,
    release: counted::release::<Row>,
    live: row_live,
    call: row_call,
    describe: row_describe,
});
static EVENTS: &WithMetadata<EventVt> = &WithMetadata::new(EventVt {
    retain: counted::retain::<Vec<u8>>,
    release: counted::release::<Vec<u8>>,
    json: event_json,
});

fn handle(json: Vec<u8>) -> EventHandle {
    let state = Arc::into_raw(Arc::new(json)).cast();
    // SAFETY: (SAFETY.md 1) `state` is one count of what the functions of `EVENTS` expect.
    unsafe { EventHandle::new(state, EventVtRef(PrefixRef::from_ref(EVENTS))) }
}

/// A live instance, and the desk its calls come to.
pub(crate) struct Loaded {
    instance: Instance,
    owner: u64,
}

impl Loaded {
    /// Activates on a thread of its own, as the host does.
    pub(crate) fn activate(
        owner: u64,
        generation: u64,
        desk: Arc<dyn Desk>,
        author: impl FnOnce(&Extension) -> Result<()> + Send,
    ) -> Result<Loaded> {
        desks().insert(owner, desk);
        let host = HostApiRef(PrefixRef::from_ref(HOST));
        let activated =
            std::thread::scope(|s| s.spawn(move || entry::activate(host, owner, generation, author)).join());
        let error = match activated {
            Ok(RResult::ROk(instance)) => return Ok(Loaded { instance, owner }),
            Ok(RResult::RErr(e)) => Error::from_bytes(&e),
            Err(_) => Error::new("panic", "the activation thread panicked"),
        };
        desks().remove(&owner);
        Err(error)
    }
    /// `inline`: as notify events are delivered.
    pub(crate) fn on_event(&self, handler: u64, call: u64, json: Vec<u8>, inline: bool) -> Option<Outcome> {
        let flags = if inline { FLAG_INLINE } else { 0 };
        match entry::on_event(self.instance, handler, call, handle(json), flags) {
            ROption::RSome(reply) => Some(from_reply(reply)),
            ROption::RNone => None,
        }
    }
    pub(crate) fn on_sync(&self, handler: u64, call: u64, json: Vec<u8>) -> Outcome {
        from_reply(entry::on_sync(self.instance, handler, call, &handle(json), 0))
    }
    pub(crate) fn cancel(&self, call: u64) {
        entry::cancel(self.instance, call, 0);
    }
    pub(crate) fn raise_signal(&self, call: u64) {
        entry::cancel(self.instance, call, CANCEL_SIGNAL);
    }
    pub(crate) fn service_call(&self, service: u64, op: &str, body: &[u8]) -> Outcome {
        let (op, body) = (RStr::from_str(op), RSlice::from_slice(body));
        from_reply(entry::service_call(self.instance, service, op, body))
    }
    /// JSON `{clean, threads, tasks, note?}`.
    pub(crate) fn shutdown(&self, deadline_ms: u64) -> Vec<u8> {
        // A runtime cannot be ended from within another, and tests often run in one.
        std::thread::scope(|s| {
            s.spawn(|| entry::shutdown(self.instance, deadline_ms).into_vec()).join().unwrap_or_default()
        })
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        self.shutdown(1_000);
        entry::drop_instance(self.instance);
        desks().remove(&self.owner);
    }
}

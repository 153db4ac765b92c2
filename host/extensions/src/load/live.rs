//! One live instance, as safe calls. It is the `Body` that a generation retires.

use super::{event_state::EventState, library::Library};
use crate::{
    breadcrumb::{self, kind},
    calls::Failure,
    generation::{Body, Cancel, Generation, ShutdownReport},
};
use atomic_plugin_api::abi::{
    abi_stable::{
        StableAbi,
        std_types::{ROption, RResult, RSlice, RStr},
    },
    frozen::{
        Answer, CANCEL_SIGNAL, EventsV1Ref, FLAG_INLINE, Instance, InterfaceTable, RepliesV1Ref, Reply,
        RootRef, ServicesV1Ref, either_way,
    },
};
use std::{
    collections::HashSet,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

pub(crate) type Outcome = Result<Vec<u8>, Failure>;

/// How a call went off.
pub(crate) enum Started {
    Done(Outcome),
    /// `calls::answers` will be told under the call's id.
    Pending,
}

pub(crate) struct Live {
    library: Arc<Library>,
    owner: u64,
    token: Instance,
    events: OnceLock<Option<EventsV1Ref>>,
    services: OnceLock<Option<ServicesV1Ref>>,
}

pub(super) fn outcome(reply: Reply) -> Outcome {
    match reply {
        RResult::ROk(b) => Ok(b.into_vec()),
        RResult::RErr(b) => Err(Failure::from_bytes(&b)),
    }
}

pub(super) fn reply(outcome: Outcome) -> Reply {
    match outcome {
        Ok(b) => RResult::ROk(b.into()),
        Err(e) => RResult::RErr(e.to_bytes().into()),
    }
}

/// Asks a root for a table and checks its layout, once per layout.
pub(super) fn query<T: InterfaceTable + StableAbi>(root: RootRef, token: Instance) -> Option<T> {
    static CHECKED: Mutex<Option<HashSet<(usize, &'static str)>>> = Mutex::new(None);
    let ROption::RSome(interface) = (root.query())(token, RStr::from_str(T::NAME), T::VERSION) else {
        return None;
    };
    // Layouts are statics of libraries that are never unloaded: an address names one for ever.
    let key = (std::ptr::from_ref(interface.layout) as usize, T::NAME);
    let mut checked = CHECKED.lock().unwrap_or_else(PoisonError::into_inner);
    let checked = checked.get_or_insert_default();
    if !checked.contains(&key) {
        if let Err(e) = either_way(<T as StableAbi>::LAYOUT, interface.layout) {
            tracing::warn!(
                "table {}.v{} of an extension has another layout: {}",
                T::NAME,
                T::VERSION,
                e.lines().next().unwrap_or("")
            );
            return None;
        }
        checked.insert(key);
    }
    // SAFETY: (SAFETY.md 1) the layout was checked, now or when the address was first seen.
    Some(unsafe { T::from_interface(interface) })
}

fn no_table(name: &str) -> Failure {
    Failure::new("unsupported", format!("the extension does not offer {name}"))
}

impl Live {
    pub(super) fn new(library: Arc<Library>, owner: u64, token: Instance) -> Self {
        Live { library, owner, token, events: OnceLock::new(), services: OnceLock::new() }
    }
    /// The live instance behind a generation.
    pub(crate) fn of(generation: &Generation) -> Option<Arc<Live>> {
        let body: Arc<dyn std::any::Any + Send + Sync> = generation.body()?.clone();
        body.downcast().ok()
    }
    pub(crate) fn library(&self) -> &Arc<Library> {
        &self.library
    }
    fn events(&self) -> Option<EventsV1Ref> {
        *self.events.get_or_init(|| query(self.library.root(), self.token))
    }

    /// Starts an asynchronous handler. `inline`: its first poll is on this thread.
    pub(crate) fn start(&self, handler: u64, call: u64, event: &Arc<EventState>, inline: bool) -> Started {
        let Some(t) = self.events() else { return Started::Done(Err(no_table("events.v1"))) };
        let answer: Answer =
            (t.on_event())(self.token, handler, call, event.handle(), if inline { FLAG_INLINE } else { 0 });
        match answer {
            ROption::RSome(r) => Started::Done(outcome(r)),
            ROption::RNone => Started::Pending,
        }
    }
    /// A synchronous handler, here and now.
    pub(crate) fn sync(&self, handler: u64, call: u64, event: &Arc<EventState>) -> Outcome {
        match self.events() {
            Some(t) => outcome((t.on_sync())(self.token, handler, call, &event.handle(), 0)),
            None => Err(no_table("events.v1")),
        }
    }
    /// Whether it offers `main.v1`, a program of its own.
    pub(crate) fn has_main(&self) -> bool {
        matches!((self.library.root().query())(self.token, RStr::from_str("main"), 1), ROption::RSome(_))
    }
    /// One operation of a service it provides, on this thread.
    #[inline]
    pub(super) fn service(&self, service: u64, op: RStr<'_>, body: RSlice<'_, u8>) -> Reply {
        match self.services.get_or_init(|| query(self.library.root(), self.token)) {
            Some(t) => (t.call())(self.token, service, op, body),
            None => reply(Err(no_table("services.v1"))),
        }
    }
}

impl Body for Live {
    fn cancel(&self, call: u64, kind: Cancel) {
        if let Some(t) = self.events() {
            (t.cancel())(self.token, call, if kind == Cancel::Signal { CANCEL_SIGNAL } else { 0 });
        }
    }
    fn shutdown(&self, deadline: Duration) -> ShutdownReport {
        #[derive(serde::Deserialize)]
        struct Wire {
            clean: bool,
            #[serde(default)]
            threads: usize,
            #[serde(default)]
            tasks: usize,
            #[serde(default)]
            note: Option<String>,
        }
        let ms = u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX);
        let frame = breadcrumb::push(self.owner, kind::SHUTDOWN);
        let bytes = (self.library.root().shutdown())(self.token, ms);
        breadcrumb::pop(frame);
        match serde_json::from_slice::<Wire>(&bytes) {
            Ok(w) => {
                ShutdownReport { clean: w.clean, threads_left: w.threads, tasks_left: w.tasks, note: w.note }
            }
            Err(e) => ShutdownReport {
                clean: false,
                threads_left: 0,
                tasks_left: 0,
                note: Some(format!("unreadable report: {e}")),
            },
        }
    }
    fn drop_instance(&self) {
        super::table::dropped(self.token);
        let frame = breadcrumb::push(self.owner, kind::DROP);
        (self.library.root().drop_instance())(self.token);
        breadcrumb::pop(frame);
    }
}

/// The way back for a request of an instance, which may not have returned from `activate` yet.
#[derive(Clone, Copy)]
pub(super) struct ReplyTo {
    pub(super) token: Instance,
    pub(super) table: RepliesV1Ref,
}

impl ReplyTo {
    pub(super) fn complete(self, ticket: u64, outcome: Outcome) {
        (self.table.complete())(self.token, ticket, reply(outcome));
    }
}

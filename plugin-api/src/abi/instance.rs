//! One live instance: all that the SDK keeps hangs off it (boundary.md 2), so that two
//! instances of one mapping never meet.

use super::{
    contain::contained,
    frozen::{
        AnswersV1Ref, Caller, CrumbsV1Ref, EventHandle, HostApiRef, Instance, InterfaceTable, Reply,
        TablesV1Ref, either_way,
    },
};
use crate::error::{Error, Result};
use abi_stable::{
    StableAbi,
    std_types::{ROption, RResult, RSlice, RStr},
};
use std::sync::{
    Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

/// What a synchronous handler answers: JSON, empty for no opinion.
pub(crate) type Outcome = Result<Vec<u8>>;
pub(crate) type SyncFn = Arc<dyn Fn(EventRef, Call) -> Outcome + Send + Sync>;
pub(crate) type ServiceFn = Box<dyn Fn(&str, &[u8]) -> Outcome + Send + Sync>;

/// A service that the host knows by its address: a call of another extension costs no lock and
/// no count here, since the host counts it. So it stays until the instance goes.
struct Provided {
    service: ServiceFn,
    withdrawn: AtomicBool,
}

/// One entry of the handler table.
#[derive(Clone)]
pub(crate) enum Handler {
    #[cfg(feature = "tokio")]
    Async(super::tasks::AsyncFn),
    Sync(SyncFn),
}

/// An event as handlers read it; cheap to clone.
#[derive(Clone)]
pub(crate) struct EventRef(pub(super) EventHandle);

impl EventRef {
    pub(crate) fn json(&self) -> &[u8] {
        self.0.json()
    }
}

/// One call of one handler: who it is to the host, and its instance.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) state: Arc<State>,
    pub(crate) caller: Caller,
    #[cfg(feature = "tokio")]
    pub(crate) signal: Option<Arc<super::tasks::Signal>>,
}

pub(crate) struct State {
    host: HostApiRef,
    answers: OnceLock<Option<AnswersV1Ref>>,
    crumbs: OnceLock<Option<CrumbsV1Ref>>,
    tables: OnceLock<Option<TablesV1Ref>>,
    pub(crate) owner: u64,
    pub(crate) generation: u64,
    handlers: RwLock<Vec<Handler>>,
    services: Mutex<Vec<Arc<Provided>>>,
    /// Index of `main` + 1.
    main: AtomicU64,
    /// The first registration the host refused while `activate` ran.
    refused: Mutex<Refused>,
    /// Threads that `spawn_thread` made and that have not ended.
    threads: Arc<AtomicU64>,
    #[cfg(feature = "tokio")]
    pub(super) tasks: super::tasks::Tasks,
}

#[derive(Default)]
enum Refused {
    #[default]
    None,
    First(Error),
    /// `activate` has returned: from now on a refusal is reported.
    Over,
}

pub(super) fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    pub(super) fn new(host: HostApiRef, owner: u64, generation: u64) -> Self {
        State {
            host,
            answers: OnceLock::new(),
            crumbs: OnceLock::new(),
            tables: OnceLock::new(),
            owner,
            generation,
            handlers: RwLock::default(),
            services: Mutex::default(),
            main: AtomicU64::new(0),
            refused: Mutex::default(),
            threads: Arc::default(),
            #[cfg(feature = "tokio")]
            tasks: super::tasks::Tasks::default(),
        }
    }

    pub(crate) fn caller(&self, call: u64) -> Caller {
        Caller { owner: self.owner, generation: self.generation, call }
    }

    /// Outside any handler.
    pub(crate) fn outside(self: &Arc<Self>) -> Call {
        Call {
            state: self.clone(),
            caller: self.caller(0),
            #[cfg(feature = "tokio")]
            signal: None,
        }
    }

    pub(super) fn host(&self) -> HostApiRef {
        self.host
    }

    fn find<T: InterfaceTable + StableAbi>(&self) -> Option<T> {
        let ROption::RSome(i) = (self.host.query())(self.caller(0), RStr::from_str(T::NAME), T::VERSION)
        else {
            return None;
        };
        either_way(<T as StableAbi>::LAYOUT, i.layout).ok()?;
        // SAFETY: (SAFETY.md 1) the layout was checked in the line above.
        Some(unsafe { T::from_interface(i) })
    }
    pub(super) fn answers(&self) -> Option<AnswersV1Ref> {
        *self.answers.get_or_init(|| self.find())
    }
    pub(super) fn crumbs(&self) -> Option<CrumbsV1Ref> {
        *self.crumbs.get_or_init(|| self.find())
    }
    pub(super) fn tables(&self) -> Option<TablesV1Ref> {
        *self.tables.get_or_init(|| self.find())
    }

    /// Adds to the handler table; the index is what registrations name.
    pub(crate) fn add_handler(&self, handler: Handler) -> u64 {
        let mut handlers = self.handlers.write().unwrap_or_else(PoisonError::into_inner);
        handlers.push(handler);
        handlers.len() as u64 - 1
    }
    pub(super) fn handler(&self, index: u64) -> Option<Handler> {
        self.handlers
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(usize::try_from(index).ok()?)
            .cloned()
    }
    /// Its index stays taken; a late delivery finds nothing to do.
    pub(crate) fn drop_handler(&self, index: u64) {
        let gone: Handler = Handler::Sync(Arc::new(|_, _| Ok(Vec::new())));
        let old = usize::try_from(index).ok().and_then(|i| {
            let mut handlers = self.handlers.write().unwrap_or_else(PoisonError::into_inner);
            handlers.get_mut(i).map(|h| std::mem::replace(h, gone))
        });
        drop(old);
    }
    pub(crate) fn add_service(&self, service: ServiceFn) -> u64 {
        let provided = Arc::new(Provided { service, withdrawn: AtomicBool::new(false) });
        let number = Arc::as_ptr(&provided).expose_provenance() as u64;
        lock(&self.services).push(provided);
        number
    }
    /// Later calls find it gone; one that is inside may finish, so it is not dropped here.
    pub(crate) fn drop_service(&self, number: u64) {
        let services = lock(&self.services);
        let found = services.iter().find(|s| Arc::as_ptr(s).addr() as u64 == number);
        if let Some(found) = found {
            found.withdrawn.store(true, Ordering::Release);
        }
    }
    #[inline]
    pub(super) fn service(&self, number: u64) -> Option<&ServiceFn> {
        let provided = std::ptr::with_exposed_provenance::<Provided>(usize::try_from(number).ok()?);
        // SAFETY: (SAFETY.md 7) the host calls a service only by the number that `add_service` of
        // this instance gave it, and counts the call in: `drop_services` has not run. Null is none.
        let provided = unsafe { provided.as_ref() }?;
        (!provided.withdrawn.load(Ordering::Acquire)).then_some(&provided.service)
    }
    /// With the instance: the host knows that nobody is inside. They may hold the instance itself.
    fn drop_services(&self) {
        let services = std::mem::take(&mut *lock(&self.services));
        for service in services {
            let _ = contained(|| drop(service));
        }
    }
    pub(crate) fn set_main(&self, handler: u64) {
        self.main.store(handler + 1, Ordering::Release);
    }
    pub(super) fn main(&self) -> Option<u64> {
        self.main.load(Ordering::Acquire).checked_sub(1)
    }

    /// Closures go: each alone, its panic contained. Their texts come back. Services stay until
    /// `drop_instance`: a blocked call may still be inside one.
    pub(super) fn drop_closures(&self) -> Vec<String> {
        let handlers = std::mem::take(&mut *self.handlers.write().unwrap_or_else(PoisonError::into_inner));
        let mut faults = Vec::new();
        for h in handlers {
            faults.extend(contained(|| drop(h)).err());
        }
        faults
    }

    /// `pi.on` and its kin answer nothing: a refusal fails the activation, later it is a fault.
    pub(crate) fn registration_failed(&self, error: Error) {
        {
            let mut refused = lock(&self.refused);
            if let Refused::None = *refused {
                *refused = Refused::First(error);
                return;
            }
            if let Refused::First(_) = *refused {
                return;
            }
        }
        self.report("registration", &error.message);
    }
    pub(super) fn registrations_over(&self) -> Result<()> {
        match std::mem::replace(&mut *lock(&self.refused), Refused::Over) {
            Refused::First(e) => Err(e),
            _ => Ok(()),
        }
    }

    pub(super) fn threads_left(&self) -> u64 {
        self.threads.load(Ordering::SeqCst)
    }

    /// A thread with a crumb and a signal stack of its own, counted at retirement.
    pub(crate) fn spawn_thread(
        self: &Arc<Self>,
        name: &str,
        f: impl FnOnce() + Send + 'static,
    ) -> std::io::Result<()> {
        let me = self.clone();
        self.threads.fetch_add(1, Ordering::SeqCst);
        let spawned = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            me.thread_started();
            if let Err(text) = contained(f) {
                me.report("thread", &text);
            }
            me.thread_stopped();
            let threads = me.threads.clone();
            drop(me);
            threads.fetch_sub(1, Ordering::SeqCst);
        });
        if spawned.is_err() {
            self.threads.fetch_sub(1, Ordering::SeqCst);
        }
        spawned.map(drop)
    }

    /// Log lines of this thread are this instance's until the answer is dropped.
    #[cfg(feature = "tracing")]
    pub(super) fn logging(self: &Arc<Self>) -> super::log_bridge::Entered {
        super::log_bridge::enter(self)
    }

    pub(super) fn thread_started(self: &Arc<Self>) {
        #[cfg(feature = "tracing")]
        std::mem::forget(self.logging());
        if let Some(c) = self.crumbs() {
            (c.thread_start())(self.caller(0));
        }
        let me = Arc::downgrade(self);
        super::contain::own_thread(Some(Arc::new(move |text: &str| {
            if let Some(me) = me.upgrade() {
                me.report("task", text);
            }
        })));
    }
    pub(super) fn thread_stopped(&self) {
        super::contain::own_thread(None);
        if let Some(c) = self.crumbs() {
            (c.thread_stop())(self.caller(0));
        }
    }

    /// A fault no caller waits for.
    pub(super) fn report(&self, place: &str, text: &str) {
        #[derive(serde::Serialize)]
        struct Fault<'a> {
            place: &'a str,
            error: &'a str,
        }
        let body = serde_json::to_vec(&Fault { place, error: text }).unwrap_or_default();
        let _ = (self.host.call())(self.caller(0), RStr::from_str("fault"), RSlice::from_slice(&body), 0);
    }
}

impl Call {
    /// One synchronous operation (a quarter of a microsecond).
    pub(crate) fn call(&self, op: &str, body: &[u8]) -> Result<Vec<u8>> {
        from_reply((self.state.host.call())(self.caller, RStr::from_str(op), RSlice::from_slice(body), 0))
    }

    /// The same call, speaking for another generation (`with_session`).
    #[cfg(feature = "tokio")]
    pub(crate) fn for_generation(&self, generation: u64) -> Call {
        Call { caller: Caller { generation, ..self.caller }, ..self.clone() }
    }

    /// A row of a shared table.
    pub(crate) fn lookup(&self, key: &str, major: u32, scope: &str) -> Result<Row> {
        let tables =
            self.state.tables().ok_or_else(|| Error::new("unsupported", "this host has no shared tables"))?;
        match (tables.lookup())(self.caller, RStr::from_str(key), major, RStr::from_str(scope)) {
            RResult::ROk(row) => Ok(Row(row)),
            RResult::RErr(b) => Err(Error::from_bytes(&b)),
        }
    }
}

/// A provider found in a shared table.
#[derive(Clone)]
pub(crate) struct Row(super::frozen::RowHandle);

impl Row {
    pub(crate) fn live(&self) -> bool {
        self.0.live()
    }
    /// One operation; the answer is read where it lies, since making a vector of another
    /// library's buffer copies it.
    pub(crate) fn call<R>(&self, op: &str, body: &[u8], read: impl FnOnce(&[u8]) -> Result<R>) -> Result<R> {
        match self.0.call(op, body) {
            RResult::ROk(b) => read(&b),
            RResult::RErr(b) => Err(Error::from_bytes(&b)),
        }
    }
    pub(crate) fn describe(&self) -> Vec<u8> {
        self.0.describe()
    }
}

pub(super) fn from_reply(reply: Reply) -> Result<Vec<u8>> {
    match reply {
        RResult::ROk(b) => Ok(b.into_vec()),
        RResult::RErr(b) => Err(Error::from_bytes(&b)),
    }
}

pub(super) fn to_reply(outcome: Outcome) -> Reply {
    match outcome {
        Ok(b) => RResult::ROk(b.into()),
        Err(e) => RResult::RErr(e.to_bytes().into()),
    }
}

pub(super) fn panicked(text: &str) -> Reply {
    to_reply(Err(Error::new("panic", text)))
}

/// The token of an instance: one strong count of its state.
pub(super) fn into_token(state: Arc<State>) -> Instance {
    Instance { ptr: Arc::into_raw(state).cast() }
}

/// The same address, without a count of its own: for requests of the instance itself.
pub(super) fn token_of(state: &Arc<State>) -> Instance {
    Instance { ptr: Arc::as_ptr(state).cast() }
}

/// A count of its own, from a token the host holds.
pub(super) fn share(token: Instance) -> Arc<State> {
    // SAFETY: (SAFETY.md 7) the host uses a token only between `activate` and `drop_instance`, or,
    // before `activate` has returned, from within a request that holds the state alive.
    unsafe {
        Arc::increment_strong_count(token.ptr.cast::<State>());
        Arc::from_raw(token.ptr.cast::<State>())
    }
}

/// As [`share`], for a call that hands nothing on: without a count of its own.
#[inline]
pub(super) fn borrow(token: &Instance) -> &State {
    // SAFETY: (SAFETY.md 7) as in `share`; and the host gives the token back only when no call of
    // the instance is inside, this one included.
    unsafe { &*token.ptr.cast::<State>() }
}

/// Gives the token's count back.
pub(super) fn drop_token(token: Instance) {
    borrow(&token).drop_services();
    // SAFETY: (SAFETY.md 7) `drop_instance` is the last use of the token, and the count is its own.
    let _ = contained(|| drop(unsafe { Arc::from_raw(token.ptr.cast::<State>()) }));
}

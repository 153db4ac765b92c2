//! Asynchronous calls: the instance's own runtime, its tasks, and the requests it has
//! pending. No future, waker or runtime handle of one side is ever touched by the other
//! (boundary.md 3): a call answers at once or is completed later by its id.

use super::{
    contain::contained,
    frozen::{Answer, CANCEL_SIGNAL, EventHandle, FLAG_INLINE, Reply},
    instance::{Call, EventRef, Outcome, State, from_reply, lock, panicked, to_reply, token_of},
};
use crate::error::{Error, Result};
use abi_stable::std_types::{ROption, RSlice, RStr};
use std::{
    collections::HashMap,
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context as Cx, Poll, Waker},
    time::{Duration, Instant},
};
use tokio::{
    runtime::{Handle, Runtime},
    sync::{Notify, oneshot},
    task::AbortHandle,
};

pub(crate) type BoxFuture = Pin<Box<dyn Future<Output = Outcome> + Send>>;
pub(crate) type AsyncFn = Arc<dyn Fn(EventRef, Call) -> BoxFuture + Send + Sync>;

/// The cancel signal of one call (`ctx.signal()`).
#[derive(Default)]
pub(crate) struct Signal {
    raised: AtomicBool,
    notify: Notify,
}

impl Signal {
    pub(crate) fn raised(&self) -> bool {
        self.raised.load(Ordering::Acquire)
    }
    fn raise(&self) {
        self.raised.store(true, Ordering::Release);
        self.notify.notify_waiters();
    }
    pub(crate) async fn wait(&self) {
        loop {
            let notified = self.notify.notified();
            if self.raised() {
                return;
            }
            notified.await;
        }
    }
}

#[derive(Default)]
enum Rt {
    #[default]
    NotYet,
    Live(Runtime),
    Gone,
}

struct Running {
    signal: Arc<Signal>,
    abort: Option<AbortHandle>,
    dropped: bool,
}

/// What a shutdown could not end in its time.
pub(super) struct Remains {
    pub(super) threads: u64,
    pub(super) tasks: u64,
    /// Panics of drops.
    pub(super) faults: Vec<String>,
}

fn wait_for(count: &AtomicU64, until: Instant) {
    while count.load(Ordering::SeqCst) > 0 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[derive(Default)]
pub(crate) struct Tasks {
    runtime: Mutex<Rt>,
    /// The runtime's threads; tokio itself cannot tell whether they ended (boundary-dry-run.md 2.10).
    threads: Arc<AtomicU64>,
    /// Guarded futures that have not been dropped yet.
    live: AtomicU64,
    running: Mutex<HashMap<u64, Running>>,
    spawned: Mutex<HashMap<u64, AbortHandle>>,
    next_spawned: AtomicU64,
    tickets: Mutex<HashMap<u64, oneshot::Sender<Reply>>>,
    next_ticket: AtomicU64,
}

impl State {
    /// Starts the runtime on first use.
    pub(crate) fn runtime(self: &Arc<Self>) -> Result<Handle> {
        let mut rt = lock(&self.tasks.runtime);
        match &*rt {
            Rt::Live(r) => return Ok(r.handle().clone()),
            Rt::Gone => return Err(Error::stale()),
            Rt::NotYet => {}
        }
        let (up, down) = (self.tasks.threads.clone(), self.tasks.threads.clone());
        let (started, stopped) = (Arc::downgrade(self), Arc::downgrade(self));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name(format!("ext-{}", self.owner))
            .on_thread_start(move || {
                up.fetch_add(1, Ordering::SeqCst);
                if let Some(s) = started.upgrade() {
                    s.thread_started();
                }
            })
            .on_thread_stop(move || {
                if let Some(s) = stopped.upgrade() {
                    s.thread_stopped();
                }
                down.fetch_sub(1, Ordering::SeqCst);
            })
            .enable_all()
            .build()?;
        let handle = runtime.handle().clone();
        *rt = Rt::Live(runtime);
        Ok(handle)
    }

    fn live_runtime(&self) -> Option<Handle> {
        match &*lock(&self.tasks.runtime) {
            Rt::Live(r) => Some(r.handle().clone()),
            _ => None,
        }
    }

    /// Steps (4) and (5) of the retirement: futures, then closures, then the runtime.
    pub(super) fn shutdown_tasks(&self, deadline: Duration) -> Remains {
        let begun = Instant::now();
        let until = begun + deadline;
        let runtime = std::mem::replace(&mut *lock(&self.tasks.runtime), Rt::Gone);
        let mut aborts: Vec<_> = lock(&self.tasks.running).drain().filter_map(|(_, r)| r.abort).collect();
        aborts.extend(lock(&self.tasks.spawned).drain().map(|(_, a)| a));
        for a in aborts {
            a.abort();
        }
        // An abort only asks. Whoever blocks his worker gets half the time, the runtime the rest.
        wait_for(&self.tasks.live, begun + deadline / 2);
        let faults = {
            let _entered = match &runtime {
                Rt::Live(r) => Some(r.enter()),
                _ => None,
            };
            self.drop_closures()
        };
        // Whoever still waits for an answer is told that he is stale.
        let tickets = std::mem::take(&mut *lock(&self.tasks.tickets));
        drop(tickets);
        if let Rt::Live(r) = runtime {
            r.shutdown_timeout(until.saturating_duration_since(Instant::now()));
        }
        // `shutdown_timeout` answers nothing; the stop callbacks of threads may trail it by an instant.
        wait_for(&self.tasks.threads, until);
        Remains {
            threads: self.tasks.threads.load(Ordering::SeqCst),
            tasks: self.tasks.live.load(Ordering::SeqCst),
            faults,
        }
    }

    /// A task that ends with the instance.
    pub(crate) fn spawn(
        self: &Arc<Self>,
        future: impl Future<Output = Result<()>> + Send + 'static,
    ) -> Result<AbortHandle> {
        let rt = self.runtime()?;
        let me = self.clone();
        let id = self.tasks.next_spawned.fetch_add(1, Ordering::Relaxed);
        let guarded = Guarded::new(Box::pin(async move { future.await.map(|()| Vec::new()) }), me.outside());
        // Held over the spawn: the task removes itself only after it has been entered.
        let mut spawned = lock(&self.tasks.spawned);
        let task = rt.spawn(async move {
            let outcome = guarded.await;
            lock(&me.tasks.spawned).remove(&id);
            if let Err(e) = outcome {
                me.report("task", &e.message);
            }
        });
        let abort = task.abort_handle();
        spawned.retain(|_, a| !a.is_finished());
        spawned.insert(id, abort.clone());
        Ok(abort)
    }

    pub(super) fn complete(&self, ticket: u64, reply: Reply) {
        if let Some(tx) = lock(&self.tasks.tickets).remove(&ticket) {
            let _ = tx.send(reply);
        }
    }

    pub(super) fn cancel(&self, call: u64, flags: u64) {
        let mut running = lock(&self.tasks.running);
        if flags & CANCEL_SIGNAL != 0 {
            if let Some(r) = running.get(&call) {
                r.signal.raise();
            }
            return;
        }
        let abort = match running.get_mut(&call) {
            Some(r) if r.abort.is_some() => running.remove(&call).and_then(|r| r.abort),
            Some(r) => {
                r.dropped = true;
                None
            }
            None => None,
        };
        drop(running);
        if let Some(a) = abort {
            a.abort();
        }
    }
}

/// The instance is told that nobody waits, when a request is dropped unanswered.
struct Ticket<'a> {
    call: &'a Call,
    number: u64,
    open: bool,
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        if !self.open {
            return;
        }
        let state = &self.call.state;
        lock(&state.tasks.tickets).remove(&self.number);
        if let Some(a) = state.answers() {
            (a.cancel())(self.call.caller, self.number);
        }
    }
}

impl Call {
    /// A request, answered when the host has accepted it.
    pub(crate) async fn request(&self, op: &str, body: &[u8]) -> Result<Vec<u8>> {
        let state = &self.state;
        let number = state.tasks.next_ticket.fetch_add(1, Ordering::Relaxed);
        let (tx, rx) = oneshot::channel();
        lock(&state.tasks.tickets).insert(number, tx);
        let mut ticket = Ticket { call: self, number, open: true };
        let answer = (state.host().request())(
            self.caller,
            token_of(state),
            number,
            RStr::from_str(op),
            RSlice::from_slice(body),
            0,
        );
        if let ROption::RSome(reply) = answer {
            ticket.open = false;
            lock(&state.tasks.tickets).remove(&number);
            return from_reply(reply);
        }
        let reply = rx.await;
        ticket.open = false;
        reply.map_or_else(|_| Err(Error::stale()), from_reply)
    }
}

/// Poll and drop of an author's future: contained, under a crumb, its drop with the runtime entered.
struct Guarded {
    future: Option<BoxFuture>,
    call: Call,
}

impl Guarded {
    fn new(future: BoxFuture, call: Call) -> Self {
        call.state.tasks.live.fetch_add(1, Ordering::SeqCst);
        Guarded { future: Some(future), call }
    }
    fn under_crumb<R>(&self, f: impl FnOnce() -> R) -> R {
        #[cfg(feature = "tracing")]
        let _logging = self.call.state.logging();
        let Some(crumbs) = self.call.state.crumbs() else { return f() };
        let frame = (crumbs.push())(self.call.caller, 0);
        let result = f();
        (crumbs.pop())(frame);
        result
    }
}

impl Future for Guarded {
    type Output = Outcome;
    fn poll(mut self: Pin<&mut Self>, cx: &mut Cx<'_>) -> Poll<Outcome> {
        let Some(mut future) = self.future.take() else {
            return Poll::Ready(Err(Error::new("panic", "polled after its end")));
        };
        let polled = self.under_crumb(|| contained(|| future.as_mut().poll(cx)));
        match polled {
            Ok(Poll::Pending) => {
                self.future = Some(future);
                Poll::Pending
            }
            Ok(Poll::Ready(outcome)) => match contained(|| drop(future)) {
                Ok(()) => Poll::Ready(outcome),
                Err(text) => Poll::Ready(Err(Error::new("panic", text))),
            },
            Err(text) => {
                let _ = contained(|| drop(future));
                Poll::Ready(Err(Error::new("panic", text)))
            }
        }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        if let Some(future) = self.future.take() {
            // On a thread of the runtime it is entered already, which holds while it shuts down too.
            let rt = self.call.state.live_runtime();
            let _entered = rt.as_ref().map(Handle::enter);
            let fault = self.under_crumb(|| contained(|| drop(future))).err();
            if let Some(text) = fault {
                self.call.state.report("drop", &text);
            }
        }
        self.call.state.tasks.live.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Starts a handler. `FLAG_INLINE`: the first poll is here, and only a pending one moves.
pub(super) fn start(state: Arc<State>, f: &AsyncFn, id: u64, event: EventHandle, flags: u64) -> Answer {
    let signal = Arc::new(Signal::default());
    let call = Call { caller: state.caller(id), state: state.clone(), signal: Some(signal.clone()) };
    let rt = match state.runtime() {
        Ok(rt) => rt,
        Err(e) => return ROption::RSome(to_reply(Err(e))),
    };
    // Before any code of the author runs: he may be cancelled from within his first poll.
    lock(&state.tasks.running).insert(id, Running { signal, abort: None, dropped: false });
    let guarded = if flags & FLAG_INLINE != 0 {
        let _entered = rt.enter();
        let first = contained(|| f(EventRef(event), call.clone())).map(|future| {
            let mut guarded = Guarded::new(future, call.clone());
            // The host has pushed a crumb for this call; the one of the poll says the same.
            match Pin::new(&mut guarded).poll(&mut Cx::from_waker(Waker::noop())) {
                Poll::Ready(outcome) => Err(outcome),
                Poll::Pending => Ok(guarded),
            }
        });
        match first {
            Ok(Ok(guarded)) => guarded,
            Ok(Err(outcome)) => {
                lock(&state.tasks.running).remove(&id);
                return ROption::RSome(to_reply(outcome));
            }
            Err(text) => {
                lock(&state.tasks.running).remove(&id);
                return ROption::RSome(panicked(&text));
            }
        }
    } else {
        // The closure itself runs on the runtime too: it is author code and may block.
        let (f, made) = (f.clone(), call.clone());
        Guarded::new(Box::pin(async move { f(EventRef(event), made).await }), call.clone())
    };
    let (me, caller) = (state.clone(), call.caller);
    let task = rt.spawn(async move {
        let outcome = guarded.await;
        lock(&me.tasks.running).remove(&id);
        if let Some(a) = me.answers() {
            (a.complete())(caller, to_reply(outcome));
        }
    });
    let mut running = lock(&state.tasks.running);
    if let Some(r) = running.get_mut(&id) {
        r.abort = Some(task.abort_handle());
        if r.dropped {
            running.remove(&id);
            drop(running);
            task.abort();
        }
    }
    ROption::RNone
}

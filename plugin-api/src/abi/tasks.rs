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

#[derive(Default)]
pub(crate) struct Tasks {
    runtime: Mutex<Rt>,
    /// The runtime's threads; tokio itself cannot tell whether they ended (boundary-dry-run.md 2.10).
    threads: Arc<AtomicU64>,
    running: Mutex<HashMap<u64, Running>>,
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

    /// Steps (4) and (5) of the retirement: closures with the runtime entered, then the runtime.
    pub(super) fn shutdown_tasks(&self, deadline: Duration) -> (u64, Vec<String>) {
        let until = Instant::now() + deadline;
        let runtime = std::mem::replace(&mut *lock(&self.tasks.runtime), Rt::Gone);
        let aborts: Vec<_> = lock(&self.tasks.running).drain().filter_map(|(_, r)| r.abort).collect();
        for a in aborts {
            a.abort();
        }
        let faults = {
            let _entered = match &runtime {
                Rt::Live(r) => Some(r.enter()),
                _ => None,
            };
            self.drop_closures()
        };
        lock(&self.tasks.tickets).clear();
        if let Rt::Live(r) = runtime {
            r.shutdown_timeout(until.saturating_duration_since(Instant::now()));
        }
        // `shutdown_timeout` answers nothing; the stop callbacks of threads may trail it by an instant.
        while self.tasks.threads.load(Ordering::SeqCst) > 0 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        (self.tasks.threads.load(Ordering::SeqCst), faults)
    }

    /// A task that ends with the instance.
    pub(crate) fn spawn(
        self: &Arc<Self>,
        future: impl Future<Output = Result<()>> + Send + 'static,
    ) -> Result<()> {
        let rt = self.runtime()?;
        let me = self.clone();
        let guarded = Guarded::new(Box::pin(async move { future.await.map(|()| Vec::new()) }), me.outside());
        rt.spawn(async move {
            if let Err(e) = guarded.await {
                me.report("task", &e.message);
            }
        });
        Ok(())
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
        Guarded { future: Some(future), call }
    }
    fn under_crumb<R>(&self, f: impl FnOnce() -> R) -> R {
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
        let Some(future) = self.future.take() else { return };
        let rt = self.call.state.live_runtime();
        let _entered = rt.as_ref().map(Handle::enter);
        let fault = self.under_crumb(|| contained(|| drop(future))).err();
        if let Some(text) = fault {
            self.call.state.report("drop", &text);
        }
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
    let inline = flags & FLAG_INLINE != 0;
    let guarded = if inline {
        let _entered = rt.enter();
        let future = match contained(|| f(EventRef(event), call.clone())) {
            Ok(future) => future,
            Err(text) => return ROption::RSome(panicked(&text)),
        };
        let mut guarded = Guarded::new(future, call.clone());
        // No crumb of our own here: the host has pushed one for this very call.
        if let Poll::Ready(outcome) = Pin::new(&mut guarded).poll(&mut Cx::from_waker(Waker::noop())) {
            return ROption::RSome(to_reply(outcome));
        }
        guarded
    } else {
        // The closure itself runs on the runtime too: it is author code and may block.
        let (f, made) = (f.clone(), call.clone());
        Guarded::new(Box::pin(async move { f(EventRef(event), made).await }), call.clone())
    };
    lock(&state.tasks.running).insert(id, Running { signal, abort: None, dropped: false });
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

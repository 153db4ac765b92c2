//! The phases of a generation, what it staged, and who may still come in.

use super::{
    ALL, AsyncCall, Body, InCall, PendingRequest, RetireReport, Step, call::CallState, cell::Cell, lock,
    next_call, next_generation,
};
use crate::graveyard::Graveyard;
use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU8, Ordering::*},
    },
    time::Duration,
};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// How often a drain looks at calls that cannot wake it (those of other libraries).
const POLL: Duration = Duration::from_millis(20);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Phase {
    /// Activating or activated; nothing of it is visible.
    Staged,
    Live,
    /// Every handle of it is stale; what runs may finish.
    Fenced,
    /// Gone, or leaked for good.
    Retired,
}

/// The generation was replaced or ended: a handle to it can do nothing any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this context belongs to a retired generation of the extension; use the context of the current one")]
pub struct StaleContext {
    pub generation: u64,
}

impl StaleContext {
    /// Stable code of the error as extensions see it.
    pub const CODE: &'static str = "stale_context";
}

type Registration = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Stage {
    queue: VecDeque<Registration>,
    /// A commit is running what was staged; later registrations queue up behind it.
    draining: bool,
    /// Registrations of the live phase that are being applied right now.
    applying: usize,
}

pub struct Generation {
    pub(super) number: u64,
    owner: u64,
    name: String,
    pub(super) cell: &'static Cell,
    /// Changed only under the stage lock.
    phase: AtomicU8,
    stage: Mutex<Stage>,
    pub(super) body: OnceLock<Arc<dyn Body>>,
    pub(super) calls: Mutex<Vec<Arc<CallState>>>,
    /// Cancelled at the fence; requests wait for it.
    pub(super) fence: CancellationToken,
    /// Set at the fence: the call that caused it, or None.
    carrier: OnceLock<Option<u64>>,
    /// Something a retirement waits for has changed.
    pub(super) changed: Notify,
    pub(super) trace: Mutex<Vec<Step>>,
    pub(super) retiring: AtomicBool,
    pub(super) report: OnceLock<RetireReport>,
    pub(super) graveyard: Arc<Graveyard>,
}

impl Generation {
    /// A new life of the extension `name`, staged, findable by its number at once.
    pub fn new(owner: u64, name: impl Into<String>, graveyard: Arc<Graveyard>) -> Arc<Self> {
        let generation = Arc::new(Self {
            number: next_generation(),
            owner,
            name: name.into(),
            cell: Cell::take(),
            phase: AtomicU8::new(Phase::Staged as u8),
            stage: Mutex::default(),
            body: OnceLock::new(),
            calls: Mutex::default(),
            fence: CancellationToken::new(),
            carrier: OnceLock::new(),
            changed: Notify::new(),
            trace: Mutex::default(),
            retiring: AtomicBool::new(false),
            report: OnceLock::new(),
            graveyard,
        });
        ALL.write().unwrap_or_else(PoisonError::into_inner).insert(generation.number, generation.clone());
        generation
    }

    pub fn number(&self) -> u64 {
        self.number
    }

    pub fn owner(&self) -> u64 {
        self.owner
    }

    /// The declared name of the extension.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The words that calls of other libraries go through.
    pub fn cell(&self) -> &'static Cell {
        self.cell
    }

    /// The instance, once `activate` has returned one.
    pub fn body(&self) -> Option<&Arc<dyn Body>> {
        self.body.get()
    }

    pub fn phase(&self) -> Phase {
        match self.phase.load(Acquire) {
            0 => Phase::Staged,
            1 => Phase::Live,
            2 => Phase::Fenced,
            _ => Phase::Retired,
        }
    }

    pub fn live(&self) -> bool {
        self.phase.load(Acquire) == Phase::Live as u8
    }

    pub fn fenced(&self) -> bool {
        self.phase.load(Acquire) >= Phase::Fenced as u8
    }

    /// Resolves at the fence, also for the carrier.
    pub async fn until_fenced(&self) {
        self.fence.cancelled().await;
    }

    /// The steps of its retirement so far.
    pub fn trace(&self) -> Vec<Step> {
        lock(&self.trace).clone()
    }

    pub(super) fn note(&self, step: Step) {
        lock(&self.trace).push(step);
    }

    /// Takes the instance that `activate` returned. False: fenced meanwhile, so
    /// that whoever brings it ends it, and no retirement knows of it.
    pub(super) fn adopt(&self, body: &Arc<dyn Body>) -> bool {
        // Under the lock of the fence: a retirement either sees the body or we see the fence.
        let _stage = lock(&self.stage);
        !self.fenced() && self.body.set(body.clone()).is_ok()
    }

    // ---- staging

    /// A registration: kept until commit while staged, applied at once when live.
    pub fn stage(&self, registration: Registration) -> Result<(), StaleContext> {
        let applied = {
            let mut stage = lock(&self.stage);
            match self.phase() {
                Phase::Staged => {
                    stage.queue.push_back(registration);
                    return Ok(());
                }
                Phase::Live if stage.draining => {
                    stage.queue.push_back(registration);
                    return Ok(());
                }
                Phase::Live => {
                    stage.applying += 1;
                    Some(registration)
                }
                // Falls out of the block: it is dropped without the lock.
                Phase::Fenced | Phase::Retired => None,
            }
        };
        let Some(registration) = applied else { return Err(self.stale()) };
        let _applying = Applying(self);
        registration();
        Ok(())
    }

    /// Becomes live, then applies what was staged, in order. Fails if it was fenced first.
    pub fn commit(&self) -> Result<(), StaleContext> {
        {
            let mut stage = lock(&self.stage);
            if self.phase() != Phase::Staged {
                return Err(self.stale());
            }
            stage.draining = true;
            self.phase.store(Phase::Live as u8, Release);
            self.cell.publish(self.number);
        }
        let _draining = Draining(self);
        loop {
            let next = {
                let mut stage = lock(&self.stage);
                if self.fenced() {
                    return Err(self.stale());
                }
                let next = stage.queue.pop_front();
                stage.draining = next.is_some();
                next
            };
            match next {
                Some(registration) => registration(),
                None => return Ok(()),
            }
        }
    }

    /// Fences a candidate and drops what it staged; nothing of it was ever visible.
    pub fn discard(&self) {
        self.fence(None);
    }

    /// From here on every handle is stale, nobody comes in, and every pending
    /// request resolves but the one of `carrier` that caused this. The first
    /// call decides; false if it was fenced already.
    pub fn fence(&self, carrier: Option<u64>) -> bool {
        let dropped = {
            let mut stage = lock(&self.stage);
            if self.fenced() {
                return false;
            }
            // Before the phase: who sees the fence sees who caused it.
            let _ = self.carrier.set(carrier);
            self.phase.store(Phase::Fenced as u8, Release);
            self.cell.publish(0);
            std::mem::take(&mut stage.queue)
        };
        drop(dropped);
        self.note(Step::Fence);
        self.fence.cancel();
        self.changed.notify_waiters();
        true
    }

    /// The call whose request caused the fence.
    pub fn carrier(&self) -> Option<u64> {
        self.carrier.get().copied().flatten()
    }

    /// Nothing is registering any more; after the fence it stays so.
    pub(super) fn settled(&self) -> bool {
        let stage = lock(&self.stage);
        !stage.draining && stage.applying == 0
    }

    pub(super) fn retired(&self) {
        {
            let _stage = lock(&self.stage);
            self.phase.store(Phase::Retired as u8, Release);
        }
        ALL.write().unwrap_or_else(PoisonError::into_inner).remove(&self.number);
        self.changed.notify_waiters();
    }

    // ---- calls

    /// Counts a synchronous call in. None: fenced, or not committed. This is the
    /// hot path of a no-op handler: two counters and a load, no lock, no allocation.
    #[inline]
    pub fn enter(&self, kind: u16) -> Option<InCall<'_>> {
        self.cell.count_in(self.number).then(|| InCall::new(self, next_call(kind)))
    }

    /// Counts an asynchronous call in: a retirement can find, cancel and wait for it by its id.
    pub fn enter_async(self: &Arc<Self>, kind: u16) -> Option<AsyncCall> {
        self.cell.count_in(self.number).then(|| AsyncCall::new(self.clone(), next_call(kind)))
    }

    pub fn in_flight(&self) -> u64 {
        self.cell.in_flight()
    }

    /// A request to the host by the handler `call` (0: none). `cause`: it replaces
    /// the session or reloads, so its own fence does not end it.
    pub fn request(self: &Arc<Self>, call: u64, cause: bool) -> Result<PendingRequest, StaleContext> {
        // Counted before the check, so that a carrier never looks idle in between.
        let request = PendingRequest::new(self.clone(), call, cause);
        if self.fenced() { Err(self.stale()) } else { Ok(request) }
    }

    pub(super) fn stale(&self) -> StaleContext {
        StaleContext { generation: self.number }
    }

    pub(super) fn call_left(&self) {
        self.cell.count_out();
        if !self.cell.is_live(self.number) {
            self.changed.notify_waiters();
        }
    }

    /// Waits until `done`, which is asked again whenever something changed.
    pub(super) async fn until(&self, mut done: impl FnMut() -> bool) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if done() {
                return;
            }
            tokio::select! { () = changed => {}, () = tokio::time::sleep(POLL) => {} }
        }
    }
}

impl Drop for Generation {
    fn drop(&mut self) {
        self.cell.give_back();
    }
}

impl std::fmt::Debug for Generation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}#{} ({:?}, {} inside)", self.name, self.number, self.phase(), self.in_flight())
    }
}

/// Ends the commit also when a registration panics.
struct Draining<'a>(&'a Generation);

impl Drop for Draining<'_> {
    fn drop(&mut self) {
        let rest = {
            let mut stage = lock(&self.0.stage);
            stage.draining = false;
            std::mem::take(&mut stage.queue)
        };
        drop(rest);
        self.0.changed.notify_waiters();
    }
}

struct Applying<'a>(&'a Generation);

impl Drop for Applying<'_> {
    fn drop(&mut self) {
        lock(&self.0.stage).applying -= 1;
        if self.0.fenced() {
            self.0.changed.notify_waiters();
        }
    }
}

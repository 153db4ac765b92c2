//! One life of one extension, from the stage to the graveyard: who may still
//! call in, which host requests are pending, and in which order it ends.
//!
//! A state machine without a library behind it: what is really called is a
//! [`Body`]. Knows nothing about dlopen, events, registries or sessions. No
//! lock of this room is held while a body, a staged registration or a detach runs.
//!
//! ```text
//! Staged ──commit──▶ Live ──fence──▶ Fenced ──retire──▶ Retired
//!    └────────────────fence───────────▲
//! ```

mod activate;
mod call;
mod cell;
mod helper;
mod life;
mod request;
mod retire;
#[cfg(test)]
mod tests;

pub use activate::{ActivationError, activate_on_thread};
pub use call::{AsyncCall, CallEnd, InCall};
pub use cell::{Cell, TableCall};
pub use life::{Generation, Phase, StaleContext};
pub use request::{PendingRequest, pending_requests};
pub use retire::{CarrierEnd, RetirePlan, RetireReport, Step};

use std::{
    any::Any,
    collections::HashMap,
    sync::{
        Arc, LazyLock, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

/// How a running call is told to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancel {
    /// Its cancel token: it may finish in its own way.
    Signal,
    /// Its future is dropped; whatever it would have answered is discarded.
    Drop,
}

/// What an instance says about its own end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShutdownReport {
    /// Tasks gone, closures dropped, runtime stopped, no thread left.
    pub clean: bool,
    pub threads_left: usize,
    pub tasks_left: usize,
    pub note: Option<String>,
}

/// The instance behind a generation. `load` implements it; tests use a fake.
///
/// Every method may run extension code, and is called with no host lock held,
/// `shutdown` and `drop_instance` never on a worker of a runtime.
pub trait Body: Any + Send + Sync {
    /// Asks a running call to end. Only asks: `shutdown` waits for it to be gone.
    fn cancel(&self, call: u64, kind: Cancel);
    /// Waits for the instance's tasks, drops its closures, stops its runtime.
    /// Called once. May be called while a blocked synchronous call is still
    /// inside; then it must not free what that call runs in, and
    /// `drop_instance` will not follow.
    fn shutdown(&self, deadline: Duration) -> ShutdownReport;
    /// Frees the instance. Called at most once, after a clean `shutdown`.
    fn drop_instance(&self);
}

static OWNERS: AtomicU64 = AtomicU64::new(1);
static GENERATIONS: AtomicU64 = AtomicU64::new(1);
static CALLS: AtomicU64 = AtomicU64::new(1);

/// A number for one extension of one host, unique in the process.
pub fn next_owner() -> u64 {
    OWNERS.fetch_add(1, Relaxed)
}

/// A number for one life, unique in the process; never 0.
pub fn next_generation() -> u64 {
    GENERATIONS.fetch_add(1, Relaxed)
}

/// A number for one call into an extension, unique in the process; never 0 (0 means "no call").
/// Its last bits say what the call is about (a kind of `breadcrumb`), so that whoever works for it
/// on another thread can say so too.
pub fn next_call(kind: u16) -> u64 {
    CALLS.fetch_add(1, Relaxed) << KIND_BITS | u64::from(kind)
}

const KIND_BITS: u32 = u16::BITS;

/// What a call is about; 0: nobody said.
pub fn kind_of(call: u64) -> u16 {
    (call & u64::from(u16::MAX)) as u16
}

static ALL: LazyLock<RwLock<HashMap<u64, Arc<Generation>>>> = LazyLock::new(RwLock::default);

/// The generation of this number, from its creation to the end of its retirement.
pub fn find(generation: u64) -> Option<Arc<Generation>> {
    ALL.read().unwrap_or_else(PoisonError::into_inner).get(&generation).cloned()
}

/// As [`find`], for a host call: the generation must belong to `owner` and not be fenced.
pub fn find_usable(owner: u64, generation: u64) -> Result<Arc<Generation>, StaleContext> {
    find(generation).filter(|g| g.owner() == owner && !g.fenced()).ok_or(StaleContext { generation })
}

/// A panic in host code leaves plain data behind a lock, never a half-made promise.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! Requests of extensions to the host that are still pending: they end with
//! their generation, and they keep the carrier of a retirement alive.

use super::{Generation, lock};
use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, Mutex},
};
use tokio::sync::watch;

/// Pending requests by call id, whatever generation they speak for: the handle
/// given to `with_session` carries the new generation and the old call.
static BY_CALL: LazyLock<Mutex<HashMap<u64, watch::Sender<usize>>>> = LazyLock::new(Mutex::default);

/// How many host requests of this call are pending in the process.
pub fn pending_requests(call: u64) -> usize {
    lock(&BY_CALL).get(&call).map_or(0, |pending| *pending.borrow())
}

/// The count of a call, watched. Every change wakes, also one there and back.
pub(super) struct Watched {
    call: u64,
    pub(super) pending: watch::Receiver<usize>,
}

impl Watched {
    pub(super) fn new(call: u64) -> Self {
        let pending = lock(&BY_CALL).entry(call).or_insert_with(|| watch::channel(0).0).subscribe();
        Self { call, pending }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let mut all = lock(&BY_CALL);
        // One receiver is ours: without another and without a request nobody needs the row.
        if all.get(&self.call).is_some_and(|p| *p.borrow() == 0 && p.receiver_count() == 1) {
            all.remove(&self.call);
        }
    }
}

/// A host request that has not been answered yet; drop it when it is.
#[derive(Debug)]
pub struct PendingRequest {
    generation: Arc<Generation>,
    call: u64,
    cause: bool,
}

impl PendingRequest {
    pub(super) fn new(generation: Arc<Generation>, call: u64, cause: bool) -> Self {
        if call != 0 {
            lock(&BY_CALL).entry(call).or_insert_with(|| watch::channel(0).0).send_modify(|n| *n += 1);
        }
        Self { generation, call, cause }
    }

    pub fn generation(&self) -> &Arc<Generation> {
        &self.generation
    }

    pub fn call(&self) -> u64 {
        self.call
    }

    /// Resolves at the fence of the generation: answer with the default (dialogs)
    /// or as stale. Never resolves for the request that caused that fence.
    pub async fn fenced(&self) {
        self.generation.fence.cancelled().await;
        if self.caused_the_fence() {
            std::future::pending::<()>().await;
        }
    }

    /// Only meaningful after the fence.
    pub fn caused_the_fence(&self) -> bool {
        self.cause && self.call != 0 && self.generation.carrier() == Some(self.call)
    }
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        if self.call == 0 {
            return;
        }
        let mut all = lock(&BY_CALL);
        if let Some(pending) = all.get(&self.call) {
            pending.send_modify(|n| *n -= 1);
            if *pending.borrow() == 0 && pending.receiver_count() == 0 {
                all.remove(&self.call);
            }
        }
    }
}

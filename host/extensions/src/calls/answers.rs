//! Where pending calls into extensions are answered, by their id.

use super::{Failure, Outcome};
use crate::generation;
use std::{
    collections::HashMap,
    sync::{LazyLock, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::oneshot;

enum Slot {
    Waiting(oneshot::Sender<Outcome>),
    /// Answered before anybody waited: the call went to another thread and was quick.
    Early(Outcome),
}

static SLOTS: LazyLock<Mutex<HashMap<u64, Slot>>> = LazyLock::new(Mutex::default);

fn slots() -> MutexGuard<'static, HashMap<u64, Slot>> {
    SLOTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The answer of a call that was started and is pending. Forgotten when this is dropped.
pub(crate) struct Waiting {
    call: u64,
    rx: oneshot::Receiver<Outcome>,
}

pub(crate) fn wait_for(call: u64) -> Waiting {
    let (tx, rx) = oneshot::channel();
    let mut slots = slots();
    match slots.remove(&call) {
        Some(Slot::Early(outcome)) => {
            drop(slots);
            let _ = tx.send(outcome);
        }
        _ => {
            slots.insert(call, Slot::Waiting(tx));
        }
    }
    Waiting { call, rx }
}

impl Waiting {
    pub(crate) async fn answer(mut self) -> Outcome {
        (&mut self.rx).await.unwrap_or_else(|_| Err(Failure::new("lost", "the call ended without an answer")))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        slots().remove(&self.call);
    }
}

/// A late answer of a call nobody knows any more is dropped.
pub(crate) fn complete(generation: u64, call: u64, outcome: Outcome) {
    let waiting = {
        let mut slots = slots();
        match slots.remove(&call) {
            Some(Slot::Waiting(tx)) => Some(tx),
            _ => {
                if generation::find(generation).is_some_and(|g| g.is_running(call)) {
                    slots.insert(call, Slot::Early(outcome));
                }
                return;
            }
        }
    };
    if let Some(tx) = waiting {
        let _ = tx.send(outcome);
    }
}

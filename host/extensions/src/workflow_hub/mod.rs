//! The workflow activity hub: one source tells what workflows do, observers and handlers hear
//! it, and nobody who publishes waits (events.md F). `hub` has the rules; here they meet
//! generations: what a candidate does waits for its commit, handlers hear what was published in
//! order, and no handler starts on the word of a source that is not heard any more.

mod hub;
#[cfg(test)]
mod tests;

use crate::{
    breadcrumb::kind,
    dispatch::{Asked, ask_entry, event_index},
    generation::Generation,
    host::{Extensions, lock},
    load::{EventState, Live},
};
pub(crate) use hub::{Availability, Hook, Hub};
pub use hub::{Cursor, Diagnostic, Kind};
use serde_json::{Value, json};
use std::sync::{
    Arc, Mutex, Weak,
    atomic::{AtomicU64, Ordering},
};
use tokio::sync::{Notify, mpsc};

/// Numbers of publishers and observers, unique in the process.
static NEXT: AtomicU64 = AtomicU64::new(1);

pub(crate) fn number() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

pub(crate) struct WorkflowHub {
    hub: Mutex<Hub>,
    hooks: mpsc::UnboundedSender<Hook>,
}

impl WorkflowHub {
    /// `host` is not kept alive by its hub.
    pub(crate) fn start(host: Weak<Extensions>, runtime: &tokio::runtime::Handle) -> Self {
        let (hooks, mut rx) = mpsc::unbounded_channel::<Hook>();
        runtime.spawn(async move {
            while let Some(hook) = rx.recv().await {
                let Some(bound) = host.upgrade().map(|h| h.bound().clone()) else { return };
                // Nobody could hear it yet.
                bound.cancelled().await;
                let Some(host) = host.upgrade() else { return };
                host.tell_workflow(hook).await;
            }
        });
        WorkflowHub { hub: Mutex::new(Hub::default()), hooks }
    }

    /// Under the lock of the hub, so that handlers hear in the order of the cursors.
    pub(crate) fn publish(&self, f: impl FnOnce(&mut Hub) -> Vec<Hook>) {
        let mut hub = lock(&self.hub);
        for hook in f(&mut hub) {
            let _ = self.hooks.send(hook);
        }
    }

    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut Hub) -> R) -> R {
        f(&mut lock(&self.hub))
    }
}

impl Extensions {
    /// What the hub has noted, oldest first.
    pub fn workflow_diagnostics(&self) -> Vec<Diagnostic> {
        self.workflow_hub().with(|h| h.diagnostics())
    }

    async fn tell_workflow(self: Arc<Self>, hook: Hook) {
        let Some(event) = event_index(hook.name) else { return };
        // In the middle of a replacement the old hear nothing any more and the new not yet.
        drop(self.replacing.lock().await);
        let Some(subs) = self.subs(event) else { return };
        let state = EventState::ready(serde_json::to_vec(&hook.payload).unwrap_or_default());
        for sub in subs.iter() {
            if !self.workflow_hub().with(|h| h.is_current(hook.publisher)) {
                return;
            }
            // A thread that may be lost: a synchronous handler can block where it is called.
            let (host, sub, state) = (self.clone(), sub.clone(), state.clone());
            let on = self.runtime().clone();
            let told =
                self.runtime().spawn_blocking(move || on.block_on(host.tell_apart(event, &[sub], &state)));
            let _ = tokio::time::timeout(self.config().handler_timeout, told).await;
        }
    }

    /// Delivers to one observer, one frame after another, until it is disposed.
    pub(crate) fn observe_workflow(&self, observer: u64, generation: &Arc<Generation>, handler: u64) {
        let number = generation.number();
        let Some(wake) = self.workflow_hub().with(|h| h.observe(observer, number)) else { return };
        let (host, generation) = (self.weak(), generation.clone());
        self.runtime().spawn(deliver(host, observer, generation, handler, wake));
    }
}

async fn deliver(
    host: Weak<Extensions>,
    observer: u64,
    generation: Arc<Generation>,
    handler: u64,
    wake: Arc<Notify>,
) {
    loop {
        wake.notified().await;
        loop {
            let Some(next) = host.upgrade().map(|h| h.workflow_hub().with(|h| h.next(observer))) else {
                return;
            };
            let frame: Arc<Value> = match next {
                None => return,
                Some(None) => break,
                Some(Some(frame)) => frame,
            };
            let Some(live) = Live::of(&generation) else { return };
            let event = json!({"type": "workflow_frame", "frame": *frame});
            let state = EventState::ready(serde_json::to_vec(&event).unwrap_or_default());
            let asked = ask_entry(&generation, &live, handler, kind::TASK, &state, |_| {}).await;
            if matches!(asked, Asked::Failed(_) | Asked::Overran(_))
                && let Some(host) = host.upgrade()
            {
                host.workflow_hub().with(Hub::delivery_failed);
            }
        }
    }
}

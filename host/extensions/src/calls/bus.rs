//! The event bus: one FIFO per session. `emit` returns after enqueueing; delivery is in
//! emit order, to subscribers in subscription order, asynchronous handlers started, not
//! awaited (decisions.md, over events.md E.6).

use super::{Asker, Failure, NOTHING, Outcome, body, json, unsupported};
use crate::{dispatch, generation::Generation, host::Extensions, load::EventState};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError, Weak,
    atomic::{AtomicU64, Ordering},
};
use tokio::sync::mpsc;

#[derive(Clone)]
struct Subscriber {
    id: u64,
    channel: String,
    handler: u64,
    generation: Arc<Generation>,
}

pub(crate) struct Bus {
    subscribers: Mutex<Vec<Subscriber>>,
    next: AtomicU64,
    queue: mpsc::UnboundedSender<(String, Value)>,
}

impl Bus {
    /// `host` is not kept alive by its bus.
    pub(crate) fn start(host: Weak<Extensions>, runtime: &tokio::runtime::Handle) -> Self {
        let (queue, mut rx) = mpsc::unbounded_channel::<(String, Value)>();
        runtime.spawn(async move {
            while let Some((channel, data)) = rx.recv().await {
                let Some(host) = host.upgrade() else { return };
                host.bus().deliver(&host, &channel, &data);
            }
        });
        Bus { subscribers: Mutex::default(), next: AtomicU64::new(1), queue }
    }

    fn list(&self) -> MutexGuard<'_, Vec<Subscriber>> {
        self.subscribers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its subscriptions end with a generation.
    pub(crate) fn forget(&self, generation: u64) {
        self.list().retain(|s| s.generation.number() != generation);
    }

    fn deliver(&self, host: &Arc<Extensions>, channel: &str, data: &Value) {
        let to: Vec<Subscriber> =
            self.list().iter().filter(|s| s.channel == channel && s.generation.live()).cloned().collect();
        if to.is_empty() {
            return;
        }
        let event = json!({"type": "bus", "channel": channel, "data": data});
        let state = EventState::ready(serde_json::to_vec(&event).unwrap_or_default());
        for s in to {
            let place = format!("events:{channel}");
            dispatch::start_detached(host, &s.generation, s.handler, &state, place);
        }
    }
}

#[derive(Deserialize)]
struct On {
    channel: String,
    handler: u64,
}

#[derive(Deserialize)]
struct Off {
    id: u64,
}

#[derive(Deserialize)]
struct Emit {
    channel: String,
    #[serde(default)]
    data: Value,
}

pub(super) fn call(a: &Asker, op: &str, bytes: &[u8]) -> Outcome {
    let bus = a.host.bus();
    match op {
        "events.on" => {
            let On { channel, handler } = body(op, bytes)?;
            let id = bus.next.fetch_add(1, Ordering::Relaxed);
            let subscriber = Subscriber { id, channel, handler, generation: a.generation.clone() };
            bus.list().push(subscriber);
            json(&json!({"id": id}))
        }
        "events.off" => {
            let Off { id } = body(op, bytes)?;
            let mut list = bus.list();
            let before = list.len();
            list.retain(|s| s.id != id || s.generation.owner() != a.generation.owner());
            json(&(list.len() != before))
        }
        "events.emit" => {
            let Emit { channel, data } = body(op, bytes)?;
            // With its commit, as all that a candidate does; in the order of the calls.
            let queue = bus.queue.clone();
            let emitted = a.generation.stage(Box::new(move || drop(queue.send((channel, data)))));
            emitted.map(|()| NOTHING).map_err(|_| Failure::stale())
        }
        _ => Err(unsupported(op)),
    }
}

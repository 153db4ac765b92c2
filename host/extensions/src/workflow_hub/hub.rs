//! The rules of the workflow activity hub (events.md F.2, F.3, F.5), without anybody behind
//! them: who may publish, which frame goes into whose queue, what is noted.

use serde_json::{Map, Value, json};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};
use tokio::sync::Notify;

/// Frames that wait for one observer.
const QUEUE: usize = 256;
/// Notes that are kept.
const RING: usize = 256;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    pub epoch: String,
    pub revision: u64,
}

impl Cursor {
    fn json(&self) -> Value {
        json!({"epoch": self.epoch, "revision": self.revision})
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Availability {
    Ready,
    Recovering,
    Unavailable,
}

impl Availability {
    fn name(self) -> &'static str {
        match self {
            Availability::Ready => "ready",
            Availability::Recovering => "recovering",
            Availability::Unavailable => "unavailable",
        }
    }
}

/// Why a note was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    ObserverDisposed,
    SourceRecovering,
    SourceUnavailable,
    ObserverDeliveryFailed,
    ObserverOverflow,
    PublisherFenced,
}

/// One note, for the host alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub kind: Kind,
    pub cursor: Cursor,
}

/// An event for handlers, with the publisher on whose word it is told.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Hook {
    pub(crate) publisher: u64,
    pub(crate) name: &'static str,
    pub(crate) payload: Value,
}

struct Observer {
    generation: u64,
    queue: VecDeque<Arc<Value>>,
    wake: Arc<Notify>,
}

pub(crate) struct Hub {
    cursor: Cursor,
    availability: Availability,
    /// By id, in the order they came.
    roots: Vec<(String, Value)>,
    /// The publisher that is heard, and its generation.
    current: Option<(u64, u64)>,
    observers: BTreeMap<u64, Observer>,
    diagnostics: VecDeque<Diagnostic>,
    closed: bool,
    new_epoch: fn() -> String,
}

fn random() -> String {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let part = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", part(), part())
}

impl Default for Hub {
    fn default() -> Self {
        Hub::with_epochs(random)
    }
}

impl Hub {
    pub(crate) fn with_epochs(new_epoch: fn() -> String) -> Self {
        Hub {
            cursor: Cursor { epoch: new_epoch(), revision: 0 },
            availability: Availability::Unavailable,
            roots: Vec::new(),
            current: None,
            observers: BTreeMap::new(),
            diagnostics: VecDeque::new(),
            closed: false,
            new_epoch,
        }
    }

    #[cfg(test)]
    pub(crate) fn epoch(&self) -> String {
        self.cursor.epoch.clone()
    }

    fn note(&mut self, kind: Kind) {
        if self.diagnostics.len() == RING {
            self.diagnostics.pop_front();
        }
        self.diagnostics.push_back(Diagnostic { kind, cursor: self.cursor.clone() });
    }

    pub(crate) fn diagnostics(&self) -> Vec<Diagnostic> {
        self.diagnostics.iter().cloned().collect()
    }

    fn note_source(&mut self) {
        match self.availability {
            Availability::Ready => {}
            Availability::Recovering => self.note(Kind::SourceRecovering),
            Availability::Unavailable => self.note(Kind::SourceUnavailable),
        }
    }

    fn snapshot_frame(&self) -> Arc<Value> {
        let mut frame = json!({
            "kind": "snapshot", "cursor": self.cursor.json(), "availability": self.availability.name(),
        });
        if self.availability == Availability::Ready
            && let Some(o) = frame.as_object_mut()
        {
            o.insert("roots".into(), self.roots.iter().map(|(_, root)| root.clone()).collect());
        }
        Arc::new(frame)
    }

    /// To everybody's queue; one that is full already gets what there is now instead of all.
    fn send(&mut self, frame: &Arc<Value>) {
        let fresh = self.snapshot_frame();
        let mut overflown = 0;
        for observer in self.observers.values_mut() {
            if observer.queue.len() >= QUEUE {
                observer.queue.clear();
                observer.queue.push_back(fresh.clone());
                overflown += 1;
            } else {
                observer.queue.push_back(frame.clone());
            }
            observer.wake.notify_one();
        }
        for _ in 0..overflown {
            self.note(Kind::ObserverOverflow);
        }
    }

    fn send_snapshot(&mut self) {
        let frame = self.snapshot_frame();
        self.send(&frame);
    }

    // ---- publishers

    pub(crate) fn is_current(&self, publisher: u64) -> bool {
        self.current.is_some_and(|(current, _)| current == publisher)
    }

    /// False, and noted: somebody else is heard, or nobody.
    fn heard(&mut self, publisher: u64) -> bool {
        let heard = self.is_current(publisher);
        if !heard {
            self.note(Kind::PublisherFenced);
        }
        heard
    }

    pub(crate) fn register(&mut self, publisher: u64, generation: u64) {
        if self.closed {
            self.note(Kind::PublisherFenced);
            return;
        }
        self.current = Some((publisher, generation));
        self.cursor = Cursor { epoch: (self.new_epoch)(), revision: 0 };
        self.roots.clear();
        self.availability = Availability::Unavailable;
        self.note(Kind::SourceUnavailable);
        self.send_snapshot();
    }

    /// Of two roots with one id the last value counts, at the first one's place.
    pub(crate) fn snapshot(
        &mut self,
        publisher: u64,
        availability: Availability,
        roots: Vec<(String, Value)>,
    ) {
        if !self.heard(publisher) {
            return;
        }
        self.cursor.revision += 1;
        self.availability = availability;
        self.roots.clear();
        if availability == Availability::Ready {
            for (id, root) in roots {
                self.upsert(id, root);
            }
        }
        self.note_source();
        self.send_snapshot();
    }

    fn upsert(&mut self, id: String, root: Value) {
        match self.roots.iter_mut().find(|(known, _)| *known == id) {
            Some((_, old)) => *old = root,
            None => self.roots.push((id, root)),
        }
    }

    pub(crate) fn changed(&mut self, publisher: u64, id: String, root: Value) -> Option<Hook> {
        if !self.heard(publisher) {
            return None;
        }
        self.cursor.revision += 1;
        let cursor = self.cursor.json();
        self.upsert(id, root.clone());
        self.send(&Arc::new(json!({"kind": "changed", "cursor": cursor, "root": root})));
        let name = "workflow_activity_changed";
        Some(Hook { publisher, name, payload: json!({"type": name, "cursor": cursor, "root": root}) })
    }

    pub(crate) fn removed(&mut self, publisher: u64, id: &str) {
        if !self.heard(publisher) {
            return;
        }
        self.cursor.revision += 1;
        self.roots.retain(|(known, _)| known != id);
        self.send(&Arc::new(json!({"kind": "removed", "cursor": self.cursor.json(), "rootRunId": id})));
    }

    /// A gap in the revisions of observers.
    pub(crate) fn lifecycle(&mut self, publisher: u64, event: Map<String, Value>) -> Vec<Hook> {
        if !self.heard(publisher) {
            return Vec::new();
        }
        self.cursor.revision += 1;
        let cursor = self.cursor.json();
        let of_target = |key: &str| event.get("target").and_then(|t| t.get(key)).and_then(Value::as_str);
        let completed = of_target("kind") == Some("stage") && of_target("status") == Some("completed");
        let hook = |name: &'static str| {
            let mut payload = event.clone();
            payload.insert("type".into(), name.into());
            payload.insert("cursor".into(), cursor.clone());
            Hook { publisher, name, payload: payload.into() }
        };
        let mut hooks = vec![hook("workflow_lifecycle")];
        if completed {
            hooks.push(hook("workflow_stage_completed"));
        }
        hooks
    }

    pub(crate) fn heartbeat(&mut self, publisher: u64, mut event: Map<String, Value>) -> Option<Hook> {
        if !self.heard(publisher) {
            return None;
        }
        let name = "workflow_heartbeat";
        event.insert("type".into(), name.into());
        Some(Hook { publisher, name, payload: event.into() })
    }

    pub(crate) fn dispose(&mut self, publisher: u64) {
        if self.heard(publisher) {
            self.vacate();
        }
    }

    fn vacate(&mut self) {
        self.current = None;
        self.cursor.revision += 1;
        self.roots.clear();
        self.availability = Availability::Unavailable;
        self.send_snapshot();
    }

    // ---- observers

    /// What there is now is its first frame. `None`: the hub is closed.
    pub(crate) fn observe(&mut self, observer: u64, generation: u64) -> Option<Arc<Notify>> {
        if self.closed {
            self.note(Kind::ObserverDisposed);
            return None;
        }
        self.note_source();
        let wake = Arc::new(Notify::new());
        wake.notify_one();
        let queue = VecDeque::from([self.snapshot_frame()]);
        self.observers.insert(observer, Observer { generation, queue, wake: wake.clone() });
        Some(wake)
    }

    /// The oldest frame; outer `None`: it was disposed.
    pub(crate) fn next(&mut self, observer: u64) -> Option<Option<Arc<Value>>> {
        Some(self.observers.get_mut(&observer)?.queue.pop_front())
    }

    pub(crate) fn delivery_failed(&mut self) {
        self.note(Kind::ObserverDeliveryFailed);
    }

    pub(crate) fn unobserve(&mut self, observer: u64) {
        if let Some(gone) = self.observers.remove(&observer) {
            gone.wake.notify_one();
            self.note(Kind::ObserverDisposed);
        }
    }

    // ---- ends

    /// The publisher and the observers of a generation.
    pub(crate) fn retire(&mut self, generation: u64) {
        let gone: Vec<u64> =
            self.observers.iter().filter(|(_, o)| o.generation == generation).map(|(id, _)| *id).collect();
        for observer in gone {
            self.unobserve(observer);
        }
        if self.current.is_some_and(|(_, of)| of == generation) {
            self.vacate();
        }
    }

    pub(crate) fn close(&mut self) {
        self.closed = true;
        self.current = None;
        let all: Vec<u64> = self.observers.keys().copied().collect();
        for observer in all {
            self.unobserve(observer);
        }
    }
}

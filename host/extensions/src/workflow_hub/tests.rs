//! The hub against a small model of events.md F: every step anew from the whole history.

use super::hub::{Availability, Hub, Kind};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::sync::atomic::{AtomicU64, Ordering};

const GENERATION: u64 = 9;

/// Epochs that can be told apart and compared.
fn counted() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("e{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

fn root(id: &str, n: u64) -> Value {
    json!({"rootRunId": id, "n": n})
}

fn frames(hub: &mut Hub, observer: u64) -> Vec<Value> {
    std::iter::from_fn(|| hub.next(observer).flatten()).map(|f| (*f).clone()).collect()
}

fn kinds(hub: &Hub) -> Vec<Kind> {
    hub.diagnostics().into_iter().map(|d| d.kind).collect()
}

#[derive(Clone, Debug)]
enum Step {
    Register,
    /// Publisher (of those so far, the last being heard), what it says.
    Ready(usize, Vec<u8>),
    Unknown(usize, bool),
    Changed(usize, u8),
    Removed(usize, u8),
    Lifecycle(usize),
    Heartbeat(usize),
    Dispose(usize),
    Observe,
    Unobserve(usize),
    Take(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let who = 0..3_usize;
    prop_oneof![
        1 => Just(Step::Register),
        2 => (who.clone(), prop::collection::vec(0..5_u8, 0..5)).prop_map(|(p, r)| Step::Ready(p, r)),
        1 => (who.clone(), any::<bool>()).prop_map(|(p, r)| Step::Unknown(p, r)),
        6 => (who.clone(), 0..5_u8).prop_map(|(p, r)| Step::Changed(p, r)),
        2 => (who.clone(), 0..5_u8).prop_map(|(p, r)| Step::Removed(p, r)),
        1 => who.clone().prop_map(Step::Lifecycle),
        1 => who.clone().prop_map(Step::Heartbeat),
        1 => who.clone().prop_map(Step::Dispose),
        2 => Just(Step::Observe),
        1 => who.clone().prop_map(Step::Unobserve),
        3 => who.prop_map(Step::Take),
    ]
}

/// What the rules say, without queues that are shared or bounded by code: plain lists.
#[derive(Default)]
struct Model {
    epoch: usize,
    revision: u64,
    availability: &'static str,
    roots: Vec<(String, Value)>,
    heard: Option<usize>,
    publishers: usize,
    queues: Vec<Option<Vec<Value>>>,
    notes: Vec<(Kind, usize, u64)>,
    hooks: Vec<(&'static str, Option<u64>)>,
}

impl Model {
    fn note(&mut self, kind: Kind) {
        self.notes.push((kind, self.epoch, self.revision));
    }
    fn cursor(&self) -> Value {
        json!({"epoch": self.epoch, "revision": self.revision})
    }
    fn snapshot(&self) -> Value {
        let mut frame =
            json!({"kind": "snapshot", "cursor": self.cursor(), "availability": self.availability});
        if self.availability == "ready" {
            frame["roots"] = self.roots.iter().map(|r| r.1.clone()).collect();
        }
        frame
    }
    fn send(&mut self, frame: &Value) {
        let snapshot = self.snapshot();
        for i in 0..self.queues.len() {
            let Some(queue) = &mut self.queues[i] else { continue };
            if queue.len() >= 256 {
                *queue = vec![snapshot.clone()];
                self.note(Kind::ObserverOverflow);
            } else {
                queue.push(frame.clone());
            }
        }
    }
    fn set(&mut self, id: &str, root: Value) {
        match self.roots.iter().position(|r| r.0 == id) {
            Some(at) => self.roots[at].1 = root,
            None => self.roots.push((id.to_owned(), root)),
        }
    }
    fn unknown(&mut self) {
        match self.availability {
            "recovering" => self.note(Kind::SourceRecovering),
            "unavailable" => self.note(Kind::SourceUnavailable),
            _ => {}
        }
    }
}

/// Epochs of the hub by the order in which they came, as the model counts them.
fn normal(value: Value, epochs: &[String]) -> Value {
    match value {
        Value::Object(o) => o
            .into_iter()
            .map(|(k, v)| match (k.as_str(), v) {
                ("epoch", Value::String(e)) => (k, json!(epochs.iter().position(|known| *known == e))),
                (_, v) => (k, normal(v, epochs)),
            })
            .collect::<Map<_, _>>()
            .into(),
        Value::Array(a) => a.into_iter().map(|v| normal(v, epochs)).collect(),
        other => other,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn the_hub_does_what_the_model_says(steps in prop::collection::vec(step(), 1..700)) {
        let mut hub = Hub::with_epochs(counted);
        let mut model = Model { availability: "unavailable", ..Model::default() };
        // The epoch that is there from the start is the first of both.
        let mut epochs = vec![hub.epoch()];
        let mut hooks: Vec<(&'static str, Option<u64>)> = Vec::new();
        for (n, step) in steps.into_iter().enumerate() {
            let n = n as u64;
            // 1000 is the first publisher, 1 the first observer.
            let publisher = |i: usize, m: &Model| i.min(m.publishers.saturating_sub(1));
            let heard = |i: usize, m: &mut Model| {
                let heard = m.heard == Some(i) && m.publishers > 0;
                if !heard {
                    m.note(Kind::PublisherFenced);
                }
                heard
            };
            let id = |r: u8| format!("r{r}");
            match step {
                Step::Register => {
                    hub.register(1000 + model.publishers as u64, GENERATION);
                    epochs.push(hub.epoch());
                    model.heard = Some(model.publishers);
                    model.publishers += 1;
                    model.epoch += 1;
                    model.revision = 0;
                    model.roots.clear();
                    model.availability = "unavailable";
                    model.note(Kind::SourceUnavailable);
                    let s = model.snapshot();
                    model.send(&s);
                }
                Step::Ready(p, ids) => {
                    let p = publisher(p, &model);
                    let roots: Vec<_> = ids.iter().enumerate().map(|(i, r)| (id(*r), root(&id(*r), n * 10 + i as u64))).collect();
                    hub.snapshot(1000 + p as u64, Availability::Ready, roots.clone());
                    if heard(p, &mut model) {
                        model.revision += 1;
                        model.availability = "ready";
                        model.roots.clear();
                        for (id, root) in roots {
                            model.set(&id, root);
                        }
                        let s = model.snapshot();
                        model.send(&s);
                    }
                }
                Step::Unknown(p, recovering) => {
                    let p = publisher(p, &model);
                    let to = if recovering { Availability::Recovering } else { Availability::Unavailable };
                    hub.snapshot(1000 + p as u64, to, vec![(id(1), root("r1", n))]);
                    if heard(p, &mut model) {
                        model.revision += 1;
                        model.availability = if recovering { "recovering" } else { "unavailable" };
                        model.roots.clear();
                        model.unknown();
                        let s = model.snapshot();
                        model.send(&s);
                    }
                }
                Step::Changed(p, r) => {
                    let p = publisher(p, &model);
                    let hook = hub.changed(1000 + p as u64, id(r), root(&id(r), n));
                    hooks.extend(hook.map(|h| (h.name, h.payload["cursor"]["revision"].as_u64())));
                    if heard(p, &mut model) {
                        model.revision += 1;
                        model.set(&id(r), root(&id(r), n));
                        let frame = json!({"kind": "changed", "cursor": model.cursor(), "root": root(&id(r), n)});
                        model.send(&frame);
                        model.hooks.push(("workflow_activity_changed", Some(model.revision)));
                    }
                }
                Step::Removed(p, r) => {
                    let p = publisher(p, &model);
                    hub.removed(1000 + p as u64, &id(r));
                    if heard(p, &mut model) {
                        model.revision += 1;
                        model.roots.retain(|x| x.0 != id(r));
                        let frame = json!({"kind": "removed", "cursor": model.cursor(), "rootRunId": id(r)});
                        model.send(&frame);
                    }
                }
                Step::Lifecycle(p) => {
                    let p = publisher(p, &model);
                    let done = n.is_multiple_of(2);
                    let status = if done { "completed" } else { "running" };
                    let event = json!({"eventId": "x", "target": {"kind": "stage", "status": status}});
                    let event = event.as_object().unwrap().clone();
                    let told = hub.lifecycle(1000 + p as u64, event);
                    hooks.extend(told.iter().map(|h| (h.name, h.payload["cursor"]["revision"].as_u64())));
                    if heard(p, &mut model) {
                        model.revision += 1;
                        model.hooks.push(("workflow_lifecycle", Some(model.revision)));
                        if done {
                            model.hooks.push(("workflow_stage_completed", Some(model.revision)));
                        }
                    }
                }
                Step::Heartbeat(p) => {
                    let p = publisher(p, &model);
                    hooks.extend(hub.heartbeat(1000 + p as u64, Map::new()).map(|h| (h.name, None)));
                    if heard(p, &mut model) {
                        model.hooks.push(("workflow_heartbeat", None));
                    }
                }
                Step::Dispose(p) => {
                    let p = publisher(p, &model);
                    hub.dispose(1000 + p as u64);
                    if heard(p, &mut model) {
                        model.heard = None;
                        model.revision += 1;
                        model.roots.clear();
                        model.availability = "unavailable";
                        let s = model.snapshot();
                        model.send(&s);
                    }
                }
                Step::Observe => {
                    hub.observe(1 + model.queues.len() as u64, GENERATION);
                    model.unknown();
                    let s = model.snapshot();
                    model.queues.push(Some(vec![s]));
                }
                Step::Unobserve(o) => {
                    hub.unobserve(1 + o as u64);
                    if model.queues.get_mut(o).is_some_and(|q| q.take().is_some()) {
                        model.note(Kind::ObserverDisposed);
                    }
                }
                Step::Take(o) => {
                    let got = hub.next(1 + o as u64).map(|f| f.map(|f| normal((*f).clone(), &epochs)));
                    let queue = model.queues.get_mut(o).and_then(Option::as_mut);
                    let wanted = queue.map(|q| (!q.is_empty()).then(|| q.remove(0)));
                    prop_assert_eq!(got, wanted);
                }
            }
        }
        for (i, queue) in model.queues.iter().enumerate() {
            let got: Vec<Value> = frames(&mut hub, 1 + i as u64).into_iter().map(|f| normal(f, &epochs)).collect();
            prop_assert_eq!(got, queue.clone().unwrap_or_default());
        }
        prop_assert_eq!(hooks, model.hooks);
        let notes: Vec<_> = hub.diagnostics().into_iter().map(|d| (d.kind, d.cursor.revision)).collect();
        let all: Vec<_> = model.notes.iter().map(|(k, _, r)| (*k, *r)).collect();
        prop_assert_eq!(&notes[..], &all[all.len().saturating_sub(256)..]);
    }
}

#[test]
fn a_blocked_observer_gets_its_current_frame_one_snapshot_and_what_came_later() {
    let mut hub = Hub::default();
    hub.register(1, GENERATION);
    hub.snapshot(1, Availability::Ready, Vec::new());
    hub.observe(7, GENERATION);
    let current = hub.next(7).flatten().unwrap();
    assert_eq!(current["kind"], "snapshot");
    for n in 0..300 {
        hub.changed(1, "r".into(), root("r", n));
    }
    let rest = frames(&mut hub, 7);
    assert_eq!(rest[0]["kind"], "snapshot");
    assert_eq!(rest[0]["roots"][0]["n"], 256, "as it was when the queue was full");
    assert_eq!(rest.len(), 1 + 43);
    assert!(rest[1..].iter().all(|f| f["kind"] == "changed"));
    assert_eq!(rest[43]["root"]["n"], 299);
    assert_eq!(kinds(&hub).iter().filter(|k| **k == Kind::ObserverOverflow).count(), 1);
}

#[test]
fn frames_of_an_old_source_stay_ahead_of_the_new_ones_snapshot() {
    let mut hub = Hub::default();
    hub.register(1, GENERATION);
    hub.observe(7, GENERATION);
    hub.changed(1, "r".into(), root("r", 1));
    hub.register(2, GENERATION);
    assert!(hub.changed(1, "r".into(), root("r", 2)).is_none(), "a fenced publisher is not heard");
    let seen: Vec<String> =
        frames(&mut hub, 7).iter().map(|f| f["kind"].as_str().unwrap().to_owned()).collect();
    assert_eq!(seen, ["snapshot", "changed", "snapshot"]);
    assert_eq!(kinds(&hub).last(), Some(&Kind::PublisherFenced));
}

#[test]
fn a_generation_that_ends_takes_its_source_and_its_observers_along() {
    let mut hub = Hub::default();
    hub.register(1, 5);
    hub.observe(7, 5);
    hub.observe(8, 6);
    hub.retire(5);
    assert!(!hub.is_current(1));
    assert!(hub.next(7).is_none());
    assert_eq!(frames(&mut hub, 8).last().unwrap()["availability"], "unavailable");
    hub.unobserve(7);
    assert_eq!(kinds(&hub).iter().filter(|k| **k == Kind::ObserverDisposed).count(), 1, "once");
}

#[test]
fn a_closed_hub_hears_nobody_and_shows_nothing() {
    let mut hub = Hub::default();
    hub.observe(7, GENERATION);
    hub.close();
    assert!(hub.next(7).is_none());
    assert!(hub.observe(8, GENERATION).is_none());
    hub.register(1, GENERATION);
    assert!(!hub.is_current(1));
    use Kind::{ObserverDisposed, PublisherFenced, SourceUnavailable};
    assert_eq!(kinds(&hub), [SourceUnavailable, ObserverDisposed, ObserverDisposed, PublisherFenced]);
}

//! What extensions tell the workflow activity hub and ask of it (events.md F.2, F.3). What a
//! candidate does takes effect with its commit, in its order.

use super::{Asker, Failure, NOTHING, Outcome, body, json, unsupported};
use crate::workflow_hub::{self, Availability, Hook, Hub};
use serde::Deserialize;
use serde_json::{Map, Value, json};

#[derive(Deserialize)]
struct Id {
    id: u64,
}

#[derive(Deserialize)]
struct Observe {
    handler: u64,
}

#[derive(Deserialize)]
struct Snapshot {
    id: u64,
    availability: String,
    #[serde(default)]
    roots: Vec<Value>,
}

#[derive(Deserialize)]
struct Changed {
    id: u64,
    root: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Removed {
    id: u64,
    root_run_id: String,
}

#[derive(Deserialize)]
struct Told {
    id: u64,
    event: Map<String, Value>,
}

fn keyed(op: &str, root: Value) -> Result<(String, Value), Failure> {
    match root.get("rootRunId").and_then(Value::as_str) {
        Some(id) if !id.is_empty() => Ok((id.to_owned(), root)),
        _ => Err(Failure::new("bad_request", format!("{op}: a root without its rootRunId"))),
    }
}

fn stage(a: &Asker, publish: impl FnOnce(&mut Hub) -> Vec<Hook> + Send + 'static) -> Outcome {
    let host = a.host.weak();
    let staged = a.generation.stage(Box::new(move || {
        if let Some(host) = host.upgrade() {
            host.workflow_hub().publish(publish);
        }
    }));
    staged.map(|()| NOTHING).map_err(|_| Failure::stale())
}

pub(super) fn call(a: &Asker, op: &str, bytes: &[u8]) -> Outcome {
    let generation = a.generation.number();
    match op {
        "workflow.publisher" => {
            let id = workflow_hub::number();
            stage(a, move |hub| {
                hub.register(id, generation);
                Vec::new()
            })?;
            json(&json!({"id": id}))
        }
        "workflow.snapshot" => {
            let s: Snapshot = body(op, bytes)?;
            let availability = match s.availability.as_str() {
                "ready" => Availability::Ready,
                "recovering" => Availability::Recovering,
                "unavailable" => Availability::Unavailable,
                other => {
                    return Err(Failure::new("bad_request", format!("{op}: {other:?} is no availability")));
                }
            };
            let roots = s.roots.into_iter().map(|r| keyed(op, r)).collect::<Result<Vec<_>, _>>()?;
            stage(a, move |hub| {
                hub.snapshot(s.id, availability, roots);
                Vec::new()
            })
        }
        "workflow.changed" => {
            let c: Changed = body(op, bytes)?;
            let (root_id, root) = keyed(op, c.root)?;
            stage(a, move |hub| hub.changed(c.id, root_id, root).into_iter().collect())
        }
        "workflow.removed" => {
            let r: Removed = body(op, bytes)?;
            stage(a, move |hub| {
                hub.removed(r.id, &r.root_run_id);
                Vec::new()
            })
        }
        "workflow.lifecycle" => {
            let t: Told = body(op, bytes)?;
            stage(a, move |hub| hub.lifecycle(t.id, t.event))
        }
        "workflow.heartbeat" => {
            let t: Told = body(op, bytes)?;
            stage(a, move |hub| hub.heartbeat(t.id, t.event).into_iter().collect())
        }
        "workflow.dispose" => {
            let Id { id } = body(op, bytes)?;
            stage(a, move |hub| {
                hub.dispose(id);
                Vec::new()
            })
        }
        "workflow.observe" => {
            let Observe { handler } = body(op, bytes)?;
            let id = workflow_hub::number();
            let (host, own) = (a.host.weak(), a.generation.clone());
            let observe = move || {
                if let Some(host) = host.upgrade() {
                    host.observe_workflow(id, &own, handler);
                }
            };
            a.generation.stage(Box::new(observe)).map_err(|_| Failure::stale())?;
            json(&json!({"id": id}))
        }
        "workflow.unobserve" => {
            let Id { id } = body(op, bytes)?;
            stage(a, move |hub| {
                hub.unobserve(id);
                Vec::new()
            })
        }
        _ => Err(unsupported(op)),
    }
}

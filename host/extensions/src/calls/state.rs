//! State of the session that outlives generations, and reasons to keep the engine.

use super::{Asker, NOTHING, Outcome, body, json, unsupported};
use crate::{
    generation::{Generation, Phase},
    host::lock,
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{collections::HashMap, sync::Mutex};

type Values = HashMap<String, (u64, Value)>;

#[derive(Default)]
struct Kept {
    current: Values,
    /// Of the session that is about to begin: what its candidates activate must not see the old
    /// one's state, nor leave something in it.
    next: Option<Values>,
}

struct Hold {
    id: u64,
    generation: u64,
    extension: String,
    reason: String,
}

/// One host's.
#[derive(Default)]
pub(crate) struct SessionState {
    kept: Mutex<Kept>,
    holds: Mutex<(u64, Vec<Hold>)>,
}

impl SessionState {
    /// From here on candidates write for the next session.
    pub(crate) fn prepare_next(&self) {
        lock(&self.kept).next = Some(Values::new());
    }
    /// The next session has begun.
    pub(crate) fn begin_next(&self) {
        let mut kept = lock(&self.kept);
        let old = kept.next.take().map(|next| std::mem::replace(&mut kept.current, next));
        drop(kept);
        drop(old);
    }

    fn values<R>(&self, of: &Generation, f: impl FnOnce(&mut Values) -> R) -> R {
        let mut kept = lock(&self.kept);
        match &mut *kept {
            Kept { next: Some(next), .. } if of.phase() == Phase::Staged => f(next),
            Kept { current, .. } => f(current),
        }
    }

    /// Why the engine is to stay, for a person.
    pub(crate) fn reasons(&self) -> Vec<String> {
        lock(&self.holds).1.iter().map(|h| format!("{}: {}", h.extension, h.reason)).collect()
    }

    pub(crate) fn forget(&self, generation: u64) {
        lock(&self.holds).1.retain(|h| h.generation != generation);
    }
}

#[derive(Deserialize)]
struct Key {
    key: String,
}

#[derive(Deserialize)]
struct Put {
    key: String,
    #[serde(default)]
    value: Value,
    revision: u64,
}

#[derive(Deserialize)]
struct Reason {
    reason: String,
}

#[derive(Deserialize)]
struct Id {
    id: u64,
}

pub(super) fn call(a: &Asker, op: &str, bytes: &[u8]) -> Outcome {
    let state = a.host.session_state();
    match op {
        "state.get" => {
            let Key { key } = body(op, bytes)?;
            let (revision, value) =
                state.values(&a.generation, |v| v.get(&key).cloned()).unwrap_or((0, Value::Null));
            json(&json!({"revision": revision, "value": value}))
        }
        "state.put" => {
            let Put { key, value, revision } = body(op, bytes)?;
            let written = state.values(&a.generation, |v| {
                let now = v.get(&key).map_or(0, |(revision, _)| *revision);
                (now == revision).then(|| v.insert(key, (revision + 1, value)))
            });
            json(&written.is_some())
        }
        "keepAlive.hold" => {
            let Reason { reason } = body(op, bytes)?;
            let mut holds = lock(&state.holds);
            holds.0 += 1;
            let id = holds.0;
            holds.1.push(Hold {
                id,
                generation: a.generation.number(),
                extension: a.generation.name().to_owned(),
                reason,
            });
            json(&json!({"id": id}))
        }
        "keepAlive.release" => {
            let Id { id } = body(op, bytes)?;
            let generation = a.generation.number();
            lock(&state.holds).1.retain(|h| h.id != id || h.generation != generation);
            Ok(NOTHING)
        }
        _ => Err(unsupported(op)),
    }
}

//! Watchers of shared tables: told the rows that answer now, and again whenever they change.
//! Never under a lock of the tables, never on the thread that changed them; one telling of a
//! watcher after another, several changes may be one.

use super::{Asker, Failure, tables};
use crate::{
    generation::Generation,
    host::Extensions,
    load::{EventState, Live},
    views,
};
use serde_json::json;
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError, Weak,
    atomic::{AtomicU8, Ordering},
};

const QUIET: u8 = 0;
const TELLING: u8 = 1;
/// Something changed while it is being told.
const AGAIN: u8 = 2;

struct Watch {
    token: u64,
    key: String,
    major: u32,
    handler: u64,
    generation: Arc<Generation>,
    host: Weak<Extensions>,
    state: AtomicU8,
}

static WATCHES: Mutex<Vec<Arc<Watch>>> = Mutex::new(Vec::new());

fn watches() -> MutexGuard<'static, Vec<Arc<Watch>>> {
    WATCHES.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn watch(a: &Asker, token: u64, key: String, major: u32, handler: u64) -> Result<(), Failure> {
    let watch = Arc::new(Watch {
        token,
        key,
        major,
        handler,
        generation: a.generation.clone(),
        host: a.host.weak(),
        state: AtomicU8::new(QUIET),
    });
    // With its commit: a candidate hears nothing.
    let begin = move || {
        watches().push(watch.clone());
        tell(&watch);
    };
    a.generation.stage(Box::new(begin)).map_err(|_| Failure::stale())
}

pub(super) fn unwatch(token: u64, generation: u64) {
    let gone: Vec<_> =
        watches().extract_if(.., |w| w.token == token && w.generation.number() == generation).collect();
    drop(gone);
}

pub(super) fn forget(generation: u64) {
    let gone: Vec<_> = watches().extract_if(.., |w| w.generation.number() == generation).collect();
    drop(gone);
}

/// Rows of these tables came, changed or went.
pub(super) fn changed(keys: &[String]) {
    if keys.is_empty() {
        return;
    }
    let of: Vec<_> = watches().iter().filter(|w| keys.contains(&w.key)).cloned().collect();
    for watch in of {
        tell(&watch);
    }
}

fn tell(watch: &Arc<Watch>) {
    let Some(host) = watch.host.upgrade() else { return };
    if watch.state.swap(AGAIN, Ordering::AcqRel) != QUIET {
        return;
    }
    let watch = watch.clone();
    host.runtime().spawn_blocking(move || {
        loop {
            watch.state.store(TELLING, Ordering::Release);
            once(&watch);
            if watch.state.compare_exchange(TELLING, QUIET, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                return;
            }
        }
    });
}

fn once(watch: &Watch) {
    let Some(live) = Live::of(&watch.generation) else { return };
    let event = json!({"type": "table", "key": watch.key, "rows": tables::list(&watch.key, watch.major)});
    let state = EventState::ready(serde_json::to_vec(&event).unwrap_or_default());
    if let Some(Err(error)) = views::here(&watch.generation, &live, watch.handler, &state)
        && let Some(host) = watch.host.upgrade()
    {
        host.diagnose(watch.generation.owner(), &format!("table {}", watch.key), &error);
    }
}

//! Shared tables, one set per process: statics are per library, so the tables live here
//! (boundary.md "Shared tables"). The newest live row of a (key, major, scope) answers;
//! retirement of one uncovers the next.

use super::{Asker, Caller, Failure, Outcome, asker, body, json, unsupported};
use crate::load::{LocalRow, local_row};
use once_cell::sync::Lazy;
use serde::Deserialize;
use serde_json::json;
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

struct Row {
    token: u64,
    owner: u64,
    row: Arc<LocalRow>,
}

/// Name, scope; majors are told apart inside, so that a wrong one can be named.
type Key = (String, String);

type Tables = HashMap<Key, Vec<(u32, Row)>>;

static TABLES: Lazy<Mutex<Tables>> = Lazy::new(Mutex::default);
static TOKENS: AtomicU64 = AtomicU64::new(1);

fn tables() -> MutexGuard<'static, Tables> {
    TABLES.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Deserialize)]
struct Provide {
    key: String,
    major: u32,
    version: String,
    #[serde(default)]
    scope: String,
    service: u64,
}

#[derive(Deserialize)]
struct Withdraw {
    token: u64,
}

pub(super) fn call(a: &Asker, op: &str, bytes: &[u8]) -> Outcome {
    match op {
        "tables.provide" => {
            let p: Provide = body(op, bytes)?;
            if p.key.is_empty() {
                return Err(Failure::new("bad_request", "a table needs a name"));
            }
            let token = TOKENS.fetch_add(1, Ordering::Relaxed);
            let owner = a.generation.owner();
            let row = local_row(a.generation.clone(), p.service, p.version);
            let publish = move || {
                let row = Row { token, owner, row };
                let replaced = {
                    let mut all = tables();
                    let rows = all.entry((p.key, p.scope)).or_default();
                    // The same (name, scope, owner) replaces; other owners' rows lie below.
                    let replaced: Vec<_> =
                        rows.extract_if(.., |(major, r)| *major == p.major && r.owner == owner).collect();
                    rows.push((p.major, row));
                    replaced
                };
                // Dropped outside the lock: it may be the last count of a generation.
                drop(replaced);
            };
            a.generation.stage(Box::new(publish)).map_err(|_| Failure::stale())?;
            json(&json!({"token": token}))
        }
        "tables.withdraw" => {
            let w: Withdraw = body(op, bytes)?;
            let owner = a.generation.owner();
            json(&!take(|r| r.token == w.token && r.owner == owner).is_empty())
        }
        _ => Err(unsupported(op)),
    }
}

fn take(which: impl Fn(&Row) -> bool) -> Vec<Arc<LocalRow>> {
    let mut gone = Vec::new();
    tables().retain(|_, rows| {
        gone.extend(rows.extract_if(.., |(_, r)| which(r)).map(|(_, r)| r.row));
        !rows.is_empty()
    });
    gone
}

/// Everything a generation provided.
pub(crate) fn forget(generation: u64) {
    drop(take(|r| r.row.generation.number() == generation));
}

/// The row that answers now.
pub(crate) fn lookup(caller: Caller, key: &str, major: u32, scope: &str) -> Result<Arc<LocalRow>, Failure> {
    let a = asker(caller)?;
    let all = tables();
    let rows = all.get(&(key.to_owned(), scope.to_owned())).map(Vec::as_slice).unwrap_or_default();
    let live = |r: &Row| r.row.generation.live();
    if let Some((_, r)) = rows.iter().rev().find(|(m, r)| *m == major && live(r)) {
        return Ok(r.row.clone());
    }
    match rows.iter().rev().find(|(_, r)| live(r)) {
        Some((m, r)) => Err(Failure::new(
            "wrong_version",
            format!(
                "{} asks for {key}.v{major}, {} provides {key}.v{m}",
                a.generation.name(),
                r.row.generation.name()
            ),
        )),
        None => Err(Failure::new("no_provider", format!("no loaded extension provides {key}.v{major}"))),
    }
}

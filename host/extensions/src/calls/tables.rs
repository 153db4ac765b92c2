//! Shared tables, one set per process: statics are per library, so the tables live here
//! (boundary.md "Shared tables"). The newest live row of a (key, major, scope) answers;
//! retirement of one uncovers the next.

use super::{Asker, Caller, Failure, NOTHING, Outcome, asker, body, json, table_watch, unsupported};
use crate::load::{LocalRow, local_row};
use once_cell::sync::Lazy;
use serde::Deserialize;
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

struct Row {
    token: u64,
    /// Place in lists: that of the row it replaced.
    order: u64,
    owner: u64,
    /// Data instead of code: stays when its generation is fenced.
    policy: Option<Value>,
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
    #[serde(default)]
    policy: Option<Value>,
    service: u64,
}

#[derive(Deserialize)]
struct Token {
    token: u64,
}

#[derive(Deserialize)]
struct Table {
    key: String,
    major: u32,
    #[serde(default)]
    handler: u64,
}

pub(super) fn call(a: &Asker, op: &str, bytes: &[u8]) -> Outcome {
    match op {
        "tables.provide" => {
            let p: Provide = body(op, bytes)?;
            if p.key.is_empty() {
                return Err(Failure::new("bad_request", "a table needs a name"));
            }
            // A caller of the major must find what it understands.
            let major = p.version.split('.').next().and_then(|m| m.parse::<u32>().ok());
            if major != Some(p.major) {
                return Err(Failure::new(
                    "bad_request",
                    format!("{}.v{}: {:?} is no version of that major", p.key, p.major, p.version),
                ));
            }
            let token = TOKENS.fetch_add(1, Ordering::Relaxed);
            let owner = a.generation.owner();
            let row = local_row(a.generation.clone(), p.service, p.version);
            let publish = move || {
                put(p.key, p.scope, p.major, Row { token, order: token, owner, policy: p.policy, row })
            };
            a.generation.stage(Box::new(publish)).map_err(|_| Failure::stale())?;
            json(&json!({"token": token}))
        }
        "tables.withdraw" => {
            let w: Token = body(op, bytes)?;
            let owner = a.generation.owner();
            json(&take(|r| r.token == w.token && r.owner == owner))
        }
        "tables.list" => {
            let t: Table = body(op, bytes)?;
            json(&list(&t.key, t.major))
        }
        "tables.policies" => {
            let t: Table = body(op, bytes)?;
            json(&policies(&t.key, t.major))
        }
        "tables.watch" => {
            let t: Table = body(op, bytes)?;
            let token = TOKENS.fetch_add(1, Ordering::Relaxed);
            table_watch::watch(a, token, t.key, t.major, t.handler)?;
            json(&json!({"token": token}))
        }
        "tables.unwatch" => {
            table_watch::unwatch(body::<Token>(op, bytes)?.token, a.generation.number());
            Ok(NOTHING)
        }
        _ => Err(unsupported(op)),
    }
}

fn put(key: String, scope: String, major: u32, mut row: Row) {
    let replaced = {
        let mut all = tables();
        let rows = all.entry((key.clone(), scope)).or_default();
        // The same (name, scope, owner) replaces; other owners' rows lie below.
        let replaced: Vec<_> =
            rows.extract_if(.., |(m, r)| *m == major && r.owner == row.owner).map(|(_, r)| r).collect();
        row.order = replaced.iter().map(|r| r.order).min().unwrap_or(row.order);
        rows.push((major, row));
        replaced
    };
    // Dropped outside the lock: it may be the last count of a generation.
    drop(replaced);
    table_watch::changed(&[key]);
}

/// False: nothing was there.
fn take(which: impl Fn(&Row) -> bool) -> bool {
    let (mut gone, mut keys) = (Vec::new(), Vec::new());
    tables().retain(|(key, _), rows| {
        let before = gone.len();
        gone.extend(rows.extract_if(.., |(_, r)| which(r)).map(|(_, r)| r));
        if gone.len() != before {
            keys.push(key.clone());
        }
        !rows.is_empty()
    });
    table_watch::changed(&keys);
    !gone.is_empty()
}

/// Everything a generation provided, but its policies: those wait for the next.
pub(crate) fn forget(generation: u64) {
    table_watch::forget(generation);
    take(|r| r.row.generation.number() == generation && r.policy.is_none());
}

/// Policies of an owner that its current generation did not give again; `None`: it has none.
pub(crate) fn end_policies(owner: u64, current: Option<u64>) {
    take(|r| r.owner == owner && r.policy.is_some() && Some(r.row.generation.number()) != current);
}

/// The rows that answer, one a scope, in the order they were provided.
pub(super) fn list(key: &str, major: u32) -> Vec<Value> {
    let all = tables();
    let mut found: Vec<(u64, Value)> = all
        .iter()
        .filter(|((k, _), _)| k == key)
        .filter_map(|((_, scope), rows)| {
            let answers = |m: u32, r: &Row| m == major && r.policy.is_none() && r.row.generation.live();
            let (_, r) = rows.iter().rev().find(|(m, r)| answers(*m, r))?;
            let mut info = r.row.describe();
            if let Some(o) = info.as_object_mut() {
                o.insert("scope".into(), scope.clone().into());
            }
            Some((r.order, info))
        })
        .collect();
    drop(all);
    found.sort_by_key(|(order, _)| *order);
    found.into_iter().map(|(_, info)| info).collect()
}

fn policies(key: &str, major: u32) -> Vec<Value> {
    let all = tables();
    let mut found: Vec<(u64, Value)> = all
        .iter()
        .filter(|((k, _), _)| k == key)
        .flat_map(|((_, scope), rows)| {
            rows.iter().filter(|(m, _)| *m == major).filter_map(move |(_, r)| {
                let value = r.policy.as_ref()?;
                let provider = r.row.generation.name();
                Some((r.order, json!({"provider": provider, "scope": scope, "value": value})))
            })
        })
        .collect();
    drop(all);
    found.sort_by_key(|(order, _)| *order);
    found.into_iter().map(|(_, policy)| policy).collect()
}

/// The row that answers now.
pub(crate) fn lookup(caller: Caller, key: &str, major: u32, scope: &str) -> Result<Arc<LocalRow>, Failure> {
    let a = asker(caller)?;
    let all = tables();
    let rows = all.get(&(key.to_owned(), scope.to_owned())).map(Vec::as_slice).unwrap_or_default();
    let live = |r: &Row| r.policy.is_none() && r.row.generation.live();
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

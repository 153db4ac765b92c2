//! What front ends ask of sessions and do not change: answered beside whatever runs.

use crate::{
    core::{Core, Reply},
    op::{Op, OpError},
    session::{self, Query, SessionError},
};
use serde_json::{Value, json};
use std::sync::Arc;

/// Only the queries come here; anything else is answered with an error.
pub(crate) fn answer(core: &Arc<Core>, op: Op, reply: Reply) {
    match op {
        Op::SessionTree => {
            let (nodes, leaf) = {
                let session = core.session();
                (session.nodes(), session.leaf_id().map(str::to_owned))
            };
            reply.send(encoded(&nodes).map(|nodes| json!({"nodes": nodes, "leafId": leaf})));
        }
        Op::SessionEntries { since } => reply.send(entries(core, since.as_deref())),
        Op::SessionMessages => {
            let messages = core.session().shown_messages();
            reply.send(encoded(&messages).map(|messages| json!({"messages": messages})));
        }
        Op::ForkMessages => {
            let messages: Vec<Value> = core
                .session()
                .fork_messages()
                .into_iter()
                .map(|(id, text)| json!({"entryId": id, "text": text}))
                .collect();
            reply.ok(json!({"messages": messages}));
        }
        Op::SessionStats => {
            let stats = session::stats(&core.session());
            reply.ok(stats);
        }
        Op::ListSessions { all, search, offset, limit } => {
            let query = {
                let session = core.session();
                Query {
                    dir: session.dir().to_owned(),
                    cwd: (!all).then(|| core.cwd()),
                    search,
                    offset,
                    limit,
                    current: session.file().map(Into::into),
                }
            };
            // It reads files: never on the task that takes ops.
            tokio::task::spawn_blocking(move || {
                let page = session::list(&query).map_err(OpError::from);
                reply.send(page.and_then(|page| encoded(&page)));
            });
        }
        other => reply.err("internal", format!("{other:?} is no query")),
    }
}

fn encoded<T: serde::Serialize>(value: &T) -> Result<Value, OpError> {
    serde_json::to_value(value).map_err(|e| OpError::new("internal", e.to_string()))
}

fn entries(core: &Core, since: Option<&str>) -> Result<Value, OpError> {
    let session = core.session();
    let all = session.entries();
    let from = match since {
        None => 0,
        Some(id) => match all.iter().position(|e| e.id() == id) {
            Some(at) => at + 1,
            None => return Err(SessionError::UnknownEntry(id.to_owned()).into()),
        },
    };
    let entries = encoded(&all.get(from..).unwrap_or_default())?;
    Ok(json!({"entries": entries, "leafId": session.leaf_id()}))
}

//! Members that only read: answered from the engine's view, without asking anyone.

use super::{Asker, Outcome, body, json, unsupported};
use crate::convert::path;
use atomic_agent::op::Op;
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Get {
    member: String,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    from_id: Option<String>,
}

pub(super) fn call(a: &Asker, op: &str, bytes: &[u8]) -> Outcome {
    match op {
        "ctx.get" => context(a, &body(op, bytes)?),
        "session.get" => session(a, &body(op, bytes)?),
        "ctx.abort" => {
            a.host.engine(op)?.send(Op::AbortRun);
            Ok(Vec::new())
        }
        "ctx.shutdown" => {
            a.host.engine(op)?.send(Op::Shutdown { from_signal: false });
            Ok(Vec::new())
        }
        _ => Err(unsupported(op)),
    }
}

fn context(a: &Asker, get: &Get) -> Outcome {
    // These two are known before there is a session.
    match (get.member.as_str(), a.host.engine("ctx").is_err()) {
        ("cwd", true) => return json(&path(&a.host.config().cwd)),
        ("hasUI", true) => return json(&a.host.config().has_ui),
        ("isProjectTrusted", true) => return json(&a.host.config().project_trusted),
        _ => {}
    }
    let engine = a.host.engine(&format!("ctx.{}", get.member))?;
    engine.view(|v| match get.member.as_str() {
        "mode" => json(&v.mode),
        "hasUI" => json(&v.has_ui),
        "cwd" => json(&path(&v.cwd)),
        "isIdle" => json(&v.idle),
        "isProjectTrusted" => json(&v.project_trusted),
        "hasPendingMessages" => json(&(v.pending_messages > 0)),
        "model" => json(&v.model),
        "thinkingLevel" => json(&v.thinking),
        "systemPrompt" => json(&v.system_prompt),
        "signalAborted" => json(&v.signal.as_ref().map(|s| s.is_cancelled())),
        other => Err(unsupported(&format!("ctx.{other}"))),
    })
}

fn session(a: &Asker, get: &Get) -> Outcome {
    let engine = a.host.engine(&format!("sessionManager.{}", get.member))?;
    engine.view(|v| {
        let entry = |id: &str| v.entries.iter().find(|e| id_of(e) == Some(id)).cloned();
        match get.member.as_str() {
            "cwd" => json(&path(&v.cwd)),
            "sessionDir" => json(&path(&v.session_dir)),
            "sessionId" => json(&v.session_id),
            "sessionFile" => json(&v.session_file.as_deref().map(path)),
            "sessionName" => json(&v.session_name),
            "header" => json(&v.header),
            "leafId" => json(&v.leaf_id),
            "leafEntry" => json(&v.leaf_id.as_deref().and_then(entry)),
            "entry" => json(&get.id.as_deref().and_then(entry)),
            "entries" => json(&v.entries),
            "label" => json(&get.id.as_deref().and_then(|id| label(&v.entries, id))),
            "branch" => json(&branch(&v.entries, get.from_id.as_deref().or(v.leaf_id.as_deref()))),
            other => Err(unsupported(&format!("sessionManager.{other}"))),
        }
    })
}

fn id_of(entry: &Value) -> Option<&str> {
    entry.get("id").and_then(Value::as_str)
}

/// Last label wins; one without text clears.
fn label(entries: &[Arc<Value>], id: &str) -> Option<String> {
    let is_label = |e: &&Arc<Value>| {
        e.get("type").and_then(Value::as_str) == Some("label")
            && e.get("targetId").and_then(Value::as_str) == Some(id)
    };
    entries.iter().rfind(is_label)?.get("label").and_then(Value::as_str).map(str::to_owned)
}

/// Root to `from`.
fn branch(entries: &[Arc<Value>], from: Option<&str>) -> Vec<Arc<Value>> {
    let by_id: std::collections::HashMap<&str, &Arc<Value>> =
        entries.iter().filter_map(|e| Some((id_of(e)?, e))).collect();
    let mut path = Vec::new();
    let mut next = from;
    while let Some(entry) = next.and_then(|id| by_id.get(id)) {
        path.push((*entry).clone());
        // A file of another program may hold a circle.
        if path.len() > entries.len() {
            break;
        }
        next = entry.get("parentId").and_then(Value::as_str);
    }
    path.reverse();
    path
}

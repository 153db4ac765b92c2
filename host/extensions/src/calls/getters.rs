//! Members that only read: answered from the engine's view, without asking anyone.

use super::{Asker, Outcome, body, json as encoded, unsupported};
use crate::convert::path;
use atomic_agent::{compact::CompactOptions, model::Models, op::Op, providers::ScopedModel, session::Entry};
use serde::Deserialize;
use serde_json::{Value, json};

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
        "ctx.compact" => {
            let options = body::<Option<CompactOptions>>(op, bytes)?.unwrap_or_default();
            a.host.engine(op)?.send(Op::Compact { custom_instructions: None, options });
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
    // These are known before there is a session.
    match (get.member.as_str(), a.host.engine("ctx").is_err()) {
        ("cwd", true) => return encoded(&path(&a.host.config().cwd)),
        ("hasUI", true) => return encoded(&a.host.config().has_ui),
        ("mode", true) => return encoded(&a.host.config().mode),
        ("isProjectTrusted", true) => return encoded(&a.host.project_trusted()),
        _ => {}
    }
    match get.member.as_str() {
        "orchestrationContext" => return encoded(&a.host.config().orchestration_context),
        "subagentPolicy" => return encoded(&a.host.config().subagent_policy),
        "scopedModels" => return encoded(&scoped(a)),
        _ => {}
    }
    let engine = a.host.engine(&format!("ctx.{}", get.member))?;
    engine.view(|v| match get.member.as_str() {
        "mode" => encoded(&v.mode),
        "hasUI" => encoded(&v.has_ui),
        "cwd" => encoded(&path(&v.cwd)),
        "isIdle" => encoded(&v.idle),
        "isProjectTrusted" => encoded(&v.project_trusted),
        "hasPendingMessages" => encoded(&(v.pending_messages > 0)),
        "model" => encoded(&v.model),
        "thinkingLevel" => encoded(&v.thinking),
        "systemPrompt" => encoded(&v.system_prompt),
        "contextUsage" => {
            encoded(&v.model.as_ref().map(|m| usage(&v.entries, v.leaf_id.as_deref(), m.context_window)))
        }
        "signalAborted" => encoded(&v.signal.as_ref().map(|s| s.is_cancelled())),
        other => Err(unsupported(&format!("ctx.{other}"))),
    })
}

fn scoped(a: &Asker) -> Vec<Value> {
    let providers = a.host.engine("ctx.scopedModels").ok().and_then(|e| e.models().cloned());
    let Some(providers) = providers else { return Vec::new() };
    let row = |s: ScopedModel| {
        let model = providers.get(&s.provider, &s.id)?;
        let mut row = json!({"model": model.info()});
        if let Some(level) = s.thinking {
            row["thinkingLevel"] = json!(level);
        }
        Some(row)
    };
    providers.scope().into_iter().filter_map(row).collect()
}

fn session(a: &Asker, get: &Get) -> Outcome {
    let engine = a.host.engine(&format!("sessionManager.{}", get.member))?;
    engine.view(|v| {
        let entry = |id: &str| v.entries.iter().find(|e| e.id() == id);
        match get.member.as_str() {
            "cwd" => encoded(&path(&v.cwd)),
            "sessionDir" => encoded(&path(&v.session_dir)),
            "sessionId" => encoded(&v.session_id),
            "sessionFile" => encoded(&v.session_file.as_deref().map(path)),
            "sessionName" => encoded(&v.session_name),
            "sessionNameState" => encoded(&match &v.session_name {
                Some(name) => json!({"state": "named", "name": name}),
                None if v.entries.iter().any(|e| e.kind() == "session_info") => {
                    json!({"state": "cleared"})
                }
                None => json!({"state": "unset"}),
            }),
            "usesDefaultSessionDir" => {
                encoded(&v.session_dir.starts_with(a.host.config().home.join("agent").join("sessions")))
            }
            "header" => encoded(&v.header),
            "leafId" => encoded(&v.leaf_id),
            "leafEntry" => encoded(&v.leaf_id.as_deref().and_then(entry)),
            "entry" => encoded(&get.id.as_deref().and_then(entry)),
            "entries" => encoded(&v.entries),
            "label" => encoded(&get.id.as_deref().and_then(|id| label(&v.entries, id))),
            "branch" => encoded(&branch(&v.entries, get.from_id.as_deref().or(v.leaf_id.as_deref()))),
            other => Err(unsupported(&format!("sessionManager.{other}"))),
        }
    })
}

/// What the last answer on the branch has used; not known right after a compaction.
fn usage(entries: &[Entry], leaf: Option<&str>, context_window: u64) -> Value {
    let mut tokens = None;
    for entry in branch(entries, leaf).iter().rev() {
        if entry.kind() == "compaction" {
            break;
        }
        let message = entry.get("message").filter(|_| entry.role() == Some("assistant"));
        let Some(usage) = message.as_ref().and_then(|m| m.get("usage")) else { continue };
        let of = |key: &str| usage.get(key).and_then(Value::as_u64).unwrap_or(0);
        let sum = of("input") + of("output") + of("cacheRead") + of("cacheWrite");
        let used = of("totalTokens").max(sum);
        if used > 0 {
            tokens = Some(used);
            break;
        }
    }
    let percent = tokens.filter(|_| context_window > 0).map(|t| t as f64 * 100.0 / context_window as f64);
    json!({"tokens": tokens, "contextWindow": context_window, "percent": percent})
}

/// Resolves when the run that goes on now is aborted; never when nothing goes on.
pub(super) fn aborted(a: &Asker) -> impl Future<Output = Outcome> + Send + use<> {
    let signal = a.host.engine("signal").map(|engine| engine.view(|v| v.signal.clone()));
    async move {
        match signal? {
            Some(signal) => signal.cancelled().await,
            None => std::future::pending().await,
        }
        Ok(Vec::new())
    }
}

/// Last label wins; one without text clears.
fn label(entries: &[Entry], id: &str) -> Option<String> {
    let labels = entries.iter().rev().filter(|e| e.kind() == "label");
    let last = labels.map(Entry::raw).find(|e| e.get("targetId").and_then(Value::as_str) == Some(id))?;
    last.get("label").and_then(Value::as_str).map(str::to_owned)
}

/// Root to `from`.
fn branch(entries: &[Entry], from: Option<&str>) -> Vec<Entry> {
    let by_id: std::collections::HashMap<&str, &Entry> = entries.iter().map(|e| (e.id(), e)).collect();
    let mut path = Vec::new();
    let mut next = from;
    while let Some(entry) = next.and_then(|id| by_id.get(id)) {
        path.push((*entry).clone());
        // A file of another program may hold a circle.
        if path.len() > entries.len() {
            break;
        }
        next = entry.parent_id();
    }
    path.reverse();
    path
}

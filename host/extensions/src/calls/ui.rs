//! Dialogs and the small things of the face. Only an explicit yes approves; every other
//! end is the default (decisions.md "Dialogs").

use super::{Asker, NOTHING, Outcome, body, json, unsupported};
use crate::{dispatch::Reason, trust};
use atomic_agent::{
    event::Event,
    op::{Dialog, DialogAnswer},
    surface::Update,
};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Ask {
    title: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    options: Vec<String>,
    #[serde(default)]
    placeholder: Option<String>,
    #[serde(default)]
    prefill: Option<String>,
    #[serde(default)]
    timeout_ms: Option<u64>,
}

/// What an op answers when nobody can: the JSON of its default, for dialogs only.
pub(super) fn default_answer(op: &str) -> Option<Vec<u8>> {
    match op {
        "ui.confirm" => Some(b"false".to_vec()),
        "ui.select" | "ui.input" | "ui.editor" => Some(b"null".to_vec()),
        _ => None,
    }
}

pub(super) async fn ask(a: &Asker, op: &str, bytes: &[u8]) -> Outcome {
    let q: Ask = body(op, bytes)?;
    let Ok(engine) = a.host.engine(op) else { return Ok(default_answer(op).unwrap_or_default()) };
    let dialog = match op {
        "ui.confirm" => Dialog::Confirm { title: q.title, message: q.message, timeout_ms: q.timeout_ms },
        "ui.select" => Dialog::Select {
            title: q.title,
            message: None,
            options: q.options.clone(),
            timeout_ms: q.timeout_ms,
        },
        "ui.input" => Dialog::Input { title: q.title, placeholder: q.placeholder, timeout_ms: q.timeout_ms },
        _ => Dialog::Editor { title: q.title, prefill: q.prefill },
    };
    let reason = match trust::is_trust_call(a.caller.call) {
        true => Reason::ProjectTrust,
        false => Reason::Extension,
    };
    let kind = op.strip_prefix("ui.").unwrap_or(op);
    let _span = a.host.prompt_span(reason, kind, dialog.title());
    match (op, engine.dialog(dialog, a.generation.name()).await) {
        ("ui.confirm", DialogAnswer::Confirmed(yes)) => json(&yes),
        // A value that was never offered is no choice.
        ("ui.select", DialogAnswer::Value(v)) if !q.options.contains(&v) => Ok(b"null".to_vec()),
        ("ui.select" | "ui.input" | "ui.editor", DialogAnswer::Value(v)) => json(&v),
        _ => Ok(default_answer(op).unwrap_or_default()),
    }
}

#[derive(Deserialize)]
struct Notify {
    message: String,
    #[serde(default)]
    level: Option<String>,
}

#[derive(Deserialize)]
struct Status {
    key: String,
    #[serde(default)]
    text: Option<String>,
}

pub(super) fn call(a: &Asker, op: &str, bytes: &[u8]) -> Outcome {
    let extension = a.generation.name().to_owned();
    match op {
        "ui.notify" => {
            let n: Notify = body(op, bytes)?;
            let level = n
                .level
                .filter(|l| matches!(l.as_str(), "info" | "warning" | "error"))
                .unwrap_or_else(|| "info".into());
            // Asked before there is a session: said with what the start has to say.
            if trust::is_trust_call(a.caller.call) && a.host.engine(op).is_err() {
                a.host.trust.say(format!("{extension}: {}", n.message));
                return Ok(NOTHING);
            }
            a.host.engine(op)?.emit(Event::Notify { message: n.message, level, extension: Some(extension) });
        }
        "ui.setStatus" => {
            let s: Status = body(op, bytes)?;
            a.host.statuses().note(a.generation.number(), &extension, &s.key, s.text.is_some());
            a.host.engine(op)?.emit(Event::Status { key: s.key, text: s.text, extension });
        }
        // Nobody reports back what his editor holds.
        "ui.getEditorText" => return json(&""),
        "ui.getToolsExpanded" => return json(&false),
        _ => return surface(a, op, bytes),
    }
    Ok(NOTHING)
}

/// What stays on the screen: told, and remembered for the end of the generation.
fn surface(a: &Asker, op: &str, bytes: &[u8]) -> Outcome {
    let mut fields: serde_json::Map<String, serde_json::Value> = body(op, bytes)?;
    fields.insert("method".into(), op.strip_prefix("ui.").unwrap_or(op).into());
    let mut update: Update = match serde_json::from_value(fields.into()) {
        Ok(update) => update,
        Err(e) if e.to_string().starts_with("unknown variant") => return Err(unsupported(op)),
        Err(e) => return Err(super::Failure::new("bad_request", format!("{op}: {e}"))),
    };
    if let Update::SetWidget { lines: Some(lines), .. }
    | Update::SetFooter { lines: Some(lines) }
    | Update::SetHeader { lines: Some(lines) } = &mut update
    {
        crate::views::clean(lines);
    }
    let engine = a.host.engine(op)?;
    a.host.statuses().note_update(a.generation.number(), a.generation.name(), &update);
    engine.emit(Event::Surface { update, extension: a.generation.name().to_owned() });
    Ok(NOTHING)
}

//! `/tree`: another place of the same session (events.md C.3). The way there is settled first,
//! the branch that is left is summarised next, and only then anything moves.

use super::summary::{Summarised, Wish, summarise};
use crate::{
    core::{Core, Reply},
    decisions::{BeforeEvent, RoomEvent, SessionBefore},
    event::Event,
    hooks::Notice,
    op::OpError,
    session::{Entry, SessionError},
};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

pub(crate) struct Navigation {
    pub target_id: String,
    pub summarize: bool,
    pub custom_instructions: Option<String>,
    pub replace_instructions: bool,
    pub label: Option<String>,
}

/// What is known before anybody is asked.
struct Way {
    old_leaf: Option<String>,
    new_leaf: Option<String>,
    ancestor: Option<String>,
    editor_text: Option<String>,
    left: Vec<Entry>,
}

/// On the session thread, with no run going on.
pub(crate) async fn navigate(core: &Arc<Core>, to: Navigation, cancel: CancellationToken, reply: Reply) {
    let answer = go(core, to, &cancel).await;
    core.state().navigation = None;
    reply.send(answer);
}

async fn go(core: &Arc<Core>, mut to: Navigation, cancel: &CancellationToken) -> Result<Value, OpError> {
    let Some(way) = way(core, &to.target_id)? else { return Ok(json!({"cancelled": false})) };
    let mut preparation = json!({
        "targetId": to.target_id,
        "oldLeafId": way.old_leaf,
        "commonAncestorId": way.ancestor,
        "entriesToSummarize": way.left,
        "userWantsSummary": to.summarize,
    });
    if let Some(instructions) = &to.custom_instructions {
        preparation["customInstructions"] = instructions.clone().into();
        preparation["replaceInstructions"] = to.replace_instructions.into();
    }
    if let Some(label) = &to.label {
        preparation["label"] = label.clone().into();
    }
    let before = SessionBefore::new(BeforeEvent::Tree, json!({"preparation": preparation}));
    let asked = core.dispatch(cancel, core.hooks.session_before(before)).await;
    let Some(veto) = asked else { return Ok(json!({"cancelled": true, "aborted": true})) };
    if let Some(by) = veto.cancelled_by {
        core.notify("info", format!("{by} keeps the session where it is."));
        return Ok(json!({"cancelled": true}));
    }
    let mut given = None;
    if let Some(result) = veto.result {
        let text = |key: &str| result.get(key).and_then(Value::as_str).map(str::to_owned);
        to.custom_instructions = text("customInstructions").or(to.custom_instructions);
        to.label = text("label").or(to.label);
        if let Some(replace) = result.get("replaceInstructions").and_then(Value::as_bool) {
            to.replace_instructions = replace;
        }
        given = result.get("summary").cloned().filter(|s| to.summarize && !s.is_null());
    }
    let summary = match (given, to.summarize && !way.left.is_empty()) {
        (Some(given), _) => Some(of_extension(&given)?),
        (None, false) => None,
        (None, true) => match of_model(core, &way.left, &to, cancel).await? {
            Some(fields) => Some(fields),
            None => return Ok(json!({"cancelled": true, "aborted": true})),
        },
    };
    moved(core, way, to, summary).await
}

/// `None`: the session is there already.
fn way(core: &Core, target: &str) -> Result<Option<Way>, OpError> {
    let session = core.session();
    let (new_leaf, editor_text) = session.landing(target)?;
    let old_leaf = session.leaf_id().map(str::to_owned);
    if old_leaf.as_deref() == Some(target) {
        return Ok(None);
    }
    let ancestor = session.common_ancestor(old_leaf.as_deref(), Some(target)).map(str::to_owned);
    let path = session.path();
    let from = path.iter().position(|e| Some(e.id()) == ancestor.as_deref()).map_or(0, |at| at + 1);
    let left = path.into_iter().skip(from).filter(|e| e.kind() != "label").cloned().collect();
    Ok(Some(Way { old_leaf, new_leaf, ancestor, editor_text, left }))
}

type Summary = (Map<String, Value>, bool);

fn of_extension(given: &Value) -> Result<Summary, OpError> {
    let text = given.get("summary").and_then(Value::as_str).unwrap_or_default();
    if text.trim().is_empty() {
        return Err(OpError::new("no_summary", "No branch summary provided by extension"));
    }
    let mut fields = Map::new();
    fields.insert("summary".into(), text.into());
    if let Some(details) = given.get("details").filter(|d| !d.is_null()) {
        fields.insert("details".into(), details.clone());
    }
    fields.insert("fromHook".into(), true.into());
    Ok((fields, true))
}

/// `None`: the user stopped it.
async fn of_model(
    core: &Arc<Core>,
    left: &[Entry],
    to: &Navigation,
    cancel: &CancellationToken,
) -> Result<Option<Summary>, OpError> {
    let Some(model) = core.state().model.clone() else {
        return Err(OpError::new("no_model", "a branch summary needs a model"));
    };
    let wish = Wish { instructions: to.custom_instructions.as_deref(), replace: to.replace_instructions };
    match summarise(core, model, left, wish, cancel).await {
        Summarised::Done { summary, details, usage } => {
            let mut fields = Map::new();
            fields.insert("summary".into(), summary.into());
            fields.insert("details".into(), details);
            fields.insert("usage".into(), serde_json::to_value(usage).unwrap_or_default());
            Ok(Some((fields, false)))
        }
        Summarised::Aborted => Ok(None),
        Summarised::Failed(why) => {
            Err(OpError::new("summary_failed", format!("The branch could not be summarised: {why}")))
        }
    }
}

async fn moved(
    core: &Arc<Core>,
    way: Way,
    to: Navigation,
    summary: Option<Summary>,
) -> Result<Value, OpError> {
    core.session().move_leaf(way.new_leaf.as_deref())?;
    // An entry that cannot be written leaves the session where it was.
    let written = write(core, &way, &to, summary);
    let (entry, from_extension) = written.inspect_err(|_| {
        let _ = core.session().move_leaf(way.old_leaf.as_deref());
        core.show_session();
    })?;
    core.show_session();
    let new_leaf = core.session().leaf_id().map(str::to_owned);
    let mut fields = Map::new();
    fields.insert("newLeafId".into(), new_leaf.clone().map_or(Value::Null, Value::from));
    fields.insert("oldLeafId".into(), way.old_leaf.clone().map_or(Value::Null, Value::from));
    if let Some(entry) = &entry {
        fields.insert("summaryEntry".into(), (**entry).clone());
        fields.insert("fromExtension".into(), from_extension.into());
    }
    core.dispatch(
        &core.stopped,
        core.hooks.notify(Notice::Room { event: RoomEvent::SessionTree, fields: &fields }),
    )
    .await;
    core.handle.emit(Event::TreeMoved {
        new_leaf_id: new_leaf,
        old_leaf_id: way.old_leaf,
        editor_text: way.editor_text.clone(),
    });
    let mut answer = json!({"cancelled": false});
    if let Some(text) = way.editor_text {
        answer["editorText"] = text.into();
    }
    if let Some(entry) = entry {
        answer["summaryEntry"] = (*entry).clone();
    }
    Ok(answer)
}

type Written = (Option<Arc<Value>>, bool);

fn write(
    core: &Arc<Core>,
    way: &Way,
    to: &Navigation,
    summary: Option<Summary>,
) -> Result<Written, SessionError> {
    let mut written: Written = (None, false);
    if let Some((mut fields, from_extension)) = summary {
        let from = way.new_leaf.clone().unwrap_or_else(|| "root".to_owned());
        fields.insert("fromId".into(), from.into());
        written = (Some(core.append_shown("branch_summary", fields)?), from_extension);
    }
    if let Some(label) = to.label.as_deref().map(str::trim).filter(|l| !l.is_empty()) {
        let target = written.0.as_ref().and_then(|e| e.get("id")?.as_str());
        let mut fields = Map::new();
        fields.insert("targetId".into(), target.unwrap_or(&to.target_id).into());
        fields.insert("label".into(), label.into());
        core.append_shown("label", fields)?;
    }
    Ok(written)
}

//! Boundary hooks (events.md A.5): entries that handlers of `turn_end` and
//! `agent_before_settle` propose, what the model would be shown with them, and whether the
//! run goes on. Knows drafts and the session; whose handlers are called is the hooks' affair.

use crate::{
    core::Core,
    event::Event,
    hooks::TurnEnd,
    message::{CustomMessage, Message, MessageContent},
    pairing,
    run::{Outcome, Run},
    session::{Session, SessionError},
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::{path::PathBuf, sync::Arc};

/// How often `continue` is honoured in one prompt, unless a setting says otherwise.
pub const MAX_CONTINUATIONS: usize = 25;

/// Which boundary a run has come to.
#[derive(Clone, Debug)]
pub enum Boundary<'a> {
    TurnEnd(TurnEnd<'a>),
    /// `completed`, `aborted`, `error`.
    BeforeSettle {
        outcome: &'a str,
    },
}

impl Boundary<'_> {
    pub fn name(&self) -> &'static str {
        match self {
            Boundary::TurnEnd(_) => "turn_end",
            Boundary::BeforeSettle { .. } => "agent_before_settle",
        }
    }
}

/// An entry that a handler wants in the session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum EntryDraft {
    Custom {
        custom_type: String,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        data: Option<Value>,
    },
    CustomMessage {
        custom_type: String,
        content: MessageContent,
        #[serde(default)]
        display: bool,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        details: Option<Value>,
    },
    /// `replacement`: null takes the message away, `{content}` changes it.
    ContextEdit { target_id: String, replacement: Value },
    Compaction {
        summary: String,
        #[serde(default)]
        first_kept_entry_id: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        usage: Option<Value>,
    },
}

impl EntryDraft {
    /// `Err` says what the branch does not allow.
    fn check(&self, session: &Session) -> Result<(), String> {
        let on_branch = |id: &str| session.path().into_iter().find(|e| e.id() == id);
        match self {
            EntryDraft::Custom { custom_type, .. } | EntryDraft::CustomMessage { custom_type, .. } => {
                if custom_type.trim().is_empty() {
                    return Err("customType is empty".into());
                }
            }
            EntryDraft::ContextEdit { target_id, replacement } => {
                let target =
                    on_branch(target_id).ok_or_else(|| format!("no entry {target_id} on this branch"))?;
                let editable = match target.message() {
                    Some(m) => matches!(m, Message::User(_) | Message::Assistant(_) | Message::ToolResult(_)),
                    None => target.kind() == "custom_message",
                };
                if !editable {
                    return Err(format!("entry {target_id} is no message that can be edited"));
                }
                let content = replacement.get("content").cloned().unwrap_or_default();
                if !replacement.is_null() && serde_json::from_value::<MessageContent>(content).is_err() {
                    return Err(format!("the replacement of {target_id} is neither null nor {{content}}"));
                }
            }
            EntryDraft::Compaction { first_kept_entry_id: Some(id), .. } => {
                on_branch(id).ok_or_else(|| format!("firstKeptEntryId: no entry {id} on this branch"))?;
            }
            EntryDraft::Compaction { .. } => {}
        }
        Ok(())
    }

    fn into_entry(self) -> (&'static str, Map<String, Value>) {
        let kind = match &self {
            EntryDraft::Custom { .. } => "custom",
            EntryDraft::CustomMessage { .. } => "custom_message",
            EntryDraft::ContextEdit { .. } => "context_edit",
            EntryDraft::Compaction { .. } => "compaction",
        };
        let mut fields = match serde_json::to_value(self) {
            Ok(Value::Object(fields)) => fields,
            _ => Map::new(),
        };
        fields.shift_remove("type");
        (kind, fields)
    }
}

/// The extension a proposal comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposer {
    pub name: String,
    pub path: PathBuf,
}

/// The proposal of one boundary, as far as its handlers have come. What is on it counts even
/// if the dispatch is abandoned half-way.
pub struct Board {
    core: Arc<Core>,
    entries: Vec<Value>,
    /// `Err`: a later handler may still mend it.
    drafts: Result<Vec<EntryDraft>, String>,
    continues: Option<Proposer>,
}

impl Board {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Board { core, entries: Vec::new(), drafts: Ok(Vec::new()), continues: None }
    }
    /// As the last handler that named any left them.
    pub fn entries(&self) -> &[Value] {
        &self.entries
    }
    pub fn continues(&self) -> bool {
        self.continues.is_some()
    }

    /// A field that is given replaces that field as a whole. `Err` is the diagnostic of entries
    /// that cannot be written: then nothing will be, unless a later handler mends them.
    pub fn propose(
        &mut self,
        by: Proposer,
        entries: Option<Vec<Value>>,
        continues: Option<bool>,
    ) -> Result<(), String> {
        if let Some(yes) = continues {
            self.continues = yes.then_some(by);
        }
        let Some(entries) = entries else { return Ok(()) };
        let session = self.core.session().throw_away();
        let read = |(i, entry): (usize, &Value)| {
            let at = |why: String| format!("entry {i}: {why}");
            let draft = EntryDraft::deserialize(entry).map_err(|e| at(e.to_string()))?;
            draft.check(&session).map_err(at)?;
            Ok(draft)
        };
        self.drafts = entries.iter().enumerate().map(read).collect();
        self.entries = entries;
        match &self.drafts {
            Ok(_) => Ok(()),
            Err(why) => Err(format!("Invalid boundary entries: {why}")),
        }
    }

    /// The branch as it is now, with the proposal. Cheap until it is looked at.
    pub fn preview(&self) -> Preview {
        let mut session = self.core.session().throw_away();
        for draft in self.drafts.iter().flatten().cloned() {
            let (kind, fields) = draft.into_entry();
            // In memory nothing can fail.
            let _ = session.append(kind, fields);
        }
        let state = self.core.state();
        let pending = state.next_turn.iter().cloned().chain(state.queue.customs()).collect();
        Preview { session, pending, queued: !state.queue.is_empty() }
    }

    /// `Err`: the proposal cannot be written as a whole.
    fn close(self) -> (Result<Vec<EntryDraft>, String>, Option<Proposer>) {
        (self.drafts, self.continues)
    }
}

/// See [`Board::preview`].
pub struct Preview {
    session: Session,
    pending: Vec<CustomMessage>,
    queued: bool,
}

/// events.md A.5.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BoundaryContext {
    pub context_entries: Vec<Arc<Value>>,
    pub context_messages: Vec<Message>,
    pub llm_messages: Vec<Message>,
    pub pending_messages: Vec<CustomMessage>,
    pub can_continue: bool,
}

impl Preview {
    pub fn context(&self) -> BoundaryContext {
        let context_messages = pairing::pair(self.session.transcript());
        let llm_messages = pairing::for_model(context_messages.clone());
        BoundaryContext {
            context_entries: self.session.context_entries(),
            can_continue: runnable(&llm_messages) || !self.pending.is_empty() || self.queued,
            context_messages,
            llm_messages,
            pending_messages: self.pending.clone(),
        }
    }
}

/// A model can be asked with these.
fn runnable(llm_messages: &[Message]) -> bool {
    llm_messages.last().is_some_and(|m| !matches!(m, Message::Assistant(_)))
}

impl Run<'_> {
    /// Asks the handlers, writes what they propose, and answers the messages another turn
    /// begins with if one of them wants it.
    pub(crate) async fn boundary(
        &mut self,
        event: Boundary<'_>,
        outcome: Outcome,
    ) -> Result<Option<Vec<Message>>, SessionError> {
        if !self.core.hooks.hears_boundary(&event) {
            return Ok(None);
        }
        let name = event.name();
        let mut board = Board::new(self.core.clone());
        self.dispatch(self.core.hooks.boundary(event, &mut board)).await;
        let (drafts, continues) = board.close();
        // The handler that left it so has been told; nothing of it counts.
        let Ok(drafts) = drafts else { return Ok(None) };
        for draft in drafts {
            let (kind, fields) = draft.into_entry();
            self.core.append_shown(kind, fields)?;
        }
        let Some(by) = continues else { return Ok(None) };
        if outcome != Outcome::Completed || self.cancel.is_cancelled() {
            return Ok(None);
        }
        let mut incoming = Vec::new();
        let sent = pairing::for_model(self.core.session().messages());
        if !runnable(&sent) {
            let mut state = self.core.state();
            if state.next_turn.is_empty() {
                // What is queued goes on by itself.
                if state.queue.is_empty() {
                    drop(state);
                    let why = format!("{name} requested continuation without runnable model context");
                    self.fault(by, name, why);
                }
                return Ok(None);
            }
            incoming = std::mem::take(&mut state.next_turn).into_iter().map(Message::Custom).collect();
        }
        let most = self.core.max_continuations();
        if self.continuations >= most {
            let why = format!(
                "{} asked to go on, and extensions did so {most} times for this prompt: it ends here. \
                 The setting agent.maxHookContinuations is the limit",
                by.name
            );
            self.fault(by, name, why);
            return Ok(None);
        }
        self.continuations += 1;
        Ok(Some(incoming))
    }

    fn fault(&self, by: Proposer, event: &str, error: String) {
        self.core.handle.emit(Event::ExtensionError {
            extension_path: by.path.to_string_lossy().into_owned(),
            event: event.to_owned(),
            error,
        });
    }
}

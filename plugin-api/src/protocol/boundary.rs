//! Boundaries of a run (events.md A.5): what handlers of `turn_end` and `agent_before_settle`
//! may put into the session, and what the model would be shown with it.

use super::{
    message::{AgentMessage, CustomMessage, MessageContent},
    session::SessionEntry,
    turn::Outcome,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An entry that a handler wants in the session. All drafts of a boundary are written, or none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum EntryDraft {
    /// Data out of the model's sight.
    Custom {
        /// The extension's own name for it.
        custom_type: String,
        /// The data.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        data: Option<Value>,
    },
    /// A message that the model reads.
    CustomMessage {
        /// The extension's own name for it.
        custom_type: String,
        /// What the model reads.
        content: MessageContent,
        /// Shown to the user.
        display: bool,
        /// For renderers and for later.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        details: Option<Value>,
    },
    /// Another content of a message in what the model is shown; the file keeps the first.
    ContextEdit {
        /// Entry of the message.
        target_id: String,
        /// `None` takes it away.
        replacement: Option<Replacement>,
    },
    /// A summary that stands for what is older.
    Compaction {
        /// The summary.
        summary: String,
        /// Where what is kept begins; `None` keeps nothing.
        first_kept_entry_id: Option<String>,
        /// What it cost.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        usage: Option<Value>,
    },
    /// A draft of a later version.
    #[serde(untagged)]
    Other(Value),
}

/// The new content of a message.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Replacement {
    /// Text or blocks.
    pub content: MessageContent,
}

impl EntryDraft {
    /// Data out of the model's sight; a value that is no JSON becomes `null`.
    pub fn custom(custom_type: impl Into<String>, data: impl Serialize) -> Self {
        let data = Some(serde_json::to_value(data).unwrap_or_default());
        EntryDraft::Custom { custom_type: custom_type.into(), data }
    }
    /// A message that the model reads.
    pub fn message(message: CustomMessage) -> Self {
        EntryDraft::CustomMessage {
            custom_type: message.custom_type,
            content: message.content,
            display: message.display,
            details: message.details,
        }
    }
    /// The model is not shown this message any more.
    pub fn remove(target_id: impl Into<String>) -> Self {
        EntryDraft::ContextEdit { target_id: target_id.into(), replacement: None }
    }
    /// The model is shown this instead.
    pub fn replace(target_id: impl Into<String>, content: impl Into<MessageContent>) -> Self {
        let replacement = Some(Replacement { content: content.into() });
        EntryDraft::ContextEdit { target_id: target_id.into(), replacement }
    }
}

/// Answer of `turn_end` and `agent_before_settle`. A field that is given replaces what was
/// proposed for it so far, as a whole: begin with `event.propose()` to add.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct BoundaryAnswer {
    /// All entries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entries: Option<Vec<EntryDraft>>,
    /// Another turn, if the model has something to answer.
    #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
    pub go_on: Option<bool>,
}

impl BoundaryAnswer {
    /// Proposes nothing yet.
    pub fn new() -> Self {
        Self::default()
    }
    /// One entry more than this answer has.
    #[must_use]
    pub fn entry(mut self, draft: EntryDraft) -> Self {
        self.entries.get_or_insert_default().push(draft);
        self
    }
    /// Asks for another turn (`continue: true`).
    #[must_use]
    pub fn go_on(mut self) -> Self {
        self.go_on = Some(true);
        self
    }
}

/// What the model would be shown with the proposal so far; made anew after each handler.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct BoundaryContext {
    /// Entries of the branch, from the latest summary on.
    pub context_entries: Vec<SessionEntry>,
    /// The transcript, system messages in it.
    pub context_messages: Vec<AgentMessage>,
    /// What a provider would be sent.
    pub llm_messages: Vec<AgentMessage>,
    /// Messages of extensions that wait for their place.
    pub pending_messages: Vec<CustomMessage>,
    /// `continue` would be honoured.
    pub can_continue: bool,
}

/// Fields of `agent_before_settle`: nothing more would run by itself. `event.entries()` are the
/// drafts proposed so far, `event.context()` what the model would be shown. (events.md A.4)
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct AgentBeforeSettlePayload {
    /// How the run ended.
    pub outcome: Outcome,
    /// An earlier handler asked to go on.
    #[serde(rename = "continue")]
    pub continues: bool,
}

//! What becomes of what a crash interrupted (events.md A.3).

use super::message::MessageContent;
use serde::{Deserialize, Serialize};
use serde_json::Value;

wire_enum! {
    /// Why an interrupted session goes on.
    RestoreReason {
        Startup = "startup", Resume = "resume", WorkflowStageResume = "workflow_stage_resume",
    }
}

/// `session_recovery_restore`: the transcript is on the screen; workers that an extension keeps
/// outside can be found again, or reported lost. (events.md A.3)
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct SessionRecoveryRestorePayload {
    /// Why.
    pub reason: RestoreReason,
}

/// Answer of `session_recovery_restore`: lines for the user, of all handlers, neither stored nor
/// sent to a model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RestoreAnswer {
    /// The lines.
    pub notices: Vec<String>,
}

impl RestoreAnswer {
    /// One line.
    pub fn notice(line: impl Into<String>) -> Self {
        RestoreAnswer { notices: vec![line.into()] }
    }
}

/// `session_recovery_replay`: messages that were on their way when the session ended. Only when
/// there are some. (events.md A.3)
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct SessionRecoveryReplayPayload {
    /// All of them, in their order.
    pub pending: Vec<PendingDelivery>,
}

/// A message that never reached its run.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct PendingDelivery {
    /// Where it is written.
    pub entry_id: String,
    /// The name its extension gave it.
    pub custom_type: String,
    /// What the model would read.
    pub content: MessageContent,
    /// Data of its extension.
    pub details: Option<Value>,
    /// A number of milliseconds, or ISO 8601.
    pub timestamp: Value,
    /// Of a workflow's stage.
    pub stage_admission_key: Option<String>,
    /// `steer` or `followUp`.
    pub delivery: String,
}

wire_enum! {
    /// What becomes of a message.
    ReplayAction { Deliver = "deliver", Drop = "drop" }
}

/// What becomes of one message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ReplayDecision {
    /// The message.
    pub entry_id: String,
    /// What becomes of it.
    pub action: ReplayAction,
}

/// Answer of `session_recovery_replay`. A later handler overrides an earlier one, message by
/// message; who is not named is delivered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ReplayAnswer {
    /// In any order.
    pub decisions: Vec<ReplayDecision>,
}

impl ReplayAnswer {
    /// Nothing decided yet.
    pub fn new() -> Self {
        Self::default()
    }
    /// This one is not delivered.
    #[must_use]
    pub fn drop_entry(self, entry_id: impl Into<String>) -> Self {
        self.decide(entry_id, ReplayAction::Drop)
    }
    /// This one is delivered.
    #[must_use]
    pub fn deliver(self, entry_id: impl Into<String>) -> Self {
        self.decide(entry_id, ReplayAction::Deliver)
    }
    fn decide(mut self, entry_id: impl Into<String>, action: ReplayAction) -> Self {
        self.decisions.push(ReplayDecision { entry_id: entry_id.into(), action });
        self
    }
}

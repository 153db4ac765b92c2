//! Before a session is left, forked or gone back in (events.md A.3). The last answer of all
//! counts as a whole, and the first that cancels ends the question.

use super::session::{SessionEntry, StartReason};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;

/// `session_before_switch`: another session is about to take this one's place; nothing of it is
/// torn down yet. (events.md A.3)
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct SessionBeforeSwitchPayload {
    /// `new` or `resume`.
    pub reason: StartReason,
    /// With `resume`.
    pub target_session_id: Option<String>,
    /// With `resume`, when it has one.
    pub target_session_file: Option<PathBuf>,
}

/// Keeps the session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct CancelAnswer {
    /// It does not happen.
    pub cancel: bool,
}

impl CancelAnswer {
    /// It does not happen.
    pub fn cancel() -> Self {
        CancelAnswer { cancel: true }
    }
}

wire_enum! {
    /// Where a fork begins: before the entry (`/fork`), or with it (`/clone`).
    ForkPosition { Before = "before", At = "at" }
}

/// `session_before_fork`. (events.md A.3)
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct SessionBeforeForkPayload {
    /// The entry that was chosen.
    pub entry_id: String,
    /// Before it or with it.
    pub position: ForkPosition,
}

/// Answer of `session_before_fork`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ForkAnswer {
    /// No fork.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cancel: bool,
    /// Kept for later; has no effect yet.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub skip_conversation_restore: bool,
}

impl ForkAnswer {
    /// No fork.
    pub fn cancel() -> Self {
        ForkAnswer { cancel: true, skip_conversation_restore: false }
    }
}

/// `session_before_tree`: the session goes back to an earlier entry. (events.md A.3)
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct SessionBeforeTreePayload {
    /// Where to, and what is left behind.
    pub preparation: TreePreparation,
}

/// Where a navigation goes, and what is left behind.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct TreePreparation {
    /// The entry that was chosen.
    pub target_id: String,
    /// Where the session is.
    pub old_leaf_id: Option<String>,
    /// Where both part.
    pub common_ancestor_id: Option<String>,
    /// What is left behind.
    pub entries_to_summarize: Vec<SessionEntry>,
    /// The user asked for a summary of it.
    pub user_wants_summary: bool,
    /// For the summary.
    pub custom_instructions: Option<String>,
    /// They replace the prompt instead of being added.
    pub replace_instructions: Option<bool>,
    /// For the branch that is left.
    pub label: Option<String>,
}

/// Answer of `session_before_tree`; what is given replaces what the caller had.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct TreeAnswer {
    /// Stays where it is.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cancel: bool,
    /// The summary, if the user wants one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<TreeSummary>,
    /// For the summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_instructions: Option<String>,
    /// They replace the prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replace_instructions: Option<bool>,
    /// For the branch that is left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

/// A branch in short.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TreeSummary {
    /// The text.
    pub summary: String,
    /// Data of your own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

impl TreeAnswer {
    /// Stays where it is.
    pub fn cancel() -> Self {
        TreeAnswer { cancel: true, ..Self::default() }
    }
    /// This is the summary.
    pub fn summary(summary: impl Into<String>) -> Self {
        let summary = Some(TreeSummary { summary: summary.into(), details: None });
        TreeAnswer { summary, ..Self::default() }
    }
}

/// `session_tree`: the session is at another entry now. (events.md A.3)
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct SessionTreePayload {
    /// Where it is.
    pub new_leaf_id: Option<String>,
    /// Where it was.
    pub old_leaf_id: Option<String>,
    /// Of the branch that was left.
    pub summary_entry: Option<SessionEntry>,
    /// A handler of `session_before_tree` gave the summary.
    pub from_extension: bool,
}

//! Compaction as extensions see it (events.md A.3, D): asked before, told after. Lines are taken
//! out of the transcript and none is written; `(filtered N lines)` stands where they were.

use super::session::SessionEntry;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

wire_enum! {
    /// Why a session is compacted.
    CompactReason { Manual = "manual", Threshold = "threshold", Overflow = "overflow" }
}

/// How much is condensed. The names are those of the planner.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct CompactionParameters {
    /// What share of the region's lines is kept, between 0 and 1.
    pub compression_ratio: f64,
    /// Messages at the end that stay exactly.
    pub preserve_recent: u64,
    /// What matters, in words.
    pub query: String,
}

/// What would be condensed; a copy for each handler.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct CompactionPreparation {
    /// Where the exact tail begins; `None`: it is empty.
    pub first_kept_entry_id: Option<String>,
    /// The part that can be condensed.
    pub region: CompactionRegion,
    /// An estimate of the whole context.
    pub tokens_before: u64,
    /// `regionEntryIds`, `keptTailMessageCount`, `settings`, …
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Transcript lines without numbers.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct CompactionRegion {
    /// The lines.
    pub lines: Vec<String>,
    /// Their size.
    pub token_estimate: u64,
    /// `headerLineNumbers`, `priorMarkerNs`, `protectedLineNumbers`.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// `session_before_compact`: after `compaction_start`, before anything is planned. Whether the
/// user stopped it is `ctx.signal()`. (events.md A.3)
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct SessionBeforeCompactPayload {
    /// Why.
    pub reason: CompactReason,
    /// How much.
    pub parameters: CompactionParameters,
}

/// Answer of `session_before_compact`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct CompactAnswer {
    /// No compaction.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cancel: bool,
    /// Stands for the region. Text of blanks alone makes the compaction fail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compacted_text: Option<String>,
}

impl CompactAnswer {
    /// No compaction.
    pub fn cancel() -> Self {
        CompactAnswer { cancel: true, compacted_text: None }
    }
    /// This stands for the region.
    pub fn text(text: impl Into<String>) -> Self {
        CompactAnswer { cancel: false, compacted_text: Some(text.into()) }
    }
}

/// What a compaction came to (events.md D.9).
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct VerbatimCompactionResult {
    /// What stands for the region.
    pub compacted_text: String,
    /// Where the exact tail begins.
    pub first_kept_entry_id: Option<String>,
    /// Before.
    pub tokens_before: u64,
    /// Which way it was made: `planned`, `extension`, `fresh`.
    pub rung: String,
    /// `stats`, `parameters`, `plannerModel`, …
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// `session_compact`: the boundary is written; nothing that happens here undoes it. (events.md A.3)
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct SessionCompactPayload {
    /// Why.
    pub reason: CompactReason,
    /// How much.
    pub parameters: CompactionParameters,
    /// What it came to.
    pub result: VerbatimCompactionResult,
    /// As it was written.
    pub compaction_entry: SessionEntry,
    /// A handler of `session_before_compact` gave the text.
    pub from_extension: bool,
}

/// `session_compact_failed`: it failed, or was cancelled. (events.md A.3)
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct SessionCompactFailedPayload {
    /// Why it was begun.
    pub reason: CompactReason,
    /// Absent when it was cancelled.
    pub error_message: Option<String>,
    /// The user, or an extension, stopped it.
    pub aborted: bool,
    /// The host will try again.
    pub will_retry: bool,
    /// The text of an extension was used.
    pub from_extension: bool,
}

/// `compaction_start`: the first event of a compaction. (events.md A.8)
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct CompactionStartPayload {
    /// Why.
    pub reason: CompactReason,
    /// Between two requests of one run.
    pub mid_turn: bool,
}

/// `compaction_end`: the last event of a compaction. (events.md A.8)
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct CompactionEndPayload {
    /// Why it was begun.
    pub reason: CompactReason,
    /// When it succeeded.
    pub result: Option<VerbatimCompactionResult>,
    /// It was stopped.
    pub aborted: bool,
    /// The host will try again.
    pub will_retry: bool,
    /// The context is still more than the model takes.
    pub unresolved_overflow: bool,
    /// When it failed.
    pub error_message: Option<String>,
    /// It gave way to one that somebody asked for.
    pub manual_takeover_pending: bool,
    /// Between two requests of one run.
    pub mid_turn: bool,
}

//! What the engine tells its front ends, in one order. The variants of events.md G.4
//! carry exactly that table's fields; the others are for the program's own faces.

use crate::{
    compact::CompactReason,
    hooks::{ModelSource, ReplaceReport, StartReason},
    message::{AssistantEvent, AssistantMessage, Message, ToolResultMessage, Usage},
    model::{ModelInfo, ThinkingLevel},
    op::Dialog,
    surface,
    tool::{PartialResult, ToolOutput},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Event {
    AgentStart,
    AgentEnd {
        messages: Vec<Message>,
        will_retry: bool,
    },
    AgentSettled,
    TurnStart,
    TurnEnd {
        message: Box<AssistantMessage>,
        tool_results: Vec<ToolResultMessage>,
    },
    MessageStart {
        message: Box<Message>,
    },
    MessageUpdate {
        usage: Usage,
        assistant_message_event: AssistantEvent,
    },
    MessageEnd {
        message: Box<Message>,
    },
    ToolExecutionStart {
        tool_call_id: String,
        tool_name: String,
        args: Value,
    },
    ToolExecutionUpdate {
        tool_call_id: String,
        tool_name: String,
        args: Value,
        partial_result: PartialResult,
    },
    ToolExecutionEnd {
        tool_call_id: String,
        tool_name: String,
        result: ToolOutput,
        is_error: bool,
        duration_ms: u64,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        effective_args: Option<Value>,
    },
    BashExecutionUpdate {
        channel: String,
        delta: String,
    },
    QueueUpdate {
        steering: Vec<String>,
        follow_up: Vec<String>,
    },
    EntryAppended {
        entry: Value,
    },
    SessionInfoChanged {
        name: Option<String>,
    },
    ModelChanged {
        model: Box<ModelInfo>,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        previous_model: Option<Box<ModelInfo>>,
        source: ModelSource,
    },
    ThinkingLevelChanged {
        level: ThinkingLevel,
    },
    /// The same request is asked again after a while.
    AutoRetryStart {
        attempt: u32,
        max_attempts: u32,
        delay_ms: u64,
        error_message: String,
    },
    AutoRetryEnd {
        success: bool,
        attempt: u32,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        final_error: Option<String>,
    },
    /// Names are `provider/id`.
    ModelFallbackStart {
        from: String,
        to: String,
        reason: String,
        attempt: u32,
    },
    ModelFallbackEnd {
        success: bool,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        from: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        to: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        final_error: Option<String>,
    },
    CompactionStart {
        reason: CompactReason,
        /// Between two requests of one run.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        mid_turn: bool,
    },
    CompactionEnd {
        reason: CompactReason,
        /// events.md D.9, when it is written.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        result: Option<Value>,
        /// The user, or an extension, stopped it.
        aborted: bool,
        /// The request that did not fit is made again.
        will_retry: bool,
        /// The context is still more than the model takes.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        unresolved_overflow: bool,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        error_message: Option<String>,
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        mid_turn: bool,
        /// It gave way to one that somebody asked for.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        manual_takeover_pending: bool,
    },
    /// A planner, or who writes a summary, is asked again after a while.
    SummarizationRetryScheduled {
        attempt: u32,
        max_attempts: u32,
        delay_ms: u64,
        error_message: String,
    },
    SummarizationRetryAttemptStart {
        /// `compaction`, with its reason, or `branchSummary`.
        source: String,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        reason: Option<CompactReason>,
    },
    SummarizationRetryFinished,
    /// One fault of an extension.
    ExtensionError {
        extension_path: String,
        event: String,
        error: String,
    },

    // For the program's own faces, never on a protocol stream as they are.
    /// A binding is ready: at start, after /new, after /reload.
    SessionReady {
        reason: StartReason,
        session_id: String,
        #[serde(with = "crate::lossy_path::option")]
        session_file: Option<PathBuf>,
    },
    /// The session is at another place of its tree: what is shown of it is another branch.
    TreeMoved {
        new_leaf_id: Option<String>,
        old_leaf_id: Option<String>,
        /// What was gone back before, to be said again.
        editor_text: Option<String>,
    },
    /// A question of an extension; answer with `Op::Answer`.
    DialogOpened {
        id: u64,
        dialog: Dialog,
        /// Declared name of who asks.
        extension: String,
    },
    /// Answered, timed out, or its extension is gone.
    DialogClosed {
        id: u64,
    },
    /// `ctx.ui.notify`, and the host's own lines. `level`: info, warning, error.
    Notify {
        message: String,
        level: String,
        extension: Option<String>,
    },
    /// `None` clears.
    Status {
        key: String,
        text: Option<String>,
        extension: String,
    },
    /// What an extension shows around the transcript (events.md E.7).
    Surface {
        update: surface::Update,
        extension: String,
    },
    Reloaded {
        report: ReplaceReport,
    },
    /// The user's command ended.
    BashExecuted {
        message: Box<Message>,
    },
    /// The engine is gone; nothing follows.
    Stopped,

    // Of the supervisor, which outlives an engine (boundary.md 11).
    /// The engine's process died, or was ended because it hung. Whatever was asked of it has
    /// been answered with an error by now.
    EngineLost {
        /// One sentence for a person.
        what: String,
        /// Declared names of whoever it was, surest first; empty when nobody can be named.
        extensions: Vec<String>,
        /// The event or activity they were in.
        event: Option<String>,
        /// Calls that have no result: they may have run, and had effects.
        unanswered: Vec<UnansweredCall>,
    },
    /// Another engine goes on with the same session.
    EngineRestarted {
        /// Extensions that were left out.
        without: Vec<String>,
        /// Nothing was lost: the engine was replaced to get memory and threads back.
        planned: bool,
        /// With what was said before; false when that was in no file.
        resumed: bool,
    },
    /// An extension's handler has held the session for so long.
    EngineHeld {
        extension: String,
        event: String,
        held_ms: u64,
    },
}

/// A tool call whose result will never come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UnansweredCall {
    pub tool_call_id: String,
    pub tool_name: String,
    /// As JSON text.
    pub args: String,
}

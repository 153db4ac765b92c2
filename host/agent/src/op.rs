//! What a front end or an extension asks of the engine. Data only: the same values
//! travel in process and, for a supervised engine, as JSON lines.

use crate::{
    compact::CompactOptions,
    hooks::{InputSource, Origin, StreamingBehavior},
    message::{ImageContent, MessageContent},
    model::ThinkingLevel,
    queue::QueueMode,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;

/// Each op is answered once its state change is accepted, never after the events it causes.
/// `Reload` and what replaces the session (`NewSession`, `SwitchSession`, `ImportSession`, `Fork`,
/// `Clone`) are the exception: they resolve after the successor's session_start and
/// resources_discover. Whatever refuses one of them leaves the session that is there as it was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Op {
    /// Text of the user. `/name args` of an extension command runs that command.
    /// Answered `{"disposition": "started" | "queued" | "handled"}` once the `input` hooks had it;
    /// for a command when it has ended, with its `"error"` if it failed.
    Prompt {
        text: String,
        #[serde(default)]
        images: Vec<ImageContent>,
        #[serde(default)]
        streaming_behavior: Option<StreamingBehavior>,
        source: InputSource,
    },
    /// Ends the run, the retry, the user's command and the commands of extensions that are
    /// running now.
    Abort,
    /// Ends the run alone: an extension's own command goes on after its `ctx.abort()`.
    AbortRun,
    /// Takes back what waits for its place in a run. Answers `{"steering": [..], "followUp": [..]}`,
    /// the texts of it.
    ClearQueue,
    /// `!command`; `!!command` with `exclude_from_context`.
    UserBash {
        command: String,
        exclude_from_context: bool,
    },
    /// Answers a `ReplaceReport`. During a run it waits for the run to settle, unless `now`.
    Reload {
        names: Vec<String>,
        now: bool,
        origin: Option<Origin>,
    },
    /// Answers `{"cancelled": bool}`; true: a handler of `session_before_switch` keeps this session.
    NewSession {
        parent_session: Option<PathBuf>,
        origin: Option<Origin>,
        /// What the new session holds before its session_start.
        #[serde(default)]
        setup: Vec<SetupEntry>,
    },
    /// Goes on with the session of this file; a relative path is the session folder's, or the
    /// current folder's. Ends a run that goes on. Answers `{"cancelled": bool}`. The file that is
    /// open already is no change.
    SwitchSession {
        #[serde(with = "crate::lossy_path")]
        path: PathBuf,
        origin: Option<Origin>,
    },
    /// Copies a session file from anywhere into the session folder, as a session of this folder,
    /// and goes on with it. Answers as `SwitchSession`.
    ImportSession {
        #[serde(with = "crate::lossy_path")]
        path: PathBuf,
        origin: Option<Origin>,
    },
    /// Another session that begins as this one until an entry. `Before` takes a user message and
    /// leaves it out. Answers `{"cancelled": bool, "text"?}`: what that message said, for an editor.
    Fork {
        entry_id: String,
        position: ForkPosition,
        origin: Option<Origin>,
    },
    /// A fork at the place where the session is. Answers `{"cancelled": bool}`.
    Clone {
        origin: Option<Origin>,
    },
    /// Goes to another place of this session's tree; refused with `busy` while anything runs.
    /// A user message or a custom one is gone back before, and its text is for an editor; all
    /// else is gone to. Answers `{"cancelled": bool, "aborted"?, "editorText"?, "summaryEntry"?}`.
    NavigateTree {
        target_id: String,
        /// What is left is kept in short, by the model, unless an extension gives the text.
        #[serde(default)]
        summarize: bool,
        #[serde(default)]
        custom_instructions: Option<String>,
        /// They are the whole prompt of the summary.
        #[serde(default)]
        replace_instructions: bool,
        /// For the summary, or for the target without one.
        #[serde(default)]
        label: Option<String>,
    },
    /// Answers `{"nodes": [..], "leafId"}`: all entries but labels in the order of a tree view, each
    /// `{"id", "parentId", "type", "role"?, "text", "label"?, "timestamp", "depth", "onPath"}`. `text`
    /// is its beginning on one line; `depth` grows only where branches part.
    SessionTree,
    /// Answers `{"entries": [..], "leafId"}` in file order, `since` an entry, or all.
    SessionEntries {
        #[serde(default)]
        since: Option<String>,
    },
    /// Answers `{"messages": [..]}`: the way from the root to the leaf, as a screen shows it.
    SessionMessages,
    /// What can be forked before: the user's messages on this branch, oldest first. Answers
    /// `{"messages": [{"entryId", "text"}]}`.
    ForkMessages,
    /// Answers `{"sessions": [..], "total", "offset"}`, the last written first, each
    /// `{"path", "id", "cwd", "name"?, "firstMessage"?, "created", "modified", "size", "current"}`;
    /// times are milliseconds. `all`: of every folder. `search`: every word of it is in the name, the
    /// first message, the id or the folder.
    ListSessions {
        #[serde(default)]
        all: bool,
        #[serde(default)]
        search: Option<String>,
        #[serde(default)]
        offset: usize,
        /// 0: all of them.
        #[serde(default)]
        limit: usize,
    },
    /// Answers `{"sessionId", "sessionFile", "sessionName", "userMessages", "assistantMessages",
    /// "toolCalls", "toolResults", "totalMessages", "entries", "branches", "fileSize", "tokens":
    /// {"input", "output", "cacheRead", "cacheWrite", "total"}, "cost"}`.
    SessionStats,
    /// Answers an open dialog.
    Answer {
        id: u64,
        answer: DialogAnswer,
    },
    /// events.md E.4.
    SendMessage {
        message: OutgoingMessage,
        options: SendOptions,
    },
    /// The whole batch in its order, at most one run; never interrupts.
    SendMessages {
        messages: Vec<OutgoingMessage>,
        options: SendOptions,
    },
    /// While it is paused nothing leaves the queue.
    PauseQueue {
        paused: bool,
    },
    /// How much one poll of the steering queue takes.
    SetSteeringMode {
        mode: QueueMode,
    },
    SetFollowUpMode {
        mode: QueueMode,
    },
    /// Whether a request that failed by chance is asked again.
    SetAutoRetry {
        enabled: bool,
    },
    /// Ends the waiting for the next attempt, and with it the run.
    AbortRetry,
    /// `{"commands": [..]}` of extensions, templates and skills, in that order.
    GetCommands,
    /// Shortens the context; ends the run that goes on, and joins a compaction that somebody asked
    /// for before. Answers the result of events.md D.9 once it is written; refused with
    /// `compact_failed` or `compact_cancelled`, and nothing is written.
    Compact {
        /// What matters, in the user's words: the query, unless the options have one.
        #[serde(default)]
        custom_instructions: Option<String>,
        #[serde(flatten)]
        options: CompactOptions,
    },
    /// Ends a compaction that goes on; a run that waits for it goes on, or ends, as events.md D.2 says.
    AbortCompaction,
    /// Whether compactions begin by themselves.
    SetAutoCompaction {
        enabled: bool,
    },
    /// What the next system prompt is made of.
    GetSystemPromptOptions,
    /// Goes through `input` with source `extension`, always starts or joins a run.
    SendUserMessage {
        content: MessageContent,
        deliver_as: Option<StreamingBehavior>,
        expand: bool,
    },
    /// A `custom` entry. Answers `{"entryId"}`.
    AppendEntry {
        custom_type: String,
        data: Option<Value>,
    },
    /// Trimmed; empty clears.
    SetSessionName {
        name: Option<String>,
    },
    SetLabel {
        entry_id: String,
        label: Option<String>,
    },
    /// Answers `true`, or `false` without credentials.
    SetModel {
        provider: String,
        model: String,
    },
    /// What `--model` takes: `provider/id`, an id, or a part of one, with `:level` behind it.
    /// Answers `{"model", "thinkingLevel"}`.
    ChooseModel {
        pattern: String,
    },
    /// The models that have a key: `{"models": [..], "scoped": bool, "current", "thinkingLevel",
    /// "problems"}`; each with its fields, its `levels`, `scoped`, `scopedThinkingLevel?` and
    /// `current`. Reads the user's files again.
    ListModels,
    /// The next model of the scope, or of all. Answers `{"model", "thinkingLevel", "isScoped"}`, or
    /// `null`: there is no other.
    CycleModel {
        #[serde(default)]
        backward: bool,
    },
    /// The next level of the model. Answers `{"level"}`, or `null`: it has only one.
    CycleThinkingLevel,
    /// Keys and descriptions of models are read again. Answers `{"problems"}`.
    RefreshModels,
    /// Clamped to the model.
    SetThinkingLevel {
        level: ThinkingLevel,
    },
    /// Unknown names are ignored.
    SetActiveTools {
        names: Vec<String>,
    },
    /// `/trust`, `/extensions` and what else the program around answers. Answers `{"text"}` when it
    /// has ended.
    HostCommand {
        name: String,
        args: String,
    },
    /// Resolves when no run, retry or queue is left.
    WaitForIdle,
    /// Ends the engine: aborts, settles, session_shutdown, `Event::Stopped`.
    Shutdown {
        from_signal: bool,
    },
    /// Ends the engine as a reload ends a generation: another one takes the session over.
    HandOver,
}

/// Where a fork begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ForkPosition {
    /// At the parent of the entry, which must be a message of the user.
    #[default]
    Before,
    /// With the entry.
    At,
}

/// What a new session begins with, before anybody is told of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum SetupEntry {
    /// State of an extension, which no model sees.
    Custom { custom_type: String, data: Option<Value> },
    /// Read by the model with the first prompt.
    CustomMessage(OutgoingMessage),
    /// The session's name.
    SessionInfo { name: String },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OutgoingMessage {
    pub custom_type: String,
    pub content: MessageContent,
    #[serde(default)]
    pub display: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SendOptions {
    pub trigger_turn: Option<bool>,
    pub deliver_as: Option<DeliverAs>,
    pub exclude_from_context: bool,
    /// With a run going on: written at once; with `trigger_turn` it is also protected.
    pub persist_when_streaming: bool,
    /// Kept on the message, for workflow stages.
    pub stage_admission_key: Option<String>,
    /// Of `interrupt`: what the run that it ends says instead of its usual text.
    pub interrupt_abort_message: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DeliverAs {
    Steer,
    FollowUp,
    NextTurn,
    Interrupt,
}

/// Only `Yes`/`Value` of the dialog's own id approves; every other end is `Cancelled`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "value", rename_all = "camelCase")]
pub enum DialogAnswer {
    Confirmed(bool),
    Value(String),
    Cancelled,
}

/// events.md E.7, G.6.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "method", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Dialog {
    /// `message`: what stands under the title; the program's own questions have one.
    Select {
        title: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        options: Vec<String>,
        timeout_ms: Option<u64>,
    },
    Confirm {
        title: String,
        message: String,
        timeout_ms: Option<u64>,
    },
    Input {
        title: String,
        placeholder: Option<String>,
        timeout_ms: Option<u64>,
    },
    Editor {
        title: String,
        prefill: Option<String>,
    },
}

impl Dialog {
    pub fn title(&self) -> &str {
        match self {
            Dialog::Select { title, .. }
            | Dialog::Confirm { title, .. }
            | Dialog::Input { title, .. }
            | Dialog::Editor { title, .. } => title,
        }
    }
    pub fn timeout_ms(&self) -> Option<u64> {
        match self {
            Dialog::Select { timeout_ms, .. }
            | Dialog::Confirm { timeout_ms, .. }
            | Dialog::Input { timeout_ms, .. } => *timeout_ms,
            Dialog::Editor { .. } => None,
        }
    }
}

/// Why an op was refused. `code` is stable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct OpError {
    pub code: String,
    pub message: String,
}

impl OpError {
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        OpError { code: code.into(), message: message.into() }
    }
}

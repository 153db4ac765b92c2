//! What a test has prepared, and what its extension has done.

use crate::protocol::{
    delivery::{SendOptions, UserMessageOptions},
    exec::{Exec, ExecResult},
    message::{CustomMessage, MessageContent},
    tool::ToolResult,
    ui::Level,
};
use serde::Deserialize;
use serde_json::Value;
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

/// A dialog that the extension opened.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Dialog {
    /// `confirm`, `select`, `input`, `editor`.
    pub kind: String,
    /// Its title.
    pub title: String,
    /// Of `confirm`.
    pub message: String,
    /// Of `select`.
    pub options: Vec<String>,
    /// Of `input`.
    pub placeholder: Option<String>,
    /// Of `editor`.
    pub prefill: Option<String>,
    /// Milliseconds.
    pub timeout_ms: Option<u64>,
}

/// What the extension told the user.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct Notice {
    /// The text.
    pub message: String,
    /// How it looks.
    pub level: Level,
}

/// A message that the extension sent as itself.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct SentMessage {
    /// The message.
    pub message: CustomMessage,
    /// Its options.
    #[serde(default)]
    pub options: SendOptions,
}

/// A message that the extension sent as the user.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct SentUserMessage {
    /// The text or blocks.
    pub content: MessageContent,
    /// Its options.
    #[serde(flatten)]
    pub options: UserMessageOptions,
}

/// A line the extension logged.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct LogLine {
    /// How much it matters.
    pub level: Level,
    /// The text.
    pub message: String,
}

/// A fault nobody waited for: a panic of a task, a thread or a drop.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct Fault {
    /// `task`, `thread`, `drop`, `registration`.
    pub place: String,
    /// The panic's message and place, or the error.
    pub error: String,
}

/// All that an extension has done so far.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Record {
    /// Dialogs, in their order.
    pub dialogs: Vec<Dialog>,
    /// `ctx.ui().notify`.
    pub notices: Vec<Notice>,
    /// `ctx.ui().set_status`, what is there now.
    pub status: BTreeMap<String, String>,
    /// `ctx.ui().set_title`.
    pub title: Option<String>,
    /// `pi.send_message`.
    pub messages: Vec<SentMessage>,
    /// `pi.send_user_message`.
    pub user_messages: Vec<SentUserMessage>,
    /// `pi.exec`.
    pub execs: Vec<Exec>,
    /// Partial results of tools, by call.
    pub updates: Vec<(String, ToolResult)>,
    /// `pi.events().emit`, channel and value.
    pub emitted: Vec<(String, Value)>,
    /// `pi.log`.
    pub logs: Vec<LogLine>,
    /// See [`Fault`].
    pub faults: Vec<Fault>,
    /// Requests that were dropped before they were answered, by operation.
    pub cancelled: Vec<String>,
    /// `ctx.reload`, with the names.
    pub reloads: Vec<Vec<String>>,
    /// `ctx.new_session`.
    pub new_sessions: usize,
    /// `ctx.abort`.
    pub aborts: usize,
    /// `ctx.shutdown`.
    pub shutdowns: usize,
    /// Everything else that was told or asked, by operation, with its body: shortcuts,
    /// renderers, providers, widgets, `keepAlive.hold`, …
    pub calls: Vec<(String, Value)>,
}

type RunProgram = Arc<dyn Fn(&Exec) -> ExecResult + Send + Sync>;
type Answer = Arc<dyn Fn(&Dialog) -> Value + Send + Sync>;

/// What a test has prepared.
#[derive(Default)]
pub(super) struct Script {
    pub next: VecDeque<Value>,
    pub by_kind: BTreeMap<&'static str, Answer>,
    pub exec: Option<RunProgram>,
    /// Dialogs without an answer stay open.
    pub leave_open: bool,
}

/// How a dialog ends.
pub(super) enum Ending {
    Answered(Value),
    Asked(Answer),
    Open,
}

impl Script {
    pub(super) fn ending(&mut self, kind: &str) -> Ending {
        if let Some(value) = self.next.pop_front() {
            return Ending::Answered(value);
        }
        match self.by_kind.get(kind) {
            Some(f) => Ending::Asked(f.clone()),
            None if self.leave_open => Ending::Open,
            None => Ending::Answered(default_of(kind)),
        }
    }
}

/// What a dialog answers when nobody does.
pub(super) fn default_of(kind: &str) -> Value {
    if kind == "confirm" { Value::Bool(false) } else { Value::Null }
}

//! The life of a session, and what can be read of it (events.md A.2, A.3, C.4).

use super::message::AgentMessage;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use std::path::PathBuf;

wire_enum! {
    /// Why a session starts.
    StartReason { Startup = "startup", Reload = "reload", New = "new", Resume = "resume", Fork = "fork" }
}

wire_enum! {
    /// Why its extensions are told to go.
    ShutdownReason { Quit = "quit", Reload = "reload", New = "new", Resume = "resume", Fork = "fork" }
}

/// `session_start`: the first event of a binding, exactly once for an extension, with the
/// whole context. Ports, locks and files belong here, not in `activate`. (events.md A.3)
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct SessionStartPayload {
    /// Why.
    pub reason: StartReason,
    /// The session before this one, with `new`, `resume` and `fork`.
    pub previous_session_id: Option<String>,
    /// Its file; absent when it was never written.
    pub previous_session_file: Option<PathBuf>,
}

/// `resources_discover`: right after `session_start`, and after a reload. (events.md A.2)
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ResourcesDiscoverPayload {
    /// Relative paths of an answer are resolved against this.
    pub cwd: PathBuf,
    /// `startup` (also for new, resume and fork) or `reload`.
    pub reason: StartReason,
}

/// Paths that an extension adds to what the host reads; concatenated over all handlers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ResourcesAnswer {
    /// Folders or files of skills.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skill_paths: Vec<PathBuf>,
    /// Prompt templates.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub prompt_paths: Vec<PathBuf>,
    /// Themes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub theme_paths: Vec<PathBuf>,
}

impl ResourcesAnswer {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }
    /// One skill path more.
    #[must_use]
    pub fn skill(mut self, path: impl Into<PathBuf>) -> Self {
        self.skill_paths.push(path.into());
        self
    }
    /// One prompt path more.
    #[must_use]
    pub fn prompt(mut self, path: impl Into<PathBuf>) -> Self {
        self.prompt_paths.push(path.into());
        self
    }
    /// One theme path more.
    #[must_use]
    pub fn theme(mut self, path: impl Into<PathBuf>) -> Self {
        self.theme_paths.push(path.into());
        self
    }
}

/// `session_shutdown`: the last event; the context is still live, the time is bounded
/// (2 s at a reload, 5 s at the end of the program, for all handlers together). What
/// `session_start` opened is closed here. (events.md A.3)
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct SessionShutdownPayload {
    /// Why.
    pub reason: ShutdownReason,
    /// The session that follows, with `new`, `resume` and `fork`.
    pub target_session_id: Option<String>,
    /// Its file, when it has one.
    pub target_session_file: Option<PathBuf>,
    /// The program ends because of a signal.
    pub from_signal: bool,
}

/// One line of the session file (events.md C.4).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct SessionEntry {
    /// `message`, `custom`, `custom_message`, `label`, …
    #[serde(rename = "type")]
    pub kind: String,
    /// Unique in its file.
    pub id: String,
    /// `None` for the first.
    pub parent_id: Option<String>,
    /// ISO 8601.
    pub timestamp: String,
    /// The fields of its kind, as they are in the file.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

impl SessionEntry {
    /// The message of a `message` entry.
    pub fn message(&self) -> Option<AgentMessage> {
        serde_json::from_value(self.fields.get("message")?.clone()).ok()
    }
    /// The type an extension gave a `custom` or `custom_message` entry.
    pub fn custom_type(&self) -> Option<&str> {
        self.fields.get("customType")?.as_str()
    }
    /// The data of a `custom` entry of that type, as `pi.append_entry` wrote it.
    pub fn data_as<T: DeserializeOwned>(&self, custom_type: &str) -> Option<T> {
        if self.custom_type() != Some(custom_type) {
            return None;
        }
        serde_json::from_value(self.fields.get("data")?.clone()).ok()
    }
}

/// The first line of the session file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct SessionHeader {
    /// Of the file format.
    pub version: u32,
    /// The session's id.
    pub id: String,
    /// ISO 8601.
    pub timestamp: String,
    /// Where it was started.
    pub cwd: PathBuf,
    /// File it was forked from.
    pub parent_session: Option<PathBuf>,
    /// Other keys.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// What became of `new_session`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct SessionChange {
    /// A `session_before_*` handler refused.
    pub cancelled: bool,
    /// The generation that speaks for the new session.
    #[doc(hidden)]
    pub generation: u64,
}

/// What a reload did to one extension.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ReplacedExtension {
    /// Its declared name.
    pub name: String,
    /// `added`, `reloaded`, `unchanged`, `kept` (the candidate failed), `removed`.
    pub change: String,
    /// Version before.
    pub from_version: Option<String>,
    /// Version after.
    pub to_version: Option<String>,
    /// Why it was kept.
    pub reason: Option<String>,
}

/// What a reload did, in load order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ReplaceReport {
    /// One row an extension.
    pub extensions: Vec<ReplacedExtension>,
    /// Warnings and refusals, ready to be shown.
    pub notes: Vec<String>,
}

/// `session_info_changed`: the session has another name. (events.md A.3)
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct SessionInfoChangedPayload {
    /// Trimmed; `None`: it has none any more.
    pub name: Option<String>,
}

/// `entry_appended`: an entry that is no message of a run, as `custom`, `label`, or what a boundary
/// wrote. (events.md A.8)
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct EntryAppendedPayload {
    /// As it was written.
    pub entry: SessionEntry,
}

/// One entry and what hangs under it.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct SessionTreeNode {
    /// The entry.
    pub entry: SessionEntry,
    /// Its label, if it has one.
    pub label: Option<String>,
    /// In file order.
    pub children: Vec<SessionTreeNode>,
}

/// Whether a session has a name, and whether one was taken away.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "state", content = "name")]
#[non_exhaustive]
pub enum SessionNameState {
    /// Never named.
    #[default]
    Unset,
    /// The name was taken away.
    Cleared,
    /// This one.
    Named(String),
}

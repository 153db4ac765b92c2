//! What hooks decide outside a run: whether a session may be left, what becomes of what a
//! crash interrupted, who runs the user's own command. Their sources call these through
//! [`Hooks`](crate::hooks::Hooks); fields of events that other rooms make are theirs.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::{collections::BTreeMap, path::PathBuf};

/// What is about to happen to a session (events.md A.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeforeEvent {
    Switch,
    Fork,
    Compact,
    Tree,
}

/// A question that any handler may answer with no.
#[derive(Clone, Debug)]
pub struct SessionBefore {
    pub event: BeforeEvent,
    /// The event's fields as events.md A.3 names them.
    pub fields: Map<String, Value>,
}

impl SessionBefore {
    pub fn new(event: BeforeEvent, fields: Value) -> Self {
        let fields = match fields {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        SessionBefore { event, fields }
    }
}

/// What came of it: the last result of all, or the first one that cancels.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Veto {
    /// Declared name of who cancelled it.
    pub cancelled_by: Option<String>,
    /// Nothing of the other results is merged into it.
    pub result: Option<Map<String, Value>>,
}

/// What rooms tell of their own, in fields as events.md names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoomEvent {
    SessionCompact,
    SessionCompactFailed,
    CompactionStart,
    CompactionEnd,
    SessionTree,
    WorkflowLifecycle,
    WorkflowActivityChanged,
    WorkflowStageCompleted,
    WorkflowHeartbeat,
}

impl RoomEvent {
    pub const ALL: [(RoomEvent, &'static str); 9] = [
        (RoomEvent::SessionCompact, "session_compact"),
        (RoomEvent::SessionCompactFailed, "session_compact_failed"),
        (RoomEvent::CompactionStart, "compaction_start"),
        (RoomEvent::CompactionEnd, "compaction_end"),
        (RoomEvent::SessionTree, "session_tree"),
        (RoomEvent::WorkflowLifecycle, "workflow_lifecycle"),
        (RoomEvent::WorkflowActivityChanged, "workflow_activity_changed"),
        (RoomEvent::WorkflowStageCompleted, "workflow_stage_completed"),
        (RoomEvent::WorkflowHeartbeat, "workflow_heartbeat"),
    ];
}

/// Why a session that was interrupted goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RestoreReason {
    Startup,
    Resume,
    WorkflowStageResume,
}

/// What becomes of a delivery that was interrupted; without a decision it is delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReplayAction {
    Drop,
    #[default]
    Deliver,
}

/// By entry id; who is not in it is delivered.
pub type ReplayDecisions = BTreeMap<String, ReplayAction>;

/// Whether a provider's cache is kept warm.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WarmingDecision {
    /// Dollars.
    pub warm_cost: f64,
    pub miss_cost: f64,
    pub continuation_probability: f64,
    pub action: WarmingAction,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WarmingAction {
    Warm,
    Stop,
}

/// The user's own command, before it runs.
#[derive(Clone, Debug, PartialEq)]
pub struct UserBash {
    pub command: String,
    pub exclude_from_context: bool,
    pub cwd: PathBuf,
}

#[derive(Clone, Debug, PartialEq)]
pub enum UserBashOutcome {
    /// Nobody took it: the local shell runs it.
    Local,
    /// It has been run.
    Done(UserBashResult),
    /// Who should have decided could not: it must not run here instead.
    Failed { by: String, why: String },
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserBashResult {
    pub output: String,
    #[serde(default)]
    pub exit_code: Option<i32>,
    pub cancelled: bool,
    pub truncated: bool,
    #[serde(default)]
    pub full_output_path: Option<String>,
}

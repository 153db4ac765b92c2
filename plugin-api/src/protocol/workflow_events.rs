//! What the workflow hub tells extensions (events.md F.4).

use serde::Deserialize;
use serde_json::{Map, Value};

/// Where in the hub's history something is; revisions of two epochs cannot be compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct WorkflowCursor {
    /// One life of a publisher.
    pub epoch: String,
    /// Goes up by one.
    pub revision: u64,
}

/// `workflow_lifecycle`, and `workflow_stage_completed` right after the one of a stage that
/// completed, under the same id and cursor. (events.md A.8)
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct WorkflowLifecyclePayload {
    /// Stays the same in a replay.
    pub event_id: String,
    /// See the type.
    pub cursor: WorkflowCursor,
    /// The run.
    pub run_id: String,
    /// The run it belongs to.
    pub root_run_id: String,
    /// The session it belongs to.
    pub owner_session_id: String,
    /// When it happened.
    pub occurred_at: Value,
    /// When it was seen.
    pub observed_at: Value,
    /// `live` or `replay`.
    pub delivery: String,
    /// What it happened to: `kind` is `run`, `stage`, `tool` or `prompt`.
    pub target: WorkflowTarget,
    /// Who caused it: `user`, `agent`, `scheduler`, `recovery`, `unknown`.
    pub attribution: Option<String>,
}

/// A run, a stage, a tool or a prompt.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct WorkflowTarget {
    /// `run`, `stage`, `tool`, `prompt`.
    pub kind: String,
    /// The run.
    pub run_id: String,
    /// Of a stage, and of a prompt of one.
    pub stage_id: Option<String>,
    /// Before.
    pub previous_status: Option<String>,
    /// Now.
    pub status: String,
    /// `stageName`, `toolNodeId`, `toolName`, `promptId`, `action`.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// `workflow_activity_changed`: the same cursor as the frame observers get. (events.md A.8)
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct WorkflowActivityChangedPayload {
    /// See the type.
    pub cursor: WorkflowCursor,
    /// The whole root, as observers get it.
    pub root: Map<String, Value>,
}

/// `workflow_heartbeat`. (events.md A.8)
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct WorkflowHeartbeatPayload {
    /// The run.
    pub run_id: String,
    /// The run it belongs to.
    pub root_run_id: String,
    /// The session it belongs to.
    pub owner_session_id: String,
    /// Milliseconds since 1970.
    pub scheduled_at: i64,
    /// How often it comes.
    pub interval_minutes: f64,
}

//! What workflows do, as their publisher tells it and observers see it (events.md F.1).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A place in what a source has told. Revisions of two epochs are never compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Cursor {
    /// Another one for each source.
    pub epoch: String,
    /// Grows; may leave gaps.
    pub revision: u64,
}

wire_enum! {
    /// What a root run does.
    RootState { Idle = "idle", Working = "working", Blocked = "blocked" }
}

wire_enum! {
    /// Why.
    RootReason {
        Quiescent = "quiescent", Executing = "executing", AutomaticContinuation = "automatic_continuation",
        Retrying = "retrying", Stopping = "stopping", AwaitingInput = "awaiting_input",
        ManualIntervention = "manual_intervention", Paused = "paused",
    }
}

/// One run that no other run started.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct WorkflowRootActivity {
    /// Its id.
    pub root_run_id: String,
    /// Whose it is.
    pub owner_session_id: String,
    /// What it does.
    pub state: RootState,
    /// Why.
    pub reason: RootReason,
    /// Nodes that execute now.
    pub active_execution_count: u64,
    /// Prompts that somebody could answer.
    pub actionable_block_count: u64,
    /// Somebody should look.
    pub needs_attention: bool,
    /// `graph`, and what a later version adds.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl WorkflowRootActivity {
    /// Idle, quiescent.
    pub fn new(root_run_id: impl Into<String>, owner_session_id: impl Into<String>) -> Self {
        WorkflowRootActivity {
            root_run_id: root_run_id.into(),
            owner_session_id: owner_session_id.into(),
            ..Self::default()
        }
    }
    /// What it does, and why.
    #[must_use]
    pub fn state(mut self, state: RootState, reason: RootReason) -> Self {
        self.state = state;
        self.reason = reason;
        self
    }
    /// Nodes that execute, prompts that could be answered.
    #[must_use]
    pub fn counts(mut self, executing: u64, actionable: u64) -> Self {
        self.active_execution_count = executing;
        self.actionable_block_count = actionable;
        self
    }
}

wire_enum! {
    /// What is known of all workflows.
    Availability { Unavailable = "unavailable", Recovering = "recovering", Ready = "ready" }
}

/// What an observer is told. A snapshot replaces all it knew; not ready is not idle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum WorkflowActivityFrame {
    /// All there is.
    Snapshot {
        /// Where.
        cursor: Cursor,
        /// Whether `roots` says anything.
        availability: Availability,
        /// Of a source that is ready.
        #[serde(default)]
        roots: Option<Vec<WorkflowRootActivity>>,
    },
    /// One root, whole.
    Changed {
        /// Where.
        cursor: Cursor,
        /// As it is now.
        root: WorkflowRootActivity,
    },
    /// One root less.
    Removed {
        /// Where.
        cursor: Cursor,
        /// Which.
        root_run_id: String,
    },
}

/// What a publisher says: a run, stage, tool or prompt has another status. Handlers hear it as
/// `workflow_lifecycle`, and a completed stage as `workflow_stage_completed` too, with the cursor
/// that the host fills in. (events.md A.8, F)
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct WorkflowLifecycle {
    /// The same for every telling of one event.
    pub event_id: String,
    /// The run.
    pub run_id: String,
    /// The run that no other started.
    pub root_run_id: String,
    /// Whose it is.
    pub owner_session_id: String,
    /// Milliseconds since 1970, or ISO 8601.
    pub occurred_at: Value,
    /// When it was seen.
    pub observed_at: Value,
    /// `live`, or `replay` of what a recovery found.
    pub delivery: String,
    /// `{kind: run | stage | tool | prompt, …, status}`.
    pub target: Value,
    /// `user`, `agent`, `scheduler`, `recovery`, `unknown`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attribution: Option<String>,
    /// What a later version adds.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// What a publisher says: a run that goes on by the clock is alive. (events.md F)
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct WorkflowHeartbeat {
    /// The run.
    pub run_id: String,
    /// The run that no other started.
    pub root_run_id: String,
    /// Whose it is.
    pub owner_session_id: String,
    /// Milliseconds since 1970.
    pub scheduled_at: i64,
    /// Between two of them.
    pub interval_minutes: f64,
}

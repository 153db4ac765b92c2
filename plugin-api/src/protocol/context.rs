//! What the model is shown (events.md A.6), and what a handler can ask of its host.

use super::message::AgentMessage;
use serde::{Deserialize, Serialize};

/// Answer of `context`: the messages of this one request, replaced. `event.set_messages`
/// does the same without an answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ContextAnswer {
    /// All of them, without system messages.
    pub messages: Vec<AgentMessage>,
}

impl ContextAnswer {
    /// Replaces the messages.
    pub fn new(messages: Vec<AgentMessage>) -> Self {
        ContextAnswer { messages }
    }
}

wire_enum! {
    /// How the program runs.
    Mode { Print = "print", Tui = "tui", Rpc = "rpc", Json = "json" }
}

/// Body of `ctx.get`.
#[derive(Serialize, Deserialize)]
pub(crate) struct CtxGet<'a> {
    pub member: &'a str,
}

/// Body of `session.get`.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionGet<'a> {
    pub member: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_id: Option<&'a str>,
}

wire_enum! {
    /// Where a fork begins.
    ForkPosition { Before = "before", At = "at" }
}

/// What a compaction is asked to do; absent: the settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct CompactOptions {
    /// Share of the lines that is kept, between 0 and 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compression_ratio: Option<f64>,
    /// Messages at the end that stay as they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preserve_recent: Option<u64>,
    /// What matters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
}

/// The session is a stage of a workflow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct OrchestrationContext {
    /// `workflow-stage`.
    pub kind: String,
    /// The run.
    pub workflow_run_id: String,
    /// The stage.
    pub workflow_stage_id: String,
    /// For people.
    pub workflow_stage_name: String,
    /// `constraints`, `intercomGroup`, …
    #[serde(flatten)]
    pub extra: serde_json::Map<String, serde_json::Value>,
}

/// What a subagent may do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct SubagentPolicy {
    /// `full` or `restricted`.
    pub management_actions: String,
    /// It may start others.
    pub fanout_authorized: bool,
    /// It reads the project's context files.
    pub inherit_project_context: bool,
    /// It has its parent's skills.
    pub inherit_skills: bool,
    /// How deep it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
    /// `mcpDirectTools`, `intercom`, …
    #[serde(flatten)]
    pub extra: serde_json::Map<String, serde_json::Value>,
}

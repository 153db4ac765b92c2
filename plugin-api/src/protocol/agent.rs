//! A run of the agent, from prompt to settled (events.md A.4).

use super::message::{CustomMessage, ImageContent};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// `before_agent_start`: after the input was expanded, before `agent_start`. Handlers form
/// a chain: a later one sees the prompt an earlier one left. The structured options are
/// changed through `event.system_prompt_options()`. (events.md A.4)
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct BeforeAgentStartPayload {
    /// `user`, or `custom` for a run that a message of an extension starts.
    pub message_type: String,
    /// The expanded text of the user; absent for `custom`.
    pub prompt: Option<String>,
    /// The message of a `custom` run.
    pub message: Option<CustomMessage>,
    /// What the user attached.
    pub images: Vec<ImageContent>,
    /// As far as the chain has come.
    pub system_prompt: String,
}

/// All messages are injected after the user's; the last `system_prompt` wins.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct BeforeAgentStartAnswer {
    /// A message to inject.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<CustomMessage>,
    /// The whole prompt, replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
}

impl BeforeAgentStartAnswer {
    /// Injects a message.
    pub fn message(message: CustomMessage) -> Self {
        BeforeAgentStartAnswer { message: Some(message), system_prompt: None }
    }
    /// Replaces the prompt of this run.
    pub fn system_prompt(prompt: impl Into<String>) -> Self {
        BeforeAgentStartAnswer { message: None, system_prompt: Some(prompt.into()) }
    }
    /// The same, with the prompt replaced too.
    #[must_use]
    pub fn with_system_prompt(mut self, prompt: impl Into<String>) -> Self {
        self.system_prompt = Some(prompt.into());
        self
    }
}

/// What the system prompt is made of (events.md A.4.1).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct SystemPromptOptions {
    /// Prefix from `--system-prompt` or SYSTEM.md.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_prompt: Option<String>,
    /// Exact replacement of the whole prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub force_system_prompt: Option<String>,
    /// Active tools; a change counts for the same request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selected_tools: Option<Vec<String>>,
    /// One line a tool.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tool_snippets: BTreeMap<String, String>,
    /// Bullets by tool.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tool_guidelines: BTreeMap<String, Vec<String>>,
    /// Sections of your own, each wrapped in its tag.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub sections: BTreeMap<String, String>,
    /// More bullets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub prompt_guidelines: Vec<String>,
    /// Text of `--append-system-prompt`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub append_system_prompt: Option<String>,
    /// Working directory.
    pub cwd: String,
    /// AGENTS.md and the like.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub context_files: Vec<ContextFile>,
    /// Skills the model is told of.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<SkillInfo>,
    /// What a later version adds.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A skill: a file of instructions for one kind of work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct SkillInfo {
    /// `/skill:name` calls it up.
    pub name: String,
    /// When it is of use.
    pub description: String,
    /// Its `SKILL.md`.
    pub file_path: String,
    /// What relative paths in it are relative to.
    pub base_dir: String,
    /// Tools it says it needs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_tools: Vec<String>,
    /// Only the user calls it up.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub disable_model_invocation: bool,
    /// What a later version adds.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A file that went into the prompt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ContextFile {
    /// Where it was read.
    pub path: String,
    /// Its text.
    pub content: String,
}

/// `agent_end`: one low-level run has ended; a retry, a compaction or queued messages may
/// follow. `event.messages()` are those the run made. (events.md A.4)
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct AgentEndPayload {
    /// The host will run again by itself.
    pub will_retry: bool,
}

/// `agent_settled`: nothing more will run by itself; `ctx.is_idle()` is true. Runs asked
/// for in here start after all handlers have returned. (events.md A.4)
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct AgentSettledPayload {
    /// The user stopped it.
    pub aborted: bool,
}

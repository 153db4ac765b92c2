//! Tool calls: their events, their gates, their results (events.md A.4, E.2).

use super::message::Content;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

/// The arguments of one tool as a type; `event.input_as::<T>()` reads and changes them.
/// `#[tool]` implements it for the parameters of a function.
pub trait ToolInput: Serialize + DeserializeOwned + Send + 'static {
    /// The tool's name.
    const TOOL: &'static str;
}

/// The details of one tool's results as a type; `event.details_as::<T>()` reads them.
pub trait ToolDetails: DeserializeOwned {
    /// The tool's name.
    const TOOL: &'static str;
}

/// Fields of `tool_call`, `tool_execution_start` and `tool_execution_update`.
///
/// `tool_call` is a gate: it comes after `tool_execution_start` and the check of the
/// model's arguments, and a handler that blocks, fails, panics or is reloaded away stops
/// the call. The arguments are read with `event.input_as::<T>()` or `event.input()`, and
/// what is changed in there is what runs. (events.md A.4)
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ToolPayload {
    /// The tool.
    pub tool_name: String,
    /// The model's id for the call.
    pub tool_call_id: String,
}

/// Fields of `tool_execution_end`: after `tool_result`, in the order the calls end.
/// `event.result()` is the result, `event.args()` the arguments when a gate changed them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ToolExecutionEndPayload {
    /// The tool.
    pub tool_name: String,
    /// The model's id for the call.
    pub tool_call_id: String,
    /// It failed, or was blocked.
    pub is_error: bool,
    /// Wall time of the tool alone; 0 when it never ran.
    pub duration_ms: u64,
}

/// Fields of `tool_result`: only for calls that ran. Handlers form a chain of patches.
/// `event.content()`, `event.details()` and `event.input()` are the big ones.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ToolResultPayload {
    /// The tool.
    pub tool_name: String,
    /// The model's id for the call.
    pub tool_call_id: String,
    /// It failed.
    pub is_error: bool,
}

/// Answer of `tool_call`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ToolCallAnswer {
    /// The call does not run; the first block ends the chain.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub block: bool,
    /// What the model reads instead of a result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// With `block`: the run ends when all calls of the batch end it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub terminate: bool,
}

/// Stops the call; the model reads the reason.
pub fn block(reason: impl Into<String>) -> ToolCallAnswer {
    ToolCallAnswer { block: true, reason: Some(reason.into()), terminate: false }
}

impl ToolCallAnswer {
    /// See the field.
    #[must_use]
    pub fn terminate(mut self) -> Self {
        self.terminate = true;
        self
    }
}

/// Answer of `tool_result`: what is given replaces what was there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ToolResultPatch {
    /// What the model reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<Vec<Content>>,
    /// What the user may see.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// Whether it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
}

impl ToolResultPatch {
    /// Changes nothing yet.
    pub fn new() -> Self {
        Self::default()
    }
    /// Other content.
    #[must_use]
    pub fn content(mut self, content: Vec<Content>) -> Self {
        self.content = Some(content);
        self
    }
    /// Other content: one text.
    #[must_use]
    pub fn text(self, text: impl Into<String>) -> Self {
        self.content(vec![Content::text(text)])
    }
    /// Other details; a value that is no JSON becomes `null`.
    #[must_use]
    pub fn details(mut self, details: impl Serialize) -> Self {
        self.details = Some(serde_json::to_value(details).unwrap_or_default());
        self
    }
    /// Failed or not.
    #[must_use]
    pub fn is_error(mut self, is_error: bool) -> Self {
        self.is_error = Some(is_error);
        self
    }
}

/// What a tool answers. A tool fails with an `Err`, or with [`ToolResult::error`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ToolResult {
    /// What the model reads; cut by the host above its limits.
    pub content: Vec<Content>,
    /// What handlers and renderers read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// The run ends after this batch, when all its calls say so.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub terminate: bool,
    /// It failed; the model reads the content as the reason.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// The answer as data, in the shape of the tool's output schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<Value>,
    /// Tokens that the tool itself spent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<super::message::Usage>,
}

impl ToolResult {
    /// One text.
    pub fn text(text: impl Into<String>) -> Self {
        ToolResult { content: vec![Content::text(text)], ..Self::default() }
    }
    /// A failure.
    pub fn error(text: impl Into<String>) -> Self {
        ToolResult { is_error: true, ..Self::text(text) }
    }
    /// Blocks.
    pub fn content(content: Vec<Content>) -> Self {
        ToolResult { content, ..Self::default() }
    }
    /// Data for handlers and renderers; a value that is no JSON becomes `null`.
    #[must_use]
    pub fn details(mut self, details: impl Serialize) -> Self {
        self.details = Some(serde_json::to_value(details).unwrap_or_default());
        self
    }
    /// See the field.
    #[must_use]
    pub fn terminate(mut self) -> Self {
        self.terminate = true;
        self
    }
    /// The answer as data too; a value that is no JSON becomes `null`.
    #[must_use]
    pub fn structured(mut self, value: impl Serialize) -> Self {
        self.structured_content = Some(serde_json::to_value(value).unwrap_or_default());
        self
    }
    /// All text of it.
    pub fn plain_text(&self) -> String {
        super::message::plain_text(&self.content)
    }
}

impl From<String> for ToolResult {
    fn from(text: String) -> Self {
        ToolResult::text(text)
    }
}

impl From<&str> for ToolResult {
    fn from(text: &str) -> Self {
        ToolResult::text(text)
    }
}

/// The call of a tool as it reaches its handler.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ToolExecute {
    pub tool_call_id: String,
    pub tool_name: String,
    pub params: Value,
    pub cwd: std::path::PathBuf,
}

impl Default for ToolExecute {
    fn default() -> Self {
        ToolExecute {
            tool_call_id: String::new(),
            tool_name: String::new(),
            params: Value::Object(serde_json::Map::new()),
            cwd: std::path::PathBuf::new(),
        }
    }
}

/// Body of `tool.update`.
#[derive(Serialize)]
pub(crate) struct ToolUpdate<'a> {
    pub content: &'a [Content],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<&'a Value>,
}

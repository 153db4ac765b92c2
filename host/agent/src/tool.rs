//! What the core knows of a tool. The built-in ones live in the `tools` room,
//! those of extensions behind the boundary; the loop cannot tell them apart.

use crate::message::{Content, ImageContent, Usage};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{path::PathBuf, sync::Arc};
use tokio_util::sync::CancellationToken;

/// events.md E.2.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolSpec {
    /// Unique; what the model calls.
    pub name: String,
    /// What the user sees.
    pub label: String,
    pub description: String,
    /// JSON Schema whose root is an object.
    pub parameters: Value,
    /// One line for the list of tools in the prompt; absent: not listed there.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub prompt_snippet: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub prompt_guidelines: Vec<String>,
    /// One sequential tool makes its whole batch sequential.
    #[serde(default)]
    pub execution_mode: ExecutionMode,
    /// Characters; can only lower the global ceiling.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub max_result_size_chars: Option<usize>,
    /// JSON Schema of what a structured result holds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub output_schema: Option<Value>,
    /// `false`, or how the provider is to constrain the arguments; kept as it was given.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub constrained_sampling: Option<Value>,
    /// Its terminating result is what print mode prints.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub structured_output: bool,
    /// `default` or `self`: who draws the box around it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub render_shell: Option<String>,
    /// Where it comes from.
    pub source: ToolSource,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ExecutionMode {
    #[default]
    Parallel,
    Sequential,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum ToolSource {
    Builtin,
    /// `id` is the extension's declared name, `path` its library.
    Extension {
        id: String,
        path: PathBuf,
    },
}

/// Whether a call may run beside others of its batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Concurrency {
    Shared,
    /// Alone among the calls of the same key (for `edit` and `write`: the file).
    ExclusiveKey(String),
    /// Alone in its batch.
    Exclusive,
}

/// An accumulated (never incremental) view of a result that is still being made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PartialResult {
    pub content: Vec<Content>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub details: Option<Value>,
}

/// Takes partial results from any thread; ignored once the call has ended.
pub type UpdateSink = Arc<dyn Fn(PartialResult) + Send + Sync>;

/// One call, its arguments validated and through all gates.
#[derive(Clone)]
pub struct ToolInvocation {
    pub tool_call_id: String,
    pub args: Value,
    pub cwd: PathBuf,
    pub cancel: CancellationToken,
    pub update: UpdateSink,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolOutput {
    pub content: Vec<Content>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub details: Option<Value>,
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub is_error: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub terminate: bool,
    /// What a tool with an output schema answers beside its text.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub structured_content: Option<Value>,
    /// Tokens that the tool itself spent.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub usage: Option<Usage>,
}

impl ToolOutput {
    pub fn text(text: impl Into<String>) -> Self {
        ToolOutput { content: vec![Content::text(text)], ..Default::default() }
    }
    pub fn error(text: impl Into<String>) -> Self {
        ToolOutput { content: vec![Content::text(text)], is_error: true, ..Default::default() }
    }
}

/// A failed call; the text becomes the result the model reads.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct ToolError(pub String);

/// Makes the images of results fit what models take. Blocks while it computes.
pub trait FitImages: Send + Sync {
    /// `None`: it fits already, or cannot be made to. The text says what was done to it.
    fn fit(&self, image: &ImageContent) -> Option<(ImageContent, String)>;
}

#[async_trait]
pub trait Tool: Send + Sync {
    fn spec(&self) -> &ToolSpec;
    fn concurrency(&self, _args: &Value) -> Concurrency {
        Concurrency::Shared
    }
    /// Compatibility of arguments, before validation. An error is the call's result.
    fn prepare_arguments(&self, args: Value) -> Result<Value, ToolError> {
        Ok(args)
    }
    async fn execute(&self, call: ToolInvocation) -> Result<ToolOutput, ToolError>;
}

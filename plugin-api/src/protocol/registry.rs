//! What an extension registers, and what the host lists (events.md E.1, E.2).

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;

/// Which handlers of an event run first: phase, then load order, then registration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Before the others.
    Early,
    /// As `pi.on` does.
    #[default]
    Normal,
    /// After the others: a late gate sees the final arguments.
    Late,
}

/// Body of `handlers.add`.
#[derive(Serialize, Deserialize)]
pub(crate) struct AddHandler<'a> {
    pub event: &'a str,
    pub handler: u64,
    pub sync: bool,
    pub phase: Phase,
}

/// Body of `tools.register`.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RegisterTool {
    pub name: String,
    pub label: String,
    pub description: String,
    pub parameters: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_snippet: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub prompt_guidelines: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_mode: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_result_size_chars: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constrained_sampling: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub structured_output: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub render_shell: Option<&'static str>,
    /// Handler of `prepareArguments`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prepare: Option<u64>,
    /// Handler of `concurrency(args)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency_handler: Option<u64>,
    /// Handlers of `renderCall` and `renderResult`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub render_call: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub render_result: Option<u64>,
    pub handler: u64,
}

/// Body of `commands.register`.
#[cfg(feature = "tokio")]
#[derive(Serialize)]
pub(crate) struct RegisterCommand<'a> {
    pub name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<&'a str>,
    pub handler: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completions: Option<u64>,
}

/// Body of `flags.register`.
#[derive(Serialize)]
pub(crate) struct RegisterFlag<'a> {
    pub name: &'a str,
    #[serde(flatten)]
    pub flag: &'a Flag,
}

/// A flag of the command line: `--name` or `--name VALUE`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Flag {
    #[serde(skip_serializing_if = "Option::is_none", default)]
    description: Option<String>,
    #[serde(rename = "type")]
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    default: Option<FlagValue>,
}

impl Flag {
    /// `--name`.
    pub fn boolean() -> Self {
        Flag { description: None, kind: "boolean".into(), default: None }
    }
    /// `--name VALUE`.
    pub fn string() -> Self {
        Flag { description: None, kind: "string".into(), default: None }
    }
    /// For `--help`.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }
    /// What `get_flag` answers when it was not given.
    #[must_use]
    pub fn default(mut self, value: impl Into<FlagValue>) -> Self {
        self.default = Some(value.into());
        self
    }
}

/// What a flag was given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum FlagValue {
    /// Of `--name`.
    Bool(bool),
    /// Of `--name VALUE`.
    String(String),
}

impl FlagValue {
    /// A boolean one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            FlagValue::Bool(b) => Some(*b),
            FlagValue::String(_) => None,
        }
    }
    /// A string one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            FlagValue::String(s) => Some(s),
            FlagValue::Bool(_) => None,
        }
    }
}

impl From<bool> for FlagValue {
    fn from(b: bool) -> Self {
        FlagValue::Bool(b)
    }
}

impl From<&str> for FlagValue {
    fn from(s: &str) -> Self {
        FlagValue::String(s.to_owned())
    }
}

impl From<String> for FlagValue {
    fn from(s: String) -> Self {
        FlagValue::String(s)
    }
}

/// Where a tool or a command comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct SourceInfo {
    /// The file.
    pub path: PathBuf,
    /// What brought it.
    pub source: String,
    /// `user`, `project`, `temporary`.
    pub scope: String,
    /// `package` or `top-level`.
    pub origin: String,
}

/// A tool as `get_all_tools` lists it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ToolInfo {
    /// What the model calls.
    pub name: String,
    /// What the model is told.
    pub description: String,
    /// JSON Schema of the arguments.
    pub parameters: Value,
    /// As it was registered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constrained_sampling: Option<Value>,
    /// Bullets in the prompt.
    pub prompt_guidelines: Vec<String>,
    /// Where it comes from.
    pub source_info: SourceInfo,
}

/// A command as `get_commands` lists it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct CommandInfo {
    /// As it is typed, without the slash; `:n` where two extensions share a name.
    pub name: String,
    /// For lists.
    pub description: Option<String>,
    /// `extension`, `prompt` or `skill`.
    pub source: String,
    /// Where it comes from.
    pub source_info: SourceInfo,
}

/// Body of `tables.provide`.
#[derive(Serialize)]
pub(crate) struct Provide<'a> {
    pub key: &'a str,
    pub major: u32,
    pub version: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<Value>,
    pub service: u64,
}

/// Body of `tables.list` and `tables.watch`.
#[derive(Serialize)]
pub(crate) struct Table<'a> {
    pub key: &'a str,
    pub major: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handler: Option<u64>,
}

/// Answer of `tables.provide`, body of `tables.withdraw`.
#[derive(Serialize, Deserialize)]
pub(crate) struct Token {
    pub token: Value,
}

/// Who provides a service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ServiceInfo {
    /// The extension's name.
    pub provider: String,
    /// Semver of the service.
    pub version: String,
    /// The provider's generation.
    pub generation: u64,
    /// Where it stands beside others of its key; empty for none.
    pub scope: String,
}

/// A policy: data that its provider put into a table for others to keep to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct PolicyInfo {
    /// The extension's name.
    pub provider: String,
    /// Where it stands beside others of its key.
    pub scope: String,
    /// What it says.
    pub value: Value,
}

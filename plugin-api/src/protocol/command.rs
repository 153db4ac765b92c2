//! Slash commands (events.md E.1 `registerCommand`).

use serde::{Deserialize, Serialize};

/// The call of a command: everything after the first space, unparsed.
#[cfg(feature = "tokio")]
#[derive(Deserialize)]
pub(crate) struct CommandCall {
    #[serde(default)]
    pub args: String,
}

/// What is typed so far.
#[cfg(feature = "tokio")]
#[derive(Deserialize)]
pub(crate) struct CompletionsCall {
    #[serde(default)]
    pub prefix: String,
}

/// One suggestion for a command's arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Completion {
    /// What is inserted.
    pub value: String,
    /// What is shown.
    pub label: String,
    /// Shown beside it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

impl Completion {
    /// Value and label are the same.
    pub fn new(value: impl Into<String>) -> Self {
        let value = value.into();
        Completion { label: value.clone(), value, description: None }
    }
    /// Shown instead of the value.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }
    /// Shown beside it.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }
}

impl From<&str> for Completion {
    fn from(value: &str) -> Self {
        Completion::new(value)
    }
}

impl From<String> for Completion {
    fn from(value: String) -> Self {
        Completion::new(value)
    }
}

//! The user's own command (events.md A.8).

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// `user_bash`: the user typed `!command`. The first answer decides; a handler that fails keeps
/// the command from running at all. (events.md A.8)
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct UserBashPayload {
    /// For a shell.
    pub command: String,
    /// `!!`: the model does not read it.
    pub exclude_from_context: bool,
    /// Where it would run.
    pub cwd: PathBuf,
}

/// Answer of `user_bash`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct UserBashAnswer {
    /// The command has been run, or is not to be.
    pub result: UserBashResult,
}

/// What became of the command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct UserBashResult {
    /// What it printed.
    pub output: String,
    /// Absent when it was stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Stopped by the user.
    pub cancelled: bool,
    /// `output` is not all of it.
    pub truncated: bool,
    /// Then all of it is here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full_output_path: Option<PathBuf>,
}

impl UserBashAnswer {
    /// The command printed this and ended.
    pub fn result(output: impl Into<String>, exit_code: i32) -> Self {
        let result =
            UserBashResult { output: output.into(), exit_code: Some(exit_code), ..Default::default() };
        UserBashAnswer { result }
    }
}

//! Commands the host runs for an extension (events.md E.1 `exec`).

use serde::{Deserialize, Serialize};
use std::{path::PathBuf, time::Duration};

/// A program and its arguments; no shell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Exec {
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Then it is ended: SIGTERM, SIGKILL after 5 s.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub timeout_ms: Option<u64>,
    /// Default: that of the session.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cwd: Option<PathBuf>,
}

impl Exec {
    /// Without arguments.
    pub fn new(command: impl Into<String>) -> Self {
        Exec { command: command.into(), args: Vec::new(), timeout_ms: None, cwd: None }
    }
    /// Adds arguments.
    #[must_use]
    pub fn args<I: IntoIterator<Item = S>, S: Into<String>>(mut self, args: I) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }
    /// Ends it after this long.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout_ms = Some(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
        self
    }
    /// Runs it there.
    #[must_use]
    pub fn cwd(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.cwd = Some(cwd.into());
        self
    }
}

/// How a command ended. A program that could not be started has code 1 and the reason in
/// `stderr`; that is no error.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ExecResult {
    /// What it printed.
    pub stdout: String,
    /// What it printed there.
    pub stderr: String,
    /// 128 + the signal's number when a signal ended it.
    pub code: i32,
    /// Ended by the timeout or an abort.
    pub killed: bool,
}

impl ExecResult {
    /// An answer for a scripted test.
    pub fn new(stdout: impl Into<String>, code: i32) -> Self {
        ExecResult { stdout: stdout.into(), code, ..Self::default() }
    }
    /// Code 0, and by itself.
    pub fn success(&self) -> bool {
        self.code == 0 && !self.killed
    }
}

/// How a command of the local shell ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct LocalBashResult {
    /// The end of what it printed, both streams in order, within 2,000 lines and 50 KB.
    pub output: String,
    /// 128 + the signal's number when a signal ended it; absent when it was stopped or ran out of time.
    pub exit_code: Option<i32>,
    /// Stopped before it ended.
    pub cancelled: bool,
    /// Ended by the timeout.
    pub timed_out: bool,
    /// `output` is not all of it.
    pub truncated: bool,
    /// Then all of it is here.
    pub full_output_path: Option<PathBuf>,
}

/// Limits lower than the usual ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Truncation {
    /// Default 2,000.
    pub max_lines: Option<usize>,
    /// Default 51,200.
    pub max_bytes: Option<usize>,
}

/// A text that was cut, and how much there was of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Truncated {
    /// What is left.
    pub content: String,
    /// There was more.
    pub truncated: bool,
    /// `lines` or `bytes`: which limit it was.
    pub truncated_by: Option<String>,
    /// Of the whole text.
    pub total_lines: usize,
    /// Of the whole text.
    pub total_bytes: usize,
    /// Of what is left.
    pub output_lines: usize,
    /// Of what is left.
    pub output_bytes: usize,
    /// The last line lost its beginning.
    pub last_line_partial: bool,
    /// The first line alone is too long: nothing is left.
    pub first_line_exceeds_limit: bool,
}

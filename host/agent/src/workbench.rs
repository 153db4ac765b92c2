//! What the program's own tools lend to extensions: the local shell, the queue of each file, and
//! how text is cut. One implementation, beside the tools; extensions get at it through the host.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio_util::sync::CancellationToken;

/// A command for the local shell.
#[derive(Clone, Debug)]
pub struct ShellRun {
    pub command: String,
    pub cwd: PathBuf,
    /// Added to the environment.
    pub env: BTreeMap<String, String>,
    /// `None`: as long as it takes.
    pub timeout: Option<Duration>,
}

/// How it ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShellEnd {
    /// The end of it within the limits.
    pub output: String,
    /// 128 + n for one that signal n ended; none when it was cancelled or timed out.
    pub exit_code: Option<i32>,
    pub cancelled: bool,
    pub timed_out: bool,
    pub truncated: bool,
    /// Holds all of it, when it is truncated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full_output_path: Option<String>,
}

/// Which end of a text is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Kept {
    Head,
    Tail,
}

/// Holds a file's turn until it is dropped.
pub type FileTurn = Box<dyn Send + Sync>;

#[async_trait]
pub trait Workbench: Send + Sync + std::fmt::Debug {
    /// `on_data` gets each new stretch of output. Dropped, the command and all it started are killed.
    ///
    /// # Errors
    /// Why it could not be started, for a person.
    async fn shell(
        &self,
        run: ShellRun,
        on_data: &mut (dyn for<'s> FnMut(&'s str) + Send),
        cancel: &CancellationToken,
    ) -> Result<ShellEnd, String>;
    /// The same turn that `edit` and `write` wait for.
    async fn file_turn(&self, file: &Path) -> FileTurn;
    /// Whole lines within the limits; `{content, truncated, truncatedBy, totalLines, …}` (events.md H.3).
    fn truncate(&self, text: &str, kept: Kept, lines: Option<usize>, bytes: Option<usize>) -> Value;
}

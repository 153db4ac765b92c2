//! Where commands of the user run when an extension runs them (events.md A.8, `operations`): on
//! another machine, in a container, or through the local shell with something around them.

use crate::{
    context::Context,
    error::Result,
    extension::Extension,
    protocol::bash::BashOperations,
    protocol::tool::ToolResult,
    signal::CancelSignal,
    tool::{Tool, ToolContext},
};
use serde_json::json;
use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

/// One command that an extension runs. Cheap to clone.
#[derive(Clone)]
pub struct BashExec {
    command: Arc<str>,
    cwd: Arc<PathBuf>,
    ctx: ToolContext,
    output: Arc<Mutex<String>>,
}

impl BashExec {
    /// For a shell.
    pub fn command(&self) -> &str {
        &self.command
    }
    /// Where it is to run.
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }
    /// Raised when the user stops it.
    pub fn signal(&self) -> CancelSignal {
        self.ctx.signal()
    }
    /// More of what it prints; shown at once, and cut by the host above its limits.
    ///
    /// # Errors
    /// `stale_context`.
    pub fn on_data(&self, data: &str) -> Result<()> {
        let so_far = {
            let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
            output.push_str(data);
            output.clone()
        };
        self.ctx.update(so_far)
    }
}

impl Extension {
    /// What a handler of `user_bash` gives back to run the command in its own way: `exec` says what
    /// comes with `on_data`, and answers the exit code, `None` when it was stopped. Made once, in
    /// `activate`; the handler answers [`UserBashAnswer::operations`](crate::protocol::bash::UserBashAnswer).
    pub fn bash_operations<F, Fut>(&self, exec: F) -> BashOperations
    where
        F: FnOnce(BashExec, Context) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Result<Option<i32>>> + Send + 'static,
    {
        let tool = Tool::new("bash", "").schema(json!({"type": "object"})).run(move |call, ctx| async move {
            let command = call.params["command"].as_str().unwrap_or_default().into();
            let output = Arc::new(Mutex::new(String::new()));
            let run = BashExec {
                command,
                cwd: Arc::new(call.cwd().to_owned()),
                ctx: ctx.clone(),
                output: output.clone(),
            };
            let code = exec(run, Context::clone(&ctx)).await?;
            let output = std::mem::take(&mut *output.lock().unwrap_or_else(PoisonError::into_inner));
            Ok(ToolResult::text(output).details(json!({"exitCode": code})))
        });
        BashOperations::new(self.add(tool.into_handler()))
    }
}

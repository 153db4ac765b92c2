//! The tools of a session, and what of them extensions may use as well.

use crate::{
    Limits, ToolsConfig, bash, edit, find, ls, path, proc, read, save, search, truncate_head, truncate_tail,
    write,
};
use async_trait::async_trait;
use atomic_agent::{
    tool::Tool,
    workbench::{FileTurn, Kept, ShellEnd, ShellRun, Workbench},
};
use serde_json::{Value, json};
use std::{path::Path, sync::Arc};
use tokio_util::sync::CancellationToken;

/// One for a session: its tools and its extensions share the queue of each file.
#[derive(Debug)]
pub struct Bench {
    config: Arc<ToolsConfig>,
    locks: Arc<save::FileLocks>,
}

impl Bench {
    pub fn new(config: ToolsConfig) -> Self {
        Bench { config: Arc::new(config), locks: Arc::default() }
    }

    /// All built-in tools, in the order the prompt lists them.
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let (config, locks) = (&self.config, &self.locks);
        vec![
            Arc::new(read::Read::new(config.fit_images)),
            Arc::new(bash::Bash::new(config.clone())),
            Arc::new(edit::Edit::new(config.cwd.clone(), locks.clone())),
            Arc::new(write::Write::new(config.cwd.clone(), locks.clone())),
            Arc::new(find::Find::new()),
            Arc::new(search::Search::new()),
            Arc::new(ls::Ls::new()),
        ]
    }
}

#[async_trait]
impl Workbench for Bench {
    async fn shell(
        &self,
        run: ShellRun,
        on_data: &mut (dyn for<'s> FnMut(&'s str) + Send),
        cancel: &CancellationToken,
    ) -> Result<ShellEnd, String> {
        let mut env = proc::EnvPolicy::of(&self.config);
        let cwd = self.config.cwd.join(&run.cwd);
        if run.command.contains('\0') {
            return Err("the command holds a NUL character".into());
        }
        let unfit = |(name, value): (&String, &String)| {
            name.is_empty() || name.contains(['=', '\0']) || value.contains('\0')
        };
        if run.env.iter().any(unfit) {
            return Err("the environment has an entry that none can hold".into());
        }
        env.set = run.env;
        let (config, command) = (&self.config, &run.command);
        let done = proc::run(config, command, &cwd, &env, run.timeout, &mut |new, _| on_data(new), cancel)
            .await
            .map_err(|e| e.to_string())?;
        Ok(ShellEnd {
            output: done.output.content,
            exit_code: done.exit_code,
            cancelled: done.cancelled,
            timed_out: done.timed_out,
            truncated: done.output.info.truncated,
            full_output_path: done.full_output_path.map(|p| p.to_string_lossy().into_owned()),
        })
    }

    async fn file_turn(&self, file: &Path) -> FileTurn {
        let file = path::expanded(&self.config.cwd, file);
        // Without a way to cancel it only ends with its turn.
        match self.locks.turn(&file, &CancellationToken::new()).await {
            Ok(turn) => Box::new(turn),
            Err(_) => Box::new(()),
        }
    }

    fn truncate(&self, text: &str, kept: Kept, lines: Option<usize>, bytes: Option<usize>) -> Value {
        let usual = Limits::default();
        let limits = Limits { lines: lines.unwrap_or(usual.lines), bytes: bytes.unwrap_or(usual.bytes) };
        let cut = match kept {
            Kept::Head => truncate_head(text, limits),
            Kept::Tail => truncate_tail(text, limits),
        };
        let mut answer = json!(cut.info);
        answer["content"] = cut.content.into();
        answer
    }
}

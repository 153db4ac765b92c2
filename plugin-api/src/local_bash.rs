//! What the host's own tools lend: the local shell with live output, the turn of a file, cutting
//! text to what a model is given.

use crate::{
    abi::instance::Handler,
    call::Request,
    error::Result,
    extension::Extension,
    protocol::exec::{LocalBashResult, Truncated, Truncation},
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

type OnData = Arc<dyn Fn(&str) + Send + Sync>;

/// A command for the shell that `bash` and `!command` use: its own process group, the same
/// limits on output, no credentials of the host in its environment.
#[must_use = "nothing runs before `run`"]
pub struct LocalBash {
    pi: Extension,
    run: Run,
    on_data: Option<OnData>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Run {
    command: String,
    cwd: PathBuf,
    env: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    handler: Option<u64>,
}

#[derive(Deserialize)]
struct Output {
    data: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Cut<'a> {
    text: &'a str,
    kept: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_lines: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_bytes: Option<usize>,
}

#[derive(Serialize)]
struct File {
    path: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Token {
    token: u64,
}

impl LocalBash {
    /// Runs it there; a relative path is the session's.
    pub fn cwd(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.run.cwd = cwd.into();
        self
    }
    /// Adds to its environment.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.run.env.insert(name.into(), value.into());
        self
    }
    /// Kills it, and all it started, after this long.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.run.timeout_ms = Some(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
        self
    }
    /// Is told what it prints, both streams in order, while it runs. All of it comes before the
    /// request resolves.
    pub fn on_data(mut self, f: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.on_data = Some(Arc::new(f));
        self
    }
    /// Runs it. Dropping the request kills it with all it started; what it left in the
    /// background by itself goes on.
    ///
    /// Fails with `shell_failed` when it could not be started; another exit code than 0 is no error.
    pub fn run(self) -> Request<LocalBashResult> {
        let LocalBash { pi, mut run, on_data } = self;
        Request::new(async move {
            let _listener = on_data.map(|f| {
                let handler = pi.add(Handler::Sync(Arc::new(move |event, _| {
                    let Output { data } = serde_json::from_slice(event.json())?;
                    f(&data);
                    Ok(Vec::new())
                })));
                run.handler = Some(handler);
                Listener(pi.clone(), handler)
            });
            pi.call.ask("bash.local", &run).await
        })
    }
}

/// Its handler is dropped with the request.
struct Listener(Extension, u64);

impl Drop for Listener {
    fn drop(&mut self) {
        self.0.call.state.drop_handler(self.1);
    }
}

/// A file that is this extension's to change. Dropping it lets the next one in.
#[must_use = "dropped at once it holds nothing"]
pub struct FileTurn {
    pi: Extension,
    token: u64,
}

impl Drop for FileTurn {
    fn drop(&mut self) {
        // A generation that is over has given it back already.
        let _ = self.pi.call.tell("files.done", &Token { token: self.token });
    }
}

impl Extension {
    /// A command for the host's own shell: `pi.local_bash("make").on_data(..).run().await`.
    pub fn local_bash(&self, command: impl Into<String>) -> LocalBash {
        let run = Run {
            command: command.into(),
            cwd: PathBuf::new(),
            env: BTreeMap::new(),
            timeout_ms: None,
            handler: None,
        };
        LocalBash { pi: self.clone(), run, on_data: None }
    }

    /// Waits until nobody else changes this file: `edit`, `write` and other extensions wait in
    /// the same queue. Hold it while you read, change and write.
    pub fn file_turn(&self, path: impl Into<PathBuf>) -> Request<FileTurn> {
        let (pi, path) = (self.clone(), path.into());
        Request::new(async move {
            let Token { token } = pi.call.ask("files.turn", &File { path }).await?;
            Ok(FileTurn { pi, token })
        })
    }
}

impl Extension {
    /// The beginning of a text, whole lines, within what a tool may give a model (2,000 lines,
    /// 50 KB), or less.
    ///
    /// # Errors
    /// `stale_context`; `unsupported` where the host has no tools.
    pub fn truncate_head(&self, text: &str, limits: Truncation) -> Result<Truncated> {
        self.cut(text, "head", limits)
    }
    /// The end of a text, likewise.
    ///
    /// # Errors
    /// As [`Extension::truncate_head`].
    pub fn truncate_tail(&self, text: &str, limits: Truncation) -> Result<Truncated> {
        self.cut(text, "tail", limits)
    }
    fn cut(&self, text: &str, kept: &'static str, limits: Truncation) -> Result<Truncated> {
        let cut = Cut { text, kept, max_lines: limits.max_lines, max_bytes: limits.max_bytes };
        self.call.get("text.truncate", &cut)
    }
}

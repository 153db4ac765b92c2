//! `bash` (`powershell` on Windows): a command of the model.

use crate::{
    ToolsConfig, aborted,
    args::Args,
    path,
    proc::{self, EnvPolicy, ShellOutcome},
    spec,
    truncate::{TruncatedBy, format_size},
};
use async_trait::async_trait;
use atomic_agent::{
    message::Content,
    tool::{PartialResult, Tool, ToolError, ToolInvocation, ToolOutput, ToolSpec},
};
use serde_json::{Map, Value, json};
use std::{sync::Arc, time::Duration};

pub const NAME: &str = if cfg!(windows) { "powershell" } else { "bash" };
const MAX_TIMEOUT: f64 = 3600.0;

pub struct Bash {
    spec: ToolSpec,
    config: Arc<ToolsConfig>,
}

impl Bash {
    pub fn new(config: Arc<ToolsConfig>) -> Self {
        let default = config.default_timeout.as_secs();
        let parameters = json!({
            "type": "object",
            "properties": {
                "command": {"type": "string", "description": "Command to run; its standard input is closed"},
                "timeout": {"type": "number", "exclusiveMinimum": 0, "maximum": MAX_TIMEOUT, "description": format!("Seconds after which it is killed (default {default}, at most 3600)")},
                "cwd": {"type": "string", "description": "Directory to run in (default: the working directory)"},
                "env": {"type": "object", "additionalProperties": {"type": "string"}, "description": "Environment variables to add"}
            },
            "required": ["command"],
            "additionalProperties": false
        });
        let spec = spec(
            NAME,
            &format!(
                "Run a {NAME} command and get its output and errors in order. The last 2000 lines or 50 KB are shown; \
                 the full output is then in a file that the result names. A command that exits with another code than 0, \
                 or runs into its timeout, is an error. End a command with & to leave it running in the background."
            ),
            parameters,
            if cfg!(windows) {
                "Run powershell commands"
            } else {
                "Run bash commands (build, test, git, ...)"
            },
            &[],
        );
        Bash { spec, config }
    }
}

#[async_trait]
impl Tool for Bash {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn execute(&self, call: ToolInvocation) -> Result<ToolOutput, ToolError> {
        let args = Args::new(NAME, &call.args)?;
        let command = args.str("command")?;
        if command.contains('\0') {
            return Err(args.error("command", "must not contain a NUL character"));
        }
        let requested = args.opt_number("timeout")?;
        let timeout = match requested {
            None => self.config.default_timeout,
            // Whole seconds, at least one.
            Some(s) if s > 0.0 && s <= MAX_TIMEOUT => Duration::from_secs((s as u64).max(1)),
            Some(s) => {
                let problem = format!("must be more than 0 and at most {MAX_TIMEOUT} seconds, got {s:?}");
                return Err(args.error("timeout", problem));
            }
        };
        let cwd = match args.opt_str("cwd")? {
            Some(_) => path::arg(&args, &call.cwd, "cwd")?,
            None => call.cwd.clone(),
        };
        if !cwd.is_dir() {
            return Err(args.error("cwd", format!("is not a directory: {}", cwd.display())));
        }
        let mut env = EnvPolicy::of(&self.config);
        for (name, value) in args.opt_map("env")?.into_iter().flatten() {
            let Value::String(value) = value else {
                return Err(
                    args.error("env", format!("must have strings as values; that of {name:?} is none"))
                );
            };
            if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
                return Err(args.error("env", format!("has an entry no environment can hold: {name:?}")));
            }
            env.set.insert(name.clone(), value.clone());
        }
        if call.cancel.is_cancelled() {
            return Err(aborted());
        }
        let update = &call.update;
        let mut progress = |_: &str, so_far: &crate::output::Collected| {
            let view = so_far.view();
            // With the totals, a listener can tell what is new although the beginning has gone.
            let details = view.info.truncated.then(|| json!({"truncation": view.info}));
            update(PartialResult { content: vec![Content::text(view.content)], details });
        };
        let done = proc::run(&self.config, command, &cwd, &env, Some(timeout), &mut progress, &call.cancel)
            .await
            .map_err(|e| ToolError(format!("{NAME}: {e}")))?;
        Ok(output(&done, timeout.as_secs(), requested))
    }
}

fn output(done: &ShellOutcome, timeout: u64, requested: Option<f64>) -> ToolOutput {
    let info = &done.output.info;
    let mut details = Map::new();
    details.insert("timeoutSeconds".into(), json!(timeout));
    if let Some(requested) = requested.filter(|&r| r != timeout as f64) {
        details.insert("requestedTimeoutSeconds".into(), json!(requested));
    }
    details.insert("wallTimeMs".into(), json!(done.wall.as_millis() as u64));
    if let Some(code) = done.exit_code {
        details.insert("exitCode".into(), json!(code));
    }
    let text = done.output.content.trim_end_matches(['\n', '\r']);
    let mut parts = vec![if text.is_empty() { "(no output)".to_owned() } else { text.to_owned() }];
    if info.truncated {
        details.insert("truncation".into(), json!(info));
        let whole = match (&done.full_output_path, &done.full_output_error) {
            (Some(path), _) => {
                details.insert("fullOutputPath".into(), json!(path.to_string_lossy()));
                format!("Full output: {}", path.display())
            }
            (None, why) => {
                format!("The full output could not be kept: {}", why.as_deref().unwrap_or("unknown reason"))
            }
        };
        let shown = match info.truncated_by {
            _ if info.last_line_partial => {
                format!("The last {} of line {}", format_size(info.output_bytes as u64), info.total_lines)
            }
            Some(TruncatedBy::Bytes) | None => format!(
                "The last {} of {} lines ({} of {})",
                info.output_lines,
                info.total_lines,
                format_size(info.output_bytes as u64),
                format_size(info.total_bytes as u64)
            ),
            Some(TruncatedBy::Lines) => {
                format!("The last {} of {} lines", info.output_lines, info.total_lines)
            }
        };
        parts.push(format!("[{shown}. {whole}]"));
    }
    let failed = match done.exit_code {
        _ if done.cancelled => Some("Operation aborted: the command was killed".to_owned()),
        _ if done.timed_out => Some(format!("The command was killed after {timeout} seconds (timeout)")),
        Some(0) => None,
        Some(code) => Some(format!("The command exited with code {code}")),
        None => Some("The command ended without an exit code".to_owned()),
    };
    let is_error = failed.is_some();
    parts.extend(failed);
    ToolOutput { details: Some(details.into()), is_error, ..ToolOutput::text(parts.join("\n\n")) }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use std::sync::Mutex;
    use tokio::sync::mpsc;
    use tokio_util::sync::CancellationToken;

    async fn bash(args: Value) -> ToolOutput {
        let dir = tempfile::tempdir().unwrap();
        testing::call("bash", dir.path(), args).await.unwrap()
    }

    fn detail<'a>(output: &'a ToolOutput, key: &str) -> &'a Value {
        &output.details.as_ref().unwrap()[key]
    }

    #[tokio::test]
    async fn a_command_runs_in_the_directory_and_with_the_variables_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("sub")).unwrap();
        let args = json!({"command": "basename $PWD; echo $X", "cwd": "sub", "env": {"X": "y z"}});
        assert_eq!(testing::text("bash", dir.path(), args).await, "sub\ny z");
        assert_eq!(testing::text("bash", dir.path(), json!({"command": "true"})).await, "(no output)");
    }

    #[tokio::test]
    async fn another_exit_code_than_0_is_an_error_with_the_output() {
        let output = bash(json!({"command": "echo oops >&2; exit 7"})).await;
        assert!(output.is_error);
        assert_eq!(testing::joined(&output), "oops\n\nThe command exited with code 7");
        assert_eq!(detail(&output, "exitCode"), 7);
        assert_eq!(detail(&output, "timeoutSeconds"), 300);
        assert!(detail(&output, "wallTimeMs").is_u64());
    }

    #[tokio::test]
    async fn credentials_of_the_host_are_not_inherited_unless_allowed() {
        let dir = tempfile::tempdir().unwrap();
        // HOME stands for any variable of the host: tests cannot set one without unsafe code.
        for (pass_credentials, expected) in [(false, "unset"), (true, "set")] {
            let config =
                ToolsConfig { removed_env: vec!["HOME".into()], pass_credentials, ..Default::default() };
            let args = json!({"command": "printenv HOME >/dev/null && echo set || echo unset"});
            let call = testing::invocation(dir.path(), args, CancellationToken::new());
            let output = testing::tool_with(config, "bash").execute(call).await.unwrap();
            assert_eq!(testing::joined(&output), expected);
        }
    }

    #[tokio::test]
    async fn a_long_output_shows_its_end_and_names_the_file_with_all_of_it() {
        let dir = tempfile::tempdir().unwrap();
        let config = ToolsConfig { output_dir: dir.path().join("out"), ..Default::default() };
        let call = testing::invocation(dir.path(), json!({"command": "seq 30000"}), CancellationToken::new());
        let output = testing::tool_with(config, "bash").execute(call).await.unwrap();
        let file = detail(&output, "fullOutputPath").as_str().unwrap();
        let text = testing::joined(&output);
        assert!(text.contains("\n30000\n\n[The last 2000 of 30000 lines. Full output: "), "{text}");
        assert!(text.contains(file));
        assert_eq!(detail(&output, "truncation")["totalLines"], 30000);
        assert_eq!(std::fs::read_to_string(file).unwrap().lines().count(), 30000);
    }

    #[tokio::test]
    async fn partial_results_accumulate() {
        let dir = tempfile::tempdir().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let mut call = testing::invocation(
            dir.path(),
            json!({"command": "echo a; sleep 0.2; echo b"}),
            CancellationToken::new(),
        );
        let sink = seen.clone();
        call.update =
            Arc::new(move |p| sink.lock().unwrap().push(p.content[0].as_text().unwrap().to_owned()));
        testing::tool("bash").execute(call).await.unwrap();
        let seen = seen.lock().unwrap();
        assert_eq!(seen.last().unwrap(), "a\nb\n");
        assert!(seen.windows(2).all(|w| w[1].starts_with(&w[0])), "{seen:?}");
    }

    /// A command that tells its pid and that of a child of it, and then stays.
    const STAY: &str = "sleep 1000 & echo $$ $!; wait";

    async fn stay(
        timeout: f64,
        cancel: CancellationToken,
    ) -> (mpsc::UnboundedReceiver<String>, tokio::task::JoinHandle<ToolOutput>) {
        let (tx, rx) = mpsc::unbounded_channel();
        let mut call =
            testing::invocation(&std::env::temp_dir(), json!({"command": STAY, "timeout": timeout}), cancel);
        call.update = Arc::new(move |p| drop(tx.send(p.content[0].as_text().unwrap().to_owned())));
        (rx, tokio::spawn(async move { testing::tool("bash").execute(call).await.unwrap() }))
    }

    /// Returns when both are gone or only waiting to be reaped.
    async fn gone(pids: &str) {
        for pid in pids.split_whitespace() {
            loop {
                let state =
                    std::process::Command::new("ps").args(["-o", "stat=", "-p", pid]).output().unwrap();
                let state = String::from_utf8(state.stdout).unwrap();
                if state.trim().is_empty() || state.trim().starts_with('Z') {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    }

    #[tokio::test]
    async fn b64_cancel_kills_the_whole_tree_and_keeps_what_was_written() {
        let cancel = CancellationToken::new();
        let (mut rx, running) = stay(300.0, cancel.clone()).await;
        let pids = rx.recv().await.unwrap();
        cancel.cancel();
        let output = running.await.unwrap();
        assert!(output.is_error);
        assert!(
            testing::joined(&output).contains("aborted") && testing::joined(&output).starts_with(pids.trim())
        );
        assert!(output.details.as_ref().unwrap().get("exitCode").is_none());
        gone(&pids).await;
    }

    #[tokio::test]
    async fn a_timeout_kills_the_whole_tree() {
        let (mut rx, running) = stay(0.5, CancellationToken::new()).await;
        let pids = rx.recv().await.unwrap();
        let output = running.await.unwrap();
        assert!(testing::joined(&output).ends_with("The command was killed after 1 seconds (timeout)"));
        assert_eq!(detail(&output, "timeoutSeconds"), 1);
        assert_eq!(detail(&output, "requestedTimeoutSeconds"), 0.5);
        gone(&pids).await;
    }

    #[tokio::test]
    async fn a_call_nobody_waits_for_any_longer_is_killed() {
        let (mut rx, running) = stay(300.0, CancellationToken::new()).await;
        let pids = rx.recv().await.unwrap();
        running.abort();
        gone(&pids).await;
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_timeout_is_an_hour() {
        let began = tokio::time::Instant::now();
        let output = bash(json!({"command": "sleep 100000", "timeout": 3600})).await;
        assert!(output.is_error);
        assert!(began.elapsed() >= Duration::from_secs(3600));
    }
}

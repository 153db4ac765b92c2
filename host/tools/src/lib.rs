//! The built-in tools: `read write edit bash find search ls` (`powershell` in place of `bash` on Windows).
//!
//! One file a tool; beside them the rooms they share: `args` (what a gate may have left of the
//! arguments), `path`, `save` (replacing a file), `exact` (the rule of `edit`), `walk`, `truncate`,
//! `diff`, `pipe`, `proc`. Knows the trait `Tool`; nothing of models, sessions, extensions or the terminal.

mod args;
mod bash;
mod diff;
mod edit;
mod exact;
mod find;
pub mod images;
mod ls;
mod near;
mod output;
mod path;
mod pipe;
mod proc;
mod read;
mod save;
mod search;
mod truncate;
mod walk;
mod workbench;
mod write;

pub use workbench::Bench;

pub use proc::{EnvPolicy, ShellError, ShellOutcome, run_shell};
pub use truncate::{
    Limits, MAX_BYTES, MAX_LINES, Truncated, TruncatedBy, Truncation, format_size, truncate_head,
    truncate_line, truncate_tail,
};

use atomic_agent::tool::{ExecutionMode, Tool, ToolError, ToolSource, ToolSpec};
use serde_json::Value;
use std::{path::PathBuf, sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;

/// What the program decides for all tools of a session.
#[derive(Clone, Debug)]
pub struct ToolsConfig {
    /// The session's directory; only used to name the file that `edit` and `write` are exclusive on.
    /// Calls carry their own.
    pub cwd: PathBuf,
    /// Names of variables that hold credentials the host resolved itself.
    pub removed_env: Vec<String>,
    /// Setting `shell.passCredentials`: children inherit those as well.
    pub pass_credentials: bool,
    /// Where outputs too long for a result are written in full. Made with mode 0700 when missing.
    pub output_dir: PathBuf,
    /// Of `bash`, when the call names none.
    pub default_timeout: Duration,
    /// Images are made to fit after the hooks have seen them, so larger ones may be read.
    pub fit_images: bool,
    /// Instead of the bash found on this machine.
    pub shell: Option<PathBuf>,
}

impl Default for ToolsConfig {
    fn default() -> Self {
        ToolsConfig {
            cwd: PathBuf::from("."),
            removed_env: Vec::new(),
            pass_credentials: false,
            output_dir: std::env::temp_dir(),
            default_timeout: Duration::from_secs(300),
            fit_images: true,
            shell: None,
        }
    }
}

/// All built-in tools, in the order the prompt lists them.
pub fn builtin_tools(config: ToolsConfig) -> Vec<Arc<dyn Tool>> {
    Bench::new(config).tools()
}

fn spec(name: &str, description: &str, parameters: Value, snippet: &str, guidelines: &[&str]) -> ToolSpec {
    ToolSpec {
        name: name.into(),
        label: name.into(),
        description: description.into(),
        parameters,
        prompt_snippet: Some(snippet.into()),
        prompt_guidelines: guidelines.iter().map(|&g| g.into()).collect(),
        execution_mode: ExecutionMode::Parallel,
        max_result_size_chars: None,
        output_schema: None,
        constrained_sampling: None,
        structured_output: false,
        render_shell: None,
        source: ToolSource::Builtin,
    }
}

fn aborted() -> ToolError {
    ToolError("Operation aborted".into())
}

/// Runs file work off the async threads; the caller stops waiting on cancel. Only for work that changes
/// nothing: a cancelled reader finishes unheard.
async fn blocking<T: Send + 'static>(
    cancel: &CancellationToken,
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    tokio::select! {
        biased;
        _ = cancel.cancelled() => Err(aborted()),
        done = tokio::task::spawn_blocking(work) => {
            done.unwrap_or_else(|e| Err(ToolError(format!("the tool failed inside: {e}"))))
        }
    }
}

#[cfg(test)]
mod testing;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_schema_is_closed_and_describes_each_field() {
        for tool in builtin_tools(ToolsConfig::default()) {
            let spec = tool.spec();
            assert_eq!(spec.parameters["type"], "object", "{}", spec.name);
            assert_eq!(spec.parameters["additionalProperties"], json!(false), "{}", spec.name);
            for (field, schema) in spec.parameters["properties"].as_object().unwrap() {
                assert!(schema["description"].is_string(), "{}.{field}", spec.name);
            }
            assert!(spec.prompt_snippet.is_some(), "{}", spec.name);
        }
    }

    /// Field case B43: a gate may leave anything behind; the tool names the field and lives.
    #[tokio::test]
    async fn b43_arguments_of_a_wrong_shape_are_refused_by_field() {
        let dir = tempfile::tempdir().unwrap();
        let calls = [
            ("bash", json!({"command": 42}), "command"),
            ("bash", json!({}), "command"),
            ("bash", json!({"command": "true", "timeout": -1}), "timeout"),
            ("bash", json!({"command": "true", "timeout": 1e308}), "timeout"),
            ("bash", json!({"command": "true", "timeout": "5"}), "timeout"),
            ("bash", json!({"command": "true", "env": {"A=B": "x"}}), "env"),
            ("bash", json!({"command": "true", "env": ["A"]}), "env"),
            ("bash", json!({"command": "true", "cwd": "missing"}), "cwd"),
            ("bash", json!({"command": "a\0b"}), "command"),
            ("read", json!({"path": ["x"]}), "path"),
            ("read", json!({"path": ""}), "path"),
            ("read", json!({"path": "a\0b"}), "path"),
            ("read", json!({"path": "x", "offset": 0}), "offset"),
            ("read", json!({"path": "x", "offset": 1.5}), "offset"),
            ("read", json!({"path": "x", "limit": 1e308}), "limit"),
            ("write", json!({"path": "x"}), "content"),
            ("write", json!({"path": "x", "content": {}}), "content"),
            ("edit", json!({"path": "x", "edits": "no"}), "edits"),
            ("edit", json!({"path": "x", "edits": []}), "edits"),
            ("edit", json!({"path": "x", "edits": [{"oldText": 1, "newText": ""}]}), "edits[0].oldText"),
            ("edit", json!({"path": "x", "edits": [{"oldText": "a"}]}), "edits[0].newText"),
            ("find", json!({"paths": []}), "paths"),
            ("find", json!({"paths": [1]}), "paths[0]"),
            ("find", json!({"paths": ["*"], "limit": 201}), "limit"),
            ("find", json!({"paths": ["*"], "timeout": 1e308}), "timeout"),
            ("find", json!({"paths": ["*"], "hidden": "yes"}), "hidden"),
            ("search", json!({"pattern": "  "}), "pattern"),
            ("search", json!({"pattern": "(("}), "pattern"),
            ("search", json!({"pattern": "x", "skip": -3}), "skip"),
            ("search", json!({"pattern": "x", "i": true, "case": true}), "case"),
            ("ls", json!({"path": 3}), "path"),
            ("ls", json!({"limit": -1}), "limit"),
        ];
        for (name, args, field) in calls {
            let error = testing::call(name, dir.path(), args.clone()).await.unwrap_err();
            assert!(error.0.contains(&format!("`{field}`")), "{name} {args}: {error}");
        }
        for (name, args) in [("read", json!(null)), ("ls", json!("x")), ("bash", json!([]))] {
            let error = testing::call(name, dir.path(), args).await.unwrap_err();
            assert!(error.0.contains("object"), "{name}: {error}");
        }
    }

    #[tokio::test]
    async fn b43_a_mebibyte_of_unknown_keys_is_ignored() {
        let dir = tempfile::tempdir().unwrap();
        let mut args = json!({"path": "f.txt", "content": "x"});
        args["junk"] = json!("y".repeat(1 << 20));
        testing::call("write", dir.path(), args).await.unwrap();
        assert_eq!(std::fs::read_to_string(dir.path().join("f.txt")).unwrap(), "x");
    }

    #[tokio::test]
    async fn a_cancelled_call_changes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let cancel = CancellationToken::new();
        cancel.cancel();
        for (name, args) in [
            ("write", json!({"path": "f", "content": "x"})),
            ("bash", json!({"command": "touch f"})),
            ("read", json!({"path": "."})),
            ("find", json!({"paths": ["*"]})),
            ("search", json!({"pattern": "x"})),
            ("ls", json!({})),
        ] {
            let call = testing::invocation(dir.path(), args, cancel.clone());
            let error = testing::tool(name).execute(call).await.unwrap_err();
            assert_eq!(error, aborted(), "{name}");
        }
        assert!(!dir.path().join("f").exists());
    }
}

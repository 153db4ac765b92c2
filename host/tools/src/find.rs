//! `find`: files and directories by glob.

use crate::{
    aborted,
    args::Args,
    blocking, path, spec,
    truncate::{Limits, format_size, truncate_head},
    walk::{Filter, Root, Walked},
};
use async_trait::async_trait;
use atomic_agent::tool::{Tool, ToolError, ToolInvocation, ToolOutput, ToolSpec};
use serde_json::json;
use std::{
    collections::HashSet,
    ops::ControlFlow,
    path::Path,
    time::{Duration, Instant},
};
use tokio_util::sync::CancellationToken;

const MAX_RESULTS: u64 = 200;

pub struct Find {
    spec: ToolSpec,
}

impl Find {
    pub fn new() -> Self {
        let parameters = json!({
            "type": "object",
            "properties": {
                "paths": {
                    "type": "array", "items": {"type": "string"}, "minItems": 1,
                    "description": "Globs, directories or files, e.g. [\"src/**/*.rs\", \"*.toml\"]. A glob without a slash matches at any depth; a directory means all files in it"
                },
                "hidden": {"type": "boolean", "description": "Include hidden files (default true; .git never unless named)"},
                "gitignore": {"type": "boolean", "description": "Leave out what .gitignore excludes (default true)"},
                "limit": {"type": "integer", "minimum": 1, "maximum": 200, "description": "How many results at most (default 200)"},
                "timeout": {"type": "number", "minimum": 0.5, "maximum": 60, "description": "Seconds after which to answer with what was found (default 5)"}
            },
            "required": ["paths"],
            "additionalProperties": false
        });
        let spec = spec(
            "find",
            "Find files and directories by glob. Results are sorted by path, at most 200; directories end in /.",
            parameters,
            "Find files by glob",
            &["Use find and search to look around, not find, ls -R or grep in bash."],
        );
        Find { spec }
    }
}

#[async_trait]
impl Tool for Find {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn execute(&self, call: ToolInvocation) -> Result<ToolOutput, ToolError> {
        let args = Args::new("find", &call.args)?;
        let given = args.opt_strings("paths", true)?.unwrap_or_default();
        if given.is_empty() {
            return Err(args.error("paths", "must name at least one glob or path"));
        }
        let filter = Filter {
            hidden: args.opt_bool("hidden")?.unwrap_or(true),
            gitignore: args.opt_bool("gitignore")?.unwrap_or(true),
        };
        let limit = args.opt_whole("limit", 1, MAX_RESULTS)?.unwrap_or(MAX_RESULTS) as usize;
        let timeout = args.opt_number("timeout")?.unwrap_or(5.0);
        if !(0.5..=60.0).contains(&timeout) {
            return Err(args.error("timeout", format!("must be from 0.5 to 60 seconds, got {timeout}")));
        }
        let timeout = Duration::from_secs_f64(timeout);
        let roots = given
            .iter()
            .enumerate()
            .map(|(i, g)| Root::parse(&args, &format!("paths[{i}]"), &call.cwd, g, true))
            .collect::<Result<Vec<_>, _>>()?;
        let (cwd, cancel) = (call.cwd.clone(), call.cancel.clone());
        blocking(&call.cancel, move || find(&cwd, &roots, filter, limit, timeout, &cancel)).await
    }
}

fn find(
    cwd: &Path,
    roots: &[Root],
    filter: Filter,
    limit: usize,
    timeout: Duration,
    cancel: &CancellationToken,
) -> Result<ToolOutput, ToolError> {
    let deadline = Instant::now() + timeout;
    let (mut seen, mut lines, mut more) = (HashSet::new(), Vec::new(), false);
    let mut ended = Walked::All;
    for root in roots {
        ended = root.walk(filter, deadline, cancel, |found| {
            let shown = path::shown(cwd, &found.path);
            if !seen.insert(found.path) {
                return ControlFlow::Continue(());
            }
            if lines.len() == limit {
                more = true;
                return ControlFlow::Break(());
            }
            lines.push(if found.is_dir { format!("{shown}/") } else { shown });
            ControlFlow::Continue(())
        });
        match ended {
            Walked::All => {}
            Walked::Cancelled => return Err(aborted()),
            Walked::Stopped | Walked::TimedOut => break,
        }
    }
    let count = lines.len();
    let cut = truncate_head(&lines.join("\n"), Limits { lines: usize::MAX, ..Limits::default() });
    let mut notes = Vec::new();
    if count == 0 {
        notes.push("[Nothing found]".to_owned());
    }
    if ended == Walked::TimedOut {
        notes.push(format!(
            "[Not finished within {} s: narrow the paths or raise timeout]",
            timeout.as_secs_f64()
        ));
    }
    if more {
        notes.push(format!("[The first {limit} results; there are more: narrow the globs]"));
    }
    if cut.info.truncated {
        notes.push(format!(
            "[The first {} of {count} results, cut at {}]",
            cut.info.output_lines,
            format_size(cut.info.max_bytes as u64)
        ));
    }
    let mut text = cut.content;
    if !notes.is_empty() {
        text.push_str(if count == 0 { "" } else { "\n\n" });
        text.push_str(&notes.join("\n"));
    }
    let details = cut.info.truncated.then(|| json!({"truncation": cut.info}));
    Ok(ToolOutput { details, ..ToolOutput::text(text) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use serde_json::Value;

    fn tree() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for file in
            ["a.rs", "src/b.rs", "src/deep/c.rs", "src/d.txt", ".env", "out/e.rs", ".git/f.rs", "[x]/g.rs"]
        {
            let file = dir.path().join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, "").unwrap();
        }
        std::fs::write(dir.path().join(".gitignore"), "out/\n").unwrap();
        dir
    }

    async fn found(dir: &Path, args: Value) -> Vec<String> {
        testing::text("find", dir, args).await.lines().map(str::to_owned).collect()
    }

    #[tokio::test]
    async fn a_bare_glob_matches_at_any_depth_and_one_with_a_slash_where_it_says() {
        let dir = tree();
        let find = |paths: Value| found(dir.path(), json!({"paths": paths}));
        assert_eq!(find(json!(["*.rs"])).await, ["[x]/g.rs", "a.rs", "src/b.rs", "src/deep/c.rs"]);
        assert_eq!(find(json!(["./*.rs"])).await, ["a.rs"]);
        assert_eq!(find(json!(["src/*.rs"])).await, ["src/b.rs"]);
        assert_eq!(find(json!(["src/**/*.rs"])).await, ["src/b.rs", "src/deep/c.rs"]);
        assert_eq!(find(json!(["dee?"])).await, ["src/deep/"]);
        assert_eq!(find(json!(["c.rs"])).await, ["src/deep/c.rs"]);
        assert_eq!(find(json!(["{src,out}/*.{rs,txt}"])).await, ["src/b.rs", "src/d.txt"]);
    }

    #[tokio::test]
    async fn paths_that_exist_are_taken_literally_and_listed_once() {
        let dir = tree();
        let lines = found(dir.path(), json!({"paths": ["src", "src/b.rs", "[x]"]})).await;
        assert_eq!(lines, ["src/b.rs", "src/d.txt", "src/deep/c.rs", "[x]/g.rs"]);
    }

    #[tokio::test]
    async fn hidden_and_ignored_files_come_on_demand_and_git_only_by_name() {
        let dir = tree();
        let find = |args: Value| found(dir.path(), args);
        assert_eq!(find(json!({"paths": [".e*"]})).await, [".env"]);
        assert_eq!(find(json!({"paths": [".e*"], "hidden": false})).await, ["[Nothing found]"]);
        assert_eq!(find(json!({"paths": ["e.rs"]})).await, ["[Nothing found]"]);
        assert_eq!(find(json!({"paths": ["e.r*"], "gitignore": false})).await, ["out/e.rs"]);
        assert_eq!(find(json!({"paths": ["f.r*"], "gitignore": false})).await, ["[Nothing found]"]);
        assert_eq!(find(json!({"paths": [".git/*.rs"]})).await, [".git/f.rs"]);
    }

    #[tokio::test]
    async fn the_limit_is_told() {
        let dir = tree();
        let lines = found(dir.path(), json!({"paths": ["*.rs"], "limit": 1})).await;
        assert_eq!(lines, ["[x]/g.rs", "", "[The first 1 results; there are more: narrow the globs]"]);
    }

    #[tokio::test]
    async fn a_deadline_answers_with_what_there_is() {
        let dir = tree();
        let value = json!({"paths": ["*"]});
        let args = Args::new("find", &value).unwrap();
        let root = Root::parse(&args, "paths", dir.path(), "*", true).unwrap();
        let filter = Filter { hidden: true, gitignore: true };
        let output =
            find(dir.path(), &[root], filter, 200, Duration::ZERO, &CancellationToken::new()).unwrap();
        assert!(testing::joined(&output).contains("Not finished"), "{output:?}");
    }

    #[tokio::test]
    async fn a_directory_that_is_not_there_is_an_error() {
        let dir = tree();
        let error = testing::call("find", dir.path(), json!({"paths": ["scr/**"]})).await.unwrap_err();
        assert!(error.0.contains("No such file or directory: scr (is src meant?)"), "{error}");
    }
}

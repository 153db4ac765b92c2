//! `ls`: the entries of one directory.

use crate::{
    args::Args,
    blocking, path, spec,
    truncate::{Limits, format_size, truncate_head},
};
use async_trait::async_trait;
use atomic_agent::tool::{Tool, ToolError, ToolInvocation, ToolOutput, ToolSpec};
use serde_json::json;
use std::path::Path;

const DEFAULT_LIMIT: u64 = 500;

pub struct Ls {
    spec: ToolSpec,
}

impl Ls {
    pub fn new() -> Self {
        let parameters = json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "Directory to list (default: the working directory)"},
                "limit": {"type": "integer", "minimum": 1, "description": "How many entries to list at most (default 500)"}
            },
            "additionalProperties": false
        });
        let spec = spec(
            "ls",
            "List the entries of a directory in alphabetical order, hidden ones included; directories end in /.",
            parameters,
            "List the entries of a directory",
            &[],
        );
        Ls { spec }
    }
}

#[async_trait]
impl Tool for Ls {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn execute(&self, call: ToolInvocation) -> Result<ToolOutput, ToolError> {
        let args = Args::new("ls", &call.args)?;
        let dir = match args.opt_str("path")? {
            Some(_) => path::arg(&args, &call.cwd, "path")?,
            None => call.cwd.clone(),
        };
        let limit = args.opt_whole("limit", 1, u64::MAX)?.unwrap_or(DEFAULT_LIMIT);
        let cwd = call.cwd.clone();
        blocking(&call.cancel, move || ls(&cwd, &dir, limit)).await
    }
}

fn ls(cwd: &Path, dir: &Path, limit: u64) -> Result<ToolOutput, ToolError> {
    let shown = path::shown(cwd, dir);
    let meta = std::fs::metadata(dir).map_err(|e| path::io_error(cwd, dir, "list", &e))?;
    if !meta.is_dir() {
        return Err(ToolError(format!("{shown} is not a directory: use read")));
    }
    let entries = std::fs::read_dir(dir).map_err(|e| path::io_error(cwd, dir, "list", &e))?;
    let mut names: Vec<String> = entries
        .flatten()
        .map(|entry| {
            // Through links, so that one to a directory shows as a directory.
            let slash = if entry.path().is_dir() { "/" } else { "" };
            format!("{}{slash}", entry.file_name().to_string_lossy())
        })
        .collect();
    if names.is_empty() {
        return Ok(ToolOutput::text(format!("[{shown} is empty]")));
    }
    names.sort_by_cached_key(|name| (name.to_lowercase(), name.clone()));
    let total = names.len();
    names.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    let limits = Limits { lines: usize::MAX, ..Limits::default() };
    let cut = truncate_head(&names.join("\n"), limits);
    let mut text = cut.content;
    let kept = cut.info.output_lines;
    if kept < total {
        let why =
            if cut.info.truncated { format_size(limits.bytes as u64) } else { format!("limit {limit}") };
        text.push_str(&format!("\n\n[{kept} of {total} entries, cut at {why}. Use find to narrow down]"));
    }
    let details = cut.info.truncated.then(|| json!({"truncation": cut.info}));
    Ok(ToolOutput { details, ..ToolOutput::text(text) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[tokio::test]
    async fn entries_are_sorted_without_case_and_directories_end_in_a_slash() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["b.txt", "A.txt", ".hidden"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        std::fs::create_dir(dir.path().join("Sub")).unwrap();
        assert_eq!(testing::text("ls", dir.path(), json!({})).await, ".hidden\nA.txt\nb.txt\nSub/");
        assert_eq!(testing::text("ls", dir.path(), json!({"path": "Sub"})).await, "[Sub is empty]");
        let cut = testing::text("ls", dir.path(), json!({"limit": 2})).await;
        assert_eq!(cut, ".hidden\nA.txt\n\n[2 of 4 entries, cut at limit 2. Use find to narrow down]");
    }

    #[tokio::test]
    async fn a_file_is_refused_with_a_hint() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("f"), "").unwrap();
        let error = testing::call("ls", dir.path(), json!({"path": "f"})).await.unwrap_err();
        assert_eq!(error.0, "f is not a directory: use read");
    }
}

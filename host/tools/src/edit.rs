//! `edit`: exact replacements in one file, all or none.

use crate::{
    args::Args,
    diff,
    exact::{self, Replacement},
    path,
    save::{self, FileLocks},
    spec,
    write::{exclusive_key, save_error},
};
use async_trait::async_trait;
use atomic_agent::tool::{Concurrency, Tool, ToolError, ToolInvocation, ToolOutput, ToolSpec};
use serde_json::{Value, json};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio_util::sync::CancellationToken;

/// More than this is no source text; matching it would hold several copies in memory.
const MAX_FILE: u64 = 64 * 1024 * 1024;

pub struct Edit {
    spec: ToolSpec,
    cwd: PathBuf,
    locks: Arc<FileLocks>,
}

impl Edit {
    pub fn new(cwd: PathBuf, locks: Arc<FileLocks>) -> Self {
        let parameters = json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "File to edit; relative to the working directory, absolute, or starting with ~/"},
                "edits": {
                    "type": "array",
                    "minItems": 1,
                    "description": "Replacements, all matched against the original file, not one after another. They must not overlap; merge changes of neighbouring lines into one",
                    "items": {
                        "type": "object",
                        "properties": {
                            "oldText": {"type": "string", "description": "Exact text to replace, white space included; must stand exactly once in the file. Keep it as short as is unique"},
                            "newText": {"type": "string", "description": "What takes its place; empty deletes"}
                        },
                        "required": ["oldText", "newText"],
                        "additionalProperties": false
                    }
                }
            },
            "required": ["path", "edits"],
            "additionalProperties": false
        });
        let spec = spec(
            "edit",
            "Replace exact pieces of text in one file. Every oldText must match exactly one place of the original \
             file; either all edits are applied or none. Line ends and a byte order mark are kept.",
            parameters,
            "Make exact replacements in a file, several at once",
            &[
                "Use edit for changes to existing files; oldText must match exactly.",
                "Make several changes to one file in one edit call with several entries in edits.",
            ],
        );
        Edit { spec, cwd, locks }
    }
}

fn replacements(args: &Args<'_>) -> Result<Vec<Replacement>, ToolError> {
    let list = args.opt_list("edits")?.ok_or_else(|| args.error("edits", "is missing"))?;
    if list.is_empty() {
        return Err(args.error("edits", "must hold at least one edit"));
    }
    list.iter()
        .enumerate()
        .map(|(i, item)| {
            let text = |key: &str| match item.get(key) {
                Some(Value::String(s)) => Ok(s.clone()),
                Some(_) => Err(args.error(&format!("edits[{i}].{key}"), "must be a string")),
                None => Err(args.error(&format!("edits[{i}].{key}"), "is missing")),
            };
            Ok(Replacement { old: text("oldText")?, new: text("newText")? })
        })
        .collect()
}

#[async_trait]
impl Tool for Edit {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn concurrency(&self, args: &Value) -> Concurrency {
        exclusive_key(&self.cwd, args)
    }

    /// Models also send the list as a JSON string, or one edit without a list.
    fn prepare_arguments(&self, mut args: Value) -> Result<Value, ToolError> {
        let Some(map) = args.as_object_mut() else { return Ok(args) };
        if let Some(list @ Value::Array(_)) =
            map.get("edits").and_then(Value::as_str).and_then(|s| serde_json::from_str(s).ok())
        {
            map.insert("edits".into(), list);
        }
        if !map.contains_key("edits") && map.contains_key("oldText") && map.contains_key("newText") {
            let edit = json!({"oldText": map.remove("oldText"), "newText": map.remove("newText")});
            map.insert("edits".into(), json!([edit]));
        }
        Ok(args)
    }

    async fn execute(&self, call: ToolInvocation) -> Result<ToolOutput, ToolError> {
        let args = Args::new("edit", &call.args)?;
        let file = path::arg(&args, &call.cwd, "path")?;
        let edits = replacements(&args)?;
        let _turn = self.locks.turn(&file, &call.cancel).await?;
        let (cwd, cancel) = (call.cwd.clone(), call.cancel.clone());
        // Awaited to its end, as in `write`.
        tokio::task::spawn_blocking(move || edit(&cwd, &file, &edits, &cancel))
            .await
            .unwrap_or_else(|e| Err(ToolError(format!("edit failed inside: {e}"))))
    }
}

fn edit(
    cwd: &Path,
    file: &Path,
    edits: &[Replacement],
    cancel: &CancellationToken,
) -> Result<ToolOutput, ToolError> {
    let shown = path::shown(cwd, file);
    let meta = std::fs::metadata(file).map_err(|e| path::io_error(cwd, file, "edit", &e))?;
    if !meta.is_file() {
        return Err(ToolError(format!("Cannot edit {shown}: it is not a regular file")));
    }
    if meta.len() > MAX_FILE {
        return Err(ToolError(format!("Cannot edit {shown}: it is larger than 64 MB; use bash")));
    }
    let original = std::fs::read(file).map_err(|e| path::io_error(cwd, file, "edit", &e))?;
    let done = exact::apply(&shown, &original, edits).map_err(|e| ToolError(format!("edit: {e}")))?;
    let resolved = save::replace(file, &done.bytes, cancel).map_err(|e| save_error(&shown, e))?;
    let text = match edits.len() {
        1 => format!("Edited {shown}"),
        n => format!("Edited {shown} in {n} places"),
    };
    Ok(ToolOutput {
        details: Some(json!({
            "diff": diff::unified(&shown, &done.old_text, &done.new_text),
            "firstChangedLine": done.first_line,
            "resolvedPath": resolved.to_string_lossy(),
        })),
        ..ToolOutput::text(text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[tokio::test]
    async fn edits_land_in_the_file_and_the_diff_is_in_the_details() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("f.txt"), "one\ntwo\nthree\n").unwrap();
        let args = json!({"path": "f.txt", "edits": [
            {"oldText": "three", "newText": "3"}, {"oldText": "one\n", "newText": ""}]});
        let output = testing::call("edit", dir.path(), args).await.unwrap();
        assert_eq!(std::fs::read_to_string(dir.path().join("f.txt")).unwrap(), "two\n3\n");
        let diff = output.details.unwrap()["diff"].as_str().unwrap().to_owned();
        assert!(diff.contains("--- a/f.txt") && diff.contains("-one\n") && diff.contains("+3\n"), "{diff}");
    }

    #[tokio::test]
    async fn one_bad_edit_leaves_the_file_untouched() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("f"), "a b").unwrap();
        let args = json!({"path": "f", "edits": [
            {"oldText": "a", "newText": "x"}, {"oldText": "missing", "newText": ""}]});
        let error = testing::call("edit", dir.path(), args).await.unwrap_err();
        assert!(error.0.starts_with("edit: `edits[1].oldText` was not found in f."), "{error}");
        assert_eq!(std::fs::read_to_string(dir.path().join("f")).unwrap(), "a b");
    }

    /// Field case B52.
    #[tokio::test]
    async fn b52_five_edits_of_one_file_at_once_are_all_there() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("f"), "a b c d e").unwrap();
        let tool = testing::tool("edit");
        let calls = ["a", "b", "c", "d", "e"].map(|letter| {
            let args = json!({"path": "f", "edits": [{"oldText": letter, "newText": letter.to_uppercase()}]});
            tool.execute(testing::invocation(dir.path(), args, CancellationToken::new()))
        });
        for result in futures_util::future::join_all(calls).await {
            result.unwrap();
        }
        assert_eq!(std::fs::read_to_string(dir.path().join("f")).unwrap(), "A B C D E");
    }

    #[tokio::test]
    async fn a_missing_file_and_a_directory_are_named() {
        let dir = tempfile::tempdir().unwrap();
        for (path, expected) in [("nope", "No such file"), (".", "not a regular file")] {
            let args = json!({"path": path, "edits": [{"oldText": "a", "newText": "b"}]});
            let error = testing::call("edit", dir.path(), args).await.unwrap_err();
            assert!(error.0.contains(expected), "{error}");
        }
    }

    #[test]
    fn looser_shapes_that_models_send_are_brought_into_form() {
        let tool = testing::tool("edit");
        let wanted = json!({"path": "f", "edits": [{"oldText": "a", "newText": "b"}]});
        let one = json!({"path": "f", "oldText": "a", "newText": "b"});
        let text = json!({"path": "f", "edits": "[{\"oldText\": \"a\", \"newText\": \"b\"}]"});
        assert_eq!(tool.prepare_arguments(one).unwrap(), wanted);
        assert_eq!(tool.prepare_arguments(text).unwrap(), wanted);
        assert_eq!(tool.prepare_arguments(wanted.clone()).unwrap(), wanted);
    }
}

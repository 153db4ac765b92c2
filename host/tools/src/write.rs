//! `write`: a whole new content for a file.

use crate::{
    aborted,
    args::Args,
    path,
    save::{self, FileLocks, SaveError},
    spec, truncate,
};
use async_trait::async_trait;
use atomic_agent::tool::{Concurrency, Tool, ToolError, ToolInvocation, ToolOutput, ToolSpec};
use serde_json::{Value, json};
use std::{path::PathBuf, sync::Arc};

pub struct Write {
    spec: ToolSpec,
    cwd: PathBuf,
    locks: Arc<FileLocks>,
}

impl Write {
    pub fn new(cwd: PathBuf, locks: Arc<FileLocks>) -> Self {
        let parameters = json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "File to write; relative to the working directory, absolute, or starting with ~/"},
                "content": {"type": "string", "description": "The complete new content of the file"}
            },
            "required": ["path", "content"],
            "additionalProperties": false
        });
        let spec = spec(
            "write",
            "Write a file: creates it with its parent directories, or replaces all of its content. \
             Use edit to change parts of an existing file.",
            parameters,
            "Create or completely replace files",
            &["Use write only for new files and complete rewrites; use edit to change parts of a file."],
        );
        Write { spec, cwd, locks }
    }
}

/// The key under which `edit` and `write` exclude each other.
pub fn exclusive_key(cwd: &std::path::Path, args: &Value) -> Concurrency {
    match args.get("path").and_then(Value::as_str) {
        Some(given) => {
            let file = path::canonical(&path::resolve(cwd, given));
            Concurrency::ExclusiveKey(file.to_string_lossy().into_owned())
        }
        // It will be refused; nothing to be exclusive on.
        None => Concurrency::Shared,
    }
}

/// A failed replacement as the model reads it.
pub fn save_error(shown: &str, error: SaveError) -> ToolError {
    match error {
        SaveError::Aborted => aborted(),
        other => ToolError(format!("Cannot write {shown}: {other}")),
    }
}

#[async_trait]
impl Tool for Write {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn concurrency(&self, args: &Value) -> Concurrency {
        exclusive_key(&self.cwd, args)
    }

    async fn execute(&self, call: ToolInvocation) -> Result<ToolOutput, ToolError> {
        let args = Args::new("write", &call.args)?;
        let file = path::arg(&args, &call.cwd, "path")?;
        let content = args.str("content")?.to_owned();
        let shown = path::shown(&call.cwd, &file);
        let size = truncate::format_size(content.len() as u64);
        let _turn = self.locks.turn(&file, &call.cancel).await?;
        let cancel = call.cancel.clone();
        // Awaited to its end: a write that was begun is reported as what it did.
        let saved =
            tokio::task::spawn_blocking(move || save::replace(&file, content.as_bytes(), &cancel)).await;
        let resolved = saved
            .map_err(|e| ToolError(format!("Cannot write {shown}: {e}")))?
            .map_err(|e| save_error(&shown, e))?;
        Ok(ToolOutput {
            details: Some(json!({"resolvedPath": resolved.to_string_lossy()})),
            ..ToolOutput::text(format!("Wrote {size} to {shown}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ToolsConfig, testing};

    #[tokio::test]
    async fn parents_are_made_and_the_resolved_path_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let output =
            testing::call("write", dir.path(), json!({"path": "@a/b/c.txt", "content": "hi"})).await.unwrap();
        let file = dir.path().canonicalize().unwrap().join("a/b/c.txt");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "hi");
        assert_eq!(output.details.unwrap()["resolvedPath"], file.to_str().unwrap());
    }

    #[tokio::test]
    async fn writing_over_a_directory_says_so() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("d")).unwrap();
        let error =
            testing::call("write", dir.path(), json!({"path": "d", "content": "x"})).await.unwrap_err();
        assert_eq!(error.0, "Cannot write d: it is a directory");
    }

    #[cfg(unix)]
    #[test]
    fn every_way_to_name_a_file_gives_one_key() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("d")).unwrap();
        std::os::unix::fs::symlink("d", dir.path().join("l")).unwrap();
        let config = ToolsConfig { cwd: dir.path().into(), ..Default::default() };
        let (write, edit) = (testing::tool_with(config.clone(), "write"), testing::tool_with(config, "edit"));
        let key = write.concurrency(&json!({"path": "d/f"}));
        assert!(matches!(key, Concurrency::ExclusiveKey(_)));
        let absolute = dir.path().join("d/f");
        for way in ["./d/f", "@l/f", "d/../d/f", absolute.to_str().unwrap()] {
            assert_eq!(edit.concurrency(&json!({"path": way})), key, "{way}");
        }
        assert_ne!(write.concurrency(&json!({"path": "d/g"})), key);
    }
}

//! Shared by the unit tests of the tools: real calls in a scratch directory.

use crate::{ToolsConfig, builtin_tools};
use atomic_agent::tool::{Tool, ToolError, ToolInvocation, ToolOutput};
use serde_json::Value;
use std::{path::Path, sync::Arc};
use tokio_util::sync::CancellationToken;

pub fn tool(name: &str) -> Arc<dyn Tool> {
    tool_with(ToolsConfig::default(), name)
}

pub fn tool_with(config: ToolsConfig, name: &str) -> Arc<dyn Tool> {
    builtin_tools(config).into_iter().find(|t| t.spec().name == name).unwrap()
}

pub fn invocation(cwd: &Path, args: Value, cancel: CancellationToken) -> ToolInvocation {
    ToolInvocation {
        tool_call_id: "call_1".into(),
        args,
        cwd: cwd.to_path_buf(),
        cancel,
        update: Arc::new(|_| {}),
    }
}

pub async fn call(name: &str, cwd: &Path, args: Value) -> Result<ToolOutput, ToolError> {
    tool(name).execute(invocation(cwd, args, CancellationToken::new())).await
}

/// The text of a result that must not be an error.
pub async fn text(name: &str, cwd: &Path, args: Value) -> String {
    let output = call(name, cwd, args).await.unwrap();
    assert!(!output.is_error, "{output:?}");
    joined(&output)
}

pub fn joined(output: &ToolOutput) -> String {
    output.content.iter().filter_map(|c| c.as_text()).collect::<Vec<_>>().join("\n")
}

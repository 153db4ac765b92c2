//! A tool of an extension as the core sees one, and its partial results on their way back.

use crate::{
    breadcrumb::kind,
    calls::{Failure, Outcome},
    convert,
    dispatch::{Asked, ask_entry},
    generation::{Body, Cancel, Generation},
    load::EventState,
    registry::PublishedTool,
};
use async_trait::async_trait;
use atomic_agent::tool::{
    Concurrency, PartialResult, Tool, ToolError, ToolInvocation, ToolOutput, ToolSpec, UpdateSink,
};
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// After its signal a tool may end in its own way for this long; then its future is dropped.
const CANCEL_GRACE: Duration = Duration::from_millis(300);

static UPDATES: LazyLock<Mutex<HashMap<u64, UpdateSink>>> = LazyLock::new(Mutex::default);

fn updates() -> MutexGuard<'static, HashMap<u64, UpdateSink>> {
    UPDATES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `tool.update`: accumulated, from any thread, ignored once the call has ended.
pub(crate) fn update(_generation: &Arc<Generation>, call: u64, bytes: &[u8]) -> Outcome {
    let partial: PartialResult = serde_json::from_slice(bytes)
        .map_err(|e| Failure::new("bad_request", format!("tool.update: {e}")))?;
    let sink = updates().get(&call).cloned();
    if let Some(sink) = sink {
        sink(partial);
    }
    Ok(Vec::new())
}

pub(crate) struct ExtensionTool(pub(crate) PublishedTool);

/// Its updates end with the call, however that ends.
struct Running(Option<u64>);

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(call) = self.0 {
            updates().remove(&call);
        }
    }
}

#[async_trait]
impl Tool for ExtensionTool {
    fn spec(&self) -> &ToolSpec {
        &self.0.entry.spec
    }

    fn concurrency(&self, _args: &Value) -> Concurrency {
        if self.0.entry.exclusive { Concurrency::Exclusive } else { Concurrency::Shared }
    }

    async fn execute(&self, call: ToolInvocation) -> Result<ToolOutput, ToolError> {
        let t = &self.0;
        let event = json!({
            "type": "tool_execute", "toolCallId": call.tool_call_id, "toolName": t.entry.spec.name,
            "params": call.args, "cwd": convert::path(&call.cwd),
        });
        let state = EventState::ready(serde_json::to_vec(&event).unwrap_or_default());
        let mut running = Running(None);
        let (started, id) = tokio::sync::oneshot::channel();
        let asked = {
            let ask = ask_entry(&t.generation, &t.live, t.entry.handler, kind::TOOL, &state, |id| {
                updates().insert(id, call.update.clone());
                running.0 = Some(id);
                let _ = started.send(id);
            });
            tokio::pin!(ask);
            tokio::select! {
                biased;
                asked = &mut ask => asked,
                () = call.cancel.cancelled() => {
                    if let Ok(id) = id.await {
                        t.live.cancel(id, Cancel::Signal);
                    }
                    match tokio::time::timeout(CANCEL_GRACE, &mut ask).await {
                        Ok(asked) => asked,
                        Err(_) => return Err(ToolError("Operation aborted".into())),
                    }
                }
            }
        };
        drop(running);
        match asked {
            Asked::Answered(bytes) => output(&bytes),
            Asked::Failed(e) => Err(ToolError(e.message)),
            Asked::Reloaded => {
                Err(ToolError(format!("the extension {} was reloaded while its tool ran", t.registered.name)))
            }
            Asked::Overran(_) => Err(ToolError("Operation aborted".into())),
        }
    }
}

/// Missing content is none; a result of another shape is an error that says so.
fn output(bytes: &[u8]) -> Result<ToolOutput, ToolError> {
    #[derive(serde::Deserialize)]
    struct Wire {
        #[serde(default)]
        result: Option<Value>,
    }
    if bytes.is_empty() {
        return Ok(ToolOutput::default());
    }
    let bad = |e: serde_json::Error| ToolError(format!("the tool answered a malformed result: {e}"));
    let mut result = serde_json::from_slice::<Wire>(bytes).map_err(bad)?.result.unwrap_or_else(|| json!({}));
    if let Some(o) = result.as_object_mut() {
        o.entry("content").or_insert_with(|| json!([]));
    }
    serde_json::from_value(result).map_err(bad)
}

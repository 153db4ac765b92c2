//! The user's own command (`!cmd`): run by the `bash` tool, beside whatever else goes on,
//! without the gates that are for the model.

use crate::{
    core::{Core, Reply},
    event::Event,
    message::{BashExecutionMessage, Content, Extra, Message, now_ms},
    tool::{PartialResult, Tool, ToolInvocation},
};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// Answers when the command has started; `Event::BashExecuted` follows.
pub(crate) fn start(core: &Arc<Core>, command: String, hidden: bool, reply: Reply) {
    let Some(tool) = core.bash.clone() else {
        return reply.err("no_shell", "This engine has no shell to run commands with.");
    };
    let cancel = CancellationToken::new();
    {
        let mut state = core.state();
        if state.bash.is_some() {
            drop(state);
            return reply.err("bash_busy", "A command is running already; stop it first (Escape).");
        }
        state.bash = Some(cancel.clone());
    }
    reply.ok(Value::Null);
    let core = core.clone();
    let session = core.session().id().to_owned();
    tokio::spawn(async move {
        let message = execute(&core, &*tool, command, hidden, cancel).await;
        // A session that came after it knows nothing of it.
        let same_session = core.session().id() == session;
        let idle = {
            let mut state = core.state();
            state.bash = None;
            // Between a call and its result it would part them; it comes with the next prompt.
            if same_session && !state.idle() {
                state.pending_bash.push(message.clone());
            }
            same_session && state.idle()
        };
        let message = Message::BashExecution(message);
        if idle && let Err(e) = core.append_message(&message, false) {
            core.notify("error", e.to_string());
        }
        core.emit_after_dispatch(Event::BashExecuted { message: Box::new(message) });
    });
}

async fn execute(
    core: &Arc<Core>,
    tool: &dyn Tool,
    command: String,
    hidden: bool,
    cancel: CancellationToken,
) -> BashExecutionMessage {
    let shown = Mutex::new(String::new());
    let sink = core.clone();
    let update = move |partial: PartialResult| {
        // Partial results are all there is so far; listeners get what is new.
        let text = text_of(&partial.content);
        let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
        let delta = text.strip_prefix(shown.as_str()).unwrap_or(&text).to_owned();
        if !delta.is_empty() {
            sink.handle.emit(Event::BashExecutionUpdate { channel: "stdout".into(), delta });
        }
        *shown = text;
    };
    let invocation = ToolInvocation {
        tool_call_id: format!("user-{:08x}", uuid::Uuid::now_v7().as_u128() as u32),
        args: json!({"command": command}),
        cwd: core.cwd.clone(),
        cancel: cancel.clone(),
        update: Arc::new(update),
    };
    let (output, details) = match tool.execute(invocation).await {
        Ok(out) => (text_of(&out.content), out.details.unwrap_or_default()),
        Err(e) => (e.0, Value::Null),
    };
    BashExecutionMessage {
        command,
        output,
        exit_code: details.get("exitCode").and_then(Value::as_i64).and_then(|c| c.try_into().ok()),
        cancelled: cancel.is_cancelled(),
        truncated: details.pointer("/truncation/truncated").and_then(Value::as_bool).unwrap_or(false),
        full_output_path: details.get("fullOutputPath").and_then(Value::as_str).map(str::to_owned),
        exclude_from_context: hidden,
        timestamp: now_ms(),
        extra: Extra::new(),
    }
}

fn text_of(content: &[Content]) -> String {
    content.iter().filter_map(Content::as_text).collect::<Vec<_>>().join("\n")
}

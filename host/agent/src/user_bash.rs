//! The user's own command (`!cmd`): run by the `bash` tool, beside whatever else goes on,
//! without the gates that are for the model. `user_bash` may take it over.

use crate::{
    budget,
    core::{Core, Reply},
    decisions::{UserBash, UserBashOutcome, UserBashResult},
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
        let message = decided(&core, &*tool, command, hidden, cancel).await;
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

/// The hooks are asked first; one that could not answer has not said that the local shell may.
async fn decided(
    core: &Arc<Core>,
    tool: &dyn Tool,
    command: String,
    hidden: bool,
    cancel: CancellationToken,
) -> BashExecutionMessage {
    let cwd = core.cwd();
    let asked = UserBash { command: command.clone(), exclude_from_context: hidden, cwd };
    let done = match core.dispatch(&cancel, core.hooks.user_bash(asked)).await {
        Some(UserBashOutcome::Local) => return execute(core, tool, command, hidden, cancel).await,
        Some(UserBashOutcome::Backend(there)) => {
            let mut message = execute(core, &*there, command, hidden, cancel).await;
            cut(core, &mut message);
            return message;
        }
        Some(UserBashOutcome::Done(done)) => done,
        Some(UserBashOutcome::Failed { by, why }) => {
            let output = format!("The command was not run: extension {by} could not decide: {why}");
            UserBashResult { output, exit_code: Some(1), ..Default::default() }
        }
        None => UserBashResult { cancelled: true, ..Default::default() },
    };
    BashExecutionMessage {
        command,
        output: done.output,
        exit_code: done.exit_code,
        cancelled: done.cancelled,
        truncated: done.truncated,
        full_output_path: done.full_output_path,
        exclude_from_context: hidden,
        timestamp: now_ms(),
        extra: Extra::new(),
    }
}

/// Who runs commands elsewhere need not know our limits.
fn cut(core: &Core, message: &mut BashExecutionMessage) {
    let dir = core.handle.view(|v| v.session_dir.clone());
    let id = format!("user-{:08x}", uuid::Uuid::now_v7().as_u128() as u32);
    let content = vec![Content::text(std::mem::take(&mut message.output))];
    let before = content.clone();
    let content = budget::redirect_oversize(content, None, &dir, &id);
    message.truncated = content != before;
    message.output = text_of(&content);
}

async fn execute(
    core: &Arc<Core>,
    tool: &dyn Tool,
    command: String,
    hidden: bool,
    cancel: CancellationToken,
) -> BashExecutionMessage {
    let shown = Mutex::new(0);
    let sink = core.clone();
    let update = move |partial: PartialResult| {
        let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
        let delta = unseen(&partial, &mut shown);
        if !delta.is_empty() {
            sink.handle.emit(Event::BashExecutionUpdate { channel: "stdout".into(), delta });
        }
    };
    let invocation = ToolInvocation {
        tool_call_id: format!("user-{:08x}", uuid::Uuid::now_v7().as_u128() as u32),
        args: json!({"command": command}),
        cwd: core.cwd(),
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

/// Partial results are all there is so far, or its end once it is long; listeners get what is
/// new. `shown`: how many bytes they have had.
fn unseen(partial: &PartialResult, shown: &mut usize) -> String {
    let text = text_of(&partial.content);
    let total = partial.details.as_ref().and_then(|d| d.pointer("/truncation/totalBytes")?.as_u64());
    let total = total.map_or(text.len(), |n| usize::try_from(n).unwrap_or(usize::MAX));
    let new = total.saturating_sub(*shown).min(text.len());
    *shown = total;
    text[text.floor_char_boundary(text.len() - new)..].to_owned()
}

fn text_of(content: &[Content]) -> String {
    content.iter().filter_map(Content::as_text).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listeners_get_what_is_new_also_when_the_beginning_has_gone() {
        let mut shown = 0;
        let mut told = |text: &str, total: Option<usize>| {
            let details = total.map(|n| json!({"truncation": {"totalBytes": n}}));
            unseen(&PartialResult { content: vec![Content::text(text)], details }, &mut shown)
        };
        assert_eq!(told("y\n", None), "y\n");
        assert_eq!(told("y\ny\n", None), "y\n");
        assert_eq!(told("y\ny\n", Some(6)), "y\n", "equal text may still be news");
        assert_eq!(told("y\nz\n", Some(100)), "y\nz\n", "what nobody kept is gone");
        assert_eq!(told("y\nz\n", Some(100)), "");
    }
}

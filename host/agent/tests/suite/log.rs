//! Hooks that write down what they are asked, in the words of the goldens.

use async_trait::async_trait;
use atomic_agent::{handle::EngineHandle, hooks::*, message::*, model::*, op::Op, tool::*};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};
use tokio::sync::Notify;

type Gate = Box<dyn Fn(&ToolCallRequest) -> ToolCallOutcome + Send + Sync>;

/// Writes down every event as the goldens do.
#[derive(Default)]
pub struct Log {
    pub lines: Mutex<Vec<String>>,
    pub gate: Option<Gate>,
    /// The gate is asked and never answers.
    pub gate_hangs: bool,
    pub inject: Option<BeforeAgentStartOutcome>,
    pub handles_input: bool,
    pub end: Option<Box<dyn Fn(Message) -> Message + Send + Sync>>,
    pub result: Option<Box<dyn Fn(ToolResultRequest) -> ToolResultOutcome + Send + Sync>>,
    /// `(the start of a line, op)`: requested while that line's handler runs.
    pub during: Mutex<Vec<(&'static str, Op)>>,
    pub handle: Mutex<Option<EngineHandle>>,
    pub extra_tools: Mutex<Vec<Arc<dyn Tool>>>,
    pub command: Option<fn() -> Result<(), String>>,
    /// At each tool_call: kinds of what the handler sees of the transcript.
    pub seen: Mutex<Vec<Vec<String>>>,
    pub shutdown_hangs: bool,
    pub asked: Notify,
}

impl Log {
    async fn line(&self, line: String) {
        self.lines.lock().unwrap().push(line.clone());
        let due = {
            let mut during = self.during.lock().unwrap();
            let at = during.iter().position(|(start, _)| line.starts_with(start));
            at.map(|at| during.remove(at).1)
        };
        if let Some(op) = due {
            let handle = self.handle.lock().unwrap().clone().unwrap();
            handle.request(op).await.unwrap();
        }
    }
    pub fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }
    pub fn count(&self, start: &str) -> usize {
        self.lines().iter().filter(|l| l.starts_with(start)).count()
    }
}

fn lower(debug: impl std::fmt::Debug) -> String {
    let text = format!("{debug:?}");
    let mut chars = text.chars();
    chars.next().map(|c| c.to_ascii_lowercase()).into_iter().chain(chars).collect()
}

fn cut(text: &str) -> String {
    text.chars().take(60).collect::<String>().replace('\n', "\\n")
}

fn blocks(content: &[Content]) -> String {
    let one = |c: &Content| match c {
        Content::Text(t) => t.text.clone(),
        Content::ToolCall(c) => format!("call:{}", c.name),
        _ => "?".into(),
    };
    content.iter().map(one).collect()
}

fn told(m: &Message) -> String {
    match m {
        Message::Assistant(m) => {
            let stop = m.stop_reason.map_or("pending".into(), lower);
            format!("role=assistant stopReason={stop} content={}", cut(&blocks(&m.content)))
        }
        Message::ToolResult(r) => {
            format!("role=toolResult content={} msgIsError={}", cut(&blocks(&r.content)), r.is_error)
        }
        Message::User(m) => format!("role=user content={}", cut(&m.content.plain_text())),
        Message::Custom(m) => format!("role=custom content={}", cut(&m.content.plain_text())),
        Message::System(_) => "role=system content=".into(),
        other => format!("role={}", other.role()),
    }
}

fn roles(messages: &[Message]) -> String {
    serde_json::to_string(&messages.iter().map(Message::role).collect::<Vec<_>>()).unwrap()
}

fn tool_names(results: &[ToolResultMessage]) -> String {
    let name = |r: &ToolResultMessage| format!("{}{}", r.tool_name, if r.is_error { "!" } else { "" });
    serde_json::to_string(&results.iter().map(name).collect::<Vec<_>>()).unwrap()
}

#[async_trait]
impl Hooks for Log {
    async fn notify(&self, notice: Notice<'_>) {
        let line = match notice {
            Notice::SessionStart { reason, .. } => format!("session_start reason={}", lower(reason)),
            Notice::AgentStart => "agent_start".into(),
            Notice::AgentEnd { messages, .. } => format!("agent_end roles={}", roles(messages)),
            Notice::AgentSettled { .. } => "agent_settled".into(),
            Notice::TurnStart { turn_index, .. } => format!("turn_start turnIndex={turn_index}"),
            Notice::TurnEnd(t) => format!(
                "turn_end turnIndex={} {} toolResults={} outcome={}",
                t.turn_index,
                told(&Message::Assistant(t.message.clone())),
                tool_names(t.tool_results),
                t.outcome
            ),
            Notice::MessageStart { message } => format!("message_start {}", told(message)),
            Notice::MessageUpdate { event } => {
                format!(
                    "message_update sub={}",
                    serde_json::to_value(event).unwrap()["type"].as_str().unwrap()
                )
            }
            Notice::ToolExecutionStart { tool_name, args, .. } => {
                format!("tool_execution_start toolName={tool_name} args={args}")
            }
            Notice::ToolExecutionUpdate { tool_name, args, .. } => {
                format!("tool_execution_update toolName={tool_name} args={args}")
            }
            Notice::ToolExecutionEnd(e) => {
                format!("tool_execution_end toolName={} isError={}", e.tool_name, e.is_error)
            }
            Notice::AfterProviderResponse { status, .. } => {
                format!("after_provider_response status={status}")
            }
        };
        self.line(line).await;
    }
    async fn resources_discover(&self, reason: StartReason) -> Resources {
        self.line(format!("resources_discover reason={}", lower(reason))).await;
        Resources::default()
    }
    async fn input(&self, input: Input) -> InputOutcome {
        self.line(format!("input source={}", lower(input.source))).await;
        match self.handles_input {
            true => InputOutcome::Handled,
            false => InputOutcome::Continue { text: input.text, images: input.images },
        }
    }
    async fn before_agent_start(&self, event: BeforeAgentStart) -> BeforeAgentStartOutcome {
        self.line(format!("before_agent_start prompt={}", event.prompt.unwrap_or_default())).await;
        self.inject.clone().unwrap_or_default()
    }
    async fn message_end(&self, message: Message) -> Message {
        let message = self.end.as_ref().map_or(message.clone(), |end| end(message));
        self.line(format!("message_end {}", told(&message))).await;
        message
    }
    async fn context(&self, messages: Vec<Message>) -> Vec<Message> {
        self.line(format!("context roles={}", roles(&messages))).await;
        messages
    }
    async fn before_provider_headers(&self, _: &mut BTreeMap<String, Option<String>>, _: &ModelInfo) {
        self.line("before_provider_headers".into()).await;
    }
    async fn before_provider_request(&self, _: &mut Value) {
        self.line("before_provider_request".into()).await;
    }
    async fn tool_call(&self, call: ToolCallRequest) -> ToolCallOutcome {
        self.line(format!("tool_call toolName={} input={}", call.tool_name, call.input)).await;
        if let Some(handle) = &*self.handle.lock().unwrap() {
            let kinds = handle.view(|v| {
                let kind = |e: &Arc<Value>| e["message"]["role"].as_str().unwrap_or("").to_owned();
                v.entries.iter().map(kind).collect()
            });
            self.seen.lock().unwrap().push(kinds);
        }
        self.asked.notify_one();
        if self.gate_hangs {
            std::future::pending::<()>().await;
        }
        match &self.gate {
            Some(gate) => gate(&call),
            None => ToolCallOutcome::Proceed { input: call.input },
        }
    }
    async fn tool_result(&self, r: ToolResultRequest) -> ToolResultOutcome {
        self.line(format!(
            "tool_result content={} toolName={} isError={} input={}",
            cut(&blocks(&r.content)),
            r.tool_name,
            r.is_error,
            r.input
        ))
        .await;
        match &self.result {
            Some(change) => change(r),
            None => ToolResultOutcome { content: r.content, details: r.details, is_error: r.is_error },
        }
    }
    async fn session_shutdown(&self, reason: ShutdownReason, _: bool) {
        self.line(format!("session_shutdown reason={}", lower(reason))).await;
        if self.shutdown_hangs {
            std::future::pending::<()>().await;
        }
    }
    async fn replace(&self, request: Replace, swap: Swap) -> Result<ReplaceReport, String> {
        let (down, up, discover) = match request {
            Replace::Reload { .. } => ("reload", "reload", "reload"),
            Replace::Session { .. } => ("new", "new", "startup"),
        };
        self.line(format!("session_shutdown reason={down}")).await;
        swap()?;
        self.line(format!("session_start reason={up}")).await;
        self.line(format!("resources_discover reason={discover}")).await;
        Ok(ReplaceReport::default())
    }
    fn hears(&self, _: &Notice<'_>) -> bool {
        true
    }
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.extra_tools.lock().unwrap().clone()
    }
    fn commands(&self) -> Vec<CommandInfo> {
        let info =
            CommandInfo { name: "cmd".into(), description: None, extension: "x".into(), path: "/x".into() };
        self.command.iter().map(|_| info.clone()).collect()
    }
    async fn command(&self, _: &str, args: &str) -> Option<Result<(), String>> {
        self.line(format!("COMMAND args={args}")).await;
        if args == "hangs" {
            self.asked.notify_one();
            std::future::pending::<()>().await;
        }
        self.command.map(|run| run())
    }
}

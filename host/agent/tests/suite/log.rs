//! Hooks that write down what they are asked, in the words of the goldens.

use async_trait::async_trait;
use atomic_agent::{
    boundary::{Board, Boundary, BoundaryContext, Proposer},
    decisions::{BeforeEvent, ReplayAction, ReplayDecisions, RestoreReason, SessionBefore, Veto},
    handle::EngineHandle,
    hooks::*,
    message::*,
    model::*,
    op::Op,
    tool::*,
};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};
use tokio::sync::Notify;

type Change = Box<dyn Fn(&[Message]) -> Vec<Message> + Send + Sync>;
type Propose<'a> = &'a mut dyn FnMut(Option<Vec<Value>>, Option<bool>) -> BoundaryContext;
type AtBoundary = Box<dyn Fn(&str, usize, &Boundary<'_>, Propose<'_>) + Send + Sync>;
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
    pub context: Option<Change>,
    pub context_with_system: Option<Change>,
    /// `(event, how often it came, the boundary, propose)`.
    pub boundary: Option<AtBoundary>,
    pub boundary_hangs: bool,
    /// What proposals were told.
    pub faults: Mutex<Vec<String>>,
    /// No other session is begun.
    pub stays: bool,
    /// Fields of each `session_before_*`, and what is answered.
    pub before: Mutex<Vec<serde_json::Map<String, Value>>>,
    pub veto: Mutex<Option<serde_json::Map<String, Value>>>,
    /// `(target, previous)` of each replacement.
    pub replaced: Mutex<Vec<(SessionRef, SessionRef)>>,
    /// The recovery hooks, which no golden has.
    pub recovered: Mutex<Vec<String>>,
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
            Notice::ProviderStreamEvent { .. } => "provider_stream_event".into(),
            Notice::EntryAppended { entry } => format!("entry_appended {}", entry["type"].as_str().unwrap()),
            Notice::SessionInfoChanged { name } => {
                format!("session_info_changed name={}", name.unwrap_or(""))
            }
            Notice::ModelSelect { source, .. } => format!("model_select source={}", lower(source)),
            Notice::ThinkingLevelSelect { level, previous } => {
                format!("thinking_level_select {} from {}", level.name(), previous.name())
            }
            Notice::Room { event, .. } => format!("{event:?}"),
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
    async fn context(&self, messages: Arc<Vec<Message>>) -> Arc<Vec<Message>> {
        self.line(format!("context roles={}", roles(&messages))).await;
        self.context.as_ref().map_or(messages.clone(), |change| Arc::new(change(&messages)))
    }
    async fn context_with_system(&self, messages: Arc<Vec<Message>>) -> Arc<Vec<Message>> {
        self.line(format!("context_with_system roles={}", roles(&messages))).await;
        self.context_with_system.as_ref().map_or(messages.clone(), |change| Arc::new(change(&messages)))
    }
    async fn boundary(&self, boundary: Boundary<'_>, board: &mut Board) {
        let name = boundary.name();
        let (said, outcome) = match &boundary {
            Boundary::TurnEnd(t) => {
                let said = format!(
                    " turnIndex={} {} toolResults={}",
                    t.turn_index,
                    told(&Message::Assistant(t.message.clone())),
                    tool_names(t.tool_results)
                );
                (said, t.outcome)
            }
            Boundary::BeforeSettle { outcome } => (String::new(), *outcome),
        };
        self.line(format!("{name}{said} outcome={outcome} entries=[] continue=false")).await;
        if let Some(handler) = &self.boundary {
            let by = Proposer { name: "x".into(), path: "/x.so".into() };
            handler(name, self.count(name), &boundary, &mut |entries, continues| {
                if let Err(why) = board.propose(by.clone(), entries, continues) {
                    self.faults.lock().unwrap().push(why);
                }
                board.preview().context()
            });
        }
        self.asked.notify_one();
        if self.boundary_hangs {
            std::future::pending::<()>().await;
        }
    }
    fn hears_boundary(&self, _: &Boundary<'_>) -> bool {
        true
    }
    async fn session_before(&self, before: SessionBefore) -> Veto {
        let text = |key: &str| before.fields.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let line = match before.event {
            BeforeEvent::Switch => format!("session_before_switch reason={}", text("reason")),
            BeforeEvent::Fork => format!("session_before_fork position={}", text("position")),
            BeforeEvent::Compact => "session_before_compact".into(),
            BeforeEvent::Tree => "session_before_tree".into(),
        };
        self.before.lock().unwrap().push(before.fields);
        self.line(line).await;
        let result = self.veto.lock().unwrap().clone();
        Veto { cancelled_by: self.stays.then(|| "x".into()), result }
    }
    async fn session_recovery_restore(&self, reason: RestoreReason) -> Vec<String> {
        self.recovered.lock().unwrap().push(format!("restore {}", lower(reason)));
        vec!["restored".into()]
    }
    async fn session_recovery_replay(&self, pending: Vec<Value>) -> ReplayDecisions {
        self.recovered.lock().unwrap().push(format!("replay of {}", pending.len()));
        let drops = |p: &Value| p["customType"] == "drop";
        let decide = |p: &Value| (p["entryId"].as_str().unwrap().to_owned(), ReplayAction::Drop);
        pending.iter().filter(|p| drops(p)).map(decide).collect()
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
                let kind = |e: &atomic_agent::session::Entry| e.role().unwrap_or("").to_owned();
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
        let (why, discover) = match request {
            Replace::Reload { .. } => ("reload".to_owned(), "reload"),
            Replace::Session { reason, target, previous, .. } => {
                self.replaced.lock().unwrap().push((target, previous));
                (lower(reason), "startup")
            }
        };
        self.line(format!("session_shutdown reason={why}")).await;
        swap()?;
        self.line(format!("session_start reason={why}")).await;
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

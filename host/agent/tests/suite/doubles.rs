//! A model that says what a script says, hooks that write down what they are asked, and
//! three small tools.

use async_trait::async_trait;
use atomic_agent::{
    engine::{Engine, EngineConfig, PromptParts, ToolSelection},
    event::Event,
    handle::{EngineHandle, Mode},
    hooks::*,
    message::*,
    model::*,
    op::{Op, OpError},
    session::Session,
    tool::*,
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, VecDeque},
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

// ---- model ----

#[derive(Clone)]
pub enum Step {
    Text(&'static str),
    /// `(id, name, arguments)` each.
    Calls(Vec<(&'static str, &'static str, Value)>),
    /// Calls of a message that ran into the output limit.
    Truncated(Vec<(&'static str, &'static str, Value)>),
    Error(&'static str),
    /// Says so much, then waits for the abort.
    UntilAborted(&'static str),
    /// Says so much, then hears nothing any more.
    Deaf(&'static str),
}

pub struct Scripted {
    info: ModelInfo,
    steps: Mutex<VecDeque<Step>>,
    pub requests: Mutex<Vec<ModelRequest>>,
    /// Notified when a stream has said its first words.
    pub speaking: Notify,
}

impl Scripted {
    pub fn new(steps: impl IntoIterator<Item = Step>) -> Arc<Self> {
        let info = json!({"id": "m", "name": "M", "provider": "p", "api": "scripted", "reasoning": true});
        Arc::new(Scripted {
            info: serde_json::from_value(info).unwrap(),
            steps: Mutex::new(steps.into_iter().collect()),
            requests: Mutex::default(),
            speaking: Notify::new(),
        })
    }
    pub fn request(&self, at: usize) -> ModelRequest {
        self.requests.lock().unwrap()[at].clone()
    }
}

fn message(info: &ModelInfo, content: Vec<Content>, stop: StopReason) -> AssistantMessage {
    AssistantMessage {
        content,
        api: info.api.clone(),
        provider: info.provider.clone(),
        model: info.id.clone(),
        usage: Usage::default(),
        stop_reason: Some(stop),
        error_message: None,
        timestamp: now_ms(),
        extra: Extra::new(),
    }
}

fn calls_of(calls: Vec<(&'static str, &'static str, Value)>) -> Vec<Content> {
    let call = |(id, name, arguments): (&str, &str, Value)| {
        Content::ToolCall(ToolCall { id: id.into(), name: name.into(), arguments, extra: Extra::new() })
    };
    calls.into_iter().map(call).collect()
}

#[async_trait]
impl Model for Scripted {
    fn info(&self) -> &ModelInfo {
        &self.info
    }
    async fn stream(
        &self,
        request: ModelRequest,
        sink: &mut dyn StreamSink,
        cancel: &CancellationToken,
    ) -> AssistantMessage {
        assert_paired(&request.messages);
        self.requests.lock().unwrap().push(request);
        let step = self.steps.lock().unwrap().pop_front().expect("the script has no more turns");
        sink.headers(&mut BTreeMap::new()).await;
        sink.payload(&mut json!({})).await;
        sink.response(200, BTreeMap::new()).await;
        sink.event(AssistantEvent::Start).await;
        let said = match step {
            Step::Text(t) | Step::UntilAborted(t) | Step::Deaf(t) => t,
            Step::Calls(calls) | Step::Truncated(calls) if calls.is_empty() => unreachable!(),
            Step::Calls(calls) => {
                let content = calls_of(calls);
                sink.event(AssistantEvent::ToolCallStart { content_index: 0 }).await;
                sink.event(AssistantEvent::ToolCallDelta { content_index: 0, delta: "{}".into() }).await;
                let tool_call = content[0].as_tool_call().unwrap().clone();
                sink.event(AssistantEvent::ToolCallEnd { content_index: 0, tool_call }).await;
                return message(&self.info, content, StopReason::ToolUse);
            }
            Step::Truncated(calls) => return message(&self.info, calls_of(calls), StopReason::Length),
            Step::Error(text) => {
                let mut failed = message(&self.info, vec![], StopReason::Error);
                failed.error_message = Some(text.into());
                return failed;
            }
        };
        sink.event(AssistantEvent::TextStart { content_index: 0 }).await;
        sink.event(AssistantEvent::TextDelta { content_index: 0, delta: said.into() }).await;
        self.speaking.notify_one();
        let stop = match step {
            Step::UntilAborted(_) => {
                cancel.cancelled().await;
                StopReason::Aborted
            }
            Step::Deaf(_) => std::future::pending().await,
            _ => StopReason::Stop,
        };
        sink.event(AssistantEvent::TextEnd { content_index: 0, content: said.into() }).await;
        message(&self.info, vec![Content::text(said)], stop)
    }
}

/// As a provider would refuse it.
fn assert_paired(messages: &[Message]) {
    let mut rest = messages.iter();
    while let Some(message) = rest.next() {
        match message {
            Message::User(_) => {}
            Message::Assistant(m) => {
                for call in m.tool_calls() {
                    let answered =
                        matches!(rest.next(), Some(Message::ToolResult(r)) if r.tool_call_id == call.id);
                    assert!(answered, "{} is not answered in its place", call.id);
                }
            }
            other => panic!("{} does not belong into a request here", other.role()),
        }
    }
}

pub struct One(pub Arc<Scripted>);

impl Models for One {
    fn get(&self, provider: &str, id: &str) -> Option<Arc<dyn Model>> {
        (provider == "p" && id == "m").then(|| self.0.clone() as Arc<dyn Model>)
    }
    fn list(&self) -> Vec<ModelInfo> {
        vec![self.0.info.clone()]
    }
}

// ---- hooks ----

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
        self.command.map(|run| run())
    }
}

// ---- tools ----

type Body = Box<
    dyn Fn(ToolInvocation) -> futures_util::future::BoxFuture<'static, Result<ToolOutput, ToolError>>
        + Send
        + Sync,
>;

pub struct Fake {
    spec: ToolSpec,
    place: Concurrency,
    body: Body,
}

#[async_trait]
impl Tool for Fake {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }
    fn concurrency(&self, _: &Value) -> Concurrency {
        self.place.clone()
    }
    async fn execute(&self, call: ToolInvocation) -> Result<ToolOutput, ToolError> {
        (self.body)(call).await
    }
}

impl Fake {
    pub fn new<F>(
        name: &str,
        required: &str,
        body: impl Fn(ToolInvocation) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
    {
        let spec = ToolSpec {
            name: name.into(),
            label: name.into(),
            description: name.into(),
            parameters: json!({
                "type": "object",
                "properties": {required: {"type": "string"}},
                "required": [required],
            }),
            prompt_snippet: None,
            prompt_guidelines: vec![],
            execution_mode: ExecutionMode::Parallel,
            max_result_size_chars: None,
            source: ToolSource::Builtin,
        };
        Fake { spec, place: Concurrency::Shared, body: Box::new(move |call| Box::pin(body(call))) }
    }
    pub fn sequential(mut self) -> Self {
        self.spec.execution_mode = ExecutionMode::Sequential;
        self
    }
    pub fn placed(mut self, place: Concurrency) -> Self {
        self.place = place;
        self
    }
    pub fn of_extension(mut self) -> Self {
        self.spec.source = ToolSource::Extension { id: "x".into(), path: "/x".into() };
        self
    }
}

/// `echo X` says X; anything that is no text is an error that names the field.
pub fn bash() -> Fake {
    Fake::new("bash", "command", |call| async move {
        let Some(command) = call.args["command"].as_str() else {
            return Err(ToolError("command: must be a string".into()));
        };
        (call.update)(PartialResult::default());
        let said = command.strip_prefix("echo ").unwrap_or("?");
        Ok(ToolOutput { details: Some(json!({"exitCode": 0})), ..ToolOutput::text(format!("{said}\n")) })
    })
}

pub fn read() -> Fake {
    Fake::new("read", "path", |_| async { Ok(ToolOutput::text("content")) })
}

// ---- a running engine ----

pub struct Rig {
    pub handle: EngineHandle,
    pub log: Arc<Log>,
    pub model: Arc<Scripted>,
    events: mpsc::UnboundedReceiver<Arc<Event>>,
    pub dir: tempfile::TempDir,
}

pub struct Build {
    pub log: Log,
    pub steps: Vec<Step>,
    pub tools: Vec<Arc<dyn Tool>>,
}

pub fn build(steps: impl IntoIterator<Item = Step>) -> Build {
    Build {
        log: Log::default(),
        steps: steps.into_iter().collect(),
        tools: vec![Arc::new(bash()), Arc::new(read())],
    }
}

impl Build {
    pub fn log(mut self, set: impl FnOnce(&mut Log)) -> Self {
        set(&mut self.log);
        self
    }
    pub fn tool(mut self, tool: Fake) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }
    pub async fn start(self) -> Rig {
        let dir = tempfile::tempdir().unwrap();
        let session = Session::create(dir.path(), &dir.path().join("sessions"), None);
        self.start_with(session, dir).await
    }
    pub async fn start_with(self, session: Session, dir: tempfile::TempDir) -> Rig {
        let model = Scripted::new(self.steps);
        let log = Arc::new(self.log);
        let engine = Engine::prepare(EngineConfig {
            cwd: dir.path().to_owned(),
            mode: Mode::Rpc,
            has_ui: true,
            project_trusted: true,
            session,
            hooks: log.clone(),
            tools: self.tools,
            tool_selection: ToolSelection::default(),
            models: Arc::new(One(model.clone())),
            model: Some(model.clone()),
            thinking: ThinkingLevel::Off,
            prompt: PromptParts::default(),
        });
        *log.handle.lock().unwrap() = Some(engine.handle().clone());
        let events = engine.handle().subscribe();
        let handle = engine.run().unwrap();
        let mut rig = Rig { handle, log, model, events, dir };
        rig.until(|e| matches!(e, Event::SessionReady { .. })).await;
        rig
    }
}

impl Rig {
    /// Sends a prompt, as a front end does.
    pub async fn prompt(&self, text: &str) -> Result<String, OpError> {
        self.prompt_as(text, None).await
    }
    pub async fn prompt_as(&self, text: &str, place: Option<StreamingBehavior>) -> Result<String, OpError> {
        let answer = self.handle.request(Op::Prompt {
            text: text.into(),
            images: vec![],
            streaming_behavior: place,
            source: InputSource::Rpc,
        });
        Ok(answer.await?["disposition"].as_str().unwrap().to_owned())
    }
    pub async fn idle(&self) {
        self.handle.request(Op::WaitForIdle).await.unwrap();
    }
    pub async fn run(&self, text: &str) {
        self.prompt(text).await.unwrap();
        self.idle().await;
    }
    /// The next event that fits; a minute without one is a failure.
    pub async fn until(&mut self, fits: impl Fn(&Event) -> bool) -> Arc<Event> {
        let next = async {
            loop {
                let event = self.events.recv().await.expect("the engine is gone");
                if fits(&event) {
                    return event;
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(60), next).await.expect("the event never came")
    }
    /// Everything told so far.
    pub fn told(&mut self) -> Vec<Arc<Event>> {
        std::iter::from_fn(|| self.events.try_recv().ok()).collect()
    }
    pub async fn quit(&mut self) {
        self.handle.request(Op::Shutdown { from_signal: false }).await.unwrap();
    }
    /// The lines of the session file.
    pub fn file(&self) -> Vec<Value> {
        let path = self.handle.view(|v| v.session_file.clone()).expect("nothing is written");
        read_lines(&path)
    }
    /// `role` or `type` of each entry, without what a start records.
    pub fn written(&self) -> Vec<String> {
        kinds(&self.file())
    }
}

pub fn read_lines(path: &Path) -> Vec<Value> {
    std::fs::read_to_string(path).unwrap().lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

pub fn kinds(lines: &[Value]) -> Vec<String> {
    let kind = |v: &Value| v["message"]["role"].as_str().or(v["type"].as_str()).unwrap().to_owned();
    let recorded = |k: &String| !["session", "model_change", "thinking_level_change"].contains(&k.as_str());
    lines.iter().map(kind).filter(recorded).collect()
}

pub fn call(id: &'static str, command: &str) -> (&'static str, &'static str, Value) {
    (id, "bash", json!({"command": command}))
}

//! A model that says what a script says, and a running engine around it.

pub use crate::{fakes::*, log::*};
use async_trait::async_trait;
use atomic_agent::{
    engine::{Engine, EngineConfig, PromptParts, ToolSelection},
    event::Event,
    handle::{EngineHandle, Mode},
    hooks::*,
    message::*,
    model::*,
    op::{Op, OpError},
    recovery::RecoverySettings,
    session::Session,
    tool::*,
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, HashSet, VecDeque},
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
    /// Fails with this code after so much, and how many milliseconds to wait.
    Failed(&'static str, &'static str, Option<u64>),
    /// Runs into the output limit after so much.
    Cut(&'static str),
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
    pub fn new(id: &str, steps: impl IntoIterator<Item = Step>) -> Arc<Self> {
        Self::taking(0, id, steps)
    }
    /// So many tokens; 0: nobody knows how many.
    pub fn taking(window: u64, id: &str, steps: impl IntoIterator<Item = Step>) -> Arc<Self> {
        let info = json!({"contextWindow": window, "id": id, "name": "M","maxTokens": 8192, "provider": "p", "api": "scripted", "reasoning": true});
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
        sink.provider_event(&json!({"part": 1})).await;
        let said = match step {
            Step::Text(t) | Step::UntilAborted(t) | Step::Deaf(t) | Step::Cut(t) => t,
            Step::Failed(code, said, after) => {
                let content = if said.is_empty() { vec![] } else { vec![Content::text(said)] };
                let mut failed = message(&self.info, content, StopReason::Error);
                failed.error_message = Some(format!("it was {code}"));
                failed.extra.insert(ERROR_CODE.into(), code.into());
                if let Some(after) = after {
                    failed.extra.insert(RETRY_AFTER.into(), after.into());
                }
                return failed;
            }
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
            Step::Cut(_) => StopReason::Length,
            _ => StopReason::Stop,
        };
        sink.event(AssistantEvent::TextEnd { content_index: 0, content: said.into() }).await;
        message(&self.info, vec![Content::text(said)], stop)
    }
}

/// As a provider would refuse it: every call answered once, in its place; nothing else is a result.
pub fn assert_paired(messages: &[Message]) {
    let mut rest = messages.iter();
    while let Some(message) = rest.next() {
        match message {
            Message::User(_) => {}
            Message::Assistant(m) => {
                let mut ids = HashSet::new();
                for call in m.tool_calls() {
                    assert!(ids.insert(call.id.clone()), "{} twice", call.id);
                    assert!(!call.arguments.is_null(), "arguments are null");
                    let answered =
                        matches!(rest.next(), Some(Message::ToolResult(r)) if r.tool_call_id == call.id);
                    assert!(answered, "{} is not answered in its place", call.id);
                }
            }
            other => panic!("{} does not belong into a request", other.role()),
        }
    }
}

/// What the user said, of a request.
pub fn said_by_user(messages: &[Message]) -> Vec<String> {
    let said = |m: &Message| match m {
        Message::User(m) => Some(m.content.plain_text()),
        _ => None,
    };
    messages.iter().filter_map(said).collect()
}

/// `p/m`, and `p/second` to fall back to.
pub struct Two(pub [Arc<Scripted>; 2]);

impl Models for Two {
    fn get(&self, provider: &str, id: &str) -> Option<Arc<dyn Model>> {
        let found = self.0.iter().find(|m| m.info.provider == provider && m.info.id == id)?;
        Some(found.clone() as Arc<dyn Model>)
    }
    fn list(&self) -> Vec<ModelInfo> {
        self.0.iter().map(|m| m.info.clone()).collect()
    }
}

// ---- a running engine ----

pub struct Rig {
    pub handle: EngineHandle,
    pub log: Arc<Log>,
    pub model: Arc<Scripted>,
    pub second: Arc<Scripted>,
    events: mpsc::UnboundedReceiver<Arc<Event>>,
    pub dir: tempfile::TempDir,
}

pub struct Build {
    pub log: Log,
    pub steps: Vec<Step>,
    /// Of the model that stands in.
    pub second: Vec<Step>,
    pub recovery: RecoverySettings,
    /// Tokens that the models take.
    pub window: u64,
    pub tools: Vec<Arc<dyn Tool>>,
}

pub fn build(steps: impl IntoIterator<Item = Step>) -> Build {
    Build {
        log: Log::default(),
        steps: steps.into_iter().collect(),
        second: Vec::new(),
        recovery: RecoverySettings::default(),
        window: 0,
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
        let model = Scripted::taking(self.window, "m", self.steps);
        let second = Scripted::taking(self.window, "second", self.second);
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
            models: Arc::new(Two([model.clone(), second.clone()])),
            model: Some(model.clone()),
            thinking: ThinkingLevel::Off,
            prompt: PromptParts::default(),
        })
        .recovery(self.recovery);
        *log.handle.lock().unwrap() = Some(engine.handle().clone());
        let events = engine.handle().subscribe();
        let handle = engine.run().unwrap();
        let mut rig = Rig { handle, log, model, second, events, dir };
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

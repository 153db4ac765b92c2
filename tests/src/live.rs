//! A whole session inside the test's own process: real extensions, the real engine and tools,
//! the scripted model. For what must be seen from inside, as two instances of one library;
//! what a user sees is tested on the program itself (`env`).

use crate::env::{Home, PATIENCE};
use atomic_agent::{
    engine::{Engine, EngineConfig, PromptParts, ToolSelection},
    event::Event,
    handle::{EngineHandle, Mode},
    hooks::Hooks as _,
    hooks::{InputSource, Replace, ReplaceReport, StartReason, ToolCallOutcome, ToolCallRequest},
    model::{Model, ModelInfo, Models},
    op::{DialogAnswer, Op, OpError},
    session::Session,
};
use atomic_extensions::{Extensions, ExtensionsConfig, LoadReport};
use atomic_models::{ModelSet, Script, Selection, Sources};
use atomic_tools::{Bench, ToolsConfig};
use serde_json::{Value, json};
use std::{
    path::Path,
    sync::{Arc, Mutex, MutexGuard},
    task::{Context, Poll},
    time::Duration,
};
use tokio::sync::{Notify, mpsc::UnboundedReceiver};

/// How a session is to be.
pub struct Setup {
    turns: Value,
    has_ui: bool,
    config: ExtensionsConfig,
}

impl Setup {
    /// In this home, with what its extension directories hold. No user, an empty script.
    pub fn new(home: &Home) -> Self {
        let mut config = ExtensionsConfig::new(home.atomic_home(), home.cwd());
        // A handler that hangs on purpose is given up soon; nothing healthy comes near it.
        config.init_timeout = Duration::from_secs(20);
        let own = atomic_tools::builtin_tools(ToolsConfig::default());
        config.builtin_tools = own.iter().map(|t| t.spec().name.clone()).collect();
        Setup { turns: json!([]), has_ui: false, config }
    }
    /// What the model says, turn by turn.
    #[must_use]
    pub fn turns(mut self, turns: Value) -> Self {
        self.turns = turns;
        self
    }
    /// Somebody can answer dialogs.
    #[must_use]
    pub fn with_user(mut self) -> Self {
        self.has_ui = true;
        self.config.has_ui = true;
        self.config.gate_timeout = None;
        self
    }
    /// Other settings of the extensions.
    #[must_use]
    pub fn config(mut self, edit: impl FnOnce(&mut ExtensionsConfig)) -> Self {
        edit(&mut self.config);
        self
    }
    /// Loads the extensions and starts the engine; returns when the session is ready.
    pub async fn start(self) -> Live {
        let (home, cwd) = (self.config.home.clone(), self.config.cwd.clone());
        let bench = Arc::new(Bench::new(ToolsConfig {
            cwd: cwd.clone(),
            output_dir: home.join("outputs"),
            ..ToolsConfig::default()
        }));
        let mut config = self.config;
        config.workbench = Some(bench.clone());
        let (extensions, report) = Extensions::load(config).await;
        let script = home.join(format!("script-{}.json", uuid()));
        std::fs::write(&script, json!({ "turns": self.turns }).to_string()).unwrap();
        let models = ModelSet::load(Sources {
            offline: true,
            script: Some(Script::read(&script).unwrap()),
            ..Sources::default()
        });
        let model = models.find(&Selection::default()).unwrap().model;
        let engine = Engine::prepare(EngineConfig {
            session: Session::create(&cwd, &home.join("agent/sessions"), None),
            mode: if self.has_ui { Mode::Tui } else { Mode::Print },
            has_ui: self.has_ui,
            project_trusted: false,
            hooks: extensions.clone(),
            tools: bench.tools(),
            tool_selection: ToolSelection::default(),
            models: Arc::new(Catalogue(models)),
            model: Some(model),
            thinking: atomic_agent::model::ThinkingLevel::Off,
            prompt: PromptParts::default(),
            cwd,
        });
        // Before the extensions are bound: what they had to say until now comes with that.
        let incoming = engine.handle().subscribe();
        extensions.bind(engine.handle().clone());
        let events = Arc::new(Events { incoming: Mutex::new(incoming), ..Events::default() });
        let recorder = events.clone();
        tokio::spawn(async move {
            while std::future::poll_fn(|cx| recorder.record(cx)).await {
                recorder.changed.notify_waiters();
            }
        });
        let engine = engine.run().unwrap();
        let live = Live { engine, extensions, report, events };
        live.wait("the session", |e| matches!(e, Event::SessionReady { .. })).await;
        live
    }
}

fn uuid() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

struct Catalogue(ModelSet);

impl Models for Catalogue {
    fn get(&self, provider: &str, id: &str) -> Option<Arc<dyn Model>> {
        self.0.get(provider, id).ok()
    }
    fn list(&self) -> Vec<ModelInfo> {
        self.0.usable().cloned().collect()
    }
    fn configure(&self, provider: &str, config: &Value) -> Result<Vec<Arc<dyn Model>>, String> {
        self.0.configure(provider, config)
    }
}

struct Events {
    incoming: Mutex<UnboundedReceiver<Arc<Event>>>,
    list: Mutex<Vec<Arc<Event>>>,
    changed: Notify,
}

impl Default for Events {
    fn default() -> Self {
        let (_, incoming) = tokio::sync::mpsc::unbounded_channel();
        Events { incoming: Mutex::new(incoming), list: Mutex::default(), changed: Notify::new() }
    }
}

impl Events {
    /// The next event, listed under the same lock that took it out. False: the engine is gone.
    fn record(&self, cx: &mut Context<'_>) -> Poll<bool> {
        let mut incoming = self.incoming.lock().unwrap();
        incoming.poll_recv(cx).map(|event| {
            let more = event.is_some();
            self.list.lock().unwrap().extend(event);
            more
        })
    }

    /// All that was told before this call, whether the recorder has had its turn or not.
    fn so_far(&self) -> MutexGuard<'_, Vec<Arc<Event>>> {
        let mut incoming = self.incoming.lock().unwrap();
        let mut list = self.list.lock().unwrap();
        while let Ok(event) = incoming.try_recv() {
            list.push(event);
            self.changed.notify_waiters();
        }
        list
    }
}

/// A running session.
pub struct Live {
    pub engine: EngineHandle,
    pub extensions: Arc<Extensions>,
    pub report: LoadReport,
    events: Arc<Events>,
}

impl Live {
    /// All events so far.
    pub fn events(&self) -> Vec<Arc<Event>> {
        self.events.so_far().clone()
    }
    /// How many there are: to wait only for later ones.
    pub fn mark(&self) -> usize {
        self.events.so_far().len()
    }
    /// The first event that holds.
    pub async fn wait(&self, what: &str, holds: impl Fn(&Event) -> bool) -> Arc<Event> {
        self.wait_after(0, what, holds).await
    }
    /// The first one from a mark on.
    pub async fn wait_after(&self, mark: usize, what: &str, holds: impl Fn(&Event) -> bool) -> Arc<Event> {
        let found = async {
            loop {
                let changed = self.events.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                if let Some(event) = self.events().iter().skip(mark).find(|e| holds(e)) {
                    return event.clone();
                }
                changed.await;
            }
        };
        match tokio::time::timeout(PATIENCE, found).await {
            Ok(event) => event,
            Err(_) => panic!("waiting for {what}; the events: {:#?}", self.events()),
        }
    }
    /// What the user types; answers what became of it.
    pub async fn say(&self, text: &str) -> Result<Value, OpError> {
        let op = Op::Prompt {
            text: text.to_owned(),
            images: Vec::new(),
            streaming_behavior: None,
            source: InputSource::Interactive,
        };
        patient("an answer to the prompt", self.engine.request(op)).await
    }
    /// A prompt, to the end of its run.
    pub async fn run(&self, text: &str) {
        let mark = self.mark();
        self.say(text).await.unwrap();
        self.wait_after(mark, "the run's end", |e| matches!(e, Event::AgentSettled)).await;
    }
    /// Of every tool result so far: tool, text, whether it failed.
    pub fn tool_results(&self) -> Vec<(String, String, bool)> {
        let text = |v: Value| crate::session::text(&v);
        self.events()
            .iter()
            .filter_map(|e| match &**e {
                Event::ToolExecutionEnd { tool_name, result, is_error, .. } => {
                    let result = serde_json::to_value(result).unwrap();
                    Some((tool_name.clone(), text(result), *is_error))
                }
                _ => None,
            })
            .collect()
    }
    /// Texts of the notices so far, with the extension's name before each.
    pub fn notices(&self) -> Vec<String> {
        let line = |e: &Arc<Event>| match &**e {
            Event::Notify { message, extension, .. } => {
                Some(format!("{}: {message}", extension.as_deref().unwrap_or("host")))
            }
            _ => None,
        };
        self.events().iter().filter_map(line).collect()
    }
    /// Faults of extensions so far: event and error.
    pub fn faults(&self) -> Vec<(String, String)> {
        let fault = |e: &Arc<Event>| match &**e {
            Event::ExtensionError { event, error, .. } => Some((event.clone(), error.clone())),
            _ => None,
        };
        self.events().iter().filter_map(fault).collect()
    }
    /// `/reload`.
    pub async fn reload(&self) -> ReplaceReport {
        let op = Op::Reload { names: Vec::new(), now: false, origin: None };
        let answer = patient("the reload", self.engine.request(op)).await.unwrap();
        serde_json::from_value(answer).unwrap()
    }
    /// A reload as the session would ask for it, beside whatever goes on.
    pub async fn replace(&self) -> ReplaceReport {
        let request = Replace::Reload { names: Vec::new(), origin: None };
        patient("the replacement", self.extensions.replace(request, Box::new(|| Ok(())))).await.unwrap()
    }
    /// `session_start` for tests that replace by hand is the engine's; this asks the gates alone.
    pub async fn gate(&self, command: &str) -> ToolCallOutcome {
        let call = ToolCallRequest {
            tool_name: "bash".into(),
            tool_call_id: format!("call-{}", uuid()),
            input: json!({ "command": command }),
        };
        patient("the gates", self.extensions.tool_call(call)).await
    }
    /// Answers the next dialog that is open.
    pub async fn answer_dialog(&self, mark: usize, answer: DialogAnswer) {
        let opened = self.wait_after(mark, "a dialog", |e| matches!(e, Event::DialogOpened { .. })).await;
        if let Event::DialogOpened { id, .. } = &*opened {
            self.engine.answer(*id, answer);
        }
    }
    /// Ends the session as quitting does.
    pub async fn close(self) {
        patient("the shutdown", self.engine.request(Op::Shutdown { from_signal: false })).await.ok();
        self.wait("the engine's end", |e| matches!(e, Event::Stopped)).await;
        patient("the extensions' end", self.extensions.close()).await;
    }
    /// Why sessions started, in order.
    pub fn starts(&self) -> Vec<StartReason> {
        let reason = |e: &Arc<Event>| match &**e {
            Event::SessionReady { reason, .. } => Some(*reason),
            _ => None,
        };
        self.events().iter().filter_map(reason).collect()
    }
}

/// Nothing here may hang: what does fails by name.
pub async fn patient<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(value) => value,
        Err(_) => panic!("{what} did not come"),
    }
}

/// A turn that calls `bash`.
pub fn bash(command: &str) -> Value {
    json!({ "toolCalls": [{ "name": "bash", "arguments": { "command": command } }] })
}

/// A turn of text.
pub fn text(text: &str) -> Value {
    json!({ "text": text })
}

/// What a misbehaving copy wrote to its file.
pub fn lines(file: &Path) -> Vec<String> {
    std::fs::read_to_string(file).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// Waits for a line of such a file.
pub async fn line(file: &Path, what: &str, holds: impl Fn(&str) -> bool) -> String {
    let found = async {
        loop {
            if let Some(line) = lines(file).into_iter().find(|l| holds(l)) {
                return line;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    match tokio::time::timeout(PATIENCE, found).await {
        Ok(line) => line,
        Err(_) => panic!("waiting for {what}; the file: {:#?}", lines(file)),
    }
}

/// The same for a test without a runtime.
pub fn wait_for_file(file: &Path, what: &str) {
    let deadline = std::time::Instant::now() + PATIENCE;
    while !lines(file).iter().any(|l| l == what) {
        assert!(std::time::Instant::now() < deadline, "waiting for {what}; the file: {:#?}", lines(file));
        std::thread::sleep(Duration::from_millis(5));
    }
}

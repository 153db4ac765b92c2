//! An engine: one session at a time, ops in, events out.
//!
//! Two parties share a `Core`. The *session thread* does what is serial (starts, runs,
//! replacements, the end) and is the only one that calls hooks of a run. The *op loop* takes
//! ops while that goes on, changes state under short locks and answers at once; so an abort
//! never waits for an extension.

pub use crate::active_tools::ToolSelection;
use crate::{
    active_tools::ToolRegistry,
    compact::CompactionSettings,
    core::{Core, State, show_session},
    event::Event,
    handle::{EngineHandle, Mode, OpRequest, View},
    hooks::{ContextFile, Hooks, StartReason},
    jobs::{self, Job},
    model::{Model, ModelInfo, Models, ThinkingLevel},
    ops,
    prompt::lent::{Lender, Skill, Template},
    providers::{Providers, ScopedModel},
    queue::QueueMode,
    recovery::RecoverySettings,
    session::Session,
    tool::{FitImages, Tool},
    warming::WarmingMode,
};
use serde_json::{Map, Value};
use std::{panic::AssertUnwindSafe, path::PathBuf, sync::Arc};
use tokio::sync::mpsc;

/// All an engine is made of.
pub struct EngineConfig {
    pub cwd: PathBuf,
    pub mode: Mode,
    /// Somebody can answer dialogs.
    pub has_ui: bool,
    pub project_trusted: bool,
    pub session: Session,
    pub hooks: Arc<dyn Hooks>,
    /// The built-in tools. The one named `bash` also runs the user's own commands.
    pub tools: Vec<Arc<dyn Tool>>,
    pub tool_selection: ToolSelection,
    pub models: Arc<dyn Models>,
    /// `None`: prompts are refused until one is set.
    pub model: Option<Arc<dyn Model>>,
    pub thinking: ThinkingLevel,
    pub prompt: PromptParts,
}

/// What the program adds to the system prompt.
#[derive(Clone, Debug, Default)]
pub struct PromptParts {
    /// Replaces the role.
    pub custom_prompt: Option<String>,
    pub append_system_prompt: Option<String>,
    pub context_files: Vec<ContextFile>,
    pub skills: Vec<Skill>,
    pub prompts: Vec<Template>,
}

/// An engine that has a handle and does nothing yet.
pub struct Engine {
    core: Arc<Core>,
    ops: mpsc::UnboundedReceiver<OpRequest>,
    jobs: mpsc::UnboundedReceiver<Job>,
}

impl Engine {
    /// Starts at once; for hooks that do not need the handle before.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn start(config: EngineConfig) -> std::io::Result<EngineHandle> {
        Self::prepare(config).run()
    }

    /// A handle to give to the hooks, and to subscribe to, before anything happens.
    pub fn prepare(config: EngineConfig) -> Self {
        Self::prepare_for(config, StartReason::Startup)
    }

    /// For an engine that goes on where another one ended: `resume` after a crash, `reload` when
    /// it was replaced in order.
    pub fn prepare_for(mut config: EngineConfig, reason: StartReason) -> Self {
        let thinking = clamp(config.thinking, config.model.as_deref().map(Model::info));
        if let Err(e) = record_model(&mut config.session, config.model.as_deref(), thinking) {
            config.session.note(e.to_string());
        }

        let mut view = View {
            cwd: config.cwd,
            mode: config.mode,
            has_ui: config.has_ui,
            project_trusted: config.project_trusted,
            session_id: String::new(),
            session_file: None,
            session_dir: PathBuf::new(),
            session_name: None,
            header: Value::Null,
            entries: Vec::new(),
            leaf_id: None,
            model: config.model.as_ref().map(|m| m.info().clone()),
            thinking,
            tools: Vec::new(),
            active_tools: Vec::new(),
            idle: true,
            pending_messages: 0,
            queue_paused: false,
            steering_mode: QueueMode::default(),
            follow_up_mode: QueueMode::default(),
            auto_retry: true,
            lent: Vec::new(),
            compacting: None,
            auto_compaction: true,
            system_prompt: String::new(),
            signal: None,
        };
        show_session(&mut view, &config.session);
        let (handle, ops) = EngineHandle::new(view);
        let models = Arc::new(Providers::new(config.models));
        handle.set_models(models.clone());
        let (jobs_tx, jobs) = mpsc::unbounded_channel();
        let bash = config.tools.iter().find(|t| t.spec().name == "bash").cloned();
        let registry = ToolRegistry::new(config.tools, config.tool_selection);
        let state = State::new(config.model, thinking, registry);
        let core = Core::new(
            handle,
            config.hooks,
            models,
            bash,
            config.prompt,
            reason,
            config.session,
            state,
            jobs_tx,
        );
        Engine { core: Arc::new(core), ops, jobs }
    }

    /// Whether a provider's cache is kept warm (`cacheWarming.mode`).
    #[must_use]
    pub fn cache_warming(self, mode: WarmingMode) -> Self {
        self.core.warming.set_mode(mode);
        self
    }

    /// The models that a key switches between; none: all that have a key.
    #[must_use]
    pub fn scoped_models(self, scope: Vec<ScopedModel>) -> Self {
        if let Some(providers) = self.core.handle.models() {
            providers.set_scope(scope);
        }
        self
    }

    /// How often boundary hooks may go on in one prompt (`agent.maxHookContinuations`).
    #[must_use]
    pub fn max_hook_continuations(self, most: usize) -> Self {
        self.core.set_max_continuations(most);
        self
    }

    /// Who reads what is lent to the prompt. Without one it stays what the configuration says.
    #[must_use]
    pub fn lender(self, lender: Arc<dyn Lender>) -> Self {
        self.core.set_lender(lender);
        self
    }

    /// Who makes the images of results fit. Without one they stay as they are.
    #[must_use]
    pub fn images(self, fit: Arc<dyn FitImages>) -> Self {
        self.core.fit_images.get_or_init(|| fit);
        self
    }

    /// How much one poll of each queue takes (`steeringMode`, `followUpMode`).
    #[must_use]
    pub fn queue_modes(self, steering: QueueMode, follow_up: QueueMode) -> Self {
        {
            let mut state = self.core.state();
            (state.queue.steering_mode, state.queue.follow_up_mode) = (steering, follow_up);
            self.core.show_run(&state);
        }
        self
    }

    /// What is done about answers that do not come (`retry.*`, `modelFallbacks`).
    #[must_use]
    pub fn recovery(self, settings: RecoverySettings) -> Self {
        self.core.set_recovery(settings);
        self.core.show_run(&self.core.state());
        self
    }

    /// How long contexts are shortened (`compaction.*`, `compactionModel`).
    #[must_use]
    pub fn compaction(self, settings: CompactionSettings) -> Self {
        self.core.set_compaction(settings);
        self.core.show_run(&self.core.state());
        self
    }

    pub fn handle(&self) -> &EngineHandle {
        &self.core.handle
    }

    /// session_start, resources_discover, `Event::SessionReady`; then ops are worked off.
    /// Ops sent before are not lost.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn run(self) -> std::io::Result<EngineHandle> {
        let handle = self.core.handle.clone();
        let runtime = tokio::runtime::Handle::current();
        let core = self.core.clone();
        let (jobs, on) = (self.jobs, runtime.clone());
        std::thread::Builder::new().name("atomic-session".into()).spawn(move || {
            let dies_with = core.clone();
            let work = AssertUnwindSafe(|| on.block_on(jobs::work(core, jobs)));
            if std::panic::catch_unwind(work).is_err() {
                // An engine that takes ops and does nothing would be worse.
                dies_with.notify("error", "The engine has stopped by a fault of its own.");
                dies_with.handle.emit(Event::Stopped);
                dies_with.stopped.cancel();
            }
        })?;
        runtime.spawn(ops::serve(self.core, self.ops));
        Ok(handle)
    }
}

/// The nearest level a model has.
pub(crate) fn clamp(level: ThinkingLevel, model: Option<&ModelInfo>) -> ThinkingLevel {
    model.map_or(level, |info| info.clamp(level))
}

/// A session says what it runs with, unless it says so already.
pub(crate) fn record_model(
    session: &mut Session,
    model: Option<&dyn Model>,
    thinking: ThinkingLevel,
) -> Result<(), crate::session::SessionError> {
    let (known_model, known_thinking) = session.settings();
    if let Some(info) = model.map(Model::info)
        && known_model.as_ref().is_none_or(|(p, m)| *p != info.provider || *m != info.id)
    {
        session.append("model_change", model_fields(info))?;
    }
    if known_thinking != Some(thinking) {
        session.append("thinking_level_change", thinking_fields(thinking))?;
    }
    Ok(())
}

pub(crate) fn model_fields(info: &ModelInfo) -> Map<String, Value> {
    let mut fields = Map::new();
    fields.insert("provider".into(), info.provider.clone().into());
    fields.insert("modelId".into(), info.id.clone().into());
    fields
}

pub(crate) fn thinking_fields(level: ThinkingLevel) -> Map<String, Value> {
    let mut fields = Map::new();
    fields.insert("thinkingLevel".into(), level.name().into());
    fields
}

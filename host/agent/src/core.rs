//! What the op loop and the session thread share, and the few rules between them:
//! short locks that are never held across an await, one dispatch at a time, events of
//! an op after the dispatch that asked for it.

use crate::{
    active_tools::ToolRegistry,
    boundary::MAX_CONTINUATIONS,
    compact::{Compacting, CompactionSettings},
    engine::PromptParts,
    event::Event,
    handle::{EngineHandle, View},
    hooks::{Hooks, InputSource, StartReason, StreamingBehavior, SystemPromptOptions},
    jobs::Job,
    message::{BashExecutionMessage, CustomMessage, ImageContent, Message},
    model::{Model, Models, ThinkingLevel},
    op::OpError,
    prompt::{
        self,
        lent::{self, Lender},
    },
    queue::Queue,
    recovery::RecoverySettings,
    session::{Session, SessionError},
    told::Told,
    tool::{FitImages, Tool},
    warming::Warming,
};
use serde_json::{Map, Value};
use std::{
    collections::VecDeque,
    future::Future,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

pub(crate) struct Core {
    pub handle: EngineHandle,
    pub hooks: Arc<dyn Hooks>,
    pub models: Arc<dyn Models>,
    pub bash: Option<Arc<dyn Tool>>,
    parts: Mutex<Arc<PromptParts>>,
    lender: Mutex<Option<Arc<dyn Lender>>>,
    pub fit_images: OnceLock<Arc<dyn FitImages>>,
    /// Of the first session_start.
    pub start_reason: StartReason,
    session: Mutex<Session>,
    state: Mutex<State>,
    jobs: mpsc::UnboundedSender<Job>,
    /// Whose turn it is to call hooks; fair, so admissions get in between.
    turn: tokio::sync::Mutex<()>,
    pub admitted: Notify,
    /// See `told`.
    pub telling: tokio::sync::Mutex<()>,
    pub something_told: Notify,
    max_continuations: AtomicUsize,
    recovery: Mutex<Arc<RecoverySettings>>,
    compaction: Mutex<Arc<CompactionSettings>>,
    pub warming: Warming,
    pub stopped: CancellationToken,
}

pub(crate) struct State {
    pub model: Option<Arc<dyn Model>>,
    pub thinking: ThinkingLevel,
    pub tools: ToolRegistry,
    pub queue: Queue,
    /// Held for the next user message.
    pub next_turn: Vec<CustomMessage>,
    /// What the run that is being ended says instead of its usual text.
    pub abort_text: Option<String>,
    /// Accepted runs in order; the first is the one that goes on.
    pub runs: VecDeque<(u64, CancellationToken)>,
    pub next_run: u64,
    /// What a second Escape cuts short: the last hooks of an aborted run.
    pub closing: CancellationToken,
    /// `agent_settled` is being told.
    pub settling: bool,
    pub bash: Option<CancellationToken>,
    /// The session goes to another place of its tree; may be stopped.
    pub navigation: Option<CancellationToken>,
    /// Of the extensions' commands that are running.
    pub commands: CancellationToken,
    pub compacting: Compacting,
    /// `setAutoRetry`.
    pub auto_retry: bool,
    /// Ends the waiting before a retry, while there is one.
    pub retry: Option<CancellationToken>,
    /// The model that a fallback stands in for, until the next prompt.
    pub primary: Option<Arc<dyn Model>>,
    pub pending_bash: Vec<BashExecutionMessage>,
    /// Input that is on its way through the `input` hooks into the queue.
    pub admissions: VecDeque<Admission>,
    pub idle_waiters: Vec<Reply>,
    /// What ops had to tell extensions, in order.
    pub told: VecDeque<Told>,
    dispatching: usize,
    outbox: Vec<Event>,
    pub stopping: bool,
}

impl State {
    pub fn new(model: Option<Arc<dyn Model>>, thinking: ThinkingLevel, tools: ToolRegistry) -> Self {
        State {
            model,
            thinking,
            tools,
            queue: Queue::default(),
            next_turn: Vec::new(),
            abort_text: None,
            runs: VecDeque::new(),
            next_run: 0,
            closing: CancellationToken::new(),
            settling: false,
            bash: None,
            navigation: None,
            commands: CancellationToken::new(),
            compacting: Compacting::default(),
            auto_retry: true,
            retry: None,
            primary: None,
            pending_bash: Vec::new(),
            admissions: VecDeque::new(),
            idle_waiters: Vec::new(),
            told: VecDeque::new(),
            dispatching: 0,
            outbox: Vec::new(),
            stopping: false,
        }
    }
    /// No run: the next input starts one.
    pub fn idle(&self) -> bool {
        self.runs.is_empty()
    }
    /// Nothing at all goes on.
    pub fn at_rest(&self) -> bool {
        self.idle() && !self.compacting.is_asked_for()
    }
}

/// Input for a run that is going on.
pub(crate) struct Admission {
    pub text: String,
    pub images: Vec<ImageContent>,
    pub source: InputSource,
    pub place: StreamingBehavior,
    /// Skills and templates in it are called up.
    pub expand: bool,
    pub reply: Reply,
}

/// Where an op's answer goes, if anybody waits.
pub(crate) struct Reply(pub Option<oneshot::Sender<Result<Value, OpError>>>);

impl Reply {
    pub fn send(self, answer: Result<Value, OpError>) {
        if let Some(tx) = self.0 {
            let _ = tx.send(answer);
        }
    }
    pub fn ok(self, value: impl Into<Value>) {
        self.send(Ok(value.into()));
    }
    pub fn err(self, code: &str, message: impl Into<String>) {
        self.send(Err(OpError::new(code, message)));
    }
    pub fn wanted(&self) -> bool {
        self.0.is_some()
    }
}

impl From<SessionError> for OpError {
    fn from(e: SessionError) -> Self {
        OpError::new(e.code(), e.to_string())
    }
}

impl Core {
    #[allow(clippy::too_many_arguments)]
    pub fn new(
        handle: EngineHandle,
        hooks: Arc<dyn Hooks>,
        models: Arc<dyn Models>,
        bash: Option<Arc<dyn Tool>>,
        parts: PromptParts,
        start_reason: StartReason,
        session: Session,
        state: State,
        jobs: mpsc::UnboundedSender<Job>,
    ) -> Self {
        Core {
            handle,
            hooks,
            models,
            bash,
            parts: Mutex::new(Arc::new(parts)),
            lender: Mutex::default(),
            fit_images: OnceLock::new(),
            start_reason,
            session: Mutex::new(session),
            state: Mutex::new(state),
            jobs,
            turn: tokio::sync::Mutex::default(),
            admitted: Notify::new(),
            telling: tokio::sync::Mutex::default(),
            something_told: Notify::new(),
            max_continuations: AtomicUsize::new(MAX_CONTINUATIONS),
            recovery: Mutex::default(),
            compaction: Mutex::default(),
            warming: Warming::default(),
            stopped: CancellationToken::new(),
        }
    }

    /// Never while `session` is locked.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    pub fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
    pub fn job(&self, job: Job) {
        // A thread that is gone answers by dropping the reply.
        let _ = self.jobs.send(job);
    }

    pub fn max_continuations(&self) -> usize {
        self.max_continuations.load(Ordering::Relaxed)
    }
    pub fn set_max_continuations(&self, most: usize) {
        self.max_continuations.store(most, Ordering::Relaxed);
    }

    pub fn recovery_settings(&self) -> Arc<RecoverySettings> {
        self.recovery.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
    pub fn set_recovery(&self, settings: RecoverySettings) {
        self.state().auto_retry = settings.enabled;
        *self.recovery.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(settings);
    }

    pub fn compaction_settings(&self) -> Arc<CompactionSettings> {
        self.compaction.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
    pub fn set_compaction(&self, settings: CompactionSettings) {
        self.state().compacting.automatic = settings.enabled;
        *self.compaction.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(settings);
    }

    /// Calls hooks, alone and until `cancel`; `None` is an abandoned call.
    pub async fn dispatch<T>(&self, cancel: &CancellationToken, call: impl Future<Output = T>) -> Option<T> {
        let _turn = tokio::select! {
            biased;
            () = cancel.cancelled() => return None,
            turn = self.turn.lock() => turn,
        };
        let _busy = self.busy();
        tokio::select! {
            biased;
            () = cancel.cancelled() => None,
            value = call => Some(value),
        }
    }

    /// While it lives, events of ops wait.
    pub fn busy(&self) -> Busy<'_> {
        self.state().dispatching += 1;
        Busy(self)
    }

    pub async fn hook_turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.turn.lock().await
    }

    /// The event of an op: after the dispatch that is going on.
    pub fn emit_after_dispatch(&self, event: Event) {
        let mut state = self.state();
        if state.dispatching > 0 {
            state.outbox.push(event);
        } else {
            // Under the lock, so that two ops cannot swap.
            self.handle.emit(event);
        }
    }

    pub fn notify(&self, level: &str, message: impl Into<String>) {
        self.handle.emit(Event::Notify { message: message.into(), level: level.into(), extension: None });
    }

    /// An entry that is no message of a run: listeners and extensions are told.
    pub fn append_shown(&self, kind: &str, fields: Map<String, Value>) -> Result<Arc<Value>, SessionError> {
        self.append_shown_with(kind, |_| fields)
    }

    /// The same, of what the session is when it is written.
    pub fn append_shown_with(
        &self,
        kind: &str,
        fields: impl FnOnce(&Session) -> Map<String, Value>,
    ) -> Result<Arc<Value>, SessionError> {
        let entry = self.appended(|session| {
            let fields = fields(session);
            session.append(kind, fields)
        })?;
        self.emit_after_dispatch(Event::EntryAppended { entry: (*entry).clone() });
        self.tell(Told::EntryAppended(entry.clone()));
        Ok(entry)
    }

    /// `hidden`: never in a model's context.
    pub fn append_message(&self, message: &Message, hidden: bool) -> Result<String, SessionError> {
        let raw = self.appended(|session| session.append_message(message, hidden))?;
        Ok(raw.get("id").and_then(Value::as_str).unwrap_or_default().to_owned())
    }

    fn appended(
        &self,
        append: impl FnOnce(&mut Session) -> Result<Arc<Value>, SessionError>,
    ) -> Result<Arc<Value>, SessionError> {
        let mut session = self.session();
        let appended = append(&mut session);
        for news in session.take_news() {
            self.notify(news.level, news.message);
        }
        let raw = appended?;
        self.handle.update_view(|v| {
            v.entries.extend(session.entries().last().cloned());
            v.leaf_id = session.leaf_id().map(str::to_owned);
            if v.session_file.as_deref() != session.file() {
                v.session_file = session.file().map(Into::into);
            }
        });
        Ok(raw)
    }

    /// What was said is on the disk itself, soon: the power may go as well. Each line was handed to
    /// the system when it was said, so a program that is killed loses none.
    pub fn sync_session(self: &Arc<Self>) {
        let (target, news) = {
            let mut session = self.session();
            (session.flushed(), session.take_news())
        };
        for news in news {
            self.notify(news.level, news.message);
        }
        let Some(path) = target else { return };
        let core = self.clone();
        tokio::task::spawn_blocking(move || {
            // One that is gone meanwhile is told with the next entry.
            let Ok(file) = std::fs::OpenOptions::new().write(true).open(&path) else { return };
            if let Err(e) = file.sync_data() {
                core.notify("error", format!("the disk did not take {}: {e}", path.display()));
            }
        });
    }

    /// All that a view shows of the session.
    pub fn show_session(&self) {
        let session = self.session();
        self.handle.update_view(|v| show_session(v, &session));
    }

    /// Takes in what extensions registered.
    pub fn refresh_tools(&self) {
        let registered = self.hooks.tools();
        let mut state = self.state();
        state.tools.refresh(registered);
        self.show_tools(&state);
        // The model that is used may be of a provider that was just registered anew.
        let used = state.model.as_ref().map(|m| (m.info().provider.clone(), m.info().id.clone()));
        if let Some((provider, id)) = used
            && let Some(model) = self.handle.models().and_then(|m| m.added(&provider, &id))
        {
            state.model = Some(model);
        }
    }

    pub fn show_tools(&self, state: &State) {
        self.handle.update_view(|v| {
            v.tools = state.tools.specs();
            v.active_tools = state.tools.active().to_vec();
        });
    }

    /// `idle`, `signal` and the queue's length as they are now.
    pub fn show_run(&self, state: &State) {
        self.handle.update_view(|v| {
            v.idle = state.at_rest();
            let run = state.runs.front().map(|(_, token)| token);
            v.signal = run.or(state.compacting.signal()).cloned();
            v.compacting = state.compacting.reason();
            v.auto_compaction = state.compacting.automatic;
            v.pending_messages = state.queue.len() + state.admissions.len();
            v.queue_paused = state.queue.paused;
            v.steering_mode = state.queue.steering_mode;
            v.follow_up_mode = state.queue.follow_up_mode;
            v.auto_retry = state.auto_retry;
        });
    }

    pub fn queue_changed(&self) {
        let (steering, follow_up) = {
            let state = self.state();
            self.show_run(&state);
            state.queue.texts()
        };
        self.emit_after_dispatch(Event::QueueUpdate { steering, follow_up });
    }

    /// Where the session works; another session may work elsewhere.
    pub fn cwd(&self) -> PathBuf {
        self.handle.view(|v| v.cwd.clone())
    }

    pub fn set_lender(&self, lender: Arc<dyn Lender>) {
        *self.lender.lock().unwrap_or_else(PoisonError::into_inner) = Some(lender);
    }

    /// Reads what is lent to the prompt anew, for the next run.
    pub async fn borrow(&self) {
        let Some(lender) = self.lender.lock().unwrap_or_else(PoisonError::into_inner).clone() else {
            return;
        };
        let (cwd, trusted) = self.handle.view(|v| (v.cwd.clone(), v.project_trusted));
        let found = self.hooks.resources();
        let Ok(loan) = tokio::task::spawn_blocking(move || lender.lend(&cwd, trusted, &found)).await else {
            return;
        };
        self.handle.update_view(|v| v.lent = lent::commands(&loan.parts));
        *self.parts.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(loan.parts);
        for warning in loan.warnings {
            self.notify("warning", warning);
        }
    }

    /// Skills and templates that the text calls up.
    pub fn expand(&self, text: String) -> String {
        let parts = self.parts();
        lent::expand(&parts, &text).unwrap_or(text)
    }

    fn parts(&self) -> Arc<PromptParts> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What the prompt is made of, for these active tools.
    pub fn prompt_options(&self, active: &[Arc<dyn Tool>]) -> SystemPromptOptions {
        let specs: Vec<_> = active.iter().map(|t| t.spec()).collect();
        let parts = self.parts();
        let options = SystemPromptOptions {
            custom_prompt: parts.custom_prompt.clone(),
            append_system_prompt: parts.append_system_prompt.clone(),
            context_files: parts.context_files.clone(),
            skills: parts.skills.clone(),
            cwd: self.cwd().to_string_lossy().into_owned(),
            ..Default::default()
        };
        prompt::with_tools(options, &specs)
    }
}

pub(crate) fn show_session(view: &mut View, session: &Session) {
    view.session_id = session.id().to_owned();
    view.session_file = session.file().map(Into::into);
    view.session_dir = session.dir().to_owned();
    view.session_name = session.name();
    view.header = session.header().clone();
    view.entries = session.entries().to_vec();
    view.leaf_id = session.leaf_id().map(str::to_owned);
}

/// Today, as the prompt tells it.
pub(crate) fn today() -> String {
    jiff::ZonedDateTime::now().strftime("%Y-%m-%d").to_string()
}

pub(crate) struct Busy<'a>(&'a Core);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.dispatching -= 1;
        if state.dispatching == 0 {
            for event in std::mem::take(&mut state.outbox) {
                self.0.handle.emit(event);
            }
        }
    }
}

//! The way to an engine from outside: ops in, events out, and a view of its state
//! that getters read without asking anyone. Cheap to clone, usable from any thread.

use crate::{
    compact::CompactReason,
    event::Event,
    model::{ModelInfo, ThinkingLevel},
    op::{Dialog, DialogAnswer, Op, OpError},
    prompt::lent::LentCommand,
    providers::Providers,
    queue::QueueMode,
    session::Entry,
    tool::ToolSpec,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// An op and where its answer goes.
pub struct OpRequest {
    pub op: Op,
    pub reply: Option<oneshot::Sender<Result<Value, OpError>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    Tui,
    Rpc,
    Json,
    Print,
}

/// What getters see. Written by the engine alone; each field is current when it is read.
#[derive(Clone, Debug)]
pub struct View {
    pub cwd: PathBuf,
    pub mode: Mode,
    /// Somebody can answer dialogs.
    pub has_ui: bool,
    pub project_trusted: bool,
    pub session_id: String,
    /// Absent while nothing is written, and with `--no-session`.
    pub session_file: Option<PathBuf>,
    pub session_dir: PathBuf,
    pub session_name: Option<String>,
    /// The header line.
    pub header: Value,
    /// All entries in file order, as they are written.
    pub entries: Vec<Entry>,
    pub leaf_id: Option<String>,
    pub model: Option<ModelInfo>,
    pub thinking: ThinkingLevel,
    pub tools: Vec<ToolSpec>,
    pub active_tools: Vec<String>,
    /// No run, no retry, no queue, no compaction.
    pub idle: bool,
    pub pending_messages: usize,
    pub queue_paused: bool,
    pub steering_mode: QueueMode,
    pub follow_up_mode: QueueMode,
    pub auto_retry: bool,
    /// Commands that are no extension's: templates, then skills.
    pub lent: Vec<LentCommand>,
    /// A compaction goes on, or is about to.
    pub compacting: Option<CompactReason>,
    /// Compactions may begin by themselves.
    pub auto_compaction: bool,
    /// Of the current or last run.
    pub system_prompt: String,
    /// The current run's; `None` when idle.
    pub signal: Option<CancellationToken>,
}

/// Cloneable door to one engine.
#[derive(Clone)]
pub struct EngineHandle {
    inner: Arc<Inner>,
}

struct Inner {
    ops: mpsc::UnboundedSender<OpRequest>,
    view: RwLock<View>,
    listeners: Mutex<Vec<mpsc::UnboundedSender<Arc<Event>>>>,
    models: OnceLock<Arc<Providers>>,
    dialogs: Mutex<HashMap<u64, oneshot::Sender<DialogAnswer>>>,
    next_dialog: AtomicU64,
    /// Nobody answers any more.
    deaf: AtomicBool,
    /// The view may have changed.
    changed: Notify,
}

fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

impl EngineHandle {
    /// The receiving end is the engine's.
    pub fn new(view: View) -> (Self, mpsc::UnboundedReceiver<OpRequest>) {
        let (ops, rx) = mpsc::unbounded_channel();
        let inner = Inner {
            ops,
            view: RwLock::new(view),
            listeners: Mutex::default(),
            models: OnceLock::new(),
            dialogs: Mutex::default(),
            next_dialog: AtomicU64::new(1),
            deaf: AtomicBool::new(false),
            changed: Notify::new(),
        };
        (EngineHandle { inner: Arc::new(inner) }, rx)
    }

    /// For the engine, once.
    pub fn set_models(&self, models: Arc<Providers>) {
        let _ = self.inner.models.set(models);
    }

    /// The models of this engine; `None` where the engine is another process.
    pub fn models(&self) -> Option<&Arc<Providers>> {
        self.inner.models.get()
    }

    /// Nobody waits for the answer. An engine that is gone takes nothing.
    pub fn send(&self, op: Op) {
        let _ = self.inner.ops.send(OpRequest { op, reply: None });
    }

    /// Resolves when the op is accepted or refused.
    pub async fn request(&self, op: Op) -> Result<Value, OpError> {
        self.ask(op).await
    }

    /// As `request`, but the op is on its way when this returns, whenever the answer is awaited:
    /// ops keep the order of these calls.
    pub fn ask(&self, op: Op) -> impl Future<Output = Result<Value, OpError>> + Send + use<> {
        let (tx, rx) = oneshot::channel();
        let sent = self.inner.ops.send(OpRequest { op, reply: Some(tx) });
        async move {
            let gone = || OpError::new("engine_stopped", "the engine has stopped");
            sent.map_err(|_| gone())?;
            rx.await.map_err(|_| gone())?
        }
    }

    /// Reads the view under a short lock; `f` must not call the engine.
    pub fn view<R>(&self, f: impl FnOnce(&View) -> R) -> R {
        f(&self.inner.view.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// For the engine.
    pub fn update_view<R>(&self, f: impl FnOnce(&mut View) -> R) -> R {
        let value = f(&mut self.inner.view.write().unwrap_or_else(PoisonError::into_inner));
        self.inner.changed.notify_one();
        value
    }

    /// Resolves when the view may have changed since the last time. For one waiter: whoever
    /// carries this engine's state to another process.
    pub async fn view_changed(&self) {
        self.inner.changed.notified().await;
    }

    /// The engine is gone: nothing takes ops any more.
    pub fn is_closed(&self) -> bool {
        self.inner.ops.is_closed()
    }

    /// All events from now on.
    pub fn subscribe(&self) -> mpsc::UnboundedReceiver<Arc<Event>> {
        let (tx, rx) = mpsc::unbounded_channel();
        lock(&self.inner.listeners).push(tx);
        rx
    }

    /// To every listener, in the order of the calls.
    pub fn emit(&self, event: Event) {
        let event = Arc::new(event);
        lock(&self.inner.listeners).retain(|l| l.send(event.clone()).is_ok());
    }

    /// Opens a dialog and waits for its end. Without UI, at its timeout, or when the front end
    /// is gone: `Cancelled`. Dropping the future closes it.
    pub async fn dialog(&self, dialog: Dialog, extension: &str) -> DialogAnswer {
        if !self.view(|v| v.has_ui) || self.inner.deaf.load(Ordering::Acquire) {
            return DialogAnswer::Cancelled;
        }
        let id = self.inner.next_dialog.fetch_add(1, Ordering::Relaxed);
        let (tx, rx) = oneshot::channel();
        lock(&self.inner.dialogs).insert(id, tx);
        // Between the look and here: then this one is not waited for either.
        if self.inner.deaf.load(Ordering::Acquire) {
            lock(&self.inner.dialogs).remove(&id);
        }
        let open = OpenDialog { handle: self, id };
        let timeout = dialog.timeout_ms();
        self.emit(Event::DialogOpened { id, dialog, extension: extension.to_owned() });
        let answer = match timeout {
            Some(ms) => {
                tokio::time::timeout(Duration::from_millis(ms), rx).await.map(Result::ok).ok().flatten()
            }
            None => rx.await.ok(),
        };
        drop(open);
        answer.unwrap_or(DialogAnswer::Cancelled)
    }

    /// All open dialogs end unanswered, and later ones at once.
    pub fn close_dialogs(&self) {
        self.inner.deaf.store(true, Ordering::Release);
        lock(&self.inner.dialogs).clear();
    }

    /// Unknown and late ids are ignored.
    pub fn answer(&self, id: u64, answer: DialogAnswer) {
        if let Some(tx) = lock(&self.inner.dialogs).remove(&id) {
            let _ = tx.send(answer);
        }
    }
}

struct OpenDialog<'a> {
    handle: &'a EngineHandle,
    id: u64,
}

impl Drop for OpenDialog<'_> {
    fn drop(&mut self) {
        lock(&self.handle.inner.dialogs).remove(&self.id);
        self.handle.emit(Event::DialogClosed { id: self.id });
    }
}

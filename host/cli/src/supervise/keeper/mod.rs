//! Keeps an engine running for a front end: passes ops and events on, notices when the engine
//! is lost or hangs, says so, and starts another one on the same session.

mod recover;

use super::{
    child::Child,
    pages,
    wire::{Catalogue, FromEngine, Hello, PROTOCOL, Resumed, ToEngine},
};
use crate::{card::Card, paths::Paths, said::Said};
use atomic_agent::{
    digest::Digest,
    event::{Event, UnansweredCall},
    handle::{EngineHandle, Mode, OpRequest, View},
    hooks::StartReason,
    message::Message,
    model::ThinkingLevel,
    op::{Op, OpError},
};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ffi::OsString,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::sync::{mpsc, oneshot};

/// How an engine is to be started, each time.
pub struct Plan {
    pub paths: Paths,
    /// This process's own, without the program.
    pub args: Vec<OsString>,
    pub mode: Mode,
    pub has_ui: bool,
    /// Somebody can be asked what to do after a loss; else the sensible thing is done and told.
    pub asks: bool,
    /// What `-e` names, crates built.
    pub extensions: Vec<PathBuf>,
    /// Left out from the start.
    pub skip: Vec<String>,
    /// What was chosen before the start, rather than the command line's session; or a copy of it.
    pub session: Option<PathBuf>,
    pub fork: Option<PathBuf>,
    /// After how long a held engine is replaced where nobody `asks`; [`HANG_KILL`] by default.
    pub hang_kill: Duration,
}

/// What the first start came to.
pub type Started = Result<First, Card>;

pub struct First {
    pub warnings: Vec<Card>,
    /// What is left of the command line to say.
    pub messages: Vec<Said>,
    pub resumed: Option<Resumed>,
}

/// What a front end works with.
pub struct Desk {
    /// The mirror of whichever engine runs now.
    pub handle: EngineHandle,
    pub events: mpsc::UnboundedReceiver<Arc<Event>>,
    /// Comes once; events come after it.
    pub started: oneshot::Receiver<Started>,
    pub control: Control,
    catalogue: Arc<Mutex<Catalogue>>,
    failed: Arc<AtomicBool>,
}

impl Desk {
    /// The program ends because no engine could be kept running.
    pub fn failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }
    pub fn catalogue(&self) -> Catalogue {
        self.catalogue.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[derive(Clone)]
pub struct Control(mpsc::UnboundedSender<Order>);

enum Order {
    Restart,
    End(oneshot::Sender<()>, Duration),
}

impl Control {
    /// The engine does not answer: end it and go on with another one.
    pub fn restart(&self) {
        let _ = self.0.send(Order::Restart);
    }

    /// The program ends. An engine that is still there has so much time, then it is killed.
    pub async fn end(&self, grace: Duration) {
        let (done, ended) = oneshot::channel();
        if self.0.send(Order::End(done, grace)).is_ok() {
            let _ = ended.await;
        }
    }
}

/// How often the engine's signs of life are looked at.
const LOOK: Duration = Duration::from_millis(100);
/// A handler that holds the session is a notice, then a fault of the engine's.
const NOTICE: Duration = Duration::from_millis(250);
const UNRESPONSIVE: Duration = Duration::from_secs(1);
/// Where nobody can press Ctrl+C, an engine that is held for so long is replaced unasked.
pub const HANG_KILL: Duration = Duration::from_secs(10);

/// Starts the first engine; what becomes of it is told by the desk.
pub fn start(plan: Plan) -> Result<Desk, Card> {
    let (handle, ops) = EngineHandle::new(nothing_yet(&plan));
    let events = handle.subscribe();
    let (control, orders) = mpsc::unbounded_channel();
    let (first, started) = oneshot::channel();
    let catalogue = Arc::<Mutex<Catalogue>>::default();
    let failed = Arc::<AtomicBool>::default();
    let mut keeper = Keeper {
        skip: plan.skip.iter().cloned().collect(),
        plan,
        desk: handle.clone(),
        ops,
        orders,
        catalogue: catalogue.clone(),
        failed: failed.clone(),
        first: Some(first),
        child: None,
        ready: false,
        held_back: Vec::new(),
        pending: HashMap::new(),
        next: 1,
        undelivered: BTreeMap::new(),
        queued: Vec::new(),
        calls: BTreeMap::new(),
        dialogs: BTreeSet::new(),
        losses: 0,
        bare: false,
        told: None,
        silent: Silence::default(),
        ending: false,
        leaving: Leaving::No,
    };
    keeper.start_engine(StartReason::Startup)?;
    tokio::spawn(keeper.keep());
    Ok(Desk { handle, events, started, control: Control(control), catalogue, failed })
}

struct Keeper {
    plan: Plan,
    desk: EngineHandle,
    ops: mpsc::UnboundedReceiver<OpRequest>,
    orders: mpsc::UnboundedReceiver<Order>,
    catalogue: Arc<Mutex<Catalogue>>,
    failed: Arc<AtomicBool>,
    first: Option<oneshot::Sender<Started>>,
    child: Option<Child>,
    /// The engine has said that it runs.
    ready: bool,
    /// Ops that wait for an engine.
    held_back: Vec<OpRequest>,
    pending: HashMap<u64, oneshot::Sender<Result<Value, OpError>>>,
    next: u64,
    /// Texts of the user that are in no session yet, by op.
    undelivered: BTreeMap<u64, String>,
    /// As the queue was shown last.
    queued: Vec<String>,
    /// Tool calls that have begun and not ended.
    calls: BTreeMap<String, UnansweredCall>,
    /// Of the engine, open.
    dialogs: BTreeSet<u64>,
    skip: BTreeSet<String>,
    losses: u32,
    bare: bool,
    /// The call that was told to hold the session, and whether as unresponsive.
    told: Option<(u64, bool)>,
    silent: Silence,
    ending: bool,
    leaving: Leaving,
}

/// A planned end of an engine.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Leaving {
    No,
    /// It was asked to hand over.
    Asked,
    /// The user was asked and said no: not asked again.
    Refused,
}

/// Beats that did not come.
#[derive(Default)]
struct Silence {
    beat: u64,
    since: Option<tokio::time::Instant>,
    told: bool,
}

#[derive(PartialEq, Eq)]
enum Flow {
    On,
    Over,
}

impl Keeper {
    fn start_engine(&mut self, reason: StartReason) -> Result<(), Card> {
        let mut view = self.desk.view(Digest::of);
        if view.session_file.is_none() {
            // It may have been written just before the engine was lost.
            view.session_file = written(&view.session_dir, &view.session_id);
            self.desk.update_view(|v| v.session_file.clone_from(&view.session_file));
        }
        let goes_on = reason != StartReason::Startup;
        let hello = Hello {
            protocol: PROTOCOL,
            version: env!("CARGO_PKG_VERSION").into(),
            mode: self.plan.mode,
            has_ui: self.plan.has_ui,
            page: pages::fresh(&self.plan.paths),
            extensions: self.plan.extensions.clone(),
            skip: self.skip.iter().cloned().collect(),
            bare: self.bare,
            reason: match reason {
                StartReason::Resume if view.session_file.is_none() => StartReason::Startup,
                other => other,
            },
            session: match goes_on {
                true => view.session_file,
                false => self.plan.session.clone(),
            },
            fork: self.plan.fork.clone().filter(|_| !goes_on),
            again: goes_on,
            active_tools: (reason == StartReason::Reload).then_some(view.active_tools),
            trusted: self.catalogue.lock().unwrap_or_else(PoisonError::into_inner).trusted,
        };
        self.ready = false;
        self.silent = Silence::default();
        self.child = Some(Child::start(&self.plan.args, hello)?);
        Ok(())
    }

    async fn keep(mut self) {
        let mut look = tokio::time::interval(LOOK);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        loop {
            let flow = tokio::select! {
                biased;
                order = self.orders.recv() => match order {
                    Some(Order::Restart) => self.hung().await,
                    Some(Order::End(done, grace)) => {
                        self.end(grace).await;
                        let _ = done.send(());
                        Flow::Over
                    }
                    None => Flow::Over,
                },
                frame = next_frame(&mut self.child) => match frame {
                    Some(frame) => self.frame(frame).await,
                    None => self.gone(None).await,
                },
                Some(request) = self.ops.recv() => {
                    self.forward(request);
                    Flow::On
                }
                _ = look.tick() => self.look().await,
            };
            if flow == Flow::Over {
                break;
            }
        }
        self.desk.emit(Event::Stopped);
        // Whoever asks from now on is told that the engine has stopped.
    }

    fn forward(&mut self, request: OpRequest) {
        self.ending |= matches!(request.op, Op::Shutdown { .. });
        let Some(child) = self.child.as_ref().filter(|_| self.ready && self.leaving != Leaving::Asked) else {
            // A shutdown is for whatever is there.
            if self.ending {
                if let Some(child) = &self.child {
                    child.send(&ToEngine::Post { op: request.op });
                }
                answer(request.reply, Ok(Value::Null));
            } else {
                self.held_back.push(request);
            }
            return;
        };
        let id = self.next;
        self.next += 1;
        if let Op::Prompt { text, .. } = &request.op {
            self.undelivered.insert(id, text.clone());
        }
        match request.reply {
            Some(reply) => {
                self.pending.insert(id, reply);
                child.send(&ToEngine::Op { id, op: request.op });
            }
            None => child.send(&ToEngine::Post { op: request.op }),
        }
    }

    async fn frame(&mut self, frame: FromEngine) -> Flow {
        match frame {
            FromEngine::Hello { .. } => {}
            FromEngine::Refused { card } => return self.refused(card).await,
            FromEngine::Ready { view, catalogue, warnings, messages, resumed } => {
                self.show(*view);
                let before = std::mem::replace(
                    &mut *self.catalogue.lock().unwrap_or_else(PoisonError::into_inner),
                    catalogue,
                );
                if self.accept_what_is_missing(&before).await == Flow::Over {
                    return Flow::Over;
                }
                self.is_ready(First { warnings, messages, resumed });
            }
            FromEngine::View { view } => self.show(*view),
            FromEngine::Catalogue { catalogue } => {
                *self.catalogue.lock().unwrap_or_else(PoisonError::into_inner) = catalogue;
            }
            FromEngine::Event { event } => self.event(*event),
            FromEngine::Answer { id, ok, error } => {
                let handled = ok.as_ref().and_then(|v| v.get("disposition")).is_some_and(|d| d == "handled");
                if error.is_some() || handled {
                    self.undelivered.remove(&id);
                }
                if let Some(reply) = self.pending.remove(&id) {
                    let _ = reply.send(match error {
                        Some(e) => Err(e),
                        None => Ok(ok.unwrap_or(Value::Null)),
                    });
                }
            }
            FromEngine::Tired { why, postponed, badly } => return self.tired(why, &postponed, badly).await,
            FromEngine::Bye if self.leaving == Leaving::Asked => return self.handed_over().await,
            // It ended by itself, in order: somebody asked it to.
            FromEngine::Bye => return Flow::Over,
        }
        Flow::On
    }

    fn show(&self, view: Digest) {
        self.desk.update_view(|v| *v = view.into_view());
    }

    fn is_ready(&mut self, now: First) {
        self.ready = true;
        match self.first.take() {
            Some(first) => drop(first.send(Ok(now))),
            None => {
                let planned = std::mem::replace(&mut self.leaving, Leaving::No) == Leaving::Asked;
                let without = self.skip.iter().cloned().collect();
                let resumed = now.resumed.is_some();
                self.desk.emit(Event::EngineRestarted { without, planned, resumed });
                for card in now.warnings {
                    self.notify("warning", card.to_string().trim_end());
                }
            }
        }
        for request in std::mem::take(&mut self.held_back) {
            self.forward(request);
        }
    }

    fn event(&mut self, event: Event) {
        match &event {
            Event::ToolExecutionStart { tool_call_id, tool_name, args } => {
                let call = UnansweredCall {
                    tool_call_id: tool_call_id.clone(),
                    tool_name: tool_name.clone(),
                    args: args.to_string(),
                };
                self.calls.insert(tool_call_id.clone(), call);
            }
            Event::ToolExecutionEnd { tool_call_id, .. } => drop(self.calls.remove(tool_call_id)),
            Event::MessageEnd { message } if matches!(**message, Message::User(_)) => {
                self.undelivered.pop_first();
            }
            Event::QueueUpdate { steering, follow_up } => {
                self.queued = steering.iter().chain(follow_up).cloned().collect();
                // In the queue it is shown; what is there is given back from there.
                self.undelivered.retain(|_, text| !self.queued.contains(text));
            }
            Event::AgentSettled => {
                self.losses = 0;
                self.undelivered.clear();
                self.calls.clear();
            }
            Event::DialogOpened { id, .. } => drop(self.dialogs.insert(*id)),
            Event::DialogClosed { id } => drop(self.dialogs.remove(id)),
            Event::Reloaded { .. } => self.skip.clear(),
            // Known with the event: an engine lost before its next view goes on with this one.
            Event::SessionReady { session_id, session_file, .. } => self.desk.update_view(|v| {
                v.session_id.clone_from(session_id);
                v.session_file.clone_from(session_file);
            }),
            // Told when the program really ends: another engine may go on.
            Event::Stopped => return,
            _ => {}
        }
        self.desk.emit(event);
    }

    fn notify(&self, level: &str, message: &str) {
        let (message, level) = (message.to_owned(), level.to_owned());
        self.desk.emit(Event::Notify { message, level, extension: None });
    }

    // ---- signs of life

    async fn look(&mut self) -> Flow {
        let Some(child) = &mut self.child else { return Flow::On };
        if child.ended() {
            // Its last lines come before the end of the pipe; that a child of its own holds the
            // pipe open is no reason to wait for ever.
            return if child.gone_for() < UNRESPONSIVE { Flow::On } else { self.gone(None).await };
        }
        let Some(vitals) = child.vitals() else { return Flow::On };
        let silent = self.listen_to(vitals.beat);
        let held_for = vitals.held.as_ref().map_or(Duration::ZERO, |h| h.time);
        if !self.plan.asks && held_for.max(silent) >= self.plan.hang_kill {
            return self.hung().await;
        }
        match vitals.held {
            Some(held) if held.time >= NOTICE => {
                let badly = held.time >= UNRESPONSIVE;
                if self.told != Some((held.call, badly)) {
                    self.told = Some((held.call, badly));
                    self.desk.emit(Event::EngineHeld {
                        extension: held.extension.unwrap_or_default(),
                        event: held.event.unwrap_or_default(),
                        held_ms: u64::try_from(held.time.as_millis()).unwrap_or(u64::MAX),
                    });
                }
            }
            _ => {}
        }
        Flow::On
    }

    /// A process that does not even beat is stopped, or starved. Answers for how long.
    fn listen_to(&mut self, beat: u64) -> Duration {
        let now = tokio::time::Instant::now();
        if beat != self.silent.beat {
            self.silent = Silence { beat, since: Some(now), told: false };
        }
        let since = self.silent.since.unwrap_or(now);
        if now - since >= UNRESPONSIVE && !std::mem::replace(&mut self.silent.told, true) {
            self.desk.emit(Event::EngineHeld {
                extension: String::new(),
                event: String::new(),
                held_ms: u64::try_from((now - since).as_millis()).unwrap_or(u64::MAX),
            });
        }
        now - since
    }
}

/// The file of a session, by the id that its name ends with.
fn written(dir: &Path, id: &str) -> Option<PathBuf> {
    let names = std::fs::read_dir(dir).ok().filter(|_| !id.is_empty())?;
    let end = format!("{id}.jsonl");
    names.flatten().find(|e| e.file_name().to_string_lossy().ends_with(&end)).map(|e| e.path())
}

async fn next_frame(child: &mut Option<Child>) -> Option<FromEngine> {
    match child {
        Some(child) => child.frame().await,
        None => std::future::pending().await,
    }
}

fn answer(reply: Option<oneshot::Sender<Result<Value, OpError>>>, with: Result<Value, OpError>) {
    if let Some(reply) = reply {
        let _ = reply.send(with);
    }
}

fn nothing_yet(plan: &Plan) -> View {
    Digest {
        cwd: plan.paths.cwd.clone(),
        mode: plan.mode,
        has_ui: plan.has_ui,
        project_trusted: false,
        session_id: String::new(),
        session_file: None,
        session_dir: PathBuf::new(),
        session_name: None,
        leaf_id: None,
        model: None,
        thinking: ThinkingLevel::Off,
        active_tools: Vec::new(),
        idle: true,
        pending_messages: 0,
        queue_paused: false,
        steering_mode: Default::default(),
        follow_up_mode: Default::default(),
        auto_retry: true,
        compacting: None,
        auto_compaction: true,
    }
    .into_view()
}

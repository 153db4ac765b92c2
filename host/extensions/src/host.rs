//! The extensions of one session: what is loaded, in which generation, and what of it is
//! published. Everything else of this crate hangs off it.

use crate::{
    breadcrumb,
    calls::{Bus, Failure, providers::Waiting, state::SessionState},
    copies::Copies,
    discover::Listed,
    dispatch::Prompts,
    generation::Generation,
    graveyard::Graveyard,
    load::{Library, Live},
    refusal::Refusal,
    registry::{FlagKind, Published, PublishedTool, Registered, Source, Sub},
    statuses::Statuses,
    tools::ExtensionTool,
    trust::{self, TrustPlan},
    watchdog::{self, Watchdog},
    workflow_hub::WorkflowHub,
};
use atomic_agent::{event::Event, handle::EngineHandle, hooks::Resources, tool::Tool};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, Weak,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

pub use crate::{config::ExtensionsConfig, discover::Scope};

/// One loaded extension, for lists.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoadedInfo {
    pub name: String,
    pub version: String,
    pub api_version: String,
    #[serde(with = "atomic_agent::lossy_path")]
    pub path: PathBuf,
    pub scope: Scope,
    pub sha256: String,
    pub generation: u64,
    pub tools: Vec<String>,
    pub commands: Vec<String>,
    pub events: Vec<String>,
}

/// A flag of an extension, for `--help` and the second parsing pass.
#[derive(Clone, Debug)]
pub struct FlagInfo {
    pub name: String,
    pub description: Option<String>,
    pub kind: FlagKind,
    pub default: Option<Value>,
    pub extension: String,
}

/// What a start found. Nothing in it stopped the others.
#[derive(Clone, Debug, Default)]
pub struct LoadReport {
    pub loaded: Vec<LoadedInfo>,
    pub refused: Vec<Refusal>,
    /// Shadowed copies, conflicts, files of other hosts, a project that is not trusted.
    pub notes: Vec<String>,
}

/// One extension and its current life.
#[derive(Clone)]
pub(crate) struct Slot {
    pub(crate) owner: u64,
    pub(crate) name: String,
    pub(crate) scope: Scope,
    /// Place in the load order of its scan.
    pub(crate) rank: usize,
    /// The author's file, never the copy that is mapped.
    pub(crate) path: PathBuf,
    pub(crate) library: Arc<Library>,
    pub(crate) generation: Arc<Generation>,
    pub(crate) live: Arc<Live>,
    pub(crate) registered: Arc<Registered>,
}

pub struct Extensions {
    me: Weak<Extensions>,
    config: ExtensionsConfig,
    runtime: Handle,
    /// In load order.
    slots: Mutex<Vec<Slot>>,
    /// Also of generations that are still staged.
    registered: Mutex<HashMap<u64, Arc<Registered>>>,
    /// Whose file an owner is, also after it was retired.
    paths: Mutex<HashMap<u64, PathBuf>>,
    published: RwLock<Arc<Published>>,
    /// Counts registrations of live generations; publishing waits for the next look.
    changes: AtomicU64,
    /// As `changes` was when the current snapshot was begun.
    settled: AtomicU64,
    /// One publisher at a time.
    settling: Mutex<()>,
    /// Which events have a handler, bit by index.
    bits: AtomicU64,
    engine: OnceLock<EngineHandle>,
    /// Faults from before there was anybody to tell.
    untold: Mutex<Vec<Event>>,
    told_conflicts: Mutex<HashSet<String>>,
    skipped: Mutex<HashSet<String>>,
    pub(crate) flag_values: Mutex<BTreeMap<String, Value>>,
    /// Flags that may belong to an extension that comes in later; a value that was given with `=`.
    pub(crate) late_flags: Mutex<BTreeMap<String, Option<String>>>,
    disabled: Mutex<BTreeSet<String>>,
    /// The `extensions` list of the user's settings.
    listed: Mutex<Option<Listed>>,
    pub(crate) trust: trust::State,
    pub(crate) prompts: Prompts,
    bus: Bus,
    statuses: Statuses,
    /// What the last `resources_discover` brought.
    found: Mutex<Resources>,
    session_state: SessionState,
    workflow_hub: WorkflowHub,
    /// There is an engine.
    bound: CancellationToken,
    waiting_providers: Waiting,
    watchdog: Watchdog,
    pub(crate) copies: Copies,
    pub(crate) graveyard: Arc<Graveyard>,
    /// Copies that were counted as left mapped.
    pub(crate) left: Mutex<HashSet<PathBuf>>,
    /// One replacement at a time.
    pub(crate) replacing: tokio::sync::Mutex<()>,
}

pub(crate) fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Extensions {
    /// Discovers, judges, opens and activates; what could not be is in the report.
    pub async fn load(config: ExtensionsConfig) -> (Arc<Self>, LoadReport) {
        let runtime = Handle::current();
        watch_for_crashes(&config);
        let budget = config.budget;
        let host = Arc::new_cyclic(|me| Extensions {
            me: me.clone(),
            bus: Bus::start(me.clone(), &runtime),
            workflow_hub: WorkflowHub::start(me.clone(), &runtime),
            watchdog: Watchdog::default(),
            copies: Copies::open(&config.home),
            skipped: Mutex::new(config.skip.iter().cloned().collect()),
            listed: Mutex::new(config.listed.clone()),
            disabled: Mutex::new(config.disabled.iter().cloned().collect()),
            trust: trust::State::new(
                &config.cwd,
                config.trust.as_ref().map_or(&[][..], |plan| plan.borrowed.as_slice()),
            ),
            prompts: Prompts::default(),
            late_flags: Mutex::default(),
            config,
            runtime,
            slots: Mutex::default(),
            registered: Mutex::default(),
            paths: Mutex::default(),
            published: RwLock::default(),
            changes: AtomicU64::new(0),
            settled: AtomicU64::new(0),
            settling: Mutex::default(),
            bits: AtomicU64::new(0),
            engine: OnceLock::new(),
            untold: Mutex::default(),
            told_conflicts: Mutex::default(),
            flag_values: Mutex::default(),
            statuses: Statuses::default(),
            found: Mutex::default(),
            session_state: SessionState::default(),
            bound: CancellationToken::new(),
            waiting_providers: Waiting::default(),
            graveyard: Arc::new(Graveyard::new(budget)),
            left: Mutex::default(),
            replacing: tokio::sync::Mutex::default(),
        });
        if host.config.breadcrumbs.is_some() {
            watchdog::pulse(host.me.clone(), &host.runtime);
        }
        let report = host.load_all().await;
        host.runtime.spawn(watchdog::watch(host.me.clone()));
        (host, report)
    }

    /// Requests of extensions reach this engine from now on.
    pub fn bind(&self, engine: EngineHandle) {
        let _ = self.engine.set(engine.clone());
        let untold = std::mem::take(&mut *lock(&self.untold));
        for event in untold {
            engine.emit(event);
        }
        self.flush_providers();
        self.bound.cancel();
        // Tidying up may take its time: never before the first prompt.
        if let Some(me) = self.me.upgrade() {
            self.runtime.spawn_blocking(move || me.copies.prune());
        }
    }

    pub fn config(&self) -> &ExtensionsConfig {
        &self.config
    }
    /// Where the session works; at first the directory of the configuration.
    pub(crate) fn cwd(&self) -> PathBuf {
        self.trust.here()
    }
    pub(crate) fn plan(&self) -> Option<&TrustPlan> {
        self.config.trust.as_ref()
    }
    /// What counts now; while it is not decided, no.
    pub fn project_trusted(&self) -> bool {
        self.trust.project().is_some_and(|d| d.trusted)
    }
    /// What was decided about the project; `None`: the person is asked at the start of the session.
    pub fn trust_decision(&self) -> Option<trust::Decision> {
        self.trust.project()
    }
    /// Extensions may still come in (events.md B.5).
    pub fn project_is_pending(&self) -> bool {
        let listed = |dir: &std::path::Path| {
            self.config.surroundings.as_ref().is_some_and(|s| s.listed(dir).is_some())
        };
        let brings = |t: &trust::Territory| !self.unopened(t).is_empty() || listed(&t.dir);
        self.trust.all().iter().any(|t| t.decision.is_none() && brings(t))
    }
    pub(crate) fn listed(&self) -> Option<Listed> {
        lock(&self.listed).clone()
    }
    /// The user's settings as they are now; what is wrong with them, if they cannot be read.
    pub(crate) fn read_settings_again(&self) -> Option<String> {
        match self.config.surroundings.as_ref()?.of_user() {
            Ok((listed, disabled)) => {
                *lock(&self.listed) = listed;
                self.set_disabled(disabled);
                None
            }
            Err(why) => Some(format!("{why}; what was read before goes on")),
        }
    }
    pub(crate) fn disabled(&self) -> BTreeSet<String> {
        lock(&self.disabled).clone()
    }
    pub(crate) fn set_disabled(&self, names: Vec<String>) {
        *lock(&self.disabled) = names.into_iter().collect();
    }
    pub(crate) fn runtime(&self) -> &Handle {
        &self.runtime
    }
    pub(crate) fn bus(&self) -> &Bus {
        &self.bus
    }
    pub(crate) fn watchdog(&self) -> &Watchdog {
        &self.watchdog
    }
    pub(crate) fn session_state(&self) -> &SessionState {
        &self.session_state
    }
    pub(crate) fn workflow_hub(&self) -> &WorkflowHub {
        &self.workflow_hub
    }
    pub(crate) fn bound(&self) -> &CancellationToken {
        &self.bound
    }
    pub(crate) fn waiting_providers(&self) -> &Waiting {
        &self.waiting_providers
    }
    pub(crate) fn last_found(&self) -> Resources {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
    pub(crate) fn found(&self, resources: &Resources) {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).clone_from(resources);
    }
    pub(crate) fn statuses(&self) -> &Statuses {
        &self.statuses
    }
    pub(crate) fn skipped(&self) -> &Mutex<HashSet<String>> {
        &self.skipped
    }
    pub(crate) fn weak(&self) -> Weak<Extensions> {
        self.me.clone()
    }
    pub(crate) fn slots(&self) -> MutexGuard<'_, Vec<Slot>> {
        lock(&self.slots)
    }

    /// The engine, or why `op` cannot be answered yet.
    pub(crate) fn engine(&self, op: &str) -> Result<&EngineHandle, Failure> {
        self.engine.get().ok_or_else(|| {
            Failure::new("not_available", format!("{op} needs a session: use it from session_start or later"))
        })
    }

    /// To the engine's listeners, now or when there are some.
    pub(crate) fn tell(&self, event: Event) {
        match self.engine.get() {
            Some(engine) => engine.emit(event),
            None => lock(&self.untold).push(event),
        }
    }

    #[cfg(test)]
    pub(crate) fn untold(&self) -> Vec<Event> {
        lock(&self.untold).clone()
    }

    // ---- registrations and what is published of them

    pub(crate) fn expect_registrations(&self, generation: &Generation, registered: &Arc<Registered>) {
        lock(&self.registered).insert(generation.number(), registered.clone());
        lock(&self.paths).insert(generation.owner(), registered.path.clone());
    }
    pub(crate) fn forget_registrations(&self, generation: u64) {
        lock(&self.registered).remove(&generation);
    }
    pub(crate) fn registered(&self, generation: &Generation) -> Option<Arc<Registered>> {
        lock(&self.registered).get(&generation.number()).cloned()
    }
    pub(crate) fn path_of(&self, owner: u64) -> PathBuf {
        lock(&self.paths).get(&owner).cloned().unwrap_or_default()
    }

    /// With the commit while staged; of a live generation with the next look, so that a thousand
    /// in a row are one snapshot. `event`: who hears it has to be looked up from now on.
    pub(crate) fn registrations_changed(&self, generation: &Generation, event: Option<usize>) {
        if !generation.live() {
            return;
        }
        // A publisher that has not seen it yet must not take its bit away again.
        let _no_publisher = event.map(|_| lock(&self.settling));
        self.changes.fetch_add(1, Ordering::Release);
        if let Some(event) = event {
            self.bits.fetch_or(1 << event, Ordering::Release);
        }
    }

    /// Takes in what live generations registered since the last snapshot.
    #[inline]
    fn settle(&self) {
        if self.changes.load(Ordering::Acquire) != self.settled.load(Ordering::Acquire) {
            for conflict in self.publish() {
                self.tell(Event::Notify { message: conflict, level: "warning".into(), extension: None });
            }
        }
    }

    /// One new snapshot of everything that is live, in load order. Answers the conflicts that
    /// nobody was told of yet.
    pub(crate) fn publish(&self) -> Vec<String> {
        let _one = lock(&self.settling);
        let changes = self.changes.load(Ordering::Acquire);
        let sources: Vec<Source> = self
            .slots()
            .iter()
            .filter(|s| s.generation.live())
            .map(|s| Source {
                generation: s.generation.clone(),
                live: s.live.clone(),
                registered: s.registered.clone(),
            })
            .collect();
        let published = Arc::new(Published::settle(&sources, &self.config.builtin_tools));
        let fresh: Vec<String> = {
            let mut told = lock(&self.told_conflicts);
            published.conflicts.iter().filter(|c| told.insert((*c).clone())).cloned().collect()
        };
        // The bits last: whoever sees a new bit finds its handlers.
        let bits = published.bits();
        let old = std::mem::replace(
            &mut *self.published.write().unwrap_or_else(PoisonError::into_inner),
            published,
        );
        self.bits.store(bits, Ordering::Release);
        self.settled.store(changes, Ordering::Release);
        drop(old);
        fresh
    }

    pub(crate) fn published(&self) -> Arc<Published> {
        self.settle();
        self.published.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// One relaxed load: this is all that an event nobody hears costs.
    #[inline]
    pub(crate) fn wants(&self, event: usize) -> bool {
        self.bits.load(Ordering::Relaxed) >> event & 1 == 1
    }

    #[inline]
    pub(crate) fn subs(&self, event: usize) -> Option<Arc<[Sub]>> {
        if !self.wants(event) {
            return None;
        }
        self.settle();
        self.published.read().unwrap_or_else(PoisonError::into_inner).subs(event)
    }

    pub(crate) fn published_tools(&self) -> Vec<Arc<dyn Tool>> {
        let tool = |t: &PublishedTool| Arc::new(ExtensionTool(t.clone())) as Arc<dyn Tool>;
        self.published().tools.iter().map(tool).collect()
    }

    /// The current generation of an owner, 0 when it has none.
    pub(crate) fn generation_of(&self, owner: u64) -> u64 {
        self.slots().iter().find(|s| s.owner == owner).map_or(0, |s| s.generation.number())
    }

    pub fn list(&self) -> Vec<LoadedInfo> {
        self.slots().iter().map(Slot::info).collect()
    }

    // ---- flags

    /// The first registration of a name defines its type and description; the first defined
    /// default wins (events.md I.5).
    pub fn flags(&self) -> Vec<FlagInfo> {
        let mut flags: Vec<FlagInfo> = Vec::new();
        let mut known: HashMap<String, usize> = HashMap::new();
        for s in self.slots().iter() {
            for f in s.registered.flags() {
                match known.get(&f.name).and_then(|i| flags.get_mut(*i)) {
                    Some(first) => first.default = first.default.take().or(f.default),
                    None => {
                        known.insert(f.name.clone(), flags.len());
                        flags.push(FlagInfo {
                            name: f.name,
                            description: f.description,
                            kind: f.kind,
                            default: f.default,
                            extension: s.name.clone(),
                        });
                    }
                }
            }
        }
        flags
    }

    pub fn set_flags(&self, values: BTreeMap<String, Value>) {
        *lock(&self.flag_values) = values;
    }

    /// Only flags that the same extension registered are readable to it.
    pub(crate) fn flag(&self, registered: &Registered, name: &str) -> Option<Value> {
        let own = registered.flag(name)?;
        let given = lock(&self.flag_values).get(name).cloned();
        let first = || self.slots().iter().find_map(|s| s.registered.flag(name)?.default);
        given.or_else(first).or(own.default)
    }
}

/// Once a process: before the first frame, so that every thread's slot is in the page.
fn watch_for_crashes(config: &ExtensionsConfig) {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        if let Err(e) = breadcrumb::install(config.breadcrumbs.as_deref()) {
            tracing::warn!("no breadcrumb page: {e}; after a crash the extension will not be named");
        }
        for (i, event) in crate::dispatch::EVENTS.iter().enumerate() {
            breadcrumb::name_event(breadcrumb::kind::EVENTS + i as u16, event.name);
        }
        let then =
            if config.crash_line { breadcrumb::OnFatal::PrintAndExit } else { breadcrumb::OnFatal::Die };
        if let Err(e) = breadcrumb::catch_fatal_signals(then) {
            tracing::warn!("fatal signals are not caught: {e}");
        }
        if config.crash_line || config.breadcrumbs.is_some() {
            breadcrumb::watch_for_exit(then);
        }
    });
}

impl Slot {
    pub(crate) fn info(&self) -> LoadedInfo {
        let (tools, commands, events) = self.registered.names();
        let m = &self.library.manifest;
        LoadedInfo {
            name: self.name.clone(),
            version: m.version.clone(),
            api_version: m.api_version.clone(),
            path: self.path.clone(),
            scope: self.scope,
            sha256: self.library.sha256.clone(),
            generation: self.generation.number(),
            tools,
            commands,
            events,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_thousand_registrations_of_a_live_generation_are_one_snapshot_at_the_next_look() {
        let dir = tempfile::tempdir().unwrap();
        let config =
            ExtensionsConfig { no_extensions: true, ..ExtensionsConfig::new(dir.path(), dir.path()) };
        let (host, _) = Extensions::load(config).await;
        let generation = Generation::new(1, "a", host.graveyard.clone());
        let now = || Arc::as_ptr(&*host.published.read().unwrap());
        let before = now();

        for _ in 0..1000 {
            host.registrations_changed(&generation, Some(0));
        }
        assert!(!host.wants(0), "what is staged is nobody's business");
        generation.commit().unwrap();
        for _ in 0..1000 {
            host.registrations_changed(&generation, Some(0));
        }
        assert_eq!(now(), before, "nobody looked yet");
        assert!(host.wants(0), "but whoever dispatches will");

        let looked = Arc::as_ptr(&host.published());
        assert_ne!(looked, before);
        assert_eq!(Arc::as_ptr(&host.published()), looked, "a second look settles nothing");
        generation.discard();
    }
}

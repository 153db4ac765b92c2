//! What generations have registered, and what of it is published: one immutable snapshot,
//! settled in load order, swapped as a whole (events.md I.5).

use crate::{
    conflicts::{Conflict, Conflicts},
    dispatch::{EVENTS, event_index},
    generation::Generation,
    load::Live,
};
use atomic_agent::tool::ToolSpec;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{
    collections::{HashMap, HashSet},
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// Handlers of one event run early, then normal, then late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Phase {
    Early,
    #[default]
    Normal,
    Late,
}

#[derive(Clone)]
pub(crate) struct HandlerEntry {
    pub(crate) event: String,
    pub(crate) handler: u64,
    pub(crate) sync: bool,
    pub(crate) phase: Phase,
}

#[derive(Clone)]
pub(crate) struct ToolEntry {
    pub(crate) spec: ToolSpec,
    pub(crate) handler: u64,
    pub(crate) exclusive: bool,
}

#[derive(Clone)]
pub(crate) struct CommandEntry {
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(crate) handler: u64,
    pub(crate) completions: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FlagKind {
    Boolean,
    String,
}

#[derive(Clone)]
pub(crate) struct FlagEntry {
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(crate) kind: FlagKind,
    pub(crate) default: Option<Value>,
}

/// In the order of registration; the same name replaces. Found by name, since there may be
/// thousands.
struct Named<T> {
    list: Vec<T>,
    at: HashMap<String, usize>,
}

impl<T> Default for Named<T> {
    fn default() -> Self {
        Named { list: Vec::new(), at: HashMap::new() }
    }
}

impl<T> Named<T> {
    fn put(&mut self, name: &str, entry: T) {
        match self.at.get(name).and_then(|i| self.list.get_mut(*i)) {
            Some(old) => *old = entry,
            None => {
                self.at.insert(name.to_owned(), self.list.len());
                self.list.push(entry);
            }
        }
    }
    fn get(&self, name: &str) -> Option<&T> {
        self.at.get(name).and_then(|i| self.list.get(*i))
    }
}

#[derive(Default)]
struct Entries {
    handlers: Vec<HandlerEntry>,
    tools: Named<ToolEntry>,
    commands: Named<CommandEntry>,
    flags: Named<FlagEntry>,
}

/// All that one generation has registered so far.
pub(crate) struct Registered {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    entries: Mutex<Entries>,
    /// Handlers that overran and have not answered yet.
    late: AtomicU64,
}

/// One handler over its time, until it answers.
pub(crate) struct Late(Arc<Registered>);

impl Drop for Late {
    fn drop(&mut self) {
        self.0.late.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Registered {
    pub(crate) fn new(name: String, path: PathBuf) -> Arc<Self> {
        Arc::new(Registered { name, path, entries: Mutex::default(), late: AtomicU64::new(0) })
    }
    pub(crate) fn overran(self: &Arc<Self>) -> Late {
        self.late.fetch_add(1, Ordering::Relaxed);
        Late(self.clone())
    }
    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
    pub(crate) fn add_handler(&self, h: HandlerEntry) {
        self.entries().handlers.push(h);
    }
    pub(crate) fn add_tool(&self, t: ToolEntry) {
        let name = t.spec.name.clone();
        self.entries().tools.put(&name, t);
    }
    pub(crate) fn add_command(&self, c: CommandEntry) {
        let name = c.name.clone();
        self.entries().commands.put(&name, c);
    }
    pub(crate) fn add_flag(&self, f: FlagEntry) {
        let name = f.name.clone();
        self.entries().flags.put(&name, f);
    }
    pub(crate) fn flags(&self) -> Vec<FlagEntry> {
        self.entries().flags.list.clone()
    }
    pub(crate) fn flag(&self, name: &str) -> Option<FlagEntry> {
        self.entries().flags.get(name).cloned()
    }
    pub(crate) fn names(&self) -> (Vec<String>, Vec<String>, Vec<String>) {
        let e = self.entries();
        let mut events: Vec<String> = e.handlers.iter().map(|h| h.event.clone()).collect();
        events.sort();
        events.dedup();
        (
            e.tools.list.iter().map(|t| t.spec.name.clone()).collect(),
            e.commands.list.iter().map(|c| c.name.clone()).collect(),
            events,
        )
    }
}

/// One handler in the published order.
#[derive(Clone)]
pub(crate) struct Sub {
    pub(crate) generation: Arc<Generation>,
    pub(crate) live: Arc<Live>,
    pub(crate) registered: Arc<Registered>,
    pub(crate) handler: u64,
    pub(crate) sync: bool,
}

#[derive(Clone)]
pub(crate) struct PublishedTool {
    pub(crate) entry: ToolEntry,
    pub(crate) generation: Arc<Generation>,
    pub(crate) live: Arc<Live>,
    pub(crate) registered: Arc<Registered>,
}

#[derive(Clone)]
pub(crate) struct PublishedCommand {
    /// With its `:n`, if two extensions use one name.
    pub(crate) name: String,
    pub(crate) entry: CommandEntry,
    pub(crate) generation: Arc<Generation>,
    pub(crate) live: Arc<Live>,
    pub(crate) registered: Arc<Registered>,
}

/// What dispatch sees. Fixed when a dispatch starts: it holds its own count.
#[derive(Default)]
pub(crate) struct Published {
    subs: Vec<Arc<[Sub]>>,
    pub(crate) tools: Vec<PublishedTool>,
    pub(crate) commands: Vec<PublishedCommand>,
    /// One per conflict, naming both files.
    pub(crate) conflicts: Vec<String>,
}

/// One live extension, for the publisher.
#[derive(Clone)]
pub(crate) struct Source {
    pub(crate) generation: Arc<Generation>,
    pub(crate) live: Arc<Live>,
    pub(crate) registered: Arc<Registered>,
}

impl Published {
    /// `sources` in load order; `builtin`: the program's own tools, which any of them may replace.
    pub(crate) fn settle(sources: &[Source], builtin: &[String]) -> Self {
        let mut subs: Vec<Vec<(Phase, Sub)>> = EVENTS.iter().map(|_| Vec::new()).collect();
        let mut tools: Vec<PublishedTool> = Vec::new();
        let mut commands: Vec<(CommandEntry, &Source)> = Vec::new();
        let mut holders: HashMap<String, &Source> = HashMap::new();
        let mut flags: HashMap<String, &Source> = HashMap::new();
        let mut conflicts = Conflicts::default();
        for s in sources {
            let entries = s.registered.entries();
            for h in &entries.handlers {
                // Unknown names are accepted and never fire (events.md U4).
                let Some(list) = event_index(&h.event).and_then(|i| subs.get_mut(i)) else { continue };
                let sub = Sub {
                    generation: s.generation.clone(),
                    live: s.live.clone(),
                    registered: s.registered.clone(),
                    handler: h.handler,
                    sync: h.sync,
                };
                list.push((h.phase, sub));
            }
            for t in &entries.tools.list {
                if let Some(first) = holders.get(&t.spec.name) {
                    conflicts.add(Conflict::Tool, first, s, &t.spec.name);
                    continue;
                }
                if builtin.contains(&t.spec.name) {
                    conflicts.add(Conflict::Builtin, s, s, &t.spec.name);
                }
                holders.insert(t.spec.name.clone(), s);
                tools.push(PublishedTool {
                    entry: t.clone(),
                    generation: s.generation.clone(),
                    live: s.live.clone(),
                    registered: s.registered.clone(),
                });
            }
            for f in &entries.flags.list {
                match flags.get(&f.name) {
                    Some(first) => conflicts.add(Conflict::Flag, first, s, &f.name),
                    None => drop(flags.insert(f.name.clone(), s)),
                }
            }
            commands.extend(entries.commands.list.iter().map(|c| (c.clone(), s)));
        }
        let subs = subs
            .into_iter()
            .map(|mut list| {
                // Stable: load order, then registration order, inside a phase.
                list.sort_by_key(|(phase, _)| *phase);
                list.into_iter().map(|(_, s)| s).collect()
            })
            .collect();
        let commands = suffixed(commands, &mut conflicts);
        Published { subs, tools, commands, conflicts: conflicts.lines() }
    }

    pub(crate) fn subs(&self, event: usize) -> Option<Arc<[Sub]>> {
        self.subs.get(event).filter(|s| !s.is_empty()).cloned()
    }

    /// Which events have a handler: bit by index.
    pub(crate) fn bits(&self) -> u64 {
        self.subs.iter().enumerate().filter(|(_, s)| !s.is_empty()).fold(0, |bits, (i, _)| bits | 1 << i)
    }
}

/// Two extensions with one command name are both renamed `name:1`, `name:2` in load order; a
/// taken name gets the next free number.
fn suffixed(commands: Vec<(CommandEntry, &Source)>, conflicts: &mut Conflicts) -> Vec<PublishedCommand> {
    let mut count: HashMap<String, usize> = HashMap::new();
    let mut first: HashMap<String, &Source> = HashMap::new();
    for (c, s) in &commands {
        *count.entry(c.name.clone()).or_default() += 1;
        match first.get(&c.name) {
            Some(first) => conflicts.add(Conflict::Command, first, s, &c.name),
            None => drop(first.insert(c.name.clone(), s)),
        }
    }
    let mut taken: HashSet<String> =
        count.iter().filter(|(_, n)| **n == 1).map(|(name, _)| name.clone()).collect();
    commands
        .into_iter()
        .map(|(entry, s)| {
            let name = if count.get(&entry.name) == Some(&1) {
                entry.name.clone()
            } else {
                let mut n = 1;
                while !taken.insert(format!("{}:{n}", entry.name)) {
                    n += 1;
                }
                format!("{}:{n}", entry.name)
            };
            PublishedCommand {
                name,
                entry,
                generation: s.generation.clone(),
                live: s.live.clone(),
                registered: s.registered.clone(),
            }
        })
        .collect()
}

impl Sub {
    /// A handler of its instance overran and has not answered yet: the instance is not asked
    /// again until it does, but for the events that nobody waits for long.
    pub(crate) fn suspended(&self) -> bool {
        self.registered.late.load(Ordering::Relaxed) > 0
    }
}

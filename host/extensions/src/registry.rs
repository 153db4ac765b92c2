//! What generations have registered, and what of it is published: one immutable snapshot,
//! settled in load order, swapped as a whole (events.md I.5).

use crate::{
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
        atomic::{AtomicBool, Ordering},
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

#[derive(Default)]
struct Entries {
    handlers: Vec<HandlerEntry>,
    tools: Vec<ToolEntry>,
    commands: Vec<CommandEntry>,
    flags: Vec<FlagEntry>,
}

/// All that one generation has registered so far.
pub(crate) struct Registered {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    entries: Mutex<Entries>,
    /// A handler overran: no high-rate events until it answers again (decisions.md).
    pub(crate) suspended: AtomicBool,
}

impl Registered {
    pub(crate) fn new(name: String, path: PathBuf) -> Arc<Self> {
        Arc::new(Registered { name, path, entries: Mutex::default(), suspended: AtomicBool::new(false) })
    }
    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
    pub(crate) fn add_handler(&self, h: HandlerEntry) {
        self.entries().handlers.push(h);
    }
    /// The same extension and name replaces.
    pub(crate) fn add_tool(&self, t: ToolEntry) {
        let mut e = self.entries();
        match e.tools.iter_mut().find(|x| x.spec.name == t.spec.name) {
            Some(x) => *x = t,
            None => e.tools.push(t),
        }
    }
    pub(crate) fn add_command(&self, c: CommandEntry) {
        let mut e = self.entries();
        match e.commands.iter_mut().find(|x| x.name == c.name) {
            Some(x) => *x = c,
            None => e.commands.push(c),
        }
    }
    pub(crate) fn add_flag(&self, f: FlagEntry) {
        let mut e = self.entries();
        match e.flags.iter_mut().find(|x| x.name == f.name) {
            Some(x) => *x = f,
            None => e.flags.push(f),
        }
    }
    pub(crate) fn flags(&self) -> Vec<FlagEntry> {
        self.entries().flags.clone()
    }
    pub(crate) fn names(&self) -> (Vec<String>, Vec<String>, Vec<String>) {
        let e = self.entries();
        let mut events: Vec<String> = e.handlers.iter().map(|h| h.event.clone()).collect();
        events.sort();
        events.dedup();
        (
            e.tools.iter().map(|t| t.spec.name.clone()).collect(),
            e.commands.iter().map(|c| c.name.clone()).collect(),
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
pub(crate) struct Source {
    pub(crate) generation: Arc<Generation>,
    pub(crate) live: Arc<Live>,
    pub(crate) registered: Arc<Registered>,
}

impl Published {
    /// `sources` in load order.
    pub(crate) fn settle(sources: &[Source]) -> Self {
        let mut subs: Vec<Vec<(Phase, Sub)>> = EVENTS.iter().map(|_| Vec::new()).collect();
        let mut tools: Vec<PublishedTool> = Vec::new();
        let mut commands: Vec<(CommandEntry, &Source)> = Vec::new();
        let mut conflicts = Vec::new();
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
            for t in &entries.tools {
                if let Some(first) = tools.iter().find(|x| x.entry.spec.name == t.spec.name) {
                    conflicts.push(format!(
                        "tool {:?}: {} keeps it, the one of {} is dropped; the rest of that extension works",
                        t.spec.name,
                        first.registered.path.display(),
                        s.registered.path.display()
                    ));
                    continue;
                }
                tools.push(PublishedTool {
                    entry: t.clone(),
                    generation: s.generation.clone(),
                    live: s.live.clone(),
                    registered: s.registered.clone(),
                });
            }
            commands.extend(entries.commands.iter().map(|c| (c.clone(), s)));
        }
        let subs = subs
            .into_iter()
            .map(|mut list| {
                // Stable: load order, then registration order, inside a phase.
                list.sort_by_key(|(phase, _)| *phase);
                list.into_iter().map(|(_, s)| s).collect()
            })
            .collect();
        Published { subs, tools, commands: suffixed(commands), conflicts }
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
fn suffixed(commands: Vec<(CommandEntry, &Source)>) -> Vec<PublishedCommand> {
    let mut count: HashMap<String, usize> = HashMap::new();
    for (c, _) in &commands {
        *count.entry(c.name.clone()).or_default() += 1;
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
    pub(crate) fn suspended(&self) -> bool {
        self.registered.suspended.load(Ordering::Relaxed)
    }
}

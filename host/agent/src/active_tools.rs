//! Which tools exist now and which of them the model may call. Extensions come and go
//! while the engine runs; this keeps the two lists honest.

use crate::tool::{Tool, ToolSource, ToolSpec};
use std::{collections::HashSet, sync::Arc};

/// What a start selects. Extension tools are active unless excluded.
#[derive(Clone, Debug, Default)]
pub struct ToolSelection {
    /// Built-in tools that are on; `None`: all.
    pub builtin: Option<Vec<String>>,
    /// If given, nothing else is on, whoever registered it.
    pub only: Option<Vec<String>>,
    pub exclude: Vec<String>,
}

pub(crate) struct ToolRegistry {
    builtin: Vec<Arc<dyn Tool>>,
    selection: ToolSelection,
    tools: Vec<Arc<dyn Tool>>,
    active: Vec<String>,
    /// Seen before: a tool is activated once, when it appears.
    known: HashSet<String>,
    /// Built-in tools that lost the extension which stood in front of them.
    unguarded: HashSet<String>,
}

fn is_builtin(tool: &ToolSpec) -> bool {
    matches!(tool.source, ToolSource::Builtin)
}

impl ToolRegistry {
    pub fn new(builtin: Vec<Arc<dyn Tool>>, selection: ToolSelection) -> Self {
        ToolRegistry {
            builtin,
            selection,
            tools: Vec::new(),
            active: Vec::new(),
            known: HashSet::new(),
            unguarded: HashSet::new(),
        }
    }

    /// Takes in what is registered now. New tools become active; a tool that is gone does not
    /// stay active, and neither does the built-in one that an extension had replaced: what
    /// guarded a name must not be unloaded to get at what it guarded. It is active again when
    /// its guard is back, or when it is asked for by name.
    pub fn refresh(&mut self, mut of_extensions: Vec<Arc<dyn Tool>>) {
        let mut now: Vec<Arc<dyn Tool>> = Vec::new();
        for tool in &self.builtin {
            let replaced = of_extensions.iter().position(|t| t.spec().name == tool.spec().name);
            now.push(replaced.map_or_else(|| tool.clone(), |at| of_extensions.remove(at)));
        }
        now.extend(of_extensions);

        for before in &self.tools {
            let name = &before.spec().name;
            let after = now.iter().find(|t| t.spec().name == *name);
            let lost_guard = after.is_some_and(|a| is_builtin(a.spec()) && !is_builtin(before.spec()));
            if lost_guard && self.active.contains(name) {
                self.unguarded.insert(name.clone());
            }
            if after.is_none() || lost_guard {
                self.active.retain(|a| a != name);
            }
            if after.is_none() {
                self.known.remove(name);
            }
        }
        let guarded = |name: &String| now.iter().any(|t| t.spec().name == *name && !is_builtin(t.spec()));
        self.active.extend(self.unguarded.extract_if(guarded));
        for tool in &now {
            let spec = tool.spec();
            if self.known.insert(spec.name.clone()) && self.selects(spec) {
                self.active.push(spec.name.clone());
            }
        }
        self.tools = now;
    }

    fn selects(&self, tool: &ToolSpec) -> bool {
        let name = &tool.name;
        if self.selection.exclude.contains(name) {
            return false;
        }
        match (&self.selection.only, &self.selection.builtin) {
            (Some(only), _) => only.contains(name),
            (None, Some(builtin)) if is_builtin(tool) => builtin.contains(name),
            _ => true,
        }
    }

    /// Unknown names are ignored.
    pub fn set_active(&mut self, names: &[String]) {
        let known = |name: &&String| self.tools.iter().any(|t| t.spec().name == **name);
        let mut active: Vec<String> = Vec::new();
        for name in names.iter().filter(known) {
            if !active.contains(name) {
                active.push(name.clone());
            }
        }
        self.unguarded.retain(|name| !active.contains(name));
        self.active = active;
    }

    pub fn active(&self) -> &[String] {
        &self.active
    }
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.tools.iter().map(|t| t.spec().clone()).collect()
    }
    /// In the order of `names`.
    pub fn named(&self, names: &[String]) -> Vec<Arc<dyn Tool>> {
        names.iter().filter_map(|n| self.tools.iter().find(|t| t.spec().name == *n)).cloned().collect()
    }
}

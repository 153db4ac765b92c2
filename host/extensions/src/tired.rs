//! Whether this engine should be replaced by a new process, and what must end before
//! (boundary.md 11). Only looks; the supervisor acts.

use crate::{calls::exec, graveyard::Totals, host::Extensions, host::lock};

/// More is held than can be given back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tired {
    pub why: String,
    /// For a person; empty: nothing stands in the way.
    pub postponed: Vec<String>,
    /// Over twice the budget.
    pub badly: bool,
}

impl Extensions {
    /// `None`: within the budget.
    pub fn tired(&self) -> Option<Tired> {
        let why = self.graveyard.over_budget()?;
        let mut postponed = Vec::new();
        match exec::running() {
            0 => {}
            1 => postponed.push("a command of an extension runs".to_owned()),
            n => postponed.push(format!("{n} commands of extensions run")),
        }
        let slots = self.slots().clone();
        for slot in slots.iter().filter(|s| s.generation.in_flight() > 0) {
            postponed.push(format!("{} is at work", slot.name));
        }
        Some(Tired { why, postponed, badly: self.graveyard.badly_over() })
    }

    /// What the engine cannot give back, in a line for a person; `None`: nothing.
    pub fn graves(&self) -> Option<String> {
        let Totals { libraries, instances, threads, anon_kb } = self.graveyard.totals();
        if libraries + instances + threads == 0 {
            return None;
        }
        Some(format!(
            "left behind by earlier generations: {libraries} mapped libraries ({} KB), {instances} instances, {threads} threads",
            anon_kb
        ))
    }

    /// Counts a mapping that no generation uses any more.
    pub(crate) fn left_mapped(&self, library: &crate::load::Library, name: &str, generation: u64) {
        let used = self.slots().iter().any(|s| s.library.sha256 == library.sha256);
        if used || !lock(&self.left).insert(library.copy.clone()) {
            return;
        }
        self.graveyard.bury(crate::graveyard::Grave {
            extension: name.to_owned(),
            generation,
            hash: library.sha256.clone(),
            left: crate::graveyard::Left::Library { anon_kb: crate::graveyard::anon_kb(&library.copy) },
            why: "it was replaced; libraries stay mapped".into(),
        });
    }
}

//! What can never be given back: libraries that stay mapped, instances that
//! would not end, threads that hang. Counts them against a budget, so that the
//! engine can be replaced by a new process while nothing is going on.
//!
//! Knows nothing about libraries or generations: whoever leaves something says so.

use std::sync::{Mutex, PoisonError};

/// Past any of these the engine should be replaced at the next quiet moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    pub libraries: usize,
    pub anon_kb: u64,
    /// Threads that would not stop: one is one too many.
    pub threads: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self { libraries: 64, anon_kb: 256 * 1024, threads: 0 }
    }
}

/// What was left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// A library that nothing will call again; about this much private memory stays with it.
    Library { anon_kb: u64 },
    /// An instance whose shutdown was not clean, with what it said is left.
    Instance { threads: usize, tasks: usize },
    /// A host thread that extension code does not give back (activation, shutdown).
    HostThread,
}

/// One entry, as `doctor` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grave {
    pub extension: String,
    /// 0 when it belongs to no generation.
    pub generation: u64,
    /// sha256 of the library, or empty when unknown.
    pub hash: String,
    pub left: Left,
    /// For a person: what happened.
    pub why: String,
}

impl Grave {
    fn has_threads(&self) -> bool {
        matches!(self.left, Left::HostThread | Left::Instance { threads: 1.., .. })
    }
}

/// What the graveyard holds, added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub libraries: usize,
    pub instances: usize,
    pub threads: usize,
    pub anon_kb: u64,
}

#[derive(Debug, Default)]
pub struct Graveyard {
    graves: Mutex<Vec<Grave>>,
    budget: Budget,
}

impl Graveyard {
    pub fn new(budget: Budget) -> Self {
        Self { graves: Mutex::default(), budget }
    }

    pub fn bury(&self, grave: Grave) {
        tracing::warn!(extension = %grave.extension, generation = grave.generation, left = ?grave.left, "{}", grave.why);
        self.graves.lock().unwrap_or_else(PoisonError::into_inner).push(grave);
    }

    /// A host thread that was given up came back: it is no longer lost.
    pub fn thread_came_back(&self, generation: u64) {
        let mut graves = self.graves.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = graves.iter().position(|g| g.generation == generation && g.left == Left::HostThread)
        {
            graves.remove(at);
        }
    }

    pub fn graves(&self) -> Vec<Grave> {
        self.graves.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn totals(&self) -> Totals {
        let mut sum = Totals::default();
        for grave in self.graves.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            match grave.left {
                Left::Library { anon_kb } => {
                    sum.libraries += 1;
                    sum.anon_kb += anon_kb;
                }
                Left::Instance { threads, .. } => {
                    sum.instances += 1;
                    sum.threads += threads;
                }
                Left::HostThread => sum.threads += 1,
            }
        }
        sum
    }

    /// Over twice the budget.
    pub fn badly_over(&self) -> bool {
        let (sum, max) = (self.totals(), self.budget);
        sum.threads > max.threads.saturating_mul(2).max(1)
            || sum.libraries > max.libraries.saturating_mul(2)
            || sum.anon_kb > max.anon_kb.saturating_mul(2)
    }

    /// Why the engine should be replaced, if it should.
    pub fn over_budget(&self) -> Option<String> {
        let (sum, max) = (self.totals(), self.budget);
        if sum.threads > max.threads {
            let mut whose: Vec<String> =
                self.graves().into_iter().filter(Grave::has_threads).map(|g| g.extension).collect();
            whose.sort();
            whose.dedup();
            return Some(format!("{} thread(s) of {} would not stop", sum.threads, whose.join(", ")));
        }
        if sum.libraries > max.libraries {
            return Some(format!("{} replaced libraries are still mapped", sum.libraries));
        }
        (sum.anon_kb > max.anon_kb).then(|| format!("replaced libraries hold {} MB", sum.anon_kb / 1024))
    }
}

/// Private memory of a mapped file, in KiB; 0 where the system does not say.
#[cfg(target_os = "linux")]
pub fn anon_kb(mapped: &std::path::Path) -> u64 {
    let Ok(maps) = std::fs::read_to_string("/proc/self/smaps") else { return 0 };
    let path = mapped.to_string_lossy();
    let (mut of_it, mut sum) = (false, 0);
    for line in maps.lines() {
        match line.strip_prefix("Anonymous:") {
            Some(kb) if of_it => sum += kb.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0),
            Some(_) => {}
            // The head of a mapping starts with its addresses, the others with a capital letter.
            None if line.starts_with(|c: char| c.is_ascii_hexdigit() && !c.is_ascii_uppercase()) => {
                of_it = line.ends_with(&*path);
            }
            None => {}
        }
    }
    sum
}

#[cfg(not(target_os = "linux"))]
pub fn anon_kb(_: &std::path::Path) -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grave(left: Left) -> Grave {
        Grave { extension: "greet".into(), generation: 3, hash: String::new(), left, why: "a test".into() }
    }

    #[test]
    fn replaced_libraries_are_fine_until_their_number_passes_the_budget() {
        let yard = Graveyard::new(Budget { libraries: 2, ..Budget::default() });
        yard.bury(grave(Left::Library { anon_kb: 80 }));
        yard.bury(grave(Left::Library { anon_kb: 80 }));
        assert_eq!(yard.over_budget(), None);
        yard.bury(grave(Left::Library { anon_kb: 80 }));
        assert_eq!(yard.over_budget().as_deref(), Some("3 replaced libraries are still mapped"));
        assert_eq!(yard.totals(), Totals { libraries: 3, anon_kb: 240, ..Totals::default() });
    }

    #[test]
    fn memory_alone_can_pass_the_budget() {
        let yard = Graveyard::new(Budget { anon_kb: 1000, ..Budget::default() });
        yard.bury(grave(Left::Library { anon_kb: 2048 }));
        assert_eq!(yard.over_budget().as_deref(), Some("replaced libraries hold 2 MB"));
    }

    #[test]
    fn one_lost_thread_passes_the_budget_until_it_comes_back() {
        let yard = Graveyard::default();
        yard.bury(grave(Left::HostThread));
        assert!(yard.over_budget().is_some());
        yard.thread_came_back(3);
        assert_eq!(yard.over_budget(), None);
    }
}

//! Replacing generations: `/reload`, and a new session over the same set (decisions.md
//! "/reload", boundary.md 8 and 9).
//!
//! Candidates are activated first, beside the old generations and invisible; then the old
//! are told, fenced, and all stages are published in load order in one step.

use crate::{
    calls, convert,
    dispatch::{SESSION_SHUTDOWN, SESSION_START},
    generation::{Generation, RetirePlan},
    host::{Extensions, Slot, lock},
    load::EventState,
    loading::{Activated, Names, Prepared},
    refusal::Refusal,
};
use atomic_agent::hooks::{
    ExtensionChange, Hooks, Origin, Replace, ReplaceReport, ReplacedExtension, SessionRef, ShutdownReason,
    StartReason, Swap,
};
use std::{path::Path, sync::Arc, time::Duration};

/// For all retiring generations together (boundary.md 8, step 1).
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(2);

/// What is to become of one extension.
enum Plan {
    Keep(Slot),
    Replace { old: Slot, new: Activated },
    Add(Activated),
    Remove(Slot),
}

impl Extensions {
    pub(crate) async fn replace_generations(
        &self,
        request: Replace,
        swap: Swap,
    ) -> Result<ReplaceReport, String> {
        let _one = self.replacing.lock().await;
        match request {
            Replace::Reload { names, origin } => {
                // Somebody asks for it: what was left out after a crash has another chance.
                lock(self.skipped()).retain(|s| !names.is_empty() && !names.contains(s));
                let (plans, mut report) = self.plan_reload(&names).await;
                let event = convert::session_shutdown(ShutdownReason::Reload, None, false);
                self.carry_out(plans, &event, StartReason::Reload, None, origin, swap, &mut report).await?;
                Ok(report)
            }
            Replace::Session { reason, target, previous, origin, cwd } => {
                self.session_state().prepare_next();
                let (plans, mut report) = match cwd {
                    None => self.plan_session().await,
                    Some(cwd) => self.plan_move(&cwd).await,
                };
                let told = match reason {
                    StartReason::Resume => ShutdownReason::Resume,
                    StartReason::Fork => ShutdownReason::Fork,
                    _ => ShutdownReason::New,
                };
                let event = convert::session_shutdown(told, Some(&target), false);
                self.carry_out(plans, &event, reason, Some(&previous), origin, swap, &mut report).await?;
                Ok(report)
            }
        }
    }

    /// Looks at the disk again. A named reload touches nothing else.
    async fn plan_reload(&self, names: &[String]) -> (Vec<Plan>, ReplaceReport) {
        let mut report = ReplaceReport::default();
        report.notes.extend(self.read_settings_again());
        let among = |name: &str| names.is_empty() || names.iter().any(|n| n == name);
        let mut found = self.scan(&among).await;
        report.notes.append(&mut found.notes);
        let mut old: Vec<Slot> = self.slots().clone();
        for name in names {
            let known = old.iter().any(|s| s.name == *name) || found.prepared.iter().any(|p| p.name == *name);
            if !known {
                let have: Vec<&str> = old.iter().map(|s| s.name.as_str()).collect();
                let have = match have.is_empty() {
                    true => "none is loaded".to_owned(),
                    false => format!("loaded: {}", have.join(", ")),
                };
                report.notes.push(format!("no extension is called {name:?}; {have}"));
            }
        }
        let chosen = |name: &str| names.is_empty() || names.iter().any(|n| n == name);
        let mut plans = Vec::new();
        let mut taken = Names::default();
        for p in found.prepared {
            if let Some(note) = taken.shadowed(&p) {
                report.notes.push(note);
                continue;
            }
            let at = old.iter().position(|s| s.name == p.name);
            let plan = match (at, chosen(&p.name)) {
                (Some(i), false) => Plan::Keep(old.remove(i)),
                (None, false) => continue,
                // What runs stays when its own file is bad; another file of its name is passed over.
                (Some(i), true) if p.path == old[i].path => {
                    self.candidate(old.remove(i), p, &mut report).await
                }
                (at, true) => match self.activate(p, at.map(|i| &old[i])).await {
                    Ok(new) => {
                        let gone = at.map(|i| old.remove(i));
                        let change =
                            if gone.is_some() { ExtensionChange::Reloaded } else { ExtensionChange::Added };
                        report.extensions.push(row(&new.name, change, gone.as_ref(), Some(&new), None));
                        match gone {
                            Some(old) => Plan::Replace { old, new },
                            None => Plan::Add(new),
                        }
                    }
                    Err(refusal) => {
                        found.refused.push(refusal);
                        continue;
                    }
                },
            };
            match &plan {
                Plan::Keep(s) | Plan::Add(s) | Plan::Replace { new: s, .. } => taken.take(s),
                Plan::Remove(_) => {}
            }
            plans.push(plan);
        }
        // What is left has no candidate: its file was refused, or is gone.
        for slot in old {
            let refused = found
                .refused
                .iter()
                .find(|r| slot.path.starts_with(&r.file) || r.name.as_deref() == Some(&slot.name));
            let position = plans.len();
            plans.insert(
                position,
                match refused {
                    _ if !chosen(&slot.name) => Plan::Keep(slot),
                    Some(refusal) => {
                        report.extensions.push(kept(&slot, refusal));
                        Plan::Keep(slot)
                    }
                    None => {
                        let mut line = row(&slot.name, ExtensionChange::Removed, Some(&slot), None, None);
                        line.reason = Some(match found.disabled.contains(&slot.name) {
                            true => "it is disabled".to_owned(),
                            false => format!("{} is gone", slot.path.display()),
                        });
                        report.extensions.push(line);
                        Plan::Remove(slot)
                    }
                },
            );
        }
        let held: Vec<&str> = plans
            .iter()
            .filter_map(|p| if let Plan::Keep(s) = p { Some(s.name.as_str()) } else { None })
            .collect();
        report.notes.extend(
            found
                .refused
                .iter()
                .filter(|r| {
                    !r.name.as_deref().is_some_and(|n| held.contains(&n))
                        && !self.slots().iter().any(|s| s.path == r.file)
                })
                .map(ToString::to_string),
        );
        (plans, report)
    }

    async fn candidate(&self, old: Slot, p: Prepared, report: &mut ReplaceReport) -> Plan {
        let unchanged = p.sha256 == old.library.sha256;
        match self.activate(p, Some(&old)).await {
            Ok(new) => {
                let change = if unchanged { ExtensionChange::Unchanged } else { ExtensionChange::Reloaded };
                report.extensions.push(row(&old.name, change, Some(&old), Some(&new), None));
                Plan::Replace { old, new }
            }
            Err(refusal) => {
                report.extensions.push(kept(&old, &refusal));
                Plan::Keep(old)
            }
        }
    }

    /// The loaded set under new generations, without reading the disk. A failing activation is
    /// a diagnostic; the session opens without it.
    async fn plan_session(&self) -> (Vec<Plan>, ReplaceReport) {
        let mut report = ReplaceReport::default();
        let old: Vec<Slot> = self.slots().clone();
        let mut plans = Vec::new();
        for slot in old {
            plans.push(self.again(slot, &mut report).await);
        }
        (plans, report)
    }

    async fn again(&self, slot: Slot, report: &mut ReplaceReport) -> Plan {
        match self.activate_again(&slot).await {
            Ok(new) => Plan::Replace { old: slot, new },
            Err(refusal) => {
                let mut line = row(&slot.name, ExtensionChange::Removed, Some(&slot), None, None);
                line.reason = Some(refusal.why.sentence());
                report.extensions.push(line);
                report.notes.push(refusal.to_string());
                Plan::Remove(slot)
            }
        }
    }

    /// What the other directory has, as far as it is trusted: the disk is looked at again. What is
    /// loaded already and could not be loaded now goes on under a new generation, as in any other
    /// new session.
    async fn plan_move(&self, cwd: &Path) -> (Vec<Plan>, ReplaceReport) {
        self.trust.move_to(cwd);
        let (planned, mut report) = self.plan_reload(&[]).await;
        let mut plans = Vec::new();
        for plan in planned {
            plans.push(match plan {
                Plan::Keep(slot) => self.again(slot, &mut report).await,
                other => other,
            });
        }
        (plans, report)
    }

    #[allow(clippy::too_many_arguments)] // one call site a kind; a struct would only rename them
    async fn carry_out(
        &self,
        plans: Vec<Plan>,
        shutdown: &Arc<EventState>,
        reason: StartReason,
        previous: Option<&SessionRef>,
        origin: Option<Origin>,
        swap: Swap,
        report: &mut ReplaceReport,
    ) -> Result<(), String> {
        let going = |g: &Generation| {
            plans.iter().any(|p| match p {
                Plan::Replace { old, .. } | Plan::Remove(old) => old.generation.number() == g.number(),
                Plan::Keep(_) | Plan::Add(_) => false,
            })
        };
        let late = self.shut_down(going, shutdown, SHUTDOWN_LIMIT).await;
        for name in late {
            report
                .notes
                .push(format!("{name} did not answer session_shutdown within 2 s and was replaced anyway"));
        }

        let mut slots = Vec::new();
        let mut retiring = Vec::new();
        let mut started = Vec::new();
        for plan in plans {
            match plan {
                Plan::Keep(slot) => slots.push(slot),
                Plan::Remove(old) => retiring.push(old),
                Plan::Replace { old, new } => {
                    retiring.push(old);
                    started.push(new.generation.clone());
                    slots.push(new);
                }
                Plan::Add(new) => {
                    started.push(new.generation.clone());
                    slots.push(new);
                }
            }
        }
        slots.sort_by_key(|s| s.rank);
        let carrier = |s: &Slot| {
            origin.filter(|o| o.generation == s.generation.number()).map(|o| o.call).filter(|c| *c != 0)
        };
        for old in &retiring {
            old.generation.fence(carrier(old));
        }
        let swapped = swap();
        *self.slots() = slots;
        self.session_state().begin_next();
        for generation in &started {
            // Fenced meanwhile: the host is closing.
            let _ = generation.commit();
        }
        report.notes.extend(self.publish());

        let event = convert::session_start(reason, previous);
        if let Some(subs) = self.subs(SESSION_START) {
            let new: Vec<_> = subs
                .iter()
                .filter(|s| started.iter().any(|g| g.number() == s.generation.number()))
                .cloned()
                .collect();
            self.notify_all(SESSION_START, &new, &event).await;
        }
        // From here on only the policies that the new code gave are in force.
        for slot in self.slots().clone() {
            if started.iter().any(|g| g.number() == slot.generation.number()) {
                calls::tables::end_policies(slot.owner, Some(slot.generation.number()));
            }
        }
        self.resources_discover(reason).await;

        for old in retiring {
            let Some(host) = self.weak().upgrade() else { break };
            let plan = RetirePlan::new(carrier(&old));
            let gone = !self.slots().iter().any(|s| s.owner == old.owner);
            if gone {
                calls::tables::end_policies(old.owner, None);
            }
            self.runtime().spawn(async move {
                let owner = old.owner;
                let (library, name, number) =
                    (old.library.clone(), old.name.clone(), old.generation.number());
                host.retire(old, plan).await;
                host.left_mapped(&library, &name, number);
                if gone {
                    calls::disown(owner);
                }
            });
        }
        swapped
    }

    /// `session_shutdown` to the chosen generations side by side, outside the session queue;
    /// answers the names of those who did not answer in time.
    pub(crate) async fn shut_down(
        &self,
        chosen: impl Fn(&Generation) -> bool,
        event: &Arc<EventState>,
        limit: Duration,
    ) -> Vec<String> {
        let Some(subs) = self.subs(SESSION_SHUTDOWN) else { return Vec::new() };
        let mut groups: Vec<(u64, String, Vec<crate::registry::Sub>)> = Vec::new();
        for sub in subs.iter().filter(|s| chosen(&s.generation)) {
            let number = sub.generation.number();
            match groups.iter_mut().find(|(n, ..)| *n == number) {
                Some((.., list)) => list.push(sub.clone()),
                None => groups.push((number, sub.registered.name.clone(), vec![sub.clone()])),
            }
        }
        let tell = groups.into_iter().map(|(_, name, subs)| {
            let (event, me) = (event.clone(), self.weak());
            // On a thread that may be lost: a synchronous handler can block where it is called.
            let runtime = self.runtime().clone();
            let told = self.runtime().spawn_blocking(move || {
                if let Some(host) = me.upgrade() {
                    runtime.block_on(host.tell_apart(SESSION_SHUTDOWN, &subs, &event));
                }
            });
            async move { tokio::time::timeout(limit, told).await.is_err().then_some(name) }
        });
        futures_util::future::join_all(tell).await.into_iter().flatten().collect()
    }
}

fn row(
    name: &str,
    change: ExtensionChange,
    old: Option<&Slot>,
    new: Option<&Slot>,
    reason: Option<String>,
) -> ReplacedExtension {
    let version = |s: &Slot| s.library.manifest.version.clone();
    ReplacedExtension {
        name: name.to_owned(),
        change,
        from_version: old.map(version),
        to_version: new.map(version),
        reason,
    }
}

fn kept(old: &Slot, refusal: &Refusal) -> ReplacedExtension {
    let reason = format!("{} ({}); {}", refusal.why.sentence(), refusal.code(), refusal.help());
    row(&old.name, ExtensionChange::Kept, Some(old), None, Some(reason))
}

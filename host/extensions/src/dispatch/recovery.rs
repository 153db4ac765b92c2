//! `session_recovery_restore`, `session_recovery_replay` (events.md A.3), and the decision about
//! a provider's cache (A.6): what little each of them collects or chains.

use super::{CACHE_WARMING_DECISION, SESSION_RECOVERY_REPLAY, SESSION_RECOVERY_RESTORE, chain::Step};
use crate::{convert, host::Extensions};
use atomic_agent::decisions::{ReplayAction, ReplayDecisions, RestoreReason, WarmingAction, WarmingDecision};
use serde::Deserialize;
use serde_json::Value;
use std::collections::HashSet;

impl Extensions {
    pub(super) async fn restored(&self, reason: RestoreReason) -> Vec<String> {
        let mut notices = Vec::new();
        let Some(subs) = self.subs(SESSION_RECOVERY_RESTORE) else { return notices };
        let event = convert::session_recovery_restore(reason);
        self.chain(
            SESSION_RECOVERY_RESTORE,
            &subs,
            &mut notices,
            |_| event.clone(),
            |notices, answer, _| {
                let Some(o) = answer.known(&["notices"])? else { return Ok(Step::Unchanged) };
                let lines: Vec<Value> = convert::read(o, "notices")?.unwrap_or_default();
                notices.extend(lines.iter().filter_map(Value::as_str).map(str::to_owned));
                Ok(Step::Unchanged)
            },
        )
        .await;
        notices
    }

    pub(super) async fn replayed(&self, pending: Vec<Value>) -> ReplayDecisions {
        let mut decisions = ReplayDecisions::new();
        let Some(subs) = self.subs(SESSION_RECOVERY_REPLAY) else { return decisions };
        let known: HashSet<String> =
            pending.iter().filter_map(|p| p.get("entryId")?.as_str()).map(str::to_owned).collect();
        let event = convert::session_recovery_replay(pending);
        self.chain(
            SESSION_RECOVERY_REPLAY,
            &subs,
            &mut decisions,
            |_| event.clone(),
            |decisions, answer, sub| {
                let Some(o) = answer.known(&["decisions"])? else { return Ok(Step::Unchanged) };
                for decision in convert::read::<Vec<Value>>(o, "decisions")?.unwrap_or_default() {
                    let id = decision.get("entryId").and_then(Value::as_str).unwrap_or_default();
                    let action = decision.get("action").and_then(|a| ReplayAction::deserialize(a).ok());
                    match action.filter(|_| known.contains(id)) {
                        Some(action) => drop(decisions.insert(id.to_owned(), action)),
                        None => {
                            let why = format!("no decision about what is pending: {decision}");
                            self.diagnose(sub.generation.owner(), "session_recovery_replay", &why);
                        }
                    }
                }
                Ok(Step::Unchanged)
            },
        )
        .await;
        decisions
    }

    pub(super) async fn warming(&self, decision: WarmingDecision) -> WarmingAction {
        let mut value = decision;
        let Some(subs) = self.subs(CACHE_WARMING_DECISION) else { return value.action };
        self.chain(CACHE_WARMING_DECISION, &subs, &mut value, convert::cache_warming, |value, answer, _| {
            let Some(o) = answer.known(&["action"])? else { return Ok(Step::Unchanged) };
            let Some(action) = convert::read::<WarmingAction>(o, "action")? else {
                return Ok(Step::Unchanged);
            };
            value.action = action;
            Ok(Step::Changed)
        })
        .await;
        value.action
    }
}

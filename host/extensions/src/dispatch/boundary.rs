//! Boundary (events.md A.5): each handler sees the entries proposed so far and what the model
//! would be shown with them; a field it returns replaces that field as a whole. What cannot be
//! written is a diagnostic of whoever proposed it, and a later handler may mend it.

use super::{
    AGENT_BEFORE_SETTLE, TURN_END,
    invoke::{Asked, FirstPoll, ask, event_name},
    outcome::Answer,
};
use crate::{convert, host::Extensions, registry::Sub};
use atomic_agent::boundary::{Board, Boundary, Proposer};
use serde_json::Value;

pub(super) fn index(boundary: &Boundary<'_>) -> usize {
    match boundary {
        Boundary::TurnEnd(_) => TURN_END,
        Boundary::BeforeSettle { .. } => AGENT_BEFORE_SETTLE,
    }
}

impl Extensions {
    pub(super) async fn at_boundary(&self, subs: &[Sub], boundary: &Boundary<'_>, board: &mut Board) {
        let event = index(boundary);
        for sub in subs.iter().filter(|s| !s.suspended()) {
            // Anew for each, also after one that failed: the session may have moved.
            let state = convert::boundary(boundary, board);
            let limit = Some(self.config().handler_timeout);
            let asked = ask(sub, event, &state, FirstPoll::There, limit, self.watchdog()).await;
            let Asked::Answered(bytes) = &asked else {
                self.note_fault(sub, event, &asked);
                continue;
            };
            let proposed = Answer::decode(bytes).and_then(|a| {
                let Some(o) = a.known(&["entries", "continue"])? else { return Ok(()) };
                let entries = convert::read::<Vec<Value>>(o, "entries")?;
                let goes_on = convert::read::<bool>(o, "continue")?;
                let by = Proposer { name: sub.registered.name.clone(), path: sub.registered.path.clone() };
                board.propose(by, entries, goes_on)
            });
            if let Err(why) = proposed {
                self.diagnose(sub.generation.owner(), event_name(event), &why);
            }
        }
    }
}

//! Chain and collect (events.md U5, U6): each handler sees the value as the one before left
//! it; a fault leaves the value as it was and is one diagnostic. A handler that changes
//! something starts a new state, the others share one (boundary.md 4).

use super::{
    invoke::{Asked, FirstPoll, ask, event_name},
    outcome::Answer,
};
use crate::{host::Extensions, load::EventState, registry::Sub};
use std::sync::Arc;

/// What an answer did to the value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Unchanged,
    Changed,
    Stop,
}

impl Extensions {
    /// `state` makes the event of the value; `apply` merges one answer into it, or says why it
    /// cannot be read.
    pub(super) async fn chain<V: Send>(
        &self,
        event: usize,
        subs: &[Sub],
        value: &mut V,
        state: impl Fn(&V) -> Arc<EventState> + Send,
        mut apply: impl FnMut(&mut V, Answer, &Sub) -> Result<Step, String> + Send,
    ) {
        let mut current = state(value);
        for sub in subs {
            if sub.suspended() {
                // Told when it overran; each further wait for it would be lost time.
                continue;
            }
            let asked = ask(
                sub,
                event,
                &current,
                FirstPoll::There,
                Some(self.config().handler_timeout),
                self.watchdog(),
            )
            .await;
            let Asked::Answered(bytes) = &asked else {
                self.note_fault(sub, event, &asked);
                continue;
            };
            match Answer::decode(bytes).and_then(|a| apply(value, a, sub)) {
                Ok(Step::Unchanged) => {}
                Ok(Step::Changed) => current = state(value),
                Ok(Step::Stop) => return,
                Err(why) => self.diagnose(sub.generation.owner(), event_name(event), &why),
            }
        }
    }
}

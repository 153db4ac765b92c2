//! Veto (events.md A.3.1): the last answer counts as a whole, and the first that cancels ends
//! the question. A fault neither cancels nor takes an earlier answer back.

use super::{
    EVENTS,
    invoke::{Asked, FirstPoll, ask, event_name},
    outcome::Answer,
};
use crate::{host::Extensions, load::EventState, registry::Sub};
use atomic_agent::decisions::Veto;
use serde_json::Value;
use std::sync::Arc;

impl Extensions {
    /// `known`: the keys that make an object an answer.
    pub(super) async fn veto(
        &self,
        event: usize,
        subs: &[Sub],
        state: &Arc<EventState>,
        known: &[&str],
    ) -> Veto {
        debug_assert!(EVENTS.get(event).is_some_and(|row| row.class == super::Class::Veto));
        let mut veto = Veto::default();
        for sub in subs.iter().filter(|s| !s.suspended()) {
            let limit = Some(self.config().handler_timeout);
            let asked = ask(sub, event, state, FirstPoll::There, limit, self.watchdog()).await;
            let Asked::Answered(bytes) = &asked else {
                self.note_fault(sub, event, &asked);
                continue;
            };
            let read = Answer::decode(bytes).and_then(|a| {
                let answer = a.known(known)?.cloned();
                let cancels = match answer.as_ref().and_then(|o| o.get("cancel")) {
                    None | Some(Value::Null) => false,
                    Some(Value::Bool(yes)) => *yes,
                    Some(other) => return Err(format!("malformed result: cancel is {other}")),
                };
                Ok((answer, cancels))
            });
            match read {
                Err(why) => self.diagnose(sub.generation.owner(), event_name(event), &why),
                Ok((None, _)) => {}
                Ok((answer, cancels)) => {
                    veto.result = answer;
                    if cancels {
                        veto.cancelled_by = Some(sub.registered.name.clone());
                        return veto;
                    }
                }
            }
        }
        veto
    }
}

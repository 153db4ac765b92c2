//! Notify (events.md U2, U5): one handler after another, results ignored, a fault is one
//! diagnostic and the next handler runs.

use super::{
    EVENTS,
    invoke::{Asked, FirstPoll, ask},
};
use crate::{host::Extensions, load::EventState, registry::Sub};
use std::{sync::Arc, time::Duration};

impl Extensions {
    pub(crate) async fn notify_all(&self, event: usize, subs: &[Sub], state: &Arc<EventState>) {
        let high_rate = EVENTS.get(event).is_some_and(|e| e.high_rate);
        for sub in subs {
            let suspended = sub.suspended();
            if high_rate && suspended {
                continue;
            }
            // Who owes an answer already hears it, but is not waited for.
            let limit = if suspended { Duration::ZERO } else { self.config().handler_timeout };
            let asked = ask(sub, event, state, FirstPoll::Here, Some(limit), self.watchdog()).await;
            if !(suspended && matches!(asked, Asked::Overran(_))) {
                self.note_fault(sub, event, &asked);
            }
        }
    }

    /// As `notify_all`, but nothing of it is polled on this thread: for handlers of several
    /// generations side by side.
    pub(crate) async fn tell_apart(&self, event: usize, subs: &[Sub], state: &Arc<EventState>) {
        for sub in subs {
            let asked = ask(
                sub,
                event,
                state,
                FirstPoll::There,
                Some(self.config().handler_timeout),
                self.watchdog(),
            )
            .await;
            self.note_fault(sub, event, &asked);
        }
    }
}

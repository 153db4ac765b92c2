//! `context` and `context_with_system` (events.md A.6): two chains over what a model is shown.
//! The messages are shared with the event: a handler pays for what it reads, and messages that
//! nobody changed come back as they went in.

use super::{CONTEXT, CONTEXT_WITH_SYSTEM, chain::Step, invoke::event_name};
use crate::{convert, host::Extensions};
use atomic_agent::message::Message;
use serde::Deserialize;
use std::sync::Arc;

impl Extensions {
    pub(super) async fn through(&self, event: usize, messages: Arc<Vec<Message>>) -> Arc<Vec<Message>> {
        debug_assert!([CONTEXT, CONTEXT_WITH_SYSTEM].contains(&event));
        let Some(subs) = self.subs(event) else { return messages };
        let mut value = messages;
        self.chain(
            event,
            &subs,
            &mut value,
            |m| convert::context(event_name(event), m.clone()),
            |messages, mut answer, sub| {
                let patched = answer.patched("messages");
                let returned = answer.known(&["messages"])?.and_then(|o| o.get("messages")).cloned();
                let Some(new) = returned.or(patched).filter(|v| !v.is_null()) else {
                    return Ok(Step::Unchanged);
                };
                let new = Vec::<Message>::deserialize(new)
                    .map_err(|e| format!("malformed result: messages: {e}"))?;
                let headless = |m: &[Message]| !matches!(m.first(), Some(Message::System(_)));
                if event == CONTEXT_WITH_SYSTEM && headless(&new) && !headless(messages) {
                    let why = "the leading system message was removed: the model gets no prompt from it";
                    self.diagnose(sub.generation.owner(), event_name(event), why);
                }
                *messages = Arc::new(new);
                Ok(Step::Changed)
            },
        )
        .await;
        value
    }
}

//! `sendMessage` and `sendMessages`: which of the ten rows of events.md E.4 a message takes,
//! and taking it. The rows are read top down; a batch has no row 4.

use crate::{
    core::{Core, Reply},
    event::Event,
    hooks::StreamingBehavior,
    jobs::RunStart,
    message::{CustomMessage, Extra, Message, now_ms},
    op::{DeliverAs, OutgoingMessage, SendOptions},
    ops::cancel_runs,
    queue::Queued,
    session::{RECONCILIATION, SessionError},
};
use serde_json::{Value, json};

/// What there is when a message comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Situation {
    streaming: bool,
    paused: bool,
}

/// Where it goes; the number is that of its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    /// 1: injected after the next message of the user.
    Hold,
    /// 2, 6, 8: `persist` writes it first.
    Queue { place: StreamingBehavior, persist: bool },
    /// 4: ends the run, then starts one.
    Interrupt,
    /// 3, 5, 7, 10: into the transcript, no run.
    Append,
    /// 9: starts a run.
    Start,
}

/// A message that must not be lost: written when it is admitted, marked when a run takes it.
fn protected(o: &SendOptions) -> bool {
    o.persist_when_streaming && o.trigger_turn == Some(true) && !o.exclude_from_context
}

fn route(o: &SendOptions, at: Situation, batch: bool) -> Route {
    let triggers = o.trigger_turn == Some(true);
    let place = match o.deliver_as {
        Some(DeliverAs::FollowUp) => StreamingBehavior::FollowUp,
        _ => StreamingBehavior::Steer,
    };
    if o.deliver_as == Some(DeliverAs::NextTurn) {
        return Route::Hold;
    }
    if at.paused {
        return if triggers { Route::Queue { place, persist: protected(o) } } else { Route::Append };
    }
    if triggers && !batch && o.deliver_as == Some(DeliverAs::Interrupt) {
        return Route::Interrupt;
    }
    if !at.streaming {
        return if triggers { Route::Start } else { Route::Append };
    }
    if o.exclude_from_context && !triggers && o.deliver_as.is_none() {
        return Route::Append;
    }
    if protected(o) {
        return Route::Queue { place, persist: true };
    }
    if o.persist_when_streaming || o.trigger_turn == Some(false) {
        return Route::Append;
    }
    Route::Queue { place, persist: false }
}

fn custom(message: OutgoingMessage, options: &SendOptions) -> CustomMessage {
    let mut extra = Extra::new();
    if let Some(key) = &options.stage_admission_key {
        extra.insert("stageAdmissionKey".into(), key.clone().into());
    }
    CustomMessage {
        custom_type: message.custom_type,
        content: message.content,
        display: message.display,
        details: message.details,
        timestamp: now_ms(),
        extra,
    }
}

impl Core {
    pub(crate) fn send_message(&self, message: OutgoingMessage, options: SendOptions, reply: Reply) {
        self.admit_messages(vec![message], options, false, reply);
    }

    /// All of them in their order, at most one run.
    pub(crate) fn send_messages(&self, messages: Vec<OutgoingMessage>, options: SendOptions, reply: Reply) {
        self.admit_messages(messages, options, true, reply);
    }

    fn admit_messages(
        &self,
        messages: Vec<OutgoingMessage>,
        options: SendOptions,
        batch: bool,
        reply: Reply,
    ) {
        let customs = messages.into_iter().map(|m| custom(m, &options)).collect();
        let done = self.admit_customs(customs, options, batch);
        reply.send(done.map(|()| Value::Null).map_err(Into::into));
    }

    fn admit_customs(
        &self,
        mut customs: Vec<CustomMessage>,
        options: SendOptions,
        batch: bool,
    ) -> Result<(), SessionError> {
        let situation = {
            let state = self.state();
            Situation { streaming: !state.idle(), paused: state.queue.paused }
        };
        match route(&options, situation, batch) {
            Route::Hold => self.state().next_turn.extend(customs),
            Route::Append => {
                for custom in customs {
                    self.append_outside(custom, options.exclude_from_context)?;
                }
            }
            Route::Interrupt => {
                let Some(custom) = customs.pop() else { return Ok(()) };
                let mut state = self.state();
                if !state.idle() {
                    state.abort_text = options.interrupt_abort_message;
                }
                cancel_runs(&state);
                self.accept_run(&mut state, RunStart::Custom(custom), Reply(None));
            }
            Route::Start => self.start_with(customs)?,
            Route::Queue { place, persist } => {
                if persist {
                    for custom in &mut customs {
                        self.keep(custom, place)?;
                    }
                }
                let mut state = self.state();
                // The run may have settled since: what was promised a run starts one.
                if situation.streaming && !state.queue.paused && state.idle() {
                    drop(state);
                    return self.start_with(customs);
                }
                for custom in customs {
                    state.queue.push(place, Queued::Custom(custom));
                }
                drop(state);
                self.queue_changed();
            }
        }
        Ok(())
    }

    /// Only the op loop accepts runs, and this is it: an idle engine stays idle until here.
    fn start_with(&self, mut customs: Vec<CustomMessage>) -> Result<(), SessionError> {
        let Some(last) = customs.pop() else { return Ok(()) };
        for custom in customs {
            self.append_outside(custom, false)?;
        }
        self.accept_run(&mut self.state(), RunStart::Custom(last), Reply(None));
        Ok(())
    }

    /// Written now, out of the model's sight; the message that a run takes later names this entry,
    /// so that what no run has taken can be found after a crash.
    fn keep(&self, custom: &mut CustomMessage, place: StreamingBehavior) -> Result<(), SessionError> {
        let mut kept = custom.clone();
        kept.display = false;
        let note = json!({"delivery": place, "display": custom.display});
        kept.extra.insert(RECONCILIATION.into(), note);
        let entry = self.append_message(&Message::Custom(kept), true)?;
        custom.extra.insert(RECONCILIATION.into(), json!({"consumes": entry}));
        Ok(())
    }

    /// Into the transcript without a run; only listeners are told.
    fn append_outside(&self, custom: CustomMessage, hidden: bool) -> Result<(), SessionError> {
        let message = Message::Custom(custom);
        self.append_message(&message, hidden)?;
        self.emit_after_dispatch(Event::MessageStart { message: Box::new(message.clone()) });
        self.emit_after_dispatch(Event::MessageEnd { message: Box::new(message) });
        Ok(())
    }

    /// While it is paused nothing leaves the queue; afterwards an idle engine goes on with it.
    pub(crate) fn pause_queue(&self, paused: bool, reply: Reply) {
        let mut state = self.state();
        state.queue.paused = paused;
        if !paused
            && state.idle()
            && let Some(first) = state.queue.pop()
        {
            self.accept_run(&mut state, RunStart::Queued(first), Reply(None));
        }
        drop(state);
        self.queue_changed();
        reply.ok(Value::Null);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(json: Value) -> SendOptions {
        serde_json::from_value(json).unwrap()
    }

    /// events.md E.4, one line or more a row: options, streaming, paused, where it goes.
    #[test]
    fn each_of_the_ten_rows_is_taken_by_the_first_that_fits() {
        use StreamingBehavior::{FollowUp, Steer};
        let queue = |place| Route::Queue { place, persist: false };
        let kept = |place| Route::Queue { place, persist: true };
        let rows = [
            (1, json!({"deliverAs": "nextTurn", "triggerTurn": true}), true, true, Route::Hold),
            (2, json!({"triggerTurn": true}), false, true, queue(Steer)),
            (2, json!({"triggerTurn": true, "deliverAs": "followUp"}), true, true, queue(FollowUp)),
            (2, json!({"triggerTurn": true, "persistWhenStreaming": true}), false, true, kept(Steer)),
            (3, json!({}), true, true, Route::Append),
            (3, json!({"deliverAs": "steer"}), false, true, Route::Append),
            (4, json!({"triggerTurn": true, "deliverAs": "interrupt"}), true, false, Route::Interrupt),
            (4, json!({"triggerTurn": true, "deliverAs": "interrupt"}), false, false, Route::Interrupt),
            (5, json!({"excludeFromContext": true}), true, false, Route::Append),
            (6, json!({"triggerTurn": true, "persistWhenStreaming": true}), true, false, kept(Steer)),
            (
                6,
                json!({"triggerTurn": true, "persistWhenStreaming": true, "deliverAs": "followUp"}),
                true,
                false,
                kept(FollowUp),
            ),
            (7, json!({"persistWhenStreaming": true}), true, false, Route::Append),
            (8, json!({}), true, false, queue(Steer)),
            (8, json!({"deliverAs": "followUp"}), true, false, queue(FollowUp)),
            (8, json!({"deliverAs": "interrupt"}), true, false, queue(Steer)),
            (8, json!({"excludeFromContext": true, "deliverAs": "steer"}), true, false, queue(Steer)),
            (9, json!({"triggerTurn": true}), false, false, Route::Start),
            (9, json!({"triggerTurn": true, "deliverAs": "followUp"}), false, false, Route::Start),
            (10, json!({}), false, false, Route::Append),
            (10, json!({"triggerTurn": false}), true, false, Route::Append),
        ];
        for (row, o, streaming, paused, wanted) in rows {
            let got = route(&options(o.clone()), Situation { streaming, paused }, false);
            assert_eq!(got, wanted, "row {row}: {o}, streaming {streaming}, paused {paused}");
        }
    }

    #[test]
    fn a_batch_never_interrupts() {
        let o = options(json!({"triggerTurn": true, "deliverAs": "interrupt"}));
        let at = |streaming| Situation { streaming, paused: false };
        assert_eq!(
            route(&o, at(true), true),
            Route::Queue { place: StreamingBehavior::Steer, persist: false }
        );
        assert_eq!(route(&o, at(false), true), Route::Start);
    }

    #[test]
    fn what_is_hidden_from_the_model_is_never_protected() {
        let o = json!({"triggerTurn": true, "persistWhenStreaming": true, "excludeFromContext": true});
        assert!(!protected(&options(o)));
    }
}

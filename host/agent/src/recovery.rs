//! What follows a run that did not come to its end by itself (events.md A.4.2): asking again
//! after a while, asking another model, going on where the output limit cut an answer off.
//! Each is another agent_start … agent_end; `agent_settled` comes when none of it is left.

use crate::{
    core::Core,
    event::Event,
    faults::{self, Fault},
    hooks::ModelSource,
    message::{AssistantMessage, CustomMessage, Extra, Message, MessageContent, StopReason, now_ms},
    model::{Model, ModelInfo},
    run::{Outcome, Run},
    session::SessionError,
    told::Told,
};
use serde_json::{Map, Value};
use std::{sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;

/// What the settings `retry.*` and `modelFallbacks` say.
#[derive(Clone, Debug)]
pub struct RecoverySettings {
    pub enabled: bool,
    /// How often one request is asked again.
    pub max_retries: u32,
    /// Doubled from one attempt to the next.
    pub base_delay: Duration,
    /// A server that wants to be left alone for longer is not waited for.
    pub max_delay: Duration,
    /// `(provider, id)`, asked in this order when the model in use cannot answer.
    pub fallbacks: Vec<(String, String)>,
}

impl Default for RecoverySettings {
    fn default() -> Self {
        RecoverySettings {
            enabled: true,
            max_retries: 3,
            base_delay: Duration::from_secs(2),
            max_delay: Duration::from_secs(60),
            fallbacks: Vec::new(),
        }
    }
}

/// Answers in a row that the output limit may cut off before nobody goes on with them.
const MAX_CUT: u32 = 3;
const GO_ON: &str =
    "Your last message ran into the output limit. Go on exactly where it stopped, and repeat nothing.";
const CONTINUATION: &str = "atomic.continuation";
/// Tokens of an answer that are always asked for.
const LEAST_BUDGET: u64 = 1024;

/// What a chain of runs has tried so far.
#[derive(Default)]
pub(crate) struct Recovery {
    /// Retries of the request that is being asked.
    attempt: u32,
    /// Answers in a row that ran into the output limit.
    cut: u32,
    /// Tokens of an answer, after the provider found the model's own number too many.
    pub max_tokens: Option<u64>,
    /// How many of the fallbacks were asked.
    fallen: usize,
    /// The context was compacted because of this request.
    compacted: bool,
    /// The model that was given up, until another has answered.
    falling: Option<String>,
    /// The last answer of the run that ended, and its entry.
    last: Option<(AssistantMessage, String)>,
}

/// What comes next.
pub(crate) enum Next {
    Nothing,
    Retry {
        delay: Duration,
        said: String,
    },
    SmallerBudget(u64),
    Fallback {
        to: Arc<dyn Model>,
        said: String,
    },
    GoOn,
    /// The request was too long; it is made again with a shorter context.
    Compact,
    /// The shorter one was too long as well.
    TooLong,
}

impl Next {
    pub fn is_more(&self) -> bool {
        !matches!(self, Next::Nothing | Next::TooLong)
    }
}

impl Recovery {
    pub fn forget_answer(&mut self) {
        self.last = None;
    }
    /// Truncated too often: its calls are answered and nothing more is asked.
    pub fn gives_up_truncated(&self) -> bool {
        self.cut > MAX_CUT
    }
}

fn name(info: &ModelInfo) -> String {
    format!("{}/{}", info.provider, info.id)
}

impl Run<'_> {
    /// A whole answer is there.
    pub(crate) fn answered(&mut self, message: &AssistantMessage, entry: &str) {
        let state = &mut self.recovery;
        state.last = Some((message.clone(), entry.to_owned()));
        if message.failed() {
            return;
        }
        state.cut = if message.stop_reason == Some(StopReason::Length) { state.cut + 1 } else { 0 };
        state.compacted = false;
        let attempt = std::mem::take(&mut state.attempt);
        if attempt > 0 {
            self.core.handle.emit(Event::AutoRetryEnd { success: true, attempt, final_error: None });
        }
        if let Some(from) = self.recovery.falling.take() {
            let to = Some(name(self.model.info()));
            self.core.handle.emit(Event::ModelFallbackEnd {
                success: true,
                from: Some(from),
                to,
                final_error: None,
            });
        }
    }

    /// Decided before `agent_end`, which tells whether the run goes on.
    pub(crate) fn next(&mut self, outcome: Outcome) -> Next {
        let Some((message, _)) = &self.recovery.last else { return Next::Nothing };
        if self.cancel.is_cancelled() {
            return Next::Nothing;
        }
        if outcome == Outcome::Completed {
            let cut = message.stop_reason == Some(StopReason::Length);
            return match cut && message.tool_calls().next().is_none() {
                true if self.recovery.cut <= MAX_CUT => Next::GoOn,
                true => {
                    self.core.notify(
                        "warning",
                        "The model ran into its output limit again and again: the run ends here.",
                    );
                    Next::Nothing
                }
                false => Next::Nothing,
            };
        }
        let Some(fault) = (outcome == Outcome::Failed).then(|| faults::of(message)).flatten() else {
            return Next::Nothing;
        };
        let said = message.error_message.clone().unwrap_or_else(|| "the model failed".to_owned());
        let settings = self.core.recovery_settings();
        let retries = self.core.state().auto_retry && self.recovery.attempt < settings.max_retries;
        match fault {
            Fault::Transient { after } if retries => {
                let doubled = settings.base_delay.saturating_mul(1 << self.recovery.attempt.min(20));
                let delay = doubled.min(settings.max_delay).max(after.unwrap_or_default());
                if delay <= settings.max_delay {
                    return Next::Retry { delay, said };
                }
            }
            Fault::Transient { .. } | Fault::ThisModel => {}
            Fault::OutputBudget if self.recovery.max_tokens.is_none() => {
                return Next::SmallerBudget((self.model.info().max_tokens / 4).max(LEAST_BUDGET));
            }
            Fault::Overflow if self.recovery.compacted => return Next::TooLong,
            Fault::Overflow if self.core.state().compacting.automatic => return Next::Compact,
            Fault::OutputBudget | Fault::Overflow | Fault::Lasting => return Next::Nothing,
        }
        match self.fallback() {
            Some(to) => Next::Fallback { to, said },
            None => Next::Nothing,
        }
    }

    /// The next of the fallbacks that there is, and that is not the one that failed.
    fn fallback(&mut self) -> Option<Arc<dyn Model>> {
        let settings = self.core.recovery_settings();
        loop {
            let (provider, id) = settings.fallbacks.get(self.recovery.fallen)?;
            self.recovery.fallen += 1;
            let used = self.model.info();
            if (used.provider.as_str(), used.id.as_str()) != (provider, id)
                && let Some(model) = self.core.models.get(provider, id)
            {
                return Some(model);
            }
        }
    }

    /// Does it. `Ok`: another run begins with these messages; `Err`: how the chain ended.
    pub(crate) async fn recover(&mut self, next: Next, outcome: Outcome) -> Result<Vec<Message>, Outcome> {
        match next {
            Next::Nothing => {
                self.tell_given_up();
                return Err(outcome);
            }
            Next::GoOn => {
                return Ok(vec![Message::Custom(CustomMessage {
                    custom_type: CONTINUATION.into(),
                    content: MessageContent::Text(GO_ON.into()),
                    display: false,
                    details: None,
                    timestamp: now_ms(),
                    extra: Extra::new(),
                })]);
            }
            Next::TooLong => {
                if let Some((refused, _)) = self.recovery.last.clone() {
                    self.overflow_is_unresolved(&refused).await;
                }
                self.tell_given_up();
                return Err(outcome);
            }
            Next::Compact => {
                if !self.compact_overflow().await {
                    self.tell_given_up();
                    return Err(if self.cancel.is_cancelled() { Outcome::Aborted } else { outcome });
                }
                self.recovery.compacted = true;
            }
            Next::SmallerBudget(tokens) => self.recovery.max_tokens = Some(tokens),
            Next::Retry { delay, said } => self.wait(delay, said).await?,
            Next::Fallback { to, said } => self.fall_back(to, said),
        }
        if let Err(e) = self.drop_failed_answer() {
            self.core.notify("error", format!("The run was ended: {e}"));
            return Err(Outcome::Failed);
        }
        Ok(Vec::new())
    }

    /// The user's abort ends the run, `abort_retry` only the waiting.
    async fn wait(&mut self, delay: Duration, said: String) -> Result<(), Outcome> {
        self.recovery.attempt += 1;
        let attempt = self.recovery.attempt;
        let max_attempts = self.core.recovery_settings().max_retries;
        let given_up = CancellationToken::new();
        self.core.state().retry = Some(given_up.clone());
        let delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        self.core.handle.emit(Event::AutoRetryStart { attempt, max_attempts, delay_ms, error_message: said });
        let ended = tokio::select! {
            biased;
            () = self.cancel.cancelled() => Some(Outcome::Aborted),
            () = given_up.cancelled() => Some(Outcome::Failed),
            () = tokio::time::sleep(delay) => None,
        };
        self.core.state().retry = None;
        let Some(outcome) = ended else { return Ok(()) };
        self.recovery.attempt = 0;
        let final_error = Some("Retry cancelled".to_owned());
        self.core.handle.emit(Event::AutoRetryEnd { success: false, attempt, final_error });
        Err(outcome)
    }

    fn fall_back(&mut self, to: Arc<dyn Model>, reason: String) {
        self.end_of_retries(&reason);
        let from = self.model.clone();
        let attempt = u32::try_from(self.recovery.fallen).unwrap_or(u32::MAX);
        self.recovery.falling.get_or_insert_with(|| name(from.info()));
        self.recovery.max_tokens = None;
        self.core.handle.emit(Event::ModelFallbackStart {
            from: name(from.info()),
            to: name(to.info()),
            reason,
            attempt,
        });
        self.core.state().primary.get_or_insert(from);
        self.core.use_model(to, ModelSource::Fallback);
    }

    fn end_of_retries(&mut self, error: &str) {
        let attempt = std::mem::take(&mut self.recovery.attempt);
        if attempt > 0 {
            let final_error = Some(error.to_owned());
            self.core.handle.emit(Event::AutoRetryEnd { success: false, attempt, final_error });
        }
    }

    /// Nothing helped.
    fn tell_given_up(&mut self) {
        let failed = self.recovery.last.as_ref().map(|(m, _)| m).filter(|m| m.failed());
        let Some(error) = failed.map(|m| m.error_message.clone().unwrap_or_default()) else { return };
        self.end_of_retries(&error);
        if let Some(from) = self.recovery.falling.take() {
            self.core.handle.emit(Event::ModelFallbackEnd {
                success: false,
                from: Some(from),
                to: None,
                final_error: Some(error),
            });
        }
    }

    /// What a broken answer had said by then must not be in the way of the next one: providers
    /// refuse a request that ends with an answer, and a model would go on from it. The file keeps
    /// it.
    fn drop_failed_answer(&mut self) -> Result<(), SessionError> {
        let Some((message, entry)) = self.recovery.last.take() else { return Ok(()) };
        if message.content.iter().all(|c| c.as_text().is_none_or(|t| t.trim().is_empty())) {
            return Ok(());
        }
        let mut fields = Map::new();
        fields.insert("targetId".into(), entry.into());
        fields.insert("replacement".into(), Value::Null);
        self.core.append_shown("context_edit", fields).map(drop)
    }
}

impl Core {
    /// The model that was given up in an earlier prompt gets the next one.
    pub(crate) fn restore_primary(&self) {
        let primary = self.state().primary.take();
        if let Some(model) = primary {
            self.use_model(model, ModelSource::Restore);
        }
    }

    /// For what is asked from now on; the session's own choice stays.
    fn use_model(&self, model: Arc<dyn Model>, source: ModelSource) {
        let info = model.info().clone();
        let previous = self.state().model.replace(model).map(|m| m.info().clone());
        self.handle.update_view(|v| v.model = Some(info.clone()));
        if previous.as_ref() == Some(&info) {
            return;
        }
        self.tell_model(info, previous, source);
    }

    /// To listeners and extensions.
    pub(crate) fn tell_model(&self, model: ModelInfo, previous: Option<ModelInfo>, source: ModelSource) {
        self.emit_after_dispatch(Event::ModelChanged {
            model: Box::new(model.clone()),
            previous_model: previous.clone().map(Box::new),
            source,
        });
        self.tell(Told::ModelSelect { model: Box::new(model), previous: previous.map(Box::new), source });
    }
}

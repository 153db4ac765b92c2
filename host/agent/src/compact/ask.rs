//! A request beside the conversation, a planner's or for a summary: like any other to whoever
//! changes headers and bodies, and nothing that is shown while it comes. What fails by chance is
//! asked again.

use super::settings::CompactReason;
use crate::{
    core::Core,
    event::Event,
    faults::{self, Fault},
    message::{AssistantEvent, AssistantMessage},
    model::{Model, ModelInfo, ModelRequest, StreamSink},
};
use async_trait::async_trait;
use serde_json::Value;
use std::collections::BTreeMap;
use tokio_util::sync::CancellationToken;

/// What listeners are told it is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asking {
    /// `compaction`, with its reason, or `branchSummary`.
    pub source: &'static str,
    pub reason: Option<CompactReason>,
}

/// `None`: it was stopped. A failure is the message's own.
pub(crate) async fn ask(
    core: &Core,
    model: &dyn Model,
    request: ModelRequest,
    asking: Asking,
    cancel: &CancellationToken,
) -> Option<AssistantMessage> {
    let settings = core.recovery_settings();
    let mut attempt = 0;
    let answer = loop {
        let answer = once(core, model, request.clone(), cancel).await?;
        let Some(Fault::Transient { after }) = faults::of(&answer) else { break answer };
        let delay = settings.base_delay.saturating_mul(1 << attempt.min(20)).min(settings.max_delay);
        let delay = delay.max(after.unwrap_or_default());
        if !core.state().auto_retry || attempt >= settings.max_retries || delay > settings.max_delay {
            break answer;
        }
        attempt += 1;
        core.handle.emit(Event::SummarizationRetryScheduled {
            attempt,
            max_attempts: settings.max_retries,
            delay_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
            error_message: answer.error_message.unwrap_or_default(),
        });
        let waited = cancel.run_until_cancelled(tokio::time::sleep(delay)).await;
        if waited.is_none() {
            core.handle.emit(Event::SummarizationRetryFinished);
            return None;
        }
        core.handle.emit(Event::SummarizationRetryAttemptStart {
            source: asking.source.to_owned(),
            reason: asking.reason,
        });
    };
    if attempt > 0 {
        core.handle.emit(Event::SummarizationRetryFinished);
    }
    Some(answer)
}

/// Dropping the stream is what ends a model that does not hear.
async fn once(
    core: &Core,
    model: &dyn Model,
    request: ModelRequest,
    cancel: &CancellationToken,
) -> Option<AssistantMessage> {
    let mut sink = Quiet { core, info: model.info(), cancel };
    let answer = cancel.run_until_cancelled(model.stream(request, &mut sink, cancel)).await?;
    (!cancel.is_cancelled()).then_some(answer)
}

struct Quiet<'a> {
    core: &'a Core,
    info: &'a ModelInfo,
    cancel: &'a CancellationToken,
}

#[async_trait]
impl StreamSink for Quiet<'_> {
    async fn headers(&mut self, headers: &mut BTreeMap<String, Option<String>>) {
        let hooks = &self.core.hooks;
        self.core.dispatch(self.cancel, hooks.before_provider_headers(headers, self.info)).await;
    }
    async fn payload(&mut self, payload: &mut Value) {
        self.core.dispatch(self.cancel, self.core.hooks.before_provider_request(payload)).await;
    }
    async fn response(&mut self, _: u16, _: BTreeMap<String, String>) {}
    async fn provider_event(&mut self, _: &Value) {}
    async fn event(&mut self, _: AssistantEvent) {}
}

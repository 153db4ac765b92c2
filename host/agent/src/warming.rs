//! Keeps a provider's cache of the prompt warm while nothing is asked of it (events.md A.6): just
//! before it would be forgotten the last request is sent again, and given up as soon as the answer
//! begins. Off by default: it costs money to save money.

use crate::{
    core::Core,
    decisions::{WarmingAction, WarmingDecision},
    handle::Mode,
    hooks::Notice,
    message::{AssistantEvent, AssistantMessage, StopReason},
    model::{Model, ModelInfo, ModelRequest, StreamSink},
};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::CancellationToken;

/// When a cache is kept warm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WarmingMode {
    #[default]
    Off,
    /// While a run goes on, that is, while its tools take long.
    Streaming,
    /// Also while nothing runs, where somebody may go on.
    Idle,
}

impl WarmingMode {
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "off" => Some(WarmingMode::Off),
            "streaming" => Some(WarmingMode::Streaming),
            "idle" => Some(WarmingMode::Idle),
            _ => None,
        }
    }
}

/// That the next request comes at all.
const WHILE_RUNNING: f64 = 1.0;
const WHILE_IDLE: f64 = 0.15;
/// Dollars that have to be expected from it.
const WORTH: f64 = 0.05;
/// From the last request that was meant.
const LONGEST_RUNNING: Duration = Duration::from_secs(3600);
const LONGEST_IDLE: Duration = Duration::from_secs(1800);
/// Between two, however short a provider's memory is.
const LEAST_GAP: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(crate) struct Warming(Mutex<Kept>, Notify);

#[derive(Default)]
struct Kept {
    mode: WarmingMode,
    last: Option<Last>,
    count: u64,
}

/// What the provider has in its cache.
#[derive(Clone)]
struct Last {
    number: u64,
    model: Arc<dyn Model>,
    request: Arc<ModelRequest>,
    /// Tokens of the prompt.
    tokens: u64,
    asked: Instant,
    due: Instant,
}

impl Warming {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn set_mode(&self, mode: WarmingMode) {
        self.kept().mode = mode;
    }

    /// A copy of a request that may be worth keeping.
    pub fn copy(&self, model: &ModelInfo, request: &ModelRequest) -> Option<ModelRequest> {
        let mut kept = self.kept();
        // What is being asked warms by itself.
        kept.last = None;
        (kept.mode != WarmingMode::Off && model.cache_ttl_seconds.is_some()).then(|| request.clone())
    }

    /// It was answered.
    pub fn keep(&self, model: Arc<dyn Model>, request: ModelRequest, answer: &AssistantMessage) {
        let usage = &answer.usage;
        let tokens = usage.input + usage.cache_read + usage.cache_write;
        let (false, Some(after)) = (answer.failed() || tokens == 0, pause(model.info())) else { return };
        let mut kept = self.kept();
        kept.count += 1;
        let (number, now) = (kept.count, Instant::now());
        let request = Arc::new(request);
        kept.last = Some(Last { number, model, request, tokens, asked: now, due: now + after });
        drop(kept);
        self.1.notify_one();
    }

    fn forget(&self, number: u64) {
        let mut kept = self.kept();
        if kept.last.as_ref().is_some_and(|l| l.number == number) {
            kept.last = None;
        }
    }
}

/// How long after a request its cache is to be touched again.
fn pause(info: &ModelInfo) -> Option<Duration> {
    let ttl = Duration::from_secs(info.cache_ttl_seconds?);
    Some(ttl.mul_f64(0.9).min(ttl.saturating_sub(Duration::from_secs(10))))
}

/// Never returns.
pub(crate) async fn serve(core: &Arc<Core>) {
    loop {
        let due = core.warming.kept().last.clone();
        match due {
            None => core.warming.1.notified().await,
            Some(last) => {
                tokio::select! {
                    biased;
                    () = core.warming.1.notified() => {}
                    () = tokio::time::sleep_until(last.due) => core.warm(last).await,
                }
            }
        }
    }
}

impl Core {
    async fn warm(&self, last: Last) {
        let running = !self.state().idle();
        let lasting = self.handle.view(|v| matches!(v.mode, Mode::Tui | Mode::Rpc));
        let mode = self.warming.kept().mode;
        let (allowed, longest, probability) = match running {
            true => (mode != WarmingMode::Off, LONGEST_RUNNING, WHILE_RUNNING),
            false => (mode == WarmingMode::Idle && lasting, LONGEST_IDLE, WHILE_IDLE),
        };
        if !allowed || last.asked.elapsed() > longest {
            return self.warming.forget(last.number);
        }
        let cost = &last.model.info().cost;
        let dollars = |per_million: f64| last.tokens as f64 * per_million / 1_000_000.0;
        let warm_cost = dollars(cost.cache_read);
        // Where writing costs nothing of its own, a miss costs what new tokens cost.
        let anew = if cost.cache_write > 0.0 { cost.cache_write } else { cost.input };
        let miss_cost = (dollars(anew) - warm_cost).max(0.0);
        let worth = probability * miss_cost - warm_cost >= WORTH;
        let decision = WarmingDecision {
            warm_cost,
            miss_cost,
            continuation_probability: probability,
            action: if worth { WarmingAction::Warm } else { WarmingAction::Stop },
        };
        let asked = self.dispatch(&self.stopped, self.hooks.cache_warming_decision(decision)).await;
        let now = self.warming.kept().last.as_ref().is_some_and(|l| l.number == last.number);
        if asked != Some(WarmingAction::Warm) || !now {
            return self.warming.forget(last.number);
        }
        let cancel = self.stopped.child_token();
        let mut sink = Touch { core: self, info: last.model.info(), cancel: cancel.clone(), begun: false };
        let answer = last.model.stream((*last.request).clone(), &mut sink, &cancel).await;
        // Given up when it began, or so short that it ended first.
        let touched =
            sink.begun || !matches!(answer.stop_reason, Some(StopReason::Error | StopReason::Aborted));
        if !touched {
            return self.warming.forget(last.number);
        }
        self.record_warming(last.model.info(), &answer);
        let mut kept = self.warming.kept();
        if let Some(same) = kept.last.as_mut().filter(|l| l.number == last.number) {
            same.due = Instant::now() + pause(last.model.info()).unwrap_or_default().max(LEAST_GAP);
        }
    }

    fn record_warming(&self, info: &ModelInfo, answer: &AssistantMessage) {
        let mut fields = Map::new();
        fields.insert("kind".into(), "cache_warm".into());
        fields.insert("provider".into(), info.provider.clone().into());
        fields.insert("model".into(), info.id.clone().into());
        fields.insert("usage".into(), serde_json::to_value(&answer.usage).unwrap_or_default());
        if let Err(e) = self.append_shown("usage", fields) {
            self.notify("error", e.to_string());
        }
    }
}

/// Hears a request that is only to touch the cache. What hooks make of headers and body belongs to
/// the cache's key; what the provider says is nobody's business.
struct Touch<'c> {
    core: &'c Core,
    info: &'c ModelInfo,
    cancel: CancellationToken,
    begun: bool,
}

#[async_trait]
impl StreamSink for Touch<'_> {
    async fn headers(&mut self, headers: &mut BTreeMap<String, Option<String>>) {
        let call = self.core.hooks.before_provider_headers(headers, self.info);
        self.core.dispatch(&self.core.stopped, call).await;
    }
    async fn payload(&mut self, payload: &mut Value) {
        let call = self.core.hooks.before_provider_request(payload);
        self.core.dispatch(&self.core.stopped, call).await;
    }
    async fn response(&mut self, status: u16, headers: BTreeMap<String, String>) {
        let notice = Notice::AfterProviderResponse { status, headers: &headers };
        if self.core.hooks.hears(&notice) {
            self.core.dispatch(&self.core.stopped, self.core.hooks.notify(notice)).await;
        }
    }
    async fn provider_event(&mut self, _: &Value) {}
    async fn event(&mut self, event: AssistantEvent) {
        if !matches!(event, AssistantEvent::Start | AssistantEvent::Error { .. }) && !self.begun {
            self.begun = true;
            self.cancel.cancel();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_is_touched_before_it_is_forgotten_and_one_of_unknown_memory_never() {
        for (ttl, after) in [(Some(300), Some(270)), (Some(60), Some(50)), (Some(10), Some(0)), (None, None)]
        {
            let info = ModelInfo { cache_ttl_seconds: ttl, ..ModelInfo::default() };
            assert_eq!(pause(&info), after.map(Duration::from_secs));
        }
    }
}

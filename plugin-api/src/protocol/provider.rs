//! Requests to a model's provider, and models (events.md A.6).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// `before_provider_headers`: for every attempt, retries included. The headers are read and
/// changed through methods of the event. (events.md A.6)
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct BeforeProviderHeadersPayload {
    /// The provider's name.
    pub provider: String,
    /// The model's id, or its description.
    pub model: Value,
}

/// Answer of `before_provider_request`: the body that goes out instead.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ReplacePayload {
    replace: bool,
    /// The new body, in the provider's own shape.
    pub payload: Value,
}

impl ReplacePayload {
    /// Sends this instead.
    pub fn new(payload: Value) -> Self {
        ReplacePayload { replace: true, payload }
    }
}

/// `after_provider_response`: before the body is read. (events.md A.6)
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct AfterProviderResponsePayload {
    /// HTTP status.
    pub status: u16,
    /// Names in lower case.
    pub headers: BTreeMap<String, String>,
}

wire_enum! {
    /// How much a model thinks; clamped to what it can.
    ThinkingLevel {
        Off = "off", Minimal = "minimal", Low = "low", Medium = "medium", High = "high",
        Xhigh = "xhigh", Max = "max",
    }
}

/// A model as the host knows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Model {
    /// As the provider names it.
    pub id: String,
    /// For people.
    pub name: String,
    /// Who serves it.
    pub provider: String,
    /// The wire format.
    pub api: String,
    /// It can think.
    pub reasoning: bool,
    /// Tokens.
    pub context_window: u64,
    /// Tokens of one answer.
    pub max_tokens: u64,
    /// `baseUrl`, `cost`, `input`, …
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// `provider_stream_event`: each event of the provider before it is normalised; handlers are
/// awaited, which slows the stream down. Many a second: prefer `on_sync`. `event.data()` is what
/// came. (events.md A.6)
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ProviderStreamEventPayload {
    /// The provider's name.
    pub provider: String,
    /// The wire format.
    pub api: String,
    /// The model's id.
    pub model: String,
}

wire_enum! {
    /// How a model came to be the model.
    ModelSource { Set = "set", Cycle = "cycle", Restore = "restore", Fallback = "fallback" }
}

/// `model_select`: another model answers from now on; `thinking_level_select` comes first when it
/// thinks differently. (events.md A.6)
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ModelSelectPayload {
    /// The model.
    pub model: Model,
    /// The one before.
    pub previous_model: Option<Model>,
    /// How it came.
    pub source: ModelSource,
}

/// `thinking_level_select`: only when it really changes. (events.md A.6)
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ThinkingLevelSelectPayload {
    /// From now on.
    pub level: ThinkingLevel,
    /// Until now.
    pub previous_level: ThinkingLevel,
}

wire_enum! {
    /// Whether a provider's cache is kept warm.
    WarmingAction { Warm = "warm", Stop = "stop" }
}

/// `cache_warming_decision`: before each request that only keeps the cache. (events.md A.6)
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct CacheWarmingDecisionPayload {
    /// Dollars of this request.
    pub warm_cost: f64,
    /// Dollars it may save.
    pub miss_cost: f64,
    /// That the conversation goes on, 0 to 1.
    pub continuation_probability: f64,
    /// As decided so far.
    pub action: WarmingAction,
}

/// Answer of `cache_warming_decision`; the last one counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct WarmingAnswer {
    /// The decision.
    pub action: WarmingAction,
}

impl WarmingAnswer {
    /// Asks the provider.
    pub fn warm() -> Self {
        WarmingAnswer { action: WarmingAction::Warm }
    }
    /// Lets the cache go.
    pub fn stop() -> Self {
        WarmingAnswer { action: WarmingAction::Stop }
    }
}

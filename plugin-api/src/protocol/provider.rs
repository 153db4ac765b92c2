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

/// A model of a provider that an extension registers (events.md E.5).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ProviderModel {
    /// As the provider names it.
    pub id: String,
    /// For people; default the id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Another wire format than the provider's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api: Option<String>,
    /// Another address than the provider's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// It can think.
    pub reasoning: bool,
    /// `text`, `image`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub input: Vec<String>,
    /// Dollars per million tokens: `input`, `output`, `cacheRead`, `cacheWrite`.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub cost: Map<String, Value>,
    /// Tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// Tokens of one answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// `headers`, `compat`, `thinkingLevelMap`, …
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl ProviderModel {
    /// Text only, no thinking.
    pub fn new(id: impl Into<String>) -> Self {
        ProviderModel { id: id.into(), ..Self::default() }
    }
    /// For people.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }
    /// It can think.
    #[must_use]
    pub fn reasoning(mut self) -> Self {
        self.reasoning = true;
        self
    }
    /// Tokens of context, tokens of one answer.
    #[must_use]
    pub fn limits(mut self, context_window: u64, max_tokens: u64) -> Self {
        self.context_window = Some(context_window);
        self.max_tokens = Some(max_tokens);
        self
    }
}

/// A provider that speaks one of the program's wire formats, in the shape of `models.json`
/// (events.md E.5). Without `models` it changes address or headers of the program's own one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ProviderConfig {
    /// For people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Where it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The key itself, or `"$VARIABLE"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key: Option<String>,
    /// `anthropic-messages`, `openai-completions`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api: Option<String>,
    /// `None` suppresses a default header.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Option<String>>,
    /// The key goes as `Authorization: Bearer`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub auth_header: bool,
    /// Replaces the provider's list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub models: Option<Vec<ProviderModel>>,
}

impl ProviderConfig {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }
    /// Where it is, and how it is spoken to.
    #[must_use]
    pub fn endpoint(mut self, base_url: impl Into<String>, api: impl Into<String>) -> Self {
        self.base_url = Some(base_url.into());
        self.api = Some(api.into());
        self
    }
    /// The key itself, or `"$VARIABLE"`.
    #[must_use]
    pub fn api_key(mut self, key: impl Into<String>) -> Self {
        self.api_key = Some(key.into());
        self
    }
    /// One header more.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), Some(value.into()));
        self
    }
    /// One model more.
    #[must_use]
    pub fn model(mut self, model: ProviderModel) -> Self {
        self.models.get_or_insert_default().push(model);
        self
    }
}

/// What a model may call, as it is told.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ToolDeclaration {
    /// What it calls.
    pub name: String,
    /// What it is told.
    pub description: String,
    /// JSON Schema of an object.
    pub parameters: Value,
}

/// One request to a model: what `ctx.model_registry()` sends, and what a provider of an
/// extension is asked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ModelRequest {
    /// The model's id; for providers.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// Before everything.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub system_prompt: String,
    /// `user`, `assistant` and `toolResult`.
    pub messages: Vec<super::message::AgentMessage>,
    /// What it may call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolDeclaration>,
    /// How much it thinks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<ThinkingLevel>,
    /// Tokens of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
}

impl ModelRequest {
    /// One message of the user.
    pub fn user(text: impl Into<String>) -> Self {
        let message = super::message::AgentMessage::user(text.into());
        ModelRequest { messages: vec![message], ..Self::default() }
    }
    /// Messages.
    pub fn messages(messages: Vec<super::message::AgentMessage>) -> Self {
        ModelRequest { messages, ..Self::default() }
    }
    /// Before everything.
    #[must_use]
    pub fn system_prompt(mut self, prompt: impl Into<String>) -> Self {
        self.system_prompt = prompt.into();
        self
    }
    /// Tokens of the answer.
    #[must_use]
    pub fn max_tokens(mut self, tokens: u64) -> Self {
        self.max_tokens = Some(tokens);
        self
    }
}

/// How full the context is (events.md E.3 `getContextUsage`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ContextUsage {
    /// `None` right after a compaction.
    pub tokens: Option<u64>,
    /// Of the model.
    pub context_window: u64,
    /// Of it.
    pub percent: Option<f64>,
}

/// A model the user may switch to with a key.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ScopedModel {
    /// Which.
    pub model: Model,
    /// How much it thinks then.
    pub thinking_level: Option<ThinkingLevel>,
}

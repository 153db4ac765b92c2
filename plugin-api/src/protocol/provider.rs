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

//! What the core knows of a model: one trait, and the sink its stream is told to.
//! No HTTP here; the wire formats live in the `models` room.

use crate::message::{AssistantEvent, AssistantMessage, Message};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{collections::BTreeMap, sync::Arc};
use tokio_util::sync::CancellationToken;

/// `off … max`; a model that knows fewer gets the nearest it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ThinkingLevel {
    #[default]
    Off,
    Minimal,
    Low,
    Medium,
    High,
    Xhigh,
    Max,
}

impl ThinkingLevel {
    pub const ALL: [ThinkingLevel; 7] = [
        ThinkingLevel::Off,
        ThinkingLevel::Minimal,
        ThinkingLevel::Low,
        ThinkingLevel::Medium,
        ThinkingLevel::High,
        ThinkingLevel::Xhigh,
        ThinkingLevel::Max,
    ];
    pub fn name(self) -> &'static str {
        ["off", "minimal", "low", "medium", "high", "xhigh", "max"][self as usize]
    }
    pub fn parse(s: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|l| l.name() == s)
    }
}

/// A model as the catalogue, `models.json` or an extension describes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelInfo {
    pub id: String,
    pub name: String,
    pub provider: String,
    /// The wire format: `anthropic-messages`, `openai-completions`, `openai-responses`,
    /// `google-generative-ai`, `offline`.
    pub api: String,
    #[serde(default)]
    pub base_url: String,
    /// Can think.
    #[serde(default)]
    pub reasoning: bool,
    /// `text`, `image`.
    #[serde(default)]
    pub input: Vec<String>,
    /// Dollars per million tokens.
    #[serde(default)]
    pub cost: ModelCost,
    /// Tokens.
    #[serde(default)]
    pub context_window: u64,
    /// Tokens of one answer.
    #[serde(default)]
    pub max_tokens: u64,
    /// The levels it tells apart, `off` among them if it can be told not to think. Empty: all
    /// of them if it thinks, `off` alone if not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thinking_levels: Vec<ThinkingLevel>,
    /// It takes system messages between the others. Without it a prompt that changed is sent
    /// whole, in front.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mid_conversation_system: bool,
    /// For how long the provider keeps a prompt in its cache; absent: nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_ttl_seconds: Option<u64>,
}

impl ModelInfo {
    /// The levels a person may choose, lowest first; never empty.
    pub fn levels(&self) -> Vec<ThinkingLevel> {
        match (self.reasoning, self.thinking_levels.is_empty()) {
            (false, _) => vec![ThinkingLevel::Off],
            (true, true) => ThinkingLevel::ALL.to_vec(),
            (true, false) => {
                ThinkingLevel::ALL.into_iter().filter(|l| self.thinking_levels.contains(l)).collect()
            }
        }
    }

    /// The nearest level it has: the next lower one, else the lowest. Who asks for thinking is not
    /// given none as long as there is some.
    pub fn clamp(&self, level: ThinkingLevel) -> ThinkingLevel {
        let levels = self.levels();
        let thinks = |l: &ThinkingLevel| level == ThinkingLevel::Off || *l != ThinkingLevel::Off;
        let lower = levels.iter().copied().filter(thinks).rfind(|l| *l <= level);
        let lowest = || levels.iter().copied().find(thinks);
        lower.or_else(lowest).or_else(|| levels.first().copied()).unwrap_or_default()
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelCost {
    pub input: f64,
    pub output: f64,
    pub cache_read: f64,
    pub cache_write: f64,
}

/// What the model may call, as it is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolDeclaration {
    pub name: String,
    pub description: String,
    /// JSON Schema of an object.
    pub parameters: Value,
}

/// One request. `messages` holds only `user`, `assistant` and `toolResult`, every
/// tool call answered exactly once (`pairing` sees to it); for a model that takes them between
/// the others also `system`, each with the text of one change.
#[derive(Clone, Debug)]
pub struct ModelRequest {
    /// What stands in front: all of the prompt, or its beginning where later changes are messages.
    pub system_prompt: String,
    pub messages: Vec<Message>,
    pub tools: Vec<ToolDeclaration>,
    pub thinking: ThinkingLevel,
    /// Tokens; absent: the model's own limit.
    pub max_tokens: Option<u64>,
    pub session_id: String,
}

/// Where a stream is told, in order; each call is awaited, which is the back-pressure.
#[async_trait]
pub trait StreamSink: Send {
    /// Outgoing headers are assembled. `None` as a value suppresses a default. May be edited.
    async fn headers(&mut self, headers: &mut BTreeMap<String, Option<String>>);
    /// The body as it will be sent. May be replaced.
    async fn payload(&mut self, payload: &mut Value);
    /// Status and lower-cased headers, before the body is read.
    async fn response(&mut self, status: u16, headers: BTreeMap<String, String>);
    /// A parsed event of the provider, before it is normalised.
    async fn provider_event(&mut self, data: &Value);
    /// A normalised step; the first is `Start`, the last `Done` or `Error`.
    async fn event(&mut self, event: AssistantEvent);
}

/// A model that can be asked.
#[async_trait]
pub trait Model: Send + Sync {
    fn info(&self) -> &ModelInfo;
    /// Never fails: an error or an abort is the message's `stop_reason` and `error_message`.
    /// Ends promptly when `cancel` is cancelled, with `stop_reason: aborted`.
    async fn stream(
        &self,
        request: ModelRequest,
        sink: &mut dyn StreamSink,
        cancel: &CancellationToken,
    ) -> AssistantMessage;
}

/// Which models there are; the catalogue, the credentials and the wire are its affair.
pub trait Models: Send + Sync {
    /// `None`: unknown, or without credentials.
    fn get(&self, provider: &str, id: &str) -> Option<Arc<dyn Model>>;
    fn list(&self) -> Vec<ModelInfo>;
    /// What a person means by a text, with the level it names.
    ///
    /// # Errors
    /// Why nothing came of it, for a person.
    fn find(&self, pattern: &str) -> Result<(Arc<dyn Model>, Option<ThinkingLevel>), String> {
        let found = pattern.split_once('/').and_then(|(provider, id)| self.get(provider, id));
        found.map(|m| (m, None)).ok_or_else(|| format!("there is no model \"{pattern}\""))
    }
    /// Reads again what they are made of. Answers what is wrong with it, for a person.
    fn refresh(&self) -> Vec<String> {
        Vec::new()
    }
    /// The models of a provider as an extension describes it (events.md E.5); nobody uses them
    /// before they are registered.
    ///
    /// # Errors
    /// What is wrong with the description, for a person.
    fn configure(&self, provider: &str, _config: &Value) -> Result<Vec<Arc<dyn Model>>, String> {
        Err(format!("provider {provider}: this program takes no provider descriptions"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_clamped_to_the_next_lower_one_and_thinking_never_to_none() {
        use ThinkingLevel::{High, Low, Max, Medium, Minimal, Off, Xhigh};
        let model = |reasoning, levels: &[ThinkingLevel]| ModelInfo {
            reasoning,
            thinking_levels: levels.to_vec(),
            ..ModelInfo::default()
        };
        for (model, asked, got) in [
            (model(false, &[]), High, Off),
            (model(true, &[]), Max, Max),
            (model(true, &[Off, Low, High]), Medium, Low),
            (model(true, &[Off, Low, High]), Minimal, Low),
            (model(true, &[Off, Low, High]), Max, High),
            (model(true, &[Off, Low, High]), Off, Off),
            (model(true, &[Low, High]), Off, Low),
            (model(true, &[High, Low]), Xhigh, High),
        ] {
            assert_eq!(model.clamp(asked), got, "{:?} {asked:?}", model.thinking_levels);
        }
    }
}

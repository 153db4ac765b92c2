//! How one server of a wire format differs from another of the same format. What is known of
//! servers is data, in `quirks.json`; what `models.json` says of a provider or a model wins.

use atomic_agent::model::ThinkingLevel;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::{collections::BTreeMap, sync::LazyLock};

/// Absent fields take the format's default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Compat {
    /// OpenAI formats: send the prompt as `developer` instead of `system`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supports_developer_role: Option<bool>,
    /// `openai-completions`: ask for usage in the stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supports_usage_in_streaming: Option<bool>,
    /// `openai-completions`: `reasoning_effort` is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supports_reasoning_effort: Option<bool>,
    /// `openai-completions`: `max_tokens` or `max_completion_tokens`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens_field: Option<String>,
    /// `cache_control` markers are known: by default of `anthropic-messages`, not of others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supports_cache_control: Option<bool>,
    /// OpenAI formats: `prompt_cache_key` is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supports_prompt_cache_key: Option<bool>,
    /// System messages are taken between the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supports_mid_conversation_system: Option<bool>,
    /// `openai-completions`: ids of tool calls are exactly so many letters and digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id_length: Option<usize>,
    /// `openai-completions`: results of tools carry the tool's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requires_tool_result_name: Option<bool>,
    /// How thinking is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<ThinkingStyle>,
    /// Seconds for which the provider keeps a prompt in its cache; absent: nobody knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_ttl_seconds: Option<u64>,
    /// What a thinking level is called on the wire; `null`: the model has not this level.
    #[serde(skip)]
    pub level_names: BTreeMap<String, Option<String>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ThinkingStyle {
    /// Tokens: `thinking.budget_tokens`, `thinkingConfig.thinkingBudget`. Of the OpenAI formats:
    /// `reasoning_effort`.
    #[default]
    Budget,
    /// `anthropic-messages`: `thinking.type: adaptive` with `output_config.effort`.
    Adaptive,
    /// The same, on a model that refuses `disabled`.
    AdaptiveAlways,
    /// `google-generative-ai`: `thinkingConfig.thinkingLevel`.
    Level,
    /// `openai-completions`: `reasoning: {effort}`, or `{enabled: false}` (OpenRouter).
    Reasoning,
    /// `openai-completions`: `chat_template_kwargs: {enable_thinking}` (vLLM, llama.cpp).
    ChatTemplate,
    /// `openai-completions`: `thinking: {type: enabled | disabled}` (DeepSeek, Z.ai).
    Switch,
}

impl Compat {
    /// The wire name of a level: the map's, else `default`.
    pub fn level_name(&self, level: ThinkingLevel, default: Option<&str>) -> Option<String> {
        match self.level_names.get(level.name()) {
            Some(mapped) => mapped.clone(),
            None => default.map(str::to_owned),
        }
    }

    /// What `over` says wins.
    pub(crate) fn overlay(self, over: &Compat) -> Compat {
        let fields = |c: &Compat| match serde_json::to_value(c) {
            Ok(Value::Object(map)) => map,
            _ => Map::new(),
        };
        let mut all = fields(&self);
        all.extend(fields(over));
        // Both came from such a map.
        let merged: Compat = serde_json::from_value(Value::Object(all)).unwrap_or_default();
        Compat {
            level_names: if over.level_names.is_empty() {
                self.level_names
            } else {
                over.level_names.clone()
            },
            ..merged
        }
    }
}

/// One row of `quirks.json`: it counts if all that it names fits.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Quirk {
    /// Where it is documented.
    #[allow(dead_code)]
    source: String,
    /// Names a provider may have in `models.json`.
    #[serde(default)]
    providers: Vec<String>,
    /// Ends of host names.
    #[serde(default)]
    hosts: Vec<String>,
    /// Ports such a server listens on by default, on any host.
    #[serde(default)]
    ports: Vec<u16>,
    /// Beginnings of model ids; none: all.
    #[serde(default)]
    models: Vec<String>,
    compat: Compat,
}

static QUIRKS: LazyLock<Vec<Quirk>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("quirks.json")).unwrap_or_else(|error| {
        // The file is part of the program and the test below reads it.
        tracing::error!(%error, "the built-in quirks do not parse");
        Vec::new()
    })
});

/// What is known of the server at this address, for this model of it.
pub(crate) fn of_server(provider: &str, base_url: &str, model: &str) -> Compat {
    let url = reqwest::Url::parse(base_url).ok();
    let host = url.as_ref().and_then(|u| u.host_str()).unwrap_or_default();
    let port = url.as_ref().and_then(|u| u.port());
    let fits = |q: &&Quirk| {
        let at =
            |h: &String| host == h || host.strip_suffix(h.as_str()).is_some_and(|rest| rest.ends_with('.'));
        let here = q.providers.iter().any(|p| p == provider)
            || q.hosts.iter().any(at)
            || port.is_some_and(|p| q.ports.contains(&p));
        here && (q.models.is_empty() || q.models.iter().any(|m| model.starts_with(m.as_str())))
    };
    QUIRKS.iter().filter(fits).fold(Compat::default(), |all, q| all.overlay(&q.compat))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_parses_names_a_server_and_where_it_is_documented() {
        let rows: Vec<Quirk> = serde_json::from_str(include_str!("quirks.json")).unwrap();
        for row in rows {
            assert!(row.source.starts_with("https://"), "{row:?}");
            assert!(!(row.providers.is_empty() && row.hosts.is_empty() && row.ports.is_empty()), "{row:?}");
        }
    }

    #[test]
    fn a_server_is_known_by_its_host_its_port_or_its_name() {
        let thinking = |provider, url, model| of_server(provider, url, model).thinking;
        assert_eq!(thinking("or", "https://openrouter.ai/api/v1", "x/y"), Some(ThinkingStyle::Reasoning));
        assert_eq!(thinking("or", "https://notopenrouter.ai/api/v1", "x/y"), None);
        assert_eq!(thinking("vllm", "http://10.0.0.2:9999/v1", "qwen"), Some(ThinkingStyle::ChatTemplate));
        let openai = of_server("mine", "https://api.openai.com/v1", "gpt-5.4");
        assert_eq!(openai.max_tokens_field.as_deref(), Some("max_completion_tokens"));
        let claude = of_server("or", "https://openrouter.ai/api/v1", "anthropic/claude-opus-5.5");
        assert_eq!(claude.supports_cache_control, Some(true));
        assert_eq!(of_server("or", "https://openrouter.ai/api/v1", "x/y").supports_cache_control, None);
    }

    #[test]
    fn what_is_said_over_it_wins_field_by_field() {
        let known = of_server("mistral", "https://api.mistral.ai/v1", "m");
        let over = Compat { supports_usage_in_streaming: Some(true), ..Compat::default() };
        let both = known.overlay(&over);
        assert_eq!((both.supports_usage_in_streaming, both.tool_call_id_length), (Some(true), Some(9)));
    }
}

//! How one server of a wire format differs from another of the same format.

use atomic_agent::model::ThinkingLevel;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Absent fields take the format's default, which for `openai-completions` depends on the host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Compat {
    /// `openai-completions`: send the prompt as `developer` instead of `system`.
    pub supports_developer_role: Option<bool>,
    /// `openai-completions`: ask for usage in the stream.
    pub supports_usage_in_streaming: Option<bool>,
    /// `openai-completions`: `reasoning_effort` is known.
    pub supports_reasoning_effort: Option<bool>,
    /// `openai-completions`: `max_tokens` or `max_completion_tokens`.
    pub max_tokens_field: Option<String>,
    /// `anthropic-messages`: `cache_control` markers are known (default).
    pub supports_cache_control: Option<bool>,
    /// `anthropic-messages`: how thinking is asked for.
    pub thinking: Option<ThinkingStyle>,
    /// What a thinking level is called on the wire; `null`: this level sends nothing.
    #[serde(skip)]
    pub level_names: BTreeMap<String, Option<String>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ThinkingStyle {
    /// `thinking.budget_tokens`.
    #[default]
    Budget,
    /// `thinking.type: adaptive` with `output_config.effort`.
    Adaptive,
    /// The same, on a model that refuses `disabled`.
    AdaptiveAlways,
}

impl Compat {
    /// The wire name of a level: the map's, else `default`.
    pub fn level_name(&self, level: ThinkingLevel, default: Option<&str>) -> Option<String> {
        match self.level_names.get(level.name()) {
            Some(mapped) => mapped.clone(),
            None => default.map(str::to_owned),
        }
    }
}

//! What settings and callers say about a compaction, and the parameters that come of it
//! (events.md D.1). A value that makes no sense gives way to the next one in order.

use crate::model::ModelInfo;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Why a session is compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CompactReason {
    /// Somebody asked for it.
    Manual,
    /// The context has come near to what the model takes.
    Threshold,
    /// The model refused the request as too long.
    Overflow,
}

/// The settings `compaction.*` and `compactionModel`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactionSettings {
    /// Of what happens by itself; asking for it always works.
    pub enabled: bool,
    /// Tokens of the model's window that stay free for its answer.
    pub reserve_tokens: u64,
    /// Share of the lines that is kept.
    #[serde(rename = "compression_ratio")]
    pub compression_ratio: f64,
    /// Messages at the end that stay exactly.
    #[serde(rename = "preserve_recent")]
    pub preserve_recent: u64,
    /// What matters, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// By `provider/id`.
    #[serde(skip)]
    pub model_overrides: BTreeMap<String, ModelOverride>,
    /// `(provider, id)` of who plans; `None`: the session's own model.
    #[serde(skip)]
    pub planner: Option<(String, String)>,
}

/// Of one model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModelOverride {
    pub reserve_tokens: Option<u64>,
    pub preserve_recent: Option<u64>,
}

pub const RESERVE_TOKENS: u64 = 16_384;
pub const COMPRESSION_RATIO: f64 = 0.5;
pub const PRESERVE_RECENT: u64 = 2;

impl Default for CompactionSettings {
    fn default() -> Self {
        CompactionSettings {
            enabled: true,
            reserve_tokens: RESERVE_TOKENS,
            compression_ratio: COMPRESSION_RATIO,
            preserve_recent: PRESERVE_RECENT,
            query: None,
            model_overrides: BTreeMap::new(),
            planner: None,
        }
    }
}

/// What one caller wants; absent: the settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CompactOptions {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compression_ratio: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preserve_recent: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
}

/// What is done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parameters {
    pub compression_ratio: f64,
    pub preserve_recent: u64,
    pub query: String,
}

/// Strictly between nothing and all.
pub fn valid_ratio(ratio: f64) -> Option<f64> {
    (ratio > 0.0 && ratio < 1.0).then_some(ratio)
}

/// Whole messages, not fewer than none.
pub fn valid_count(count: f64) -> Option<u64> {
    (count.is_finite() && count >= 0.0).then_some(count.floor() as u64)
}

/// Characters of a query: what it is made of may be a whole file that somebody pasted.
const QUERY: usize = 4_000;

impl CompactionSettings {
    fn of_model(&self, model: Option<&ModelInfo>) -> ModelOverride {
        let name = model.map(|m| format!("{}/{}", m.provider, m.id));
        name.and_then(|n| self.model_overrides.get(&n)).copied().unwrap_or_default()
    }

    /// Call option, then the model's own, then the setting, then the default.
    pub fn parameters(
        &self,
        options: &CompactOptions,
        model: Option<&ModelInfo>,
        last_user_text: Option<&str>,
    ) -> Parameters {
        let said = |text: &str| Some(text.trim()).filter(|t| !t.is_empty()).map(beginning);
        let query = options.query.as_deref().and_then(said);
        let query = query.or_else(|| self.query.as_deref().and_then(said));
        let query = query.or_else(|| last_user_text.and_then(said));
        Parameters {
            compression_ratio: options
                .compression_ratio
                .and_then(valid_ratio)
                .or_else(|| valid_ratio(self.compression_ratio))
                .unwrap_or(COMPRESSION_RATIO),
            preserve_recent: options
                .preserve_recent
                .and_then(valid_count)
                .or(self.of_model(model).preserve_recent)
                .unwrap_or(self.preserve_recent),
            query: query.unwrap_or_else(|| "the latest user request".to_owned()),
        }
    }

    /// The context is compacted when it is larger than this. `None`: nobody knows how much the
    /// model takes.
    pub fn threshold(&self, model: &ModelInfo) -> Option<u64> {
        let window = model.context_window;
        if window == 0 {
            return None;
        }
        let reserve = self.of_model(Some(model)).reserve_tokens.unwrap_or(self.reserve_tokens);
        // A reserve that leaves nothing would compact before every request.
        Some(if reserve < window { window - reserve } else { window / 2 })
    }
}

fn beginning(text: &str) -> String {
    match text.char_indices().nth(QUERY) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(id: &str, window: u64) -> ModelInfo {
        let info =
            serde_json::json!({"id": id, "name": id, "provider": "p", "api": "x", "contextWindow": window});
        serde_json::from_value(info).unwrap()
    }

    #[test]
    fn the_caller_comes_before_the_model_before_the_setting_before_the_default() {
        let mut settings = CompactionSettings { preserve_recent: 5, ..Default::default() };
        settings
            .model_overrides
            .insert("p/a".into(), ModelOverride { preserve_recent: Some(7), reserve_tokens: Some(100) });
        let asked = CompactOptions { preserve_recent: Some(3.9), ..Default::default() };
        let of = |options: &CompactOptions, id: &str| {
            settings.parameters(options, Some(&model(id, 1000)), None).preserve_recent
        };
        assert_eq!(of(&asked, "a"), 3, "a fraction of a message is none");
        assert_eq!(of(&CompactOptions::default(), "a"), 7);
        assert_eq!(of(&CompactOptions::default(), "b"), 5);
        assert_eq!(settings.threshold(&model("a", 1000)), Some(900));
        assert_eq!(settings.threshold(&model("b", 20_000)), Some(20_000 - RESERVE_TOKENS));
        assert_eq!(settings.threshold(&model("b", 1000)), Some(500), "the reserve is larger than the window");
        assert_eq!(settings.threshold(&model("b", 0)), None);
    }

    #[test]
    fn what_makes_no_sense_gives_way() {
        let settings = CompactionSettings { compression_ratio: 1.0, ..Default::default() };
        for ratio in [0.0, 1.0, -0.5, f64::NAN, f64::INFINITY] {
            let asked = CompactOptions {
                compression_ratio: Some(ratio),
                preserve_recent: Some(-1.0),
                query: Some("  ".into()),
            };
            let got = settings.parameters(&asked, None, Some(" fix it\n"));
            assert_eq!(
                got,
                Parameters { compression_ratio: 0.5, preserve_recent: 2, query: "fix it".into() }
            );
        }
        assert_eq!(
            settings.parameters(&CompactOptions::default(), None, None).query,
            "the latest user request"
        );
        let pasted = "é".repeat(QUERY + 1);
        let query = settings.parameters(&CompactOptions::default(), None, Some(&pasted)).query;
        assert_eq!(query.chars().count(), QUERY + 1);
        assert!(query.ends_with('…'));
    }
}

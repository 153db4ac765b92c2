//! Why no model came of what was asked, in words a person can act on.

use crate::config::ConfigError;
use std::path::PathBuf;

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ResolveError {
    #[error("there is no provider \"{provider}\"{}\n  known providers: {}{}", did_you_mean(nearest), known.join(", "), listed(problems))]
    UnknownProvider { provider: String, known: Vec<String>, nearest: Vec<String>, problems: Vec<ConfigError> },

    #[error("{}{}", unknown_model(provider, model, nearest, problems), listed(problems))]
    UnknownModel { provider: String, model: String, nearest: Vec<String>, problems: Vec<ConfigError> },

    /// An id without a provider that nobody has.
    #[error(
        "no provider has a model \"{name}\"{}\n  name it as provider/id, or add it to models.json{}",
        did_you_mean(nearest),
        listed(problems)
    )]
    UnknownName { name: String, nearest: Vec<String>, problems: Vec<ConfigError> },

    #[error("several providers have a model \"{name}\"\n  say which: {}", candidates.join(", "))]
    Ambiguous { name: String, candidates: Vec<String> },

    #[error("\"{level}\" is no thinking level\n  levels: off, minimal, low, medium, high, xhigh, max")]
    UnknownThinking { level: String },

    #[error("provider \"{provider}\" has no key\n  {todo}")]
    NoKey { provider: String, todo: String },

    #[error("no model provider is configured\n  {}{}", ways_out(models_json), listed(problems))]
    NothingConfigured { models_json: Option<PathBuf>, problems: Vec<ConfigError> },
}

impl ResolveError {
    /// Stable; `atomic explain` knows it.
    pub fn code(&self) -> &'static str {
        match self {
            ResolveError::UnknownProvider { .. } => "models::unknown_provider",
            ResolveError::UnknownModel { .. } | ResolveError::UnknownName { .. } => "models::unknown_model",
            ResolveError::Ambiguous { .. } => "models::ambiguous_model",
            ResolveError::UnknownThinking { .. } => "models::unknown_thinking_level",
            ResolveError::NoKey { .. } => "models::no_key",
            ResolveError::NothingConfigured { .. } => "models::nothing_configured",
        }
    }
}

fn did_you_mean(nearest: &[String]) -> String {
    if nearest.is_empty() { String::new() } else { format!("; did you mean {}?", nearest.join(" or ")) }
}

fn unknown_model(provider: &str, model: &str, nearest: &[String], problems: &[ConfigError]) -> String {
    let models = if nearest.is_empty() && !problems.is_empty() {
        "none of what models.json says of it can be used".to_owned()
    } else if nearest.is_empty() {
        "it has none yet: add them to models.json".to_owned()
    } else {
        format!("it has for example: {}\n  others can be added to models.json", nearest.join(", "))
    };
    if model.is_empty() {
        format!("provider \"{provider}\" has no models\n  {models}")
    } else {
        format!("provider \"{provider}\" has no model \"{model}\"\n  {models}")
    }
}

fn ways_out(models_json: &Option<PathBuf>) -> String {
    let file = match models_json {
        Some(path) => path.display().to_string(),
        None => "models.json".to_owned(),
    };
    format!(
        "either set a key (ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY; atomic auth login stores one)\n  or describe a provider in {file},\n  or run without any: --offline uses the built-in offline model"
    )
}

fn listed(problems: &[ConfigError]) -> String {
    problems.iter().map(|p| format!("\n  note: {p}")).collect()
}

/// The known names that a typo away from `name`, best first, at most three.
pub(super) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<String> {
    let name = name.to_ascii_lowercase();
    let score = |k: &str| {
        let k = k.to_ascii_lowercase();
        let within = !name.is_empty() && name.len() >= 3 && k.contains(&name);
        if within { 0.9 } else { strsim::jaro_winkler(&name, &k) }
    };
    let mut scored: Vec<_> = known.map(|k| (score(k), k)).filter(|(s, _)| *s >= 0.85).collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored.into_iter().take(3).map(|(_, k)| k.to_owned()).collect()
}

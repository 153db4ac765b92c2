//! The starting set of providers and models, kept as data in `catalogue.json`: the same
//! shape as `models.json`, plus `keyVariables`. Providers without models are there for
//! their address and key variable; `models.json` adds the models. Within a provider what is
//! newest comes first: it is the default, and what a part of a name means. Where a prompt above
//! some length costs more per token, that length is the context window: costs shown stay true.

use crate::config::{ModelsFile, parse};

const TEXT: &str = include_str!("catalogue.json");

/// Parsed at each start: a few dozen rows, some ten microseconds.
pub(crate) fn catalogue() -> ModelsFile {
    parse(TEXT).unwrap_or_else(|error| {
        // The file is part of the program and the test below reads it.
        tracing::error!(%error, "the built-in catalogue does not parse");
        ModelsFile::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SUPPORTED_APIS;

    #[test]
    fn every_built_in_provider_has_an_address_a_format_and_a_key_variable() {
        let file = catalogue();
        assert!(file.providers.len() >= 2);
        for (name, provider) in &file.providers {
            assert!(provider.base_url.as_deref().is_some_and(|u| u.starts_with("https://")), "{name}");
            assert!(provider.api.as_deref().is_some_and(|api| SUPPORTED_APIS.contains(&api)), "{name}");
            assert!(!provider.key_variables.is_empty(), "{name}");
        }
    }

    #[test]
    fn every_built_in_model_has_limits_and_a_price() {
        for (_, provider) in catalogue().providers {
            for model in provider.models.unwrap_or_default() {
                assert!(model.context_window.is_some_and(|n| n > 0), "{}", model.id);
                assert!(model.max_tokens.is_some_and(|n| n > 0), "{}", model.id);
                assert!(model.cost.input > 0.0 && model.cost.output > 0.0, "{}", model.id);
                assert_eq!(model.reasoning, !model.thinking_levels.is_empty(), "{}", model.id);
                for level in &model.thinking_levels {
                    let gone = matches!(model.thinking_level_map.get(level.name()), Some(None));
                    assert!(!gone, "{}: {} is there and is not", model.id, level.name());
                }
                assert!(model.input.is_some_and(|kinds| kinds.contains(&"text".to_owned())), "{}", model.id);
            }
        }
    }
}

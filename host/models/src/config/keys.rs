//! What of `models.json` nobody reads: keys that are not known, each named with the nearest one
//! that is. Serde passes them over in silence, and a provider whose `base_url` went unread is
//! missing something else as far as it can tell.

use serde_json::{Map, Value};

const FILE: &[&str] = &["providers"];
const PROVIDER: &[&str] =
    &["name", "baseUrl", "apiKey", "api", "headers", "authHeader", "models", "modelOverrides", "compat"];
const MODEL: &[&str] = &[
    "id",
    "name",
    "api",
    "baseUrl",
    "reasoning",
    "thinkingLevelMap",
    "thinkingLevels",
    "input",
    "cost",
    "contextWindow",
    "maxTokens",
    "headers",
    "compat",
];
const COST: &[&str] = &["input", "output", "cacheRead", "cacheWrite"];
const COMPAT: &[&str] = &[
    "supportsDeveloperRole",
    "supportsUsageInStreaming",
    "supportsReasoningEffort",
    "maxTokensField",
    "supportsCacheControl",
    "supportsPromptCacheKey",
    "supportsMidConversationSystem",
    "toolCallIdLength",
    "requiresToolResultName",
    "thinking",
    "cacheTtlSeconds",
];

/// A key nobody reads.
pub(super) struct Unread {
    /// `None`: of the file itself.
    pub provider: Option<String>,
    pub reason: String,
}

pub(super) fn unread(file: &Value) -> Vec<Unread> {
    let mut found = Vec::new();
    look(None, "", file, FILE, &mut found);
    for (name, provider) in object(file, "providers") {
        look(Some(name), "", provider, PROVIDER, &mut found);
        if let Some(compat) = provider.get("compat") {
            look(Some(name), "compat: ", compat, COMPAT, &mut found);
        }
        let listed = provider.get("models").and_then(Value::as_array).into_iter().flatten();
        let listed = listed.map(|m| (m.get("id").and_then(Value::as_str).unwrap_or("?"), m));
        let changed = object(provider, "modelOverrides").map(|(id, m)| (id.as_str(), m));
        for (id, model) in listed.chain(changed) {
            let at = format!("model \"{id}\": ");
            look(Some(name), &at, model, MODEL, &mut found);
            for (key, known) in [("cost", COST), ("compat", COMPAT)] {
                if let Some(value) = model.get(key) {
                    look(Some(name), &format!("{at}{key}: "), value, known, &mut found);
                }
            }
        }
    }
    found
}

fn object<'v>(value: &'v Value, key: &str) -> impl Iterator<Item = (&'v String, &'v Value)> {
    value.get(key).and_then(Value::as_object).into_iter().flat_map(Map::iter)
}

fn look(provider: Option<&String>, at: &str, value: &Value, known: &[&str], found: &mut Vec<Unread>) {
    // `$schema` and comments written as keys are meant for other readers.
    let meant_here = |key: &&String| !key.starts_with(['$', '_', '/', '#']);
    for key in value.as_object().into_iter().flat_map(Map::keys).filter(meant_here) {
        if known.contains(&key.as_str()) {
            continue;
        }
        let bare = |s: &str| s.to_ascii_lowercase().replace(['_', '-'], "");
        let distance = |k: &&&str| strsim::damerau_levenshtein(&bare(k), &bare(key));
        let nearest = known.iter().min_by_key(distance).filter(|k| distance(k) <= 2);
        let advice = match nearest {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => format!("known are {}", known.join(", ")),
        };
        found.push(Unread {
            provider: provider.cloned(),
            reason: format!("{at}the key \"{key}\" is not read; {advice}"),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_key_nobody_reads_is_named_with_its_place_and_the_nearest_right_one() {
        let file = json!({"$schema": "x", "provider": {}, "providers": {"local": {
            "base_url": "http://x", "overrides": {}, "baseUrl": "http://y",
            "models": [{"id": "qwen", "context_window": 1, "cost": {"inptu": 1}}],
        }}});
        let found: Vec<String> = unread(&file)
            .into_iter()
            .map(|u| format!("{}|{}", u.provider.unwrap_or_default(), u.reason))
            .collect();
        assert_eq!(found[0], "|the key \"provider\" is not read; did you mean \"providers\"?");
        assert_eq!(found[1], "local|the key \"base_url\" is not read; did you mean \"baseUrl\"?");
        assert!(found[2].starts_with("local|the key \"overrides\" is not read; known are name, baseUrl"));
        assert!(found[3].starts_with("local|model \"qwen\": the key \"context_window\""));
        assert!(found[4].ends_with("cost: the key \"inptu\" is not read; did you mean \"input\"?"));
        assert_eq!(found.len(), 5);
    }
}

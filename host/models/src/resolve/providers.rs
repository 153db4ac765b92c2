//! Catalogue and `models.json` made one list, keys looked up.

use super::error::nearest;
use crate::{
    auth::Stored,
    catalogue::catalogue,
    compat::{self, Compat, ThinkingStyle},
    config::{ConfigError, ModelConfig, ModelsFile, ProviderConfig, SUPPORTED_APIS},
    credential::{Credential, Secret, Written},
    environment::Environment,
    key_command::KeyCommand,
};
use atomic_agent::model::{ModelInfo, ThinkingLevel};
use reqwest::Url;
use std::{collections::BTreeMap, path::Path};

pub(super) struct Provider {
    pub name: String,
    pub key: Key,
    pub auth_header: bool,
    pub models: Vec<Entry>,
}

pub(super) struct Entry {
    pub info: ModelInfo,
    /// `None` suppresses a default.
    pub headers: Headers,
    pub compat: Compat,
}

pub(super) type Headers = BTreeMap<String, Option<Credential>>;

pub(super) enum Key {
    Ready {
        key: Credential,
        /// Where it is from, for a person.
        from: String,
    },
    /// A configured header carries it.
    InHeaders,
    /// What the user can do about it.
    Missing { todo: String },
}

impl Key {
    pub fn usable(&self) -> bool {
        !matches!(self, Key::Missing { .. })
    }
}

pub(super) struct Merged {
    pub providers: Vec<Provider>,
    /// So many of them, in front, are described by the file.
    pub own: usize,
    pub problems: Vec<ConfigError>,
    pub variables: Vec<String>,
}

/// Where keys are looked for beside the description itself.
pub(super) struct Keys<'a> {
    pub environment: &'a Environment,
    /// Of `auth.json`.
    pub stored: &'a [(String, Stored)],
    /// The description is a person's own file: its `"!command"`s may be run.
    pub commands: bool,
}

pub(super) fn merge(file: ModelsFile, keys: &Keys<'_>, path: &Path) -> Merged {
    let mut built_in = catalogue().providers;
    let mut variables = Vec::new();
    for (_, config) in &built_in {
        variables.extend(config.key_variables.iter().cloned());
    }
    for (_, stored) in keys.stored {
        if let Stored::Key(text) = stored
            && let Written::Variable(name) = Written::parse(text.expose())
        {
            variables.push(name);
        }
    }
    let mut problems = file.unread;
    let mut providers = Vec::new();
    for (name, config) in file.providers {
        note_variables(&config, &mut variables);
        let base = built_in.iter().position(|(n, _)| *n == name).map(|at| built_in.remove(at).1);
        let mut problem = |reason: String| {
            problems.push(ConfigError::Provider { path: path.to_owned(), provider: name.clone(), reason });
        };
        if name == crate::scripted::PROVIDER {
            problem("this name belongs to the offline model; choose another".to_owned());
            continue;
        }
        providers.push(build(&name, overlay(base, config), keys, &mut problem));
    }
    let own = providers.len();
    for (name, config) in built_in {
        providers.push(build(&name, config, keys, &mut |_| {}));
    }
    variables.sort();
    variables.dedup();
    Merged { providers, own, problems, variables }
}

/// What the file says wins; what it leaves out stays.
fn overlay(base: Option<ProviderConfig>, own: ProviderConfig) -> ProviderConfig {
    let base = base.unwrap_or_default();
    let mut headers = base.headers;
    headers.extend(own.headers);
    ProviderConfig {
        name: own.name.or(base.name),
        base_url: own.base_url.or(base.base_url),
        api_key: own.api_key.or(base.api_key),
        api: own.api.or(base.api),
        headers,
        auth_header: own.auth_header || base.auth_header,
        models: own.models.or(base.models),
        model_overrides: own.model_overrides,
        compat: base.compat.overlay(&own.compat),
        // Not settable from the file.
        key_variables: base.key_variables,
    }
}

fn build(name: &str, config: ProviderConfig, keys: &Keys<'_>, problem: &mut dyn FnMut(String)) -> Provider {
    let headers = resolve_headers(&config.headers, keys, problem);
    let key = key_of(name, &config, &headers, keys);
    let listed = config.models.clone();
    if listed.as_ref().is_none_or(Vec::is_empty) && config.key_variables.is_empty() {
        problem("it has no \"models\"; list at least one as {\"id\": \"…\"}".to_owned());
    }
    let listed = listed.unwrap_or_default();
    for id in config.model_overrides.keys().filter(|id| !listed.iter().any(|m| m.id == **id)) {
        let near = nearest(id, listed.iter().map(|m| m.id.as_str()));
        let advice = near.first().map(|n| format!("; did you mean \"{n}\"?")).unwrap_or_default();
        problem(format!("modelOverrides: it has no model \"{id}\"{advice}"));
    }
    let mut models = Vec::new();
    for model in listed {
        let model = match config.model_overrides.get(&model.id) {
            Some(over) => model.changed(over),
            None => model,
        };
        match entry(name, &config, model, &headers, keys, problem) {
            Ok(entry) => models.push(entry),
            Err(reason) => problem(reason),
        }
    }
    Provider { name: name.to_owned(), key, auth_header: config.auth_header, models }
}

fn entry(
    provider: &str,
    config: &ProviderConfig,
    model: ModelConfig,
    headers: &Headers,
    keys: &Keys<'_>,
    problem: &mut dyn FnMut(String),
) -> Result<Entry, String> {
    let id = &model.id;
    let api = model.api.as_ref().or(config.api.as_ref()).ok_or_else(|| {
        format!("model \"{id}\" has no \"api\"; write one of {}", SUPPORTED_APIS.join(", "))
    })?;
    if !SUPPORTED_APIS.contains(&api.as_str()) {
        let nearest = nearest(api, SUPPORTED_APIS.into_iter());
        let advice = match nearest.first() {
            Some(near) => format!("; did you mean \"{near}\"?"),
            None => format!("; it speaks {}", SUPPORTED_APIS.join(", ")),
        };
        return Err(format!(
            "model \"{id}\" wants the api \"{api}\", which this version does not speak{advice}"
        ));
    }
    let base_url = model
        .base_url
        .as_ref()
        .or(config.base_url.as_ref())
        .ok_or_else(|| format!("model \"{id}\" has no \"baseUrl\"; write the address of its server"))?;
    if !Url::parse(base_url).is_ok_and(|u| matches!(u.scheme(), "http" | "https") && u.has_host()) {
        return Err(format!(
            "model \"{id}\": the baseUrl \"{}\" is no address; write it as http://host:port/path or https://…",
            without_secrets(base_url)
        ));
    }
    let mut headers = headers.clone();
    headers.extend(resolve_headers(&model.headers, keys, problem));
    let compat = compat::of_server(provider, base_url, id).overlay(&config.compat).overlay(&model.compat);
    let compat = Compat { level_names: model.thinking_level_map.clone(), ..compat };
    let info = ModelInfo {
        name: model.name.clone().unwrap_or_else(|| id.clone()),
        id: id.clone(),
        provider: provider.to_owned(),
        api: api.clone(),
        base_url: base_url.trim_end_matches('/').to_owned(),
        reasoning: model.reasoning,
        input: model.input.clone().unwrap_or_else(|| vec!["text".to_owned()]),
        cost: model.cost.clone(),
        context_window: model.context_window.unwrap_or(128_000),
        max_tokens: model.max_tokens.unwrap_or(16_384),
        thinking_levels: levels(&model, &compat),
        cache_ttl_seconds: compat.cache_ttl_seconds,
        // The format has no such thing.
        mid_conversation_system: api != "google-generative-ai"
            && compat.supports_mid_conversation_system.unwrap_or(false),
    };
    Ok(Entry { info, headers, compat })
}

/// What it says, else all that nothing speaks against. Empty is all.
fn levels(model: &ModelConfig, compat: &Compat) -> Vec<ThinkingLevel> {
    if !model.thinking_levels.is_empty() || !model.reasoning {
        return model.thinking_levels.clone();
    }
    let gone = |l: &ThinkingLevel| {
        matches!(model.thinking_level_map.get(l.name()), Some(None))
            || (*l == ThinkingLevel::Off && compat.thinking == Some(ThinkingStyle::AdaptiveAlways))
    };
    let left: Vec<ThinkingLevel> = ThinkingLevel::ALL.into_iter().filter(|l| !gone(l)).collect();
    if left.len() == ThinkingLevel::ALL.len() { Vec::new() } else { left }
}

/// What may be shown of an address: it may hold a key.
fn without_secrets(address: &str) -> &str {
    let upto = address.find(['?', '#']).unwrap_or(address.len());
    address[..upto].rsplit('@').next().unwrap_or_default()
}

/// What a person stored counts first, then the description, then the environment.
fn key_of(name: &str, config: &ProviderConfig, headers: &Headers, keys: &Keys<'_>) -> Key {
    let missing = |todo: String| Key::Missing { todo };
    let mut other_login = None;
    match keys.stored.iter().find(|(n, _)| n == name).map(|(_, s)| s) {
        Some(Stored::Key(text)) => {
            let written = Written::parse(text.expose());
            return match credential(&written, keys, true) {
                Some(key) => Key::Ready { key, from: "auth.json".to_owned() },
                None => missing(match written {
                    Written::Variable(var) => {
                        format!("auth.json says that its key is in ${var}, which is not set: export {var}=…")
                    }
                    _ => format!("its key in auth.json is empty: atomic auth login {name}"),
                }),
            };
        }
        Some(Stored::Other(kind)) => other_login = Some(kind),
        None => {}
    }
    if let Some(text) = &config.api_key {
        let written = Written::parse(text);
        return match (credential(&written, keys, keys.commands), written) {
            (Some(key), Written::Variable(var)) => Key::Ready { key, from: var },
            (Some(key), _) => Key::Ready { key, from: "models.json".to_owned() },
            (None, Written::Variable(var)) => missing(format!(
                "models.json says that its key is in ${var}, which is not set: export {var}=…, or atomic auth login {name}"
            )),
            (None, Written::Command(_)) => missing(
                "a command (\"!…\") is run only if your own models.json or auth.json says so".to_owned(),
            ),
            (None, Written::Literal(_)) => {
                missing("its \"apiKey\" in models.json is empty: write \"$VARIABLE\" or the key".to_owned())
            }
        };
    }
    let variable = |var: &&String| keys.environment.get(var).is_some();
    if let Some(var) = config.key_variables.iter().find(variable)
        && let Some(key) = keys.environment.get(var)
    {
        return Key::Ready { key: Credential::Known(Secret::new(key)), from: var.clone() };
    }
    let carries = |n: &String| {
        matches!(n.to_ascii_lowercase().as_str(), "authorization" | "x-api-key" | "x-goog-api-key")
    };
    if headers.iter().any(|(n, value)| carries(n) && value.is_some()) {
        return Key::InHeaders;
    }
    missing(match (config.key_variables.first(), other_login) {
        (_, Some(kind)) => format!(
            "auth.json has a login of the kind \"{kind}\" for it, which this version does not use yet: atomic auth login {name} stores a key in its place"
        ),
        (Some(var), None) => format!("set {var}, or atomic auth login {name}"),
        (None, None) => format!(
            "write \"apiKey\": \"$VARIABLE\" for \"{name}\" in models.json, or atomic auth login {name}"
        ),
    })
}

fn credential(written: &Written, keys: &Keys<'_>, commands: bool) -> Option<Credential> {
    match written {
        Written::Command(line) if commands && !line.is_empty() => {
            Some(Credential::Command(KeyCommand::new(line)))
        }
        _ => written.known(keys.environment).map(Credential::Known),
    }
}

fn resolve_headers(
    written: &BTreeMap<String, Option<String>>,
    keys: &Keys<'_>,
    problem: &mut dyn FnMut(String),
) -> Headers {
    let mut out = BTreeMap::new();
    for (name, value) in written {
        let Some(value) = value else {
            out.insert(name.clone(), None);
            continue;
        };
        let value = Written::parse(value);
        match (credential(&value, keys, keys.commands), value) {
            (Some(secret), _) => {
                out.insert(name.clone(), Some(secret));
            }
            (None, Written::Variable(var)) => {
                problem(format!("header \"{name}\" is left out: ${var} is not set"));
            }
            (None, Written::Command(_)) => {
                problem(format!(
                    "header \"{name}\" is left out: a command (\"!…\") is run only if your own models.json says so"
                ));
            }
            (None, Written::Literal(_)) => {}
        }
    }
    out
}

/// Also of providers that are refused afterwards: a secret is one whether it was used or not.
fn note_variables(config: &ProviderConfig, variables: &mut Vec<String>) {
    let of_models = config.models.iter().flatten().flat_map(|m| m.headers.values());
    let of_models = of_models.chain(config.model_overrides.values().flat_map(|m| m.headers.values()));
    let values = config.api_key.iter().chain(config.headers.values().chain(of_models).flatten());
    for value in values {
        if let Written::Variable(name) = Written::parse(value) {
            variables.push(name);
        }
    }
}

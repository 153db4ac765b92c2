//! Catalogue and `models.json` made one list, keys looked up.

use super::error::nearest;
use crate::{
    catalogue::catalogue,
    compat::Compat,
    config::{ConfigError, ModelConfig, ModelsFile, ProviderConfig, SUPPORTED_APIS},
    credential::{Secret, Written},
    environment::Environment,
};
use atomic_agent::model::ModelInfo;
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
    pub headers: BTreeMap<String, Option<Secret>>,
    pub compat: Compat,
}

pub(super) enum Key {
    Ready(Secret),
    /// A configured header carries it.
    InHeaders,
    /// What the user can do about it.
    Missing {
        todo: String,
    },
}

impl Key {
    pub fn usable(&self) -> bool {
        !matches!(self, Key::Missing { .. })
    }
}

pub(super) struct Merged {
    pub providers: Vec<Provider>,
    pub problems: Vec<ConfigError>,
    pub variables: Vec<String>,
}

pub(super) fn merge(file: ModelsFile, environment: &Environment, path: &Path) -> Merged {
    let mut built_in = catalogue().providers;
    let mut variables = Vec::new();
    for (_, config) in &built_in {
        variables.extend(config.key_variables.iter().cloned());
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
        providers.push(build(&name, overlay(base, config), environment, &mut problem));
    }
    for (name, config) in built_in {
        providers.push(build(&name, config, environment, &mut |_| {}));
    }
    variables.sort();
    variables.dedup();
    Merged { providers, problems, variables }
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
        // Not settable from the file.
        key_variables: base.key_variables,
    }
}

fn build(
    name: &str,
    config: ProviderConfig,
    environment: &Environment,
    problem: &mut dyn FnMut(String),
) -> Provider {
    let headers = resolve_headers(&config.headers, environment, problem);
    let key = key_of(name, &config, &headers, environment);
    let listed = config.models.clone();
    if listed.as_ref().is_none_or(Vec::is_empty) && config.key_variables.is_empty() {
        problem("it has no \"models\"; list at least one as {\"id\": \"…\"}".to_owned());
    }
    let mut models = Vec::new();
    for model in listed.unwrap_or_default() {
        match entry(name, &config, model, &headers, environment, problem) {
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
    headers: &BTreeMap<String, Option<Secret>>,
    environment: &Environment,
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
    headers.extend(resolve_headers(&model.headers, environment, problem));
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
    };
    let compat = Compat { level_names: model.thinking_level_map, ..model.compat };
    Ok(Entry { info, headers, compat })
}

/// What may be shown of an address: it may hold a key.
fn without_secrets(address: &str) -> &str {
    let upto = address.find(['?', '#']).unwrap_or(address.len());
    address[..upto].rsplit('@').next().unwrap_or_default()
}

fn key_of(
    name: &str,
    config: &ProviderConfig,
    headers: &BTreeMap<String, Option<Secret>>,
    environment: &Environment,
) -> Key {
    let missing = |todo: String| Key::Missing { todo };
    if let Some(text) = &config.api_key {
        let written = Written::parse(text);
        return match (written.resolve(environment), written) {
            (Some(secret), _) => Key::Ready(secret),
            (None, Written::Variable(var)) => {
                missing(format!("models.json says that its key is in ${var}, which is not set: export {var}=…"))
            }
            (None, Written::Command) => missing(
                "models.json wants a command to print its key (\"!…\"), which is not run yet: write \"$VARIABLE\" instead"
                    .to_owned(),
            ),
            (None, Written::Literal(_)) => {
                missing("its \"apiKey\" in models.json is empty: write \"$VARIABLE\" or the key".to_owned())
            }
        };
    }
    if let Some(key) = config.key_variables.iter().find_map(|var| environment.get(var)) {
        return Key::Ready(Secret::new(key));
    }
    let carries = |n: &String| matches!(n.to_ascii_lowercase().as_str(), "authorization" | "x-api-key");
    if headers.iter().any(|(n, value)| carries(n) && value.is_some()) {
        return Key::InHeaders;
    }
    missing(match config.key_variables.first() {
        Some(var) => format!("set {var}, or write \"apiKey\" for \"{name}\" in models.json"),
        None => format!("write \"apiKey\": \"$VARIABLE\" for \"{name}\" in models.json"),
    })
}

fn resolve_headers(
    written: &BTreeMap<String, Option<String>>,
    environment: &Environment,
    problem: &mut dyn FnMut(String),
) -> BTreeMap<String, Option<Secret>> {
    let mut out = BTreeMap::new();
    for (name, value) in written {
        let Some(value) = value else {
            out.insert(name.clone(), None);
            continue;
        };
        let value = Written::parse(value);
        match (value.resolve(environment), value) {
            (Some(secret), _) => {
                out.insert(name.clone(), Some(secret));
            }
            (None, Written::Variable(var)) => {
                problem(format!("header \"{name}\" is left out: ${var} is not set"));
            }
            (None, Written::Command) => {
                problem(format!("header \"{name}\" is left out: commands (\"!…\") are not run"));
            }
            (None, literal @ Written::Literal(_)) => drop(literal),
        }
    }
    out
}

/// Also of providers that are refused afterwards: a secret is one whether it was used or not.
fn note_variables(config: &ProviderConfig, variables: &mut Vec<String>) {
    let of_models = config.models.iter().flatten().flat_map(|m| m.headers.values());
    let values = config.api_key.iter().chain(config.headers.values().chain(of_models).flatten());
    for value in values {
        if let Written::Variable(name) = Written::parse(value) {
            variables.push(name);
        }
    }
}

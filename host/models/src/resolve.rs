//! Which models there are and which one is meant: `provider/id[:thinking]`, `--provider`
//! with `--model`, or the default. Every refusal says what to do about it.

mod error;
mod providers;

pub use error::ResolveError;

use crate::{
    config::{self, ConfigError},
    environment::Environment,
    exchange::{Endpoint, HttpModel},
    scripted::{Script, ScriptedModel},
    transport::Transport,
};
use atomic_agent::model::{Model, ModelInfo, ThinkingLevel};
use providers::{Entry, Key, Provider};
use std::{path::PathBuf, sync::Arc};

/// What a set is made from.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// `models.json`; need not exist.
    pub models_json: Option<PathBuf>,
    pub environment: Environment,
    /// The default is the offline model, whatever is configured.
    pub offline: bool,
    /// What the offline model follows.
    pub script: Option<Script>,
}

/// What the user asked for, as typed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    pub provider: Option<String>,
    /// An id, or `provider/id`, either with `:thinking` after it.
    pub model: Option<String>,
}

impl Selection {
    pub fn model(pattern: &str) -> Self {
        Selection { provider: None, model: Some(pattern.to_owned()) }
    }
}

#[derive(Clone)]
pub struct Chosen {
    pub model: Arc<dyn Model>,
    /// Asked for in the pattern.
    pub thinking: Option<ThinkingLevel>,
}

impl std::fmt::Debug for Chosen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let info = self.model.info();
        write!(f, "Chosen({}/{}, {:?})", info.provider, info.id, self.thinking)
    }
}

/// All models of one process, built in, configured and offline.
pub struct ModelSet {
    /// Those of `models.json` first, in its order: its first usable one is the default.
    providers: Vec<Provider>,
    problems: Vec<ConfigError>,
    variables: Vec<String>,
    models_json: Option<PathBuf>,
    offline: bool,
    scripted: Arc<ScriptedModel>,
    transport: Arc<Transport>,
}

impl ModelSet {
    /// Opens no connection and makes no client. What is wrong with `models.json` is kept in
    /// `problems`; the rest works.
    pub fn load(sources: Sources) -> Self {
        let mut problems = Vec::new();
        let file = match sources.models_json.as_deref().map(config::load) {
            None => Default::default(),
            Some(Ok(file)) => file,
            Some(Err(error)) => {
                problems.push(error);
                Default::default()
            }
        };
        let path = sources.models_json.clone().unwrap_or_default();
        let merged = providers::merge(file, &sources.environment, &path);
        problems.extend(merged.problems);
        ModelSet {
            providers: merged.providers,
            problems,
            variables: merged.variables,
            models_json: sources.models_json,
            offline: sources.offline,
            scripted: Arc::new(ScriptedModel::new(sources.script)),
            transport: Arc::new(Transport::default()),
        }
    }

    /// What of `models.json` is not used, and why; to be shown once at start.
    pub fn problems(&self) -> &[ConfigError] {
        &self.problems
    }

    /// Environment variables that hold provider credentials: every built-in name and every
    /// `$VAR` of `models.json`. Child processes of tools do not inherit them.
    pub fn credential_variables(&self) -> &[String] {
        &self.variables
    }

    /// Every model, usable or not, the offline one last.
    pub fn list(&self) -> impl Iterator<Item = &ModelInfo> {
        let all = self.providers.iter().flat_map(|p| p.models.iter().map(|e| &e.info));
        all.chain(std::iter::once(self.scripted.info()))
    }

    /// Those whose provider has a key, the offline one last.
    pub fn usable(&self) -> impl Iterator<Item = &ModelInfo> {
        let with_key = self.providers.iter().filter(|p| p.key.usable());
        let all = with_key.flat_map(|p| p.models.iter().map(|e| &e.info));
        all.chain(std::iter::once(self.scripted.info()))
    }

    pub fn get(&self, provider: &str, id: &str) -> Result<Arc<dyn Model>, ResolveError> {
        if provider == crate::scripted::PROVIDER && id == crate::scripted::MODEL {
            return Ok(self.scripted.clone());
        }
        let found = self.provider(provider)?;
        match found.models.iter().find(|e| e.info.id == id) {
            Some(entry) => self.open(found, entry),
            None => Err(self.unknown_model(provider, id)),
        }
    }

    pub fn find(&self, selection: &Selection) -> Result<Chosen, ResolveError> {
        let plain = |model| Chosen { model, thinking: None };
        match (selection.provider.as_deref(), selection.model.as_deref()) {
            (None, None) => self.default_model().map(plain),
            (Some(provider), None) => self.first_of(provider).map(plain),
            (Some(provider), Some(model)) => {
                let repeated = model.strip_prefix(provider).and_then(|rest| rest.strip_prefix('/'));
                match (self.within(provider, model), repeated) {
                    (Err(_), Some(id)) => self.within(provider, id),
                    (result, _) => result,
                }
            }
            (None, Some(pattern)) => {
                let split = pattern.split_once('/');
                match split.filter(|(provider, _)| self.knows(provider)) {
                    Some((provider, id)) => self.within(provider, id),
                    // Ids of aggregators hold slashes themselves.
                    None => self.anywhere(pattern).unwrap_or_else(|| {
                        Err(match split {
                            Some((provider, _)) => self.unknown_provider(provider),
                            None => self.unknown_name(pattern),
                        })
                    }),
                }
            }
        }
    }

    fn default_model(&self) -> Result<Arc<dyn Model>, ResolveError> {
        if self.offline {
            return Ok(self.scripted.clone());
        }
        let usable = self.providers.iter().filter(|p| p.key.usable());
        match usable.filter_map(|p| p.models.first().map(|e| (p, e))).next() {
            Some((provider, entry)) => self.open(provider, entry),
            None => Err(ResolveError::NothingConfigured {
                models_json: self.models_json.clone(),
                problems: self.problems.clone(),
            }),
        }
    }

    fn first_of(&self, provider: &str) -> Result<Arc<dyn Model>, ResolveError> {
        if provider == crate::scripted::PROVIDER {
            return Ok(self.scripted.clone());
        }
        let found = self.provider(provider)?;
        match found.models.first() {
            Some(entry) => self.open(found, entry),
            None => Err(self.unknown_model(provider, "")),
        }
    }

    fn within(&self, provider: &str, pattern: &str) -> Result<Chosen, ResolveError> {
        if !self.knows(provider) {
            return Err(self.unknown_provider(provider));
        }
        let ids: Vec<&str> = self.list().filter(|i| i.provider == provider).map(|i| i.id.as_str()).collect();
        if ids.contains(&pattern) {
            return Ok(Chosen { model: self.get(provider, pattern)?, thinking: None });
        }
        match pattern.rsplit_once(':').filter(|(id, _)| ids.contains(id)) {
            Some((id, level)) => {
                let thinking = ThinkingLevel::parse(level)
                    .ok_or_else(|| ResolveError::UnknownThinking { level: level.to_owned() })?;
                Ok(Chosen { model: self.get(provider, id)?, thinking: Some(thinking) })
            }
            None => Err(self.unknown_model(provider, pattern)),
        }
    }

    /// An id without its provider. `None`: no provider has it.
    fn anywhere(&self, pattern: &str) -> Option<Result<Chosen, ResolveError>> {
        let bare = pattern.rsplit_once(':').map(|(id, _)| id);
        let having = |usable: bool| -> Vec<&str> {
            let providers = self.providers.iter().filter(|p| !usable || p.key.usable());
            let has = |p: &&Provider| {
                p.models.iter().any(|e| e.info.id == pattern || Some(e.info.id.as_str()) == bare)
            };
            providers.filter(has).map(|p| p.name.as_str()).collect()
        };
        let usable = having(true);
        let candidates = if usable.is_empty() { having(false) } else { usable };
        match candidates.as_slice() {
            [] => None,
            [provider] => Some(self.within(provider, pattern)),
            several => Some(Err(ResolveError::Ambiguous {
                name: pattern.to_owned(),
                candidates: several.iter().map(|p| format!("{p}/{pattern}")).collect(),
            })),
        }
    }

    fn open(&self, provider: &Provider, entry: &Entry) -> Result<Arc<dyn Model>, ResolveError> {
        let key = match &provider.key {
            Key::Ready(secret) => Some(secret.clone()),
            Key::InHeaders => None,
            Key::Missing { todo } => {
                return Err(ResolveError::NoKey { provider: provider.name.clone(), todo: todo.clone() });
            }
        };
        Ok(Arc::new(HttpModel::new(Endpoint {
            info: entry.info.clone(),
            key,
            auth_header: provider.auth_header,
            headers: entry.headers.clone(),
            compat: entry.compat.clone(),
            transport: self.transport.clone(),
        })))
    }

    fn knows(&self, provider: &str) -> bool {
        provider == crate::scripted::PROVIDER || self.providers.iter().any(|p| p.name == provider)
    }

    fn provider(&self, name: &str) -> Result<&Provider, ResolveError> {
        self.providers.iter().find(|p| p.name == name).ok_or_else(|| self.unknown_provider(name))
    }

    fn unknown_provider(&self, name: &str) -> ResolveError {
        let mut known: Vec<String> = self.providers.iter().map(|p| p.name.clone()).collect();
        known.push(crate::scripted::PROVIDER.to_owned());
        ResolveError::UnknownProvider {
            nearest: error::nearest(name, known.iter().map(String::as_str)),
            provider: name.to_owned(),
            known,
            problems: self.problems.clone(),
        }
    }

    fn unknown_model(&self, provider: &str, id: &str) -> ResolveError {
        let ids = || self.list().filter(|i| i.provider == provider).map(|i| i.id.as_str());
        let near = error::nearest(id, ids());
        ResolveError::UnknownModel {
            provider: provider.to_owned(),
            model: id.to_owned(),
            nearest: if near.is_empty() { ids().take(5).map(str::to_owned).collect() } else { near },
            problems: self.problems.iter().filter(|p| p.concerns(provider)).cloned().collect(),
        }
    }

    fn unknown_name(&self, name: &str) -> ResolveError {
        let bare = name.rsplit_once(':').map_or(name, |(id, _)| id);
        let near = error::nearest(bare, self.list().map(|i| i.id.as_str()));
        let full = self.list().filter(|i| near.contains(&i.id)).map(|i| format!("{}/{}", i.provider, i.id));
        ResolveError::UnknownName {
            nearest: full.take(5).collect(),
            name: name.to_owned(),
            problems: self.problems.clone(),
        }
    }
}

#[cfg(test)]
mod tests;

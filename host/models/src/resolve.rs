//! Which models there are and which one is meant: `provider/id[:thinking]`, `--provider`
//! with `--model`, or the default. Every refusal says what to do about it.

mod error;
mod pattern;
mod providers;
mod scope;

pub use error::ResolveError;
pub use scope::Scoped;

use crate::{
    auth::{AuthError, AuthStore, Stored},
    config::{self, ConfigError},
    environment::Environment,
    exchange::{Endpoint, HttpModel},
    scripted::{Script, ScriptedModel},
    tape::Tape,
    transport::Transport,
};
use atomic_agent::model::{Model, ModelInfo, ThinkingLevel};
use providers::{Entry, Key, Keys, Provider};
use std::{path::PathBuf, sync::Arc, time::Duration};

/// How long nothing may come before an answer counts as lost.
pub const IDLE: Duration = Duration::from_secs(300);

/// What a set is made from.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// `models.json`; need not exist.
    pub models_json: Option<PathBuf>,
    /// `auth.json`; need not exist.
    pub auth_json: Option<PathBuf>,
    pub environment: Environment,
    /// Other than `IDLE`; zero: for ever.
    pub idle: Option<Duration>,
    /// Traffic is recorded on it, or played back from it.
    pub tape: Option<Tape>,
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
    /// So many of them, in front, are of `models.json`.
    own: usize,
    problems: Vec<ConfigError>,
    variables: Vec<String>,
    models_json: Option<PathBuf>,
    auth_json: Option<PathBuf>,
    stored: Vec<(String, Stored)>,
    offline: bool,
    environment: Environment,
    scripted: Arc<ScriptedModel>,
    transport: Arc<Transport>,
    idle: Option<Duration>,
    tape: Option<Tape>,
}

/// How a provider stands with its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyState {
    pub provider: String,
    pub models: usize,
    /// Where its key is from, or what to do to have one.
    pub key: Result<String, String>,
}

impl ModelSet {
    /// Opens no connection and makes no client. What is wrong with the files is kept in
    /// `problems`; the rest works.
    pub fn load(sources: Sources) -> Self {
        let mut set = ModelSet {
            providers: Vec::new(),
            own: 0,
            problems: Vec::new(),
            variables: Vec::new(),
            models_json: sources.models_json,
            auth_json: sources.auth_json,
            stored: Vec::new(),
            offline: sources.offline,
            transport: Arc::new(Transport::new(sources.environment.clone())),
            environment: sources.environment,
            scripted: Arc::new(ScriptedModel::new(sources.script)),
            idle: Some(sources.idle.unwrap_or(IDLE)).filter(|d| !d.is_zero()),
            tape: sources.tape,
        };
        set.read();
        set
    }

    /// The same files as they are now. Connections, the recording and the place in a script are
    /// kept. A variable that is named for the first time counts as unset: children that were
    /// started do not know yet that it is a secret.
    pub fn reload(&self) -> Self {
        let mut set = ModelSet {
            providers: Vec::new(),
            own: 0,
            problems: Vec::new(),
            variables: Vec::new(),
            models_json: self.models_json.clone(),
            auth_json: self.auth_json.clone(),
            stored: Vec::new(),
            offline: self.offline,
            environment: self.environment.clone(),
            scripted: self.scripted.clone(),
            transport: self.transport.clone(),
            idle: self.idle,
            tape: self.tape.clone(),
        };
        set.read();
        let new: Vec<String> =
            set.variables.iter().filter(|v| !self.variables.contains(v)).cloned().collect();
        if !new.is_empty() {
            set.environment = self.environment.without(new);
            set.read();
            set.environment = self.environment.clone();
            set.variables.clone_from(&self.variables);
        }
        set
    }

    fn read(&mut self) {
        let mut problems = Vec::new();
        let file = match self.models_json.as_deref().map(config::load) {
            None => Default::default(),
            Some(Ok(file)) => file,
            Some(Err(error)) => {
                problems.push(error);
                Default::default()
            }
        };
        let path = self.models_json.clone().unwrap_or_default();
        self.stored = match self.auth_json.as_ref().map(|path| AuthStore::new(path).read()) {
            None => Vec::new(),
            Some(Ok(stored)) => stored,
            Some(Err(error)) => {
                problems.push(match error {
                    AuthError::Syntax { path, line, column, reason } => {
                        ConfigError::Syntax { path, line, column, reason }
                    }
                    AuthError::Unreadable { path, reason } | AuthError::NotWritten { path, reason } => {
                        ConfigError::Unreadable { path, reason }
                    }
                });
                Vec::new()
            }
        };
        let keys = Keys { environment: &self.environment, stored: &self.stored, commands: true };
        let merged = providers::merge(file, &keys, &path);
        problems.extend(merged.problems);
        self.providers = merged.providers;
        self.own = merged.own;
        self.variables = merged.variables;
        self.problems = problems;
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

    /// The models of a provider as an extension describes it, in the shape of `models.json`: over
    /// the built-in provider of that name, if there is one. Nothing of it is kept.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn configure(
        &self,
        provider: &str,
        config: &serde_json::Value,
    ) -> Result<Vec<Arc<dyn Model>>, String> {
        let config = serde_json::from_value(config.clone()).map_err(|e| e.to_string())?;
        let file = config::ModelsFile { providers: vec![(provider.to_owned(), config)], unread: Vec::new() };
        // An extension is no person: it starts no program this way.
        let keys = Keys { environment: &self.environment, stored: &self.stored, commands: false };
        let merged = providers::merge(file, &keys, std::path::Path::new(""));
        if let Some(problem) = merged.problems.iter().find(|p| p.concerns(provider)) {
            return Err(problem.reason());
        }
        let found = merged.providers.iter().find(|p| p.name == provider);
        let found = found.ok_or_else(|| format!("provider {provider} was not understood"))?;
        if found.models.is_empty() {
            return Err(format!("provider {provider} has no models: give it `models`, `baseUrl` and `api`"));
        }
        found.models.iter().map(|e| self.open(found, e).map_err(|e| e.to_string())).collect()
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
        if let Some((provider, entry)) = usable.filter_map(|p| p.models.first().map(|e| (p, e))).next() {
            return self.open(provider, entry);
        }
        // Who describes a provider has meant it: what it lacks is what is to be said.
        let meant = self.providers[..self.own].iter().filter(|p| !p.models.is_empty());
        let mut lacking = meant.filter_map(|p| match &p.key {
            Key::Missing { todo } => Some((p.name.clone(), todo.clone())),
            _ => None,
        });
        Err(match lacking.next() {
            Some((provider, todo)) => {
                let others = lacking.map(|(name, todo)| format!("\n  or, of \"{name}\": {todo}"));
                ResolveError::NoKey { provider, todo: format!("{todo}{}", others.collect::<String>()) }
            }
            None => ResolveError::NothingConfigured {
                models_json: self.models_json.clone(),
                problems: self.problems.clone(),
            },
        })
    }

    /// Every provider of the list, those of `models.json` first.
    pub fn key_states(&self) -> Vec<KeyState> {
        let state = |p: &Provider| KeyState {
            provider: p.name.clone(),
            models: p.models.len(),
            key: match &p.key {
                Key::Ready { from, .. } => Ok(from.clone()),
                Key::InHeaders => Ok("a header of models.json".to_owned()),
                Key::Missing { todo } => Err(todo.clone()),
            },
        };
        self.providers.iter().map(state).collect()
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

    fn open(&self, provider: &Provider, entry: &Entry) -> Result<Arc<dyn Model>, ResolveError> {
        let key = match &provider.key {
            Key::Ready { key, .. } => Some(key.clone()),
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
            idle: self.idle,
            tape: self.tape.clone(),
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

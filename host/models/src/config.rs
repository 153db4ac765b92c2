//! `models.json`: providers a user adds or changes (events.md E.5). Read, never written.

mod keys;

use crate::{compat::Compat, file};
use atomic_agent::model::{ModelCost, ThinkingLevel};
use serde::{
    Deserialize, Deserializer,
    de::{Error as _, MapAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::{Map, Value};
use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
};

/// Wire formats this version speaks over HTTP.
pub const SUPPORTED_APIS: [&str; 4] =
    ["anthropic-messages", "openai-completions", "openai-responses", "google-generative-ai"];

/// Providers in the order of the file: the first usable one is the default.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(expecting = "an object: {\"providers\": {…}}")]
pub struct ModelsFile {
    #[serde(default, deserialize_with = "in_order")]
    pub providers: Vec<(String, ProviderConfig)>,
    /// Keys of it that nobody reads.
    #[serde(skip)]
    pub unread: Vec<ConfigError>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(
    rename_all = "camelCase",
    default,
    expecting = "an object: {\"baseUrl\": …, \"api\": …, \"models\": […]}"
)]
pub struct ProviderConfig {
    pub name: Option<String>,
    pub base_url: Option<String>,
    /// `"$VAR"`, `"${VAR}"`, `"!command"` that prints it, or the key itself.
    pub api_key: Option<String>,
    pub api: Option<String>,
    /// Values may be `"$VAR"`; `null` suppresses a default header.
    pub headers: BTreeMap<String, Option<String>>,
    /// Send the key as `Authorization: Bearer` whatever the format's own header is.
    pub auth_header: bool,
    /// Replaces the provider's list; absent: only address, key or headers are changed.
    #[serde(deserialize_with = "models")]
    pub models: Option<Vec<ModelConfig>>,
    /// Changes to models of the list, by id.
    pub model_overrides: BTreeMap<String, ModelOverride>,
    /// For all its models.
    pub compat: Compat,
    /// Built-in rows only: where a key is looked for when none is written.
    #[serde(rename = "keyVariables")]
    pub(crate) key_variables: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", expecting = "an object: {\"id\": \"…\"}")]
pub struct ModelConfig {
    pub id: String,
    #[serde(default)]
    pub name: Option<String>,
    #[serde(default)]
    pub api: Option<String>,
    #[serde(default)]
    pub base_url: Option<String>,
    #[serde(default)]
    pub reasoning: bool,
    /// What a level is called on the wire; `null`: it has not this level.
    #[serde(default)]
    pub thinking_level_map: BTreeMap<String, Option<String>>,
    /// The levels it tells apart; absent: all that the map does not take away.
    #[serde(default)]
    pub thinking_levels: Vec<ThinkingLevel>,
    #[serde(default)]
    pub input: Option<Vec<String>>,
    #[serde(default)]
    pub cost: ModelCost,
    /// Tokens.
    #[serde(default)]
    pub context_window: Option<u64>,
    /// Tokens of one answer.
    #[serde(default)]
    pub max_tokens: Option<u64>,
    #[serde(default)]
    pub headers: BTreeMap<String, Option<String>>,
    #[serde(default)]
    pub compat: Compat,
}

/// What of one model is to be different; the rest stays.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, expecting = "an object of what is to be different")]
pub struct ModelOverride {
    pub name: Option<String>,
    pub api: Option<String>,
    pub base_url: Option<String>,
    pub reasoning: Option<bool>,
    pub thinking_levels: Option<Vec<ThinkingLevel>>,
    pub thinking_level_map: BTreeMap<String, Option<String>>,
    pub input: Option<Vec<String>>,
    pub cost: CostOverride,
    pub context_window: Option<u64>,
    pub max_tokens: Option<u64>,
    pub headers: BTreeMap<String, Option<String>>,
    pub compat: Compat,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CostOverride {
    pub input: Option<f64>,
    pub output: Option<f64>,
    pub cache_read: Option<f64>,
    pub cache_write: Option<f64>,
}

impl ModelConfig {
    pub(crate) fn changed(mut self, over: &ModelOverride) -> Self {
        let over = over.clone();
        self.name = over.name.or(self.name);
        self.api = over.api.or(self.api);
        self.base_url = over.base_url.or(self.base_url);
        self.reasoning = over.reasoning.unwrap_or(self.reasoning);
        self.thinking_levels = over.thinking_levels.unwrap_or(self.thinking_levels);
        self.thinking_level_map.extend(over.thinking_level_map);
        self.input = over.input.or(self.input);
        for (slot, value) in [
            (&mut self.cost.input, over.cost.input),
            (&mut self.cost.output, over.cost.output),
            (&mut self.cost.cache_read, over.cost.cache_read),
            (&mut self.cost.cache_write, over.cost.cache_write),
        ] {
            *slot = value.unwrap_or(*slot);
        }
        self.context_window = over.context_window.or(self.context_window);
        self.max_tokens = over.max_tokens.or(self.max_tokens);
        self.headers.extend(over.headers);
        self.compat = self.compat.overlay(&over.compat);
        self
    }
}

/// Why `models.json`, or one provider in it, is not used. The file's bytes are never touched.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// The file exists and cannot be read.
    #[error("cannot read {}: {reason}", path.display())]
    Unreadable { path: PathBuf, reason: String },
    /// Not JSON, or a value of the wrong kind.
    #[error("{}:{line}:{column}: {reason}\n  the file is left as it is and none of its providers is used; correct this place", path.display())]
    Syntax { path: PathBuf, line: usize, column: usize, reason: String },
    /// One provider is left out; the others work.
    #[error("{}: provider \"{provider}\": {reason}", path.display())]
    Provider { path: PathBuf, provider: String, reason: String },
    /// A key that is not known.
    #[error("{}: {}{reason}", path.display(), of_provider(provider.as_deref()))]
    Unread { path: PathBuf, provider: Option<String>, reason: String },
}

fn of_provider(name: Option<&str>) -> String {
    name.map(|n| format!("provider \"{n}\": ")).unwrap_or_default()
}

impl ConfigError {
    /// Stable; `atomic explain` knows it.
    pub fn code(&self) -> &'static str {
        match self {
            ConfigError::Unreadable { .. } => "models::config_unreadable",
            ConfigError::Syntax { .. } => "models::config_syntax",
            ConfigError::Provider { .. } => "models::config_provider",
            ConfigError::Unread { .. } => "models::config_key",
        }
    }

    /// The file, and the place in it if that is known.
    pub fn place(&self) -> String {
        match self {
            ConfigError::Syntax { path, line, column, .. } => format!("{}:{line}:{column}", path.display()),
            ConfigError::Unreadable { path, .. }
            | ConfigError::Provider { path, .. }
            | ConfigError::Unread { path, .. } => path.display().to_string(),
        }
    }

    /// What is wrong, without the place.
    pub fn reason(&self) -> String {
        match self {
            ConfigError::Unreadable { reason, .. } | ConfigError::Syntax { reason, .. } => reason.clone(),
            ConfigError::Provider { provider, reason, .. } => format!("provider \"{provider}\": {reason}"),
            ConfigError::Unread { provider, reason, .. } => {
                format!("{}{reason}", of_provider(provider.as_deref()))
            }
        }
    }

    /// What comes of it, and what to do.
    pub fn help(&self) -> &'static str {
        match self {
            ConfigError::Unreadable { .. } => {
                "none of its providers is used; make it a file that can be read"
            }
            ConfigError::Syntax { .. } => {
                "the file is left as it is and none of its providers is used; correct this place"
            }
            ConfigError::Provider { .. } => "correct it in this file; what else is in it works",
            ConfigError::Unread { .. } => "correct or remove the key; the file itself is never changed",
        }
    }

    /// Whether it is about this provider, or about all.
    pub fn concerns(&self, name: &str) -> bool {
        match self {
            ConfigError::Unreadable { .. } | ConfigError::Syntax { .. } => true,
            ConfigError::Provider { provider, .. } => provider == name,
            ConfigError::Unread { provider, .. } => provider.as_deref().is_none_or(|p| p == name),
        }
    }
}

/// A missing file is an empty one.
pub fn load(path: &Path) -> Result<ModelsFile, ConfigError> {
    let bytes = match file::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(ModelsFile::default()),
        Err(error) => {
            return Err(ConfigError::Unreadable { path: path.to_owned(), reason: error.to_string() });
        }
    };
    let syntax = |line, column, reason| ConfigError::Syntax { path: path.to_owned(), line, column, reason };
    let text = text(&bytes).map_err(|(line, column, reason)| syntax(line, column, reason))?;
    let mut read = parse(text).map_err(|error| syntax(error.line(), error.column(), reason(&error)))?;
    // It parsed, so it is JSON; an empty file is none, and has no keys.
    let whole: Value = serde_json::from_str(text).unwrap_or_default();
    let key = |k: keys::Unread| ConfigError::Unread {
        path: path.to_owned(),
        provider: k.provider,
        reason: k.reason,
    };
    read.unread = keys::unread(&whole).into_iter().map(key).collect();
    Ok(read)
}

/// Without a byte-order mark; line, column and reason where it is no text.
pub(crate) fn text(bytes: &[u8]) -> Result<&str, (usize, usize, String)> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        let line = before.iter().filter(|b| **b == b'\n').count() + 1;
        let column = before.iter().rev().take_while(|b| **b != b'\n').count() + 1;
        (line, column, "not UTF-8 text".to_owned())
    })?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

pub(crate) fn strict_object(text: &str) -> Result<Map<String, Value>, serde_json::Error> {
    let mut json = serde_json::Deserializer::from_str(text);
    let read = object(&mut json)?;
    json.end()?;
    Ok(read)
}

pub(crate) fn parse(text: &str) -> Result<ModelsFile, serde_json::Error> {
    // An empty file is what an editor leaves behind, not a mistake worth a refusal.
    if text.trim().is_empty() {
        return Ok(ModelsFile::default());
    }
    let mut json = serde_json::Deserializer::from_str(text);
    let read = object(&mut json)?;
    json.end()?;
    Ok(read)
}

/// Serde also takes a list for a struct, field by field; a person who writes one means something else.
fn object<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    struct Object<T>(std::marker::PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for Object<T> {
        type Value = T;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object {…}")
        }
        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
            T::deserialize(MapAccessDeserializer::new(map))
        }
    }
    from.deserialize_map(Object(std::marker::PhantomData))
}

/// A value that has to be an object.
struct Strict<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Strict<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        object(from).map(Strict)
    }
}

fn models<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<ModelConfig>>, D::Error> {
    let models = Option::<Vec<Strict<ModelConfig>>>::deserialize(from)?;
    Ok(models.map(|all| all.into_iter().map(|Strict(model)| model).collect()))
}

/// serde_json's words without the place, which is said separately.
pub(crate) fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.rfind(" at line ").map_or(text.as_str(), |at| &text[..at]);
    // Serde's own names for kinds of JSON.
    text.replace("invalid type: ", "this is ")
        .replace("this is map", "this is an object")
        .replace("this is sequence", "this is a list")
        .replace(", expected a sequence", "; expected a list […]")
        .replace(", expected a map", "; expected an object {…}")
        .replace(", expected a string", "; expected text in quotes")
        .replace(", expected a boolean", "; expected true or false")
        .replace(", expected ", "; expected ")
}

fn in_order<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(String, ProviderConfig)>, D::Error> {
    struct InOrder;
    impl<'de> Visitor<'de> for InOrder {
        type Value = Vec<(String, ProviderConfig)>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object of providers")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut out: Self::Value = Vec::new();
            while let Some(name) = map.next_key::<String>()? {
                if out.iter().any(|(known, _)| *known == name) {
                    return Err(A::Error::custom(format!("provider \"{name}\" is there twice")));
                }
                out.push((name, map.next_value::<Strict<_>>()?.0));
            }
            Ok(out)
        }
    }
    from.deserialize_map(InOrder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("models.json");
        std::fs::write(&path, text).unwrap();
        (dir, path)
    }

    #[test]
    fn a_byte_order_mark_and_the_order_of_providers_are_respected() {
        let (_dir, path) =
            file("\u{feff}{\"providers\":{\"zeta\":{\"apiKey\":\"k\"},\"alpha\":{}}}".as_bytes());
        let read = load(&path).unwrap();
        assert_eq!(read.providers.iter().map(|(n, _)| n.as_str()).collect::<Vec<_>>(), ["zeta", "alpha"]);
    }

    #[test]
    fn a_broken_file_is_named_with_line_and_column_and_left_alone() {
        for (text, line, words) in [
            (&b"{\n  \"providers\": {\n    \"x\": }\n}"[..], 3, "expected value"),
            (b"{\n \"providers\": {\"x\": {\"models\": [{\"name\": \"no id\"}]}}}", 2, "missing field `id`"),
            (b"{\"providers\": {\"x\": {},\n \"x\": {}}}", 2, "there twice"),
            (b"[]", 1, "this is a list; expected an object {"),
            (b"{\"providers\":\n[]}", 2, "this is a list; expected an object of providers"),
            (b"{\"providers\": {\"x\":\n []}}", 2, "this is a list; expected an object {"),
            (
                b"{\"providers\": {\"x\": {\"models\":\n [\"qwen\"]}}}",
                2,
                "this is string \"qwen\"; expected an object {",
            ),
            (
                b"{\"providers\": {\"x\": {\"models\":\n [{\"id\": 7}]}}}",
                2,
                "this is integer `7`; expected text in quotes",
            ),
            (
                b"{\"providers\": {\"x\": {\"authHeader\":\n \"yes\"}}}",
                2,
                "this is string \"yes\"; expected true or false",
            ),
            (b"{\n\"a\": \"\xff\"}", 2, "UTF-8"),
        ] {
            let (_dir, path) = file(text);
            let error = load(&path).unwrap_err();
            let shown = error.to_string();
            assert_eq!(error.code(), "models::config_syntax");
            assert!(shown.contains(&format!("models.json:{line}:")), "{shown}");
            assert!(shown.contains(words), "{shown}");
            assert_eq!(std::fs::read(&path).unwrap(), text);
        }
    }

    #[test]
    fn no_file_and_an_empty_file_configure_nothing() {
        let (dir, path) = file(b" \n");
        assert!(load(&path).unwrap().providers.is_empty());
        assert!(load(&dir.path().join("absent.json")).unwrap().providers.is_empty());
    }
}

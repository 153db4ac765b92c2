//! `settings.json`: the user's in `$ATOMIC_HOME/agent`, and a project's `.atomic/settings.json`,
//! which is read only once the project is trusted. A dotted key and nested objects are the same;
//! what a key may not say is a warning and the default. Keys of others are kept.

use crate::{card::Card, paths::Paths};
use atomic_agent::{
    compact::{
        CompactionSettings, ModelOverride,
        settings::{valid_count, valid_ratio},
    },
    model::ThinkingLevel,
    queue::QueueMode,
    recovery::RecoverySettings,
    warming::WarmingMode,
};
use atomic_extensions::{
    discover::Listed,
    trust::{
        DefaultTrust, Surroundings,
        kept_json::{self, FileError, Keys},
    },
};
use serde_json::{Map, Value};
use std::{
    path::{Path, PathBuf},
    time::Duration,
};

/// Names that `/extensions disable` wrote down.
const DISABLED: &str = "disabledExtensions";

/// What the user's own settings say.
#[derive(Debug, Default)]
pub struct Settings {
    pub listed: Option<Listed>,
    pub disabled: Vec<String>,
    pub default_trust: DefaultTrust,
    /// `projectExtensionPinning: "off"`.
    pub pinning_off: bool,
    pub pass_credentials: bool,
    pub cache_warming: WarmingMode,
    /// What a key switches between when `--models` does not say.
    pub enabled_models: Option<Vec<String>>,
    pub default_provider: Option<String>,
    pub default_model: Option<String>,
    pub default_thinking: Option<ThinkingLevel>,
    /// How long a provider may say nothing; zero: for ever.
    pub idle_timeout: Option<Duration>,
    pub init_timeout: Option<Duration>,
    pub gate_timeout: Option<Duration>,
    pub handler_timeout: Option<Duration>,
    /// How often boundary hooks may go on in one prompt.
    pub max_hook_continuations: Option<usize>,
    /// What replaced extensions may leave behind before the engine is replaced: mapped libraries,
    /// MiB of their private memory, threads that would not stop.
    pub left_behind: [Option<u64>; 3],
    /// After how long an engine that is held, or does not answer, is replaced where nobody can
    /// press a key.
    pub hang_kill: Option<Duration>,
    /// What the screen looks like; `None`: as the terminal tells.
    pub theme: Option<String>,
    /// The terminal is told when a long run ends, or something is asked.
    pub notify: bool,
    /// Built-in tools that are on.
    pub default_tools: Option<Vec<String>>,
    /// Files and folders of skills and of prompt templates, beside the usual ones.
    pub skills: Vec<String>,
    pub prompts: Vec<String>,
    /// `images.autoResize: false`.
    pub images_as_they_are: bool,
    pub recovery: RecoverySettings,
    pub compaction: CompactionSettings,
    pub steering_mode: QueueMode,
    pub follow_up_mode: QueueMode,
    /// What was not understood.
    pub warnings: Vec<Card>,
}

fn global(paths: &Paths) -> PathBuf {
    paths.agent().join("settings.json")
}

pub fn card(e: &FileError) -> Card {
    Card::told(e.code(), &e.to_string())
}

impl Settings {
    pub fn read(paths: &Paths) -> Result<Self, Card> {
        let path = global(paths);
        let map = kept_json::read(&path, Keys::LastWins).map_err(|e| card(&e))?;
        let mut reader = Reader { path: &path, map: &map, warnings: Vec::new() };
        let settings = Settings {
            listed: reader.list(paths),
            disabled: reader.names(DISABLED),
            default_trust: reader.word("defaultProjectTrust", DefaultTrust::parse).unwrap_or_default(),
            pinning_off: reader
                .word("projectExtensionPinning", |w| match w {
                    "ask" => Some(false),
                    "off" => Some(true),
                    _ => None,
                })
                .unwrap_or_default(),
            pass_credentials: reader
                .get("shell.passCredentials", "true or false", |v| v.as_bool())
                .unwrap_or_default(),
            cache_warming: reader
                .get("cacheWarming.mode", "\"off\", \"streaming\" or \"idle\"", |v| {
                    WarmingMode::parse(v.as_str()?)
                })
                .unwrap_or_default(),
            enabled_models: reader.get("enabledModels", "a list of patterns", texts),
            default_provider: reader.get("defaultProvider", "a text", |v| v.as_str().map(str::to_owned)),
            default_model: reader.get("defaultModel", "a text", |v| v.as_str().map(str::to_owned)),
            default_thinking: reader
                .get("defaultThinkingLevel", "a level, off to max", |v| ThinkingLevel::parse(v.as_str()?)),
            idle_timeout: reader
                .get("models.idleTimeoutMs", "a number of milliseconds, or 0", |v| v.as_u64())
                .map(Duration::from_millis),
            init_timeout: reader.time("extensions.initTimeoutMs"),
            gate_timeout: reader.time("extensions.gateTimeoutMs"),
            handler_timeout: reader.time("extensions.handlerTimeoutMs"),
            max_hook_continuations: reader
                .get("agent.maxHookContinuations", "a whole number", |v| usize::try_from(v.as_u64()?).ok()),
            left_behind: ["engine.maxLeftLibraries", "engine.maxLeftMemoryMb", "engine.maxLeftThreads"]
                .map(|key| reader.get(key, "a whole number", |v| v.as_u64())),
            hang_kill: reader.time("engine.hangKillMs"),
            theme: reader.get("theme", "the name of a theme", |v| v.as_str().map(str::to_owned)),
            notify: reader.get("terminal.notify", "true or false", |v| v.as_bool()).unwrap_or(true),
            default_tools: reader.get("defaultTools", "a list of tools", texts),
            skills: reader.names("skills"),
            prompts: reader.names("prompts"),
            images_as_they_are: reader.get("images.autoResize", "true or false", |v| v.as_bool())
                == Some(false),
            recovery: reader.recovery(),
            compaction: reader.compaction(),
            steering_mode: reader.queue_mode("steeringMode"),
            follow_up_mode: reader.queue_mode("followUpMode"),
            warnings: Vec::new(),
        };
        Ok(Settings { warnings: reader.warnings, ..settings })
    }
}

/// The theme for the next starts; what else the file says stays.
pub fn keep_theme(paths: &Paths, name: &str) -> Result<(), Card> {
    kept_json::update(&global(paths), Keys::LastWins, |map| {
        map.insert("theme".to_owned(), Value::from(name));
        Ok(())
    })
    .map(drop)
    .map_err(|e| card(&e))
}

/// What the user's file says, for a person.
pub fn overview(paths: &Paths) -> String {
    let path = global(paths);
    let mut lines = vec![format!("settings are in {}", path.display())];
    match kept_json::read(&path, Keys::LastWins) {
        Ok(map) if map.is_empty() => lines.push("  nothing is set".to_owned()),
        Ok(map) => lines.extend(map.iter().map(|(key, value)| format!("  {key}: {value}"))),
        Err(e) => lines.push(card(&e).to_string()),
    }
    lines.join("\n")
}

/// `a.b.c`, written with dots or as objects in each other.
fn lookup<'a>(map: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    if let Some(value) = map.get(key) {
        return Some(value);
    }
    let dots = key.match_indices('.').map(|(at, _)| at);
    dots.into_iter().find_map(|at| lookup(map.get(&key[..at])?.as_object()?, &key[at + 1..]))
}

struct Reader<'a> {
    path: &'a Path,
    map: &'a Map<String, Value>,
    warnings: Vec<Card>,
}

impl Reader<'_> {
    /// Null counts as absent.
    fn get<T>(&mut self, key: &str, is: &str, read: impl FnOnce(&Value) -> Option<T>) -> Option<T> {
        let value = lookup(self.map, key).filter(|v| !v.is_null())?;
        let read = read(value);
        if read.is_none() {
            let what = format!("the setting {key} is not used");
            let card = Card::new("cli::setting", what).file(self.path).why(format!("it is {value}"));
            self.warnings.push(card.help(format!("it may be {is}")));
        }
        read
    }
    fn word<T>(&mut self, key: &str, parse: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        let words = match key {
            "defaultProjectTrust" => "\"ask\", \"always\" or \"never\"",
            _ => "\"ask\" or \"off\"",
        };
        self.get(key, words, |v| parse(v.as_str()?))
    }
    fn time(&mut self, key: &str) -> Option<Duration> {
        self.get(key, "a number of milliseconds", |v| v.as_u64().filter(|ms| *ms > 0))
            .map(Duration::from_millis)
    }
    fn queue_mode(&mut self, key: &str) -> QueueMode {
        self.get(key, "\"all\" or \"one-at-a-time\"", |v| QueueMode::parse(v.as_str()?)).unwrap_or_default()
    }
    fn recovery(&mut self) -> RecoverySettings {
        let usual = RecoverySettings::default();
        let fallback = |name: String| {
            let (provider, id) = name.split_once('/')?;
            Some((provider.to_owned(), id.to_owned()))
        };
        RecoverySettings {
            enabled: self.get("retry.enabled", "true or false", |v| v.as_bool()).unwrap_or(usual.enabled),
            max_retries: self
                .get("retry.maxRetries", "a whole number", |v| u32::try_from(v.as_u64()?).ok())
                .unwrap_or(usual.max_retries),
            base_delay: self.time("retry.baseDelayMs").unwrap_or(usual.base_delay),
            max_delay: self.time("retry.maxDelayMs").unwrap_or(usual.max_delay),
            fallbacks: self
                .get("modelFallbacks", "a list of models, each \"provider/id\"", |v| {
                    texts(v)?.into_iter().map(fallback).collect()
                })
                .unwrap_or_default(),
        }
    }
    fn compaction(&mut self) -> CompactionSettings {
        let usual = CompactionSettings::default();
        let ratio = |v: &Value| valid_ratio(v.as_f64()?);
        let count = |v: &Value| valid_count(v.as_f64()?);
        let model = |name: &str| {
            let (provider, id) = name.split_once('/')?;
            Some((provider.to_owned(), id.to_owned()))
        };
        let one = |of: &Map<String, Value>| -> Option<ModelOverride> {
            let read = |key: &str| match of.get(key) {
                None | Some(Value::Null) => Some(None),
                Some(v) => count(v).map(Some),
            };
            Some(ModelOverride {
                reserve_tokens: read("reserveTokens")?,
                preserve_recent: read("preserve_recent")?,
            })
        };
        CompactionSettings {
            enabled: self
                .get("compaction.enabled", "true or false", |v| v.as_bool())
                .unwrap_or(usual.enabled),
            reserve_tokens: self
                .get("compaction.reserveTokens", "a number of tokens", count)
                .unwrap_or(usual.reserve_tokens),
            compression_ratio: self
                .get("compaction.compression_ratio", "a number between 0 and 1", ratio)
                .unwrap_or(usual.compression_ratio),
            preserve_recent: self
                .get("compaction.preserve_recent", "a whole number", count)
                .unwrap_or(usual.preserve_recent),
            query: self.get("compaction.query", "a text", |v| v.as_str().map(str::to_owned)),
            model_overrides: self
                .get(
                    "compaction.modelOverrides",
                    "objects with reserveTokens and preserve_recent, each by its \"provider/id\"",
                    |v| {
                        v.as_object()?
                            .iter()
                            .map(|(name, of)| Some((name.clone(), one(of.as_object()?)?)))
                            .collect()
                    },
                )
                .unwrap_or_default(),
            planner: self
                .get("compactionModel", "\"auto\" or \"provider/id\"", |v| match v.as_str()? {
                    "auto" => Some(None),
                    name => model(name).map(Some),
                })
                .flatten(),
        }
    }
    fn names(&mut self, key: &str) -> Vec<String> {
        self.get(key, "a list of texts", texts).unwrap_or_default()
    }
    fn list(&mut self, paths: &Paths) -> Option<Listed> {
        let key = if self.map.get("extensions").is_some_and(Value::is_object) {
            "extensions.paths"
        } else {
            "extensions"
        };
        let entries = self.get(key, "a list of paths and patterns", texts)?;
        let base = self.path.parent().unwrap_or(self.path).to_owned();
        Some(Listed { base, home: paths.user_home.clone(), entries })
    }
}

fn texts(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|v| v.as_str().map(str::to_owned)).collect()
}

/// What the extensions' host asks of this program.
#[derive(Debug)]
pub struct Around {
    pub paths: Paths,
}

impl Surroundings for Around {
    /// A file that cannot be used lists nothing: what it says must not stop the question.
    fn listed(&self, project: &Path) -> Option<Listed> {
        let path = project.join(".atomic").join("settings.json");
        let map = kept_json::read(&path, Keys::LastWins).ok()?;
        Reader { path: &path, map: &map, warnings: Vec::new() }.list(&self.paths)
    }
    fn of_user(&self) -> Result<(Option<Listed>, Vec<String>), String> {
        let now = Settings::read(&self.paths).map_err(|broken| broken.what)?;
        Ok((now.listed, now.disabled.into_iter().collect()))
    }
    fn set_disabled(&self, name: &str, disabled: bool) -> Result<Vec<String>, String> {
        let changed = kept_json::update(&global(&self.paths), Keys::LastWins, |map| {
            let mut names = map.get(DISABLED).and_then(texts).unwrap_or_default();
            names.retain(|n| n != name);
            if disabled {
                names.push(name.to_owned());
            }
            if names.is_empty() {
                map.shift_remove(DISABLED);
            } else {
                map.insert(DISABLED.to_owned(), names.clone().into());
            }
            Ok::<_, FileError>(names)
        });
        changed.map_err(|e| e.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn paths(dir: &Path, settings: &str) -> Paths {
        let paths = Paths::from_environment().unwrap().scratch(dir.join("home"), dir.join("p"));
        fs::create_dir_all(paths.agent()).unwrap();
        fs::write(global(&paths), settings).unwrap();
        paths
    }

    #[test]
    fn dotted_keys_and_objects_are_the_same() {
        for text in [
            r#"{"extensions.gateTimeoutMs":7,"shell.passCredentials":true}"#,
            r#"{"extensions":{"gateTimeoutMs":7,"paths":["a"]},"shell":{"passCredentials":true}}"#,
            r#"{"extensions":["a"],"extensions.gateTimeoutMs":7,"shell":{"passCredentials":true}}"#,
        ] {
            let dir = tempfile::tempdir().unwrap();
            let read = Settings::read(&paths(dir.path(), text)).unwrap();
            assert_eq!(read.gate_timeout, Some(Duration::from_millis(7)), "{text}");
            assert!(read.pass_credentials, "{text}");
            assert!(read.warnings.is_empty(), "{text}: {:?}", read.warnings);
            let listed = read.listed.map(|l| l.entries);
            assert_eq!(listed.is_some(), text.contains("[\"a\"]"), "{text}");
        }
    }

    #[test]
    fn what_is_said_about_compaction_is_taken_and_what_makes_no_sense_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let text = r#"{"compaction":{"enabled":false,"reserveTokens":9,"compression_ratio":0.25,"preserve_recent":4.5,
            "query":"q","modelOverrides":{"p/m.1":{"preserve_recent":7}}},"compactionModel":"p/small"}"#;
        let read = Settings::read(&paths(dir.path(), text)).unwrap();
        let expected = CompactionSettings {
            enabled: false,
            reserve_tokens: 9,
            compression_ratio: 0.25,
            preserve_recent: 4,
            query: Some("q".into()),
            model_overrides: [(
                "p/m.1".to_owned(),
                ModelOverride { preserve_recent: Some(7), reserve_tokens: None },
            )]
            .into(),
            planner: Some(("p".into(), "small".into())),
        };
        assert_eq!(read.compaction, expected);
        assert!(read.warnings.is_empty(), "{:?}", read.warnings);

        let text = r#"{"compaction.compression_ratio":1,"compaction.preserve_recent":-1,"compaction.reserveTokens":"x",
            "compaction.modelOverrides":{"p/m":{"reserveTokens":"x"}},"compactionModel":"small"}"#;
        let read = Settings::read(&paths(dir.path(), text)).unwrap();
        assert_eq!(read.compaction, CompactionSettings::default());
        assert_eq!(read.warnings.len(), 5, "{:?}", read.warnings);
    }

    #[test]
    fn what_a_key_may_not_say_is_named_and_the_default_counts() {
        let dir = tempfile::tempdir().unwrap();
        let text = r#"{"defaultProjectTrust":"allways","projectExtensionPinning":false,
            "extensions.initTimeoutMs":-1,"extensions":"x","disabledExtensions":[1],"later":{}}"#;
        let read = Settings::read(&paths(dir.path(), text)).unwrap();
        assert_eq!(read.default_trust, DefaultTrust::Ask);
        assert!(!read.pinning_off && read.listed.is_none() && read.init_timeout.is_none());
        assert_eq!(read.warnings.len(), 5, "{:?}", read.warnings);
    }

    #[test]
    fn disabling_keeps_what_else_is_in_the_file_and_a_broken_file_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let paths = paths(dir.path(), "\u{feff}{\"theme\":\"x\",\"extensions\":[\"a\"]}");
        let around = Around { paths: paths.clone() };
        around.set_disabled("a", true).unwrap();
        assert_eq!(around.set_disabled("b", true).unwrap(), ["a", "b"]);
        assert_eq!(Settings::read(&paths).unwrap().disabled, ["a", "b"]);
        around.set_disabled("a", false).unwrap();
        around.set_disabled("b", false).unwrap();
        let text = fs::read_to_string(global(&paths)).unwrap();
        assert_eq!(text, "{\n  \"theme\": \"x\",\n  \"extensions\": [\n    \"a\"\n  ]\n}\n");
        fs::write(global(&paths), "{").unwrap();
        assert!(Settings::read(&paths).is_err() && around.set_disabled("a", true).is_err());
        assert_eq!(fs::read_to_string(global(&paths)).unwrap(), "{");
    }

    #[test]
    fn a_projects_list_is_its_own_and_that_of_pi_is_not_looked_at() {
        let dir = tempfile::tempdir().unwrap();
        let paths = paths(dir.path(), "{}");
        for (folder, text) in
            [(".atomic", r#"{"extensions":["x.so"]}"#), (".pi", r#"{"extensions":["y.so"]}"#)]
        {
            fs::create_dir_all(paths.cwd.join(folder)).unwrap();
            fs::write(paths.cwd.join(folder).join("settings.json"), text).unwrap();
        }
        let listed = Around { paths: paths.clone() }.listed(&paths.cwd).unwrap();
        assert_eq!((listed.base, listed.entries), (paths.cwd.join(".atomic"), vec!["x.so".to_owned()]));
    }
}

//! Which models a session has: the sources of the list, the one it starts with, the ones that a
//! key switches between, and `--list-models`.

use crate::{args::RunArgs, card::Card, paths::Paths, settings::Settings, stdio};
use atomic_agent::{
    hooks::StartReason,
    model::{Model, ModelInfo, Models, ThinkingLevel},
    providers::ScopedModel,
    session::Session,
};
use atomic_models::{ModelSet, ResolveError, Script, Selection, Sources, Tape};
use serde_json::Value;
use std::{
    fmt::Write,
    path::Path,
    sync::{Arc, PoisonError, RwLock},
};
use unicode_width::UnicodeWidthStr;

/// The files that say which models there are.
pub fn sources(paths: &Paths) -> Sources {
    Sources {
        models_json: Some(paths.models_json()),
        auth_json: Some(paths.auth_json()),
        ..Sources::default()
    }
}

pub fn load(
    paths: &Paths,
    args: &RunArgs,
    settings: &Settings,
    reason: StartReason,
) -> Result<ModelSet, Card> {
    let script = match &args.script {
        Some(file) => Some(Script::read(file).map_err(|e| Card::told(e.code(), &e.to_string()))?),
        None => None,
    };
    // An engine that takes over goes on with the script where the one before was.
    let script = script.map(|script| match (&args.session, reason) {
        (Some(file), StartReason::Resume | StartReason::Reload) => script.from(answers(file)),
        _ => script,
    });
    let tape = match (&args.record, &args.replay) {
        // An engine that takes over goes on with the recording of the one before.
        (Some(file), _) => Some(Tape::record(&paths.cwd.join(file), reason != StartReason::Startup)),
        (None, Some(file)) => Some(Tape::play(&paths.cwd.join(file))),
        (None, None) => None,
    };
    let tape = tape.transpose().map_err(|e| Card::told(e.code(), &e.to_string()))?;
    Ok(ModelSet::load(Sources {
        idle: settings.idle_timeout,
        tape,
        offline: args.offline || script.is_some(),
        script,
        ..sources(paths)
    }))
}

/// How many answers of the offline model a session holds.
fn answers(file: &Path) -> usize {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let of_script = |line: &&str| {
        let entry: Value = serde_json::from_str(line).unwrap_or_default();
        entry["message"]["role"] == "assistant" && entry["message"]["provider"] == "offline"
    };
    text.lines().filter(of_script).count()
}

/// What `--models` says, else `enabledModels` of the settings.
pub fn scope(
    models: &ModelSet,
    args: &RunArgs,
    settings: &Settings,
    warnings: &mut Vec<Card>,
) -> Vec<ScopedModel> {
    let patterns = args.models.as_ref().or(settings.enabled_models.as_ref());
    let Some(patterns) = patterns else { return Vec::new() };
    let (found, unmet) = models.scope(patterns);
    warnings.extend(unmet.iter().map(|why| Card::told("models::scope", why)));
    let scoped =
        |s: atomic_models::Scoped| ScopedModel { provider: s.provider, id: s.id, thinking: s.thinking };
    found.into_iter().map(scoped).collect()
}

/// The command line's, else the session's, else the first of the scope, else the settings', else
/// the default; with the level it thinks at.
pub fn choose(
    models: &ModelSet,
    args: &RunArgs,
    settings: &Settings,
    scope: &[ScopedModel],
    session: &Session,
    warnings: &mut Vec<Card>,
) -> Result<(Arc<dyn Model>, ThinkingLevel), Card> {
    let card = |e: ResolveError| Card::told(e.code(), &e.to_string());
    let asked = Selection { provider: args.provider.clone(), model: args.model.clone() };
    let said = asked != Selection::default() || args.offline || args.script.is_some();
    let (model_before, thinking_before) = session.settings();
    let of_session = model_before.as_ref().filter(|_| !said).and_then(|(provider, id)| {
        let model = models.get(provider, id);
        if let Err(why) = &model {
            let what =
                format!("the model of this session, {provider}/{id}, cannot be asked; another one answers");
            warnings.push(Card::new(why.code(), what).why(why.to_string()));
        }
        model.ok()
    });
    let of_scope = || {
        let first = scope.iter().find_map(|s| Some((models.get(&s.provider, &s.id).ok()?, s.thinking)));
        first.filter(|_| !said)
    };
    let (model, level) = match (of_session, of_scope()) {
        (Some(model), _) => (model, None),
        (None, Some(first)) => first,
        (None, None) => {
            let preferred = Selection {
                provider: settings.default_provider.clone(),
                model: settings.default_model.clone(),
            };
            let chosen = match said || preferred == Selection::default() {
                true => models.find(&asked),
                false => models.find(&preferred).or_else(|why| {
                    let what = "the model of the settings cannot be asked; another one answers";
                    let found = models.find(&asked)?;
                    warnings.push(Card::new(why.code(), what).why(why.to_string()));
                    Ok(found)
                }),
            };
            let chosen = chosen.map_err(card)?;
            (chosen.model, chosen.thinking)
        }
    };
    let flag = match &args.thinking {
        Some(text) => Some(ThinkingLevel::parse(text).ok_or_else(|| {
            let names: Vec<_> = ThinkingLevel::ALL.iter().map(|l| l.name()).collect();
            Card::new("models::unknown_thinking_level", format!("'{text}' is no thinking level"))
                .help(format!("one of {}", names.join(", ")))
        })?),
        None => None,
    };
    let level = flag.or(level).or(thinking_before).or(settings.default_thinking).unwrap_or_default();
    Ok((model, level))
}

/// The models room as the engine asks for it.
pub struct Catalogue(RwLock<Arc<ModelSet>>);

impl Catalogue {
    pub fn new(set: ModelSet) -> Self {
        Catalogue(RwLock::new(Arc::new(set)))
    }
    fn set(&self) -> Arc<ModelSet> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Models for Catalogue {
    fn get(&self, provider: &str, id: &str) -> Option<Arc<dyn Model>> {
        self.set().get(provider, id).ok()
    }
    fn list(&self) -> Vec<ModelInfo> {
        self.set().usable().cloned().collect()
    }
    fn configure(&self, provider: &str, config: &serde_json::Value) -> Result<Vec<Arc<dyn Model>>, String> {
        self.set().configure(provider, config)
    }
    fn find(&self, pattern: &str) -> Result<(Arc<dyn Model>, Option<ThinkingLevel>), String> {
        let chosen = self.set().find(&Selection::model(pattern)).map_err(|e| e.to_string())?;
        Ok((chosen.model, chosen.thinking))
    }
    fn refresh(&self) -> Vec<String> {
        let again = self.set().reload();
        let problems = again.problems().iter().map(ToString::to_string).collect();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(again);
        problems
    }
}

/// `--list-models [SEARCH]`: every model there is, those with a key marked.
pub fn list(paths: &Paths, search: &str) -> Result<u8, Card> {
    let set = ModelSet::load(sources(paths));
    for problem in set.problems() {
        eprint!("{}", Card::from(problem));
    }
    let usable: Vec<&ModelInfo> = set.usable().collect();
    let words: Vec<String> = search.split_whitespace().map(str::to_lowercase).collect();
    let fits = |info: &&ModelInfo| {
        let text = format!("{}/{} {}", info.provider, info.id, info.name).to_lowercase();
        words.iter().all(|w| text.contains(w.as_str()))
    };
    let rows: Vec<[String; 7]> = set.list().filter(fits).map(|i| row(i, usable.contains(&i))).collect();
    if rows.is_empty() {
        return Err(Card::new("models::unknown_model", format!("no model fits '{search}'"))
            .help("atomic --list-models shows all of them"));
    }
    let head =
        ["", "model", "context", "answer", "thinking", "images", "$ in/out per million"].map(str::to_owned);
    let mut text = table(std::iter::once(&head).chain(&rows));
    if rows.iter().any(|r| r[0] == "-") {
        text.push_str("\n- has no key: atomic auth login PROVIDER, or the provider's variable\n");
    }
    Ok(stdio::say(&crate::sanitize::text(&text)))
}

fn row(info: &ModelInfo, usable: bool) -> [String; 7] {
    let thinking: Vec<&str> = match info.reasoning {
        true => info.levels().into_iter().map(ThinkingLevel::name).collect(),
        false => vec!["no"],
    };
    let thinking = match thinking.as_slice() {
        [first, .., last] => format!("{first}…{last}"),
        other => other.concat(),
    };
    let sees = info.input.iter().any(|k| k == "image");
    [
        if usable { "" } else { "-" }.to_owned(),
        format!("{}/{}", info.provider, info.id),
        tokens(info.context_window),
        tokens(info.max_tokens),
        thinking,
        if sees { "yes" } else { "no" }.to_owned(),
        format!("{}/{}", info.cost.input, info.cost.output),
    ]
}

fn tokens(n: u64) -> String {
    match n {
        0 => "?".to_owned(),
        n if n >= 1_000_000 => format!("{}M", n / 100_000 * 100_000 / 1_000_000),
        n => format!("{}k", n.div_ceil(1000)),
    }
}

fn table<'r>(rows: impl Iterator<Item = &'r [String; 7]> + Clone) -> String {
    let mut widths = [0; 7];
    for row in rows.clone() {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.width());
        }
    }
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (width, cell) in widths.iter().zip(row) {
            let _ = write!(line, "{cell}{}  ", " ".repeat(width - cell.width()));
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

//! Puts an engine together from the command line: model, extensions, flags, session, tools.
//! Everything that can refuse a start refuses it here, before the first event.

use crate::{
    args::RunArgs,
    card::Card,
    context_files,
    extension::{self, build::Build},
    extension_flags::{self, Declared, Unsettled},
    paths::{self, Paths},
    session_place,
    settings::{Around, Settings},
    trust,
};
use atomic_agent::{
    engine::{Engine, EngineConfig, PromptParts, ToolSelection},
    event::Event,
    handle::{EngineHandle, Mode},
    model::{Model, ModelInfo, Models, ThinkingLevel},
    session::{self, Session, SessionError},
};
use atomic_extensions::{Extensions, ExtensionsConfig, FlagKind};
use atomic_models::{ModelSet, Script, Selection, Sources};
use atomic_tools::ToolsConfig;
use std::{path::PathBuf, sync::Arc};
use tokio::sync::mpsc;

/// What a mode decides about the engine under it.
#[derive(Debug, Clone, Copy)]
pub struct Face {
    pub mode: Mode,
    pub has_ui: bool,
    /// A fatal signal in an extension prints one line and exits 70.
    pub crash_line: bool,
}

/// A running engine and what it was started with.
pub struct Launched {
    pub handle: EngineHandle,
    /// From the first one on.
    pub events: mpsc::UnboundedReceiver<Arc<Event>>,
    pub extensions: Arc<Extensions>,
    /// One each, never a reason not to start.
    pub warnings: Vec<Card>,
    /// What is left of the command line to say.
    pub messages: Vec<String>,
}

/// The extensions of `args` are libraries by now: see [`libraries`].
pub async fn launch(
    paths: &Paths,
    args: &RunArgs,
    unsettled: Vec<Unsettled>,
    face: Face,
) -> Result<Launched, Card> {
    let models = models(paths, args)?;
    let mut warnings: Vec<Card> =
        models.problems().iter().map(|p| Card::told(p.code(), &p.to_string())).collect();

    let place = session_place::of(paths, args, face.has_ui)?;
    // What was typed is meant from where it was typed; all else belongs to the session's folder.
    let (typed_in, paths) = (paths, &place.paths);
    let settings = settings(paths, face, &mut warnings)?;
    let removed_env = removed_env(&models, &settings);
    let mut config = extensions_config(paths, args, face, args.extensions.clone(), &settings);
    config.removed_env.clone_from(&removed_env);
    config.trust = Some(trust::plan(paths, args, &settings, face.has_ui));
    config.gone_cwd.clone_from(&place.gone);
    config.surroundings = Some(Arc::new(Around { paths: paths.clone() }));
    let (extensions, report) = Extensions::load(config).await;
    for refusal in &report.refused {
        let card = Card::from(refusal);
        match refusal.fatal {
            true => return Err(card),
            false => warnings.push(card),
        }
    }
    warnings.extend(report.notes.iter().map(|note| Card::told("extension::note", note)));

    let mut messages = args.messages.clone();
    let declared: Vec<Declared> = extensions
        .flags()
        .into_iter()
        .map(|f| Declared { takes_value: f.kind == FlagKind::String, name: f.name })
        .collect();
    if !unsettled.is_empty() {
        let own = <crate::args::Args as clap::CommandFactory>::command();
        let (known, late) = match extensions.project_is_pending() {
            true => extension_flags::known(unsettled, &declared),
            false => (unsettled, Default::default()),
        };
        extensions.set_flags(extension_flags::settle(known, &declared, &own, &mut messages)?);
        extensions.defer_flags(late);
    }

    let session = open_session(typed_in, paths, args)?;
    let (model, thinking) = choose_model(&models, args, &session)?;
    let tools = atomic_tools::builtin_tools(ToolsConfig {
        cwd: paths.cwd.clone(),
        removed_env,
        output_dir: paths.home.join("outputs"),
        ..ToolsConfig::default()
    });
    let (context_files, unread) = context_files::read(paths, of_project(&extensions));
    warnings.extend(unread);
    let engine = Engine::prepare(EngineConfig {
        cwd: paths.cwd.clone(),
        mode: face.mode,
        has_ui: face.has_ui,
        project_trusted: extensions.project_trusted(),
        session,
        hooks: extensions.clone(),
        tools,
        tool_selection: ToolSelection { only: args.tools.clone(), ..ToolSelection::default() },
        models: Arc::new(Catalogue(models)),
        model: Some(model),
        thinking,
        prompt: PromptParts {
            custom_prompt: args.system_prompt.clone(),
            append_system_prompt: args.append_system_prompt.clone(),
            context_files,
        },
    });
    // Before the extensions are bound: what they had to say until now comes with that.
    let events = engine.handle().subscribe();
    extensions.bind(engine.handle().clone());
    let handle = engine.run().map_err(|e| Card::told("cli::no_thread", &e.to_string()))?;
    if let Some(dir) = &args.watch_crate {
        let loaded = extensions.list().into_iter().map(|e| (e.name, e.sha256)).collect();
        let dir = dir.canonicalize().unwrap_or_else(|_| dir.clone());
        extension::dev::watch(dir, loaded, handle.clone())
            .map_err(|e| Card::told("cli::no_thread", &e.to_string()))?;
    }
    Ok(Launched { handle, events, extensions, warnings, messages })
}

/// The user's settings. Where nobody can be told, what cannot be read ends the start.
fn settings(paths: &Paths, face: Face, warnings: &mut Vec<Card>) -> Result<Settings, Card> {
    let mut usable = |broken: Card| match face.has_ui {
        true => {
            warnings.push(broken);
            Ok(())
        }
        false => Err(broken),
    };
    trust::broken_store(paths).map_or(Ok(()), &mut usable)?;
    let mut settings = match Settings::read(paths) {
        Ok(settings) => settings,
        Err(broken) => usable(broken).map(|()| Settings::default())?,
    };
    warnings.append(&mut settings.warnings);
    Ok(settings)
}

/// What no child inherits: the engine's own variables, and credentials unless the user allows it.
fn removed_env(models: &ModelSet, settings: &Settings) -> Vec<String> {
    let mut names = paths::control_variables();
    if !settings.pass_credentials {
        names.extend(models.credential_variables().iter().cloned());
    }
    names
}

fn of_project(extensions: &Extensions) -> context_files::Project {
    use atomic_extensions::trust::By;
    match extensions.trust_decision() {
        Some(d) if d.trusted => context_files::Project::Trusted,
        Some(d) if d.by == By::Nobody => context_files::Project::Undecided,
        // Said, or asked when the session starts.
        _ => context_files::Project::NotTrusted,
    }
}

fn extensions_config(
    paths: &Paths,
    args: &RunArgs,
    face: Face,
    cli: Vec<PathBuf>,
    settings: &Settings,
) -> ExtensionsConfig {
    let mut config = ExtensionsConfig::new(&paths.home, &paths.cwd);
    config.cli = cli;
    config.no_extensions = args.no_extensions;
    config.global_dirs = paths.global.clone();
    config.bundled_dir = paths.bundled();
    config.listed.clone_from(&settings.listed);
    config.disabled.clone_from(&settings.disabled);
    config.mode = face.mode;
    config.has_ui = face.has_ui;
    config.init_timeout = settings.init_timeout.unwrap_or(config.init_timeout);
    config.handler_timeout = settings.handler_timeout.unwrap_or(config.handler_timeout);
    config.gate_timeout = settings.gate_timeout.or(config.gate_timeout.filter(|_| !face.has_ui));
    config.crash_line = face.crash_line;
    config
}

/// For `atomic extension run`: the extension without a session, a model, a tool or a project.
pub fn without_session(paths: &Paths, library: PathBuf) -> Result<ExtensionsConfig, Card> {
    let args = RunArgs { no_extensions: true, ..RunArgs::default() };
    let face = Face { mode: Mode::Print, has_ui: false, crash_line: true };
    let models = ModelSet::load(Sources { models_json: Some(paths.models_json()), ..Sources::default() });
    let settings = Settings::read(paths)?;
    let mut config = extensions_config(paths, &args, face, vec![library], &settings);
    config.removed_env = removed_env(&models, &settings);
    Ok(config)
}

/// What `-e` names; a crate is built first, with cargo's own messages on stderr. `quiet`: its
/// progress is not shown.
pub fn libraries(named: &[PathBuf], quiet: bool) -> Result<Vec<PathBuf>, Card> {
    let mut found = Vec::new();
    for path in named {
        let path = path.canonicalize().map_err(|e| {
            Card::new("extension::not_found", "the extension that -e names cannot be opened")
                .file(path)
                .why(e.to_string())
                .help("give the path of a shared library, of a folder that holds one, or of a crate")
        })?;
        match extension::is_crate(&path) {
            true => {
                let built = Build { quiet, ..Build::default() }.run(&path)?;
                found.extend(built.into_iter().map(|b| b.library.canonicalize().unwrap_or(b.library)));
            }
            false => found.push(path),
        }
    }
    Ok(found)
}

fn models(paths: &Paths, args: &RunArgs) -> Result<ModelSet, Card> {
    let script = match &args.script {
        Some(file) => Some(Script::read(file).map_err(|e| Card::told(e.code(), &e.to_string()))?),
        None => None,
    };
    Ok(ModelSet::load(Sources {
        models_json: Some(paths.models_json()),
        offline: args.offline || script.is_some(),
        script,
        ..Sources::default()
    }))
}

/// The command line's, else the session's, else the default; with the level it thinks at.
fn choose_model(
    models: &ModelSet,
    args: &RunArgs,
    session: &Session,
) -> Result<(Arc<dyn Model>, ThinkingLevel), Card> {
    let asked = Selection { provider: args.provider.clone(), model: args.model.clone() };
    let before = session.context();
    let of_session = before
        .model
        .as_ref()
        .filter(|_| asked == Selection::default() && !args.offline && args.script.is_none());
    let (model, pattern_level) = match of_session.and_then(|(p, id)| models.get(p, id).ok()) {
        Some(model) => (model, None),
        None => {
            let chosen = models.find(&asked).map_err(|e| Card::told(e.code(), &e.to_string()))?;
            (chosen.model, chosen.thinking)
        }
    };
    let flag_level = match &args.thinking {
        Some(text) => Some(ThinkingLevel::parse(text).ok_or_else(|| {
            let names: Vec<_> = ThinkingLevel::ALL.iter().map(|l| l.name()).collect();
            Card::new("models::unknown_thinking_level", format!("'{text}' is no thinking level"))
                .help(format!("one of {}", names.join(", ")))
        })?),
        None => None,
    };
    let level = flag_level.or(pattern_level).or(before.thinking).unwrap_or_default();
    Ok((model, level))
}

fn open_session(typed_in: &Paths, paths: &Paths, args: &RunArgs) -> Result<Session, Card> {
    let chosen = args.session_dir.as_ref().map(|d| typed_in.cwd.join(d));
    let dir = chosen
        .or_else(|| paths.session_dir.clone())
        .unwrap_or_else(|| session::default_dir(&paths.agent(), &paths.cwd));
    if args.no_session {
        return Ok(Session::in_memory(&paths.cwd, &dir));
    }
    let refused = |e: SessionError| Card::told(e.code(), &e.to_string());
    match &args.session {
        Some(file) => Session::open(&typed_in.cwd.join(file), &paths.cwd).map_err(refused),
        None if args.continue_session => Session::continue_latest(&paths.cwd, &dir).map_err(refused),
        None => Ok(Session::create(&paths.cwd, &dir, None)),
    }
}

/// The models room as the engine asks for it.
struct Catalogue(ModelSet);

impl Models for Catalogue {
    fn get(&self, provider: &str, id: &str) -> Option<Arc<dyn Model>> {
        self.0.get(provider, id).ok()
    }
    fn list(&self) -> Vec<ModelInfo> {
        self.0.usable().cloned().collect()
    }
}

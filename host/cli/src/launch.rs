//! Puts an engine together from the command line: model, extensions, flags, session, tools.
//! Everything that can refuse a start refuses it here, before the first event.

use crate::{
    args::RunArgs,
    card::Card,
    context_files,
    extension::{self, build::Build},
    extension_flags::{self, Declared, Unsettled},
    paths::Paths,
    tool_names,
    trust::{self, Trust},
};
use atomic_agent::{
    engine::{Engine, EngineConfig, PromptParts, ToolSelection},
    event::Event,
    handle::{EngineHandle, Mode},
    hooks::{Hooks, StartReason},
    model::{Model, ModelInfo, Models, ThinkingLevel},
    op::Op,
    session::{self, Session, SessionError},
};
use atomic_extensions::{Extensions, ExtensionsConfig, FlagKind};
use atomic_models::{ModelSet, Script, Selection, Sources};
use atomic_tools::ToolsConfig;
use std::{path::PathBuf, sync::Arc};
use tokio::sync::mpsc;

/// What a mode decides about the engine under it.
#[derive(Debug, Clone)]
pub struct Face {
    pub mode: Mode,
    pub has_ui: bool,
    /// A fatal signal in an extension prints one line and exits 70.
    pub crash_line: bool,
    /// Where the breadcrumb page goes.
    pub page: Option<PathBuf>,
    /// Extensions that are left out this time.
    pub skip: Vec<String>,
}

/// What an engine goes on with.
#[derive(Debug, Clone)]
pub struct Origin {
    pub reason: StartReason,
    /// What was switched on in the engine before.
    pub active_tools: Option<Vec<String>>,
}

impl Default for Origin {
    fn default() -> Self {
        Origin { reason: StartReason::Startup, active_tools: None }
    }
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
    origin: Origin,
) -> Result<Launched, Card> {
    let models = models(paths, args)?;
    let mut warnings: Vec<Card> = models.problems().iter().map(Card::from).collect();

    let trust = trust::decide(args.approve, args.no_approve, &paths.cwd, &paths.home);
    let config = extensions_config(paths, args, &face, trust, args.extensions.clone(), &models);
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
        extensions.set_flags(extension_flags::settle(unsettled, &declared, &own, &mut messages)?);
    }

    let session = open_session(paths, args)?;
    let (model, thinking) = choose_model(&models, args, &session)?;
    let tools = atomic_tools::builtin_tools(ToolsConfig {
        cwd: paths.cwd.clone(),
        removed_env: models.credential_variables().to_vec(),
        output_dir: paths.home.join("outputs"),
        ..ToolsConfig::default()
    });
    let known: Vec<String> = tools.iter().map(|t| t.spec().name.clone()).collect();
    let of_extensions = Hooks::tools(&*extensions).into_iter().map(|t| t.spec().name.clone());
    let known: Vec<String> = known.into_iter().chain(of_extensions).collect();
    warnings.extend(tool_names::check(args.tools.as_deref().unwrap_or_default(), &known)?);
    let (context_files, unread) = context_files::read(paths, trust);
    warnings.extend(unread);
    let config = EngineConfig {
        cwd: paths.cwd.clone(),
        mode: face.mode,
        has_ui: face.has_ui,
        project_trusted: trust == Trust::Yes,
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
    };
    let engine = Engine::prepare_for(config, origin.reason);
    // Before the extensions are bound: what they had to say until now comes with that.
    let events = engine.handle().subscribe();
    extensions.bind(engine.handle().clone());
    if let Some(names) = origin.active_tools {
        // Taken in before the first hook: the session starts with what was on.
        engine.handle().send(Op::SetActiveTools { names });
    }
    let handle = engine.run().map_err(|e| Card::told("cli::no_thread", &e.to_string()))?;
    Ok(Launched { handle, events, extensions, warnings, messages })
}

pub fn extensions_config(
    paths: &Paths,
    args: &RunArgs,
    face: &Face,
    trust: Trust,
    cli: Vec<PathBuf>,
    models: &ModelSet,
) -> ExtensionsConfig {
    let mut config = ExtensionsConfig::new(&paths.home, &paths.cwd);
    config.cli = cli;
    config.no_extensions = args.no_extensions;
    config.global_dirs = paths.global.clone();
    config.bundled_dir = paths.bundled();
    config.project_trusted = trust == Trust::Yes;
    config.has_ui = face.has_ui;
    if face.has_ui {
        config.gate_timeout = None;
    }
    config.crash_line = face.crash_line;
    config.breadcrumbs.clone_from(&face.page);
    config.skip.clone_from(&face.skip);
    config.removed_env = models.credential_variables().to_vec();
    let flags = <crate::args::Args as clap::CommandFactory>::command();
    config.reserved_flags = flags.get_arguments().filter_map(|a| a.get_long().map(str::to_owned)).collect();
    config.reserved_flags.extend(["help", "version"].map(str::to_owned));
    let own = atomic_tools::builtin_tools(ToolsConfig::default());
    config.builtin_tools = own.iter().map(|t| t.spec().name.clone()).collect();
    config
}

/// For `atomic extension run`: the extensions without a session, a model or a tool.
pub fn without_session(paths: &Paths, library: PathBuf) -> ExtensionsConfig {
    let args = RunArgs { no_extensions: true, ..RunArgs::default() };
    let face = Face { mode: Mode::Print, has_ui: false, crash_line: true, page: None, skip: Vec::new() };
    let trust = trust::decide(false, false, &paths.cwd, &paths.home);
    let models = ModelSet::load(Sources { models_json: Some(paths.models_json()), ..Sources::default() });
    extensions_config(paths, &args, &face, trust, vec![library], &models)
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
                eprintln!(
                    "building {} (once, at start: after a change start again, or type `atomic extension install` for /reload)…",
                    crate::sanitize::line(&path.display().to_string(), 200)
                );
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

fn open_session(paths: &Paths, args: &RunArgs) -> Result<Session, Card> {
    let chosen = args.session_dir.as_ref().map(|d| paths.cwd.join(d));
    let dir = chosen
        .or_else(|| paths.session_dir.clone())
        .unwrap_or_else(|| session::default_dir(&paths.agent(), &paths.cwd));
    if args.no_session {
        return Ok(Session::in_memory(&paths.cwd, &dir));
    }
    let refused = |e: SessionError| Card::told(e.code(), &e.to_string());
    match &args.session {
        Some(file) => Session::open(&paths.cwd.join(file), &paths.cwd).map_err(refused),
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

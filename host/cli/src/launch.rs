//! Puts an engine together from the command line: model, extensions, flags, session, tools.
//! Everything that can refuse a start refuses it here, before the first event.

use crate::{
    args::RunArgs,
    card::Card,
    context_files,
    extension::{self, build::Build},
    extension_flags::{self, Declared, Unsettled},
    lending::Lending,
    models,
    paths::{self, Paths},
    said::{self, Said},
    session_choice, session_place,
    settings::{Around, Settings},
    tool_names, trust,
};
use atomic_agent::{
    boundary::MAX_CONTINUATIONS,
    engine::{Engine, EngineConfig, PromptParts, ToolSelection},
    event::Event,
    handle::{EngineHandle, Mode},
    hooks::{Hooks, StartReason},
    op::Op,
};
use atomic_extensions::{Extensions, ExtensionsConfig, FlagKind};
use atomic_models::ModelSet;
use atomic_tools::{Bench, ToolsConfig};
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
    /// What the engine before had decided about the project.
    pub trusted: Option<bool>,
}

impl Default for Origin {
    fn default() -> Self {
        Origin { reason: StartReason::Startup, active_tools: None, trusted: None }
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
    pub messages: Vec<Said>,
}

/// The extensions of `args` are libraries by now: see [`libraries`].
pub async fn launch(
    paths: &Paths,
    args: &RunArgs,
    unsettled: Vec<Unsettled>,
    face: Face,
    origin: Origin,
) -> Result<Launched, Card> {
    let mut warnings = Vec::new();

    let args = &session_choice::settle(paths, args)?;
    let place = session_place::of(paths, args, face.has_ui)?;
    // What was typed is meant from where it was typed; all else belongs to the session's folder.
    let (typed_in, paths) = (paths, &place.paths);
    let settings = settings(paths, &face, &mut warnings)?;
    let models = models::load(typed_in, args, &settings, origin.reason)?;
    warnings.extend(models.problems().iter().map(Card::from));
    let removed_env = removed_env(&models, &settings);
    let mut config = extensions_config(paths, args, &face, args.extensions.clone(), &settings);
    config.removed_env.clone_from(&removed_env);
    config.trust = Some(trust::plan(paths, args, &settings, face.has_ui, origin.trusted));
    config.gone_cwd.clone_from(&place.gone);
    config.surroundings = Some(Arc::new(Around { paths: paths.clone() }));
    let bench = Arc::new(Bench::new(ToolsConfig {
        cwd: paths.cwd.clone(),
        removed_env: removed_env.clone(),
        output_dir: paths.home.join("outputs"),
        fit_images: !settings.images_as_they_are,
        ..ToolsConfig::default()
    }));
    config.workbench = Some(bench.clone());
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

    let session = session_choice::open(typed_in, paths, args, &mut warnings)?;
    let scope = models::scope(&models, args, &settings, &mut warnings);
    let (model, thinking) = models::choose(&models, args, &settings, &scope, &session, &mut warnings)?;
    let tools = bench.tools();
    let known: Vec<String> = tools.iter().map(|t| t.spec().name.clone()).collect();
    let of_extensions = Hooks::tools(&*extensions).into_iter().map(|t| t.spec().name.clone());
    let known: Vec<String> = known.into_iter().chain(of_extensions).collect();
    // What comes in later may have it.
    if !extensions.project_is_pending() {
        warnings.extend(tool_names::check(args.tools.as_deref().unwrap_or_default(), &known)?);
        warnings.extend(tool_names::check(&args.exclude_tools, &known).unwrap_or_else(|card| vec![card]));
    }
    if !args.lend.no_context_files && undecided(&extensions) {
        warnings.extend(context_files::left_out(paths));
    }
    let lending = lending(typed_in, paths, args)?;
    let resize = !settings.images_as_they_are;
    let messages = said::all(args.stdin.clone(), messages, &typed_in.cwd, resize)?;
    let config = EngineConfig {
        cwd: paths.cwd.clone(),
        mode: face.mode,
        has_ui: face.has_ui,
        project_trusted: extensions.project_trusted(),
        session,
        hooks: extensions.clone(),
        tools,
        tool_selection: selection(args, &settings),
        models: Arc::new(models::Catalogue::new(models)),
        model: Some(model),
        thinking,
        prompt: PromptParts::default(),
    };
    let most = settings.max_hook_continuations.unwrap_or(MAX_CONTINUATIONS);
    let engine = Engine::prepare_for(config, origin.reason)
        .max_hook_continuations(most)
        .queue_modes(settings.steering_mode, settings.follow_up_mode)
        .recovery(settings.recovery.clone())
        .lender(Arc::new(lending))
        .compaction(settings.compaction.clone())
        .cache_warming(settings.cache_warming)
        .scoped_models(scope);
    let engine = if resize { engine.images(Arc::new(atomic_tools::images::Fit)) } else { engine };
    // Before the extensions are bound: what they had to say until now comes with that.
    let events = engine.handle().subscribe();
    extensions.bind(engine.handle().clone());
    if let Some(names) = origin.active_tools {
        // Taken in before the first hook: the session starts with what was on.
        engine.handle().send(Op::SetActiveTools { names });
    }
    if let Some(name) = &args.name {
        engine.handle().send(Op::SetSessionName { name: Some(name.clone()) });
    }
    let handle = engine.run().map_err(|e| Card::told("cli::no_thread", &e.to_string()))?;
    if let Some(dir) = &args.watch_crate {
        let loaded = extensions.list().into_iter().map(|e| (e.name, e.sha256)).collect();
        let dir = dir.canonicalize().unwrap_or_else(|_| dir.clone());
        extension::dev::watch(paths, dir, loaded, handle.clone())
            .map_err(|e| Card::told("cli::no_thread", &e.to_string()))?;
    }
    Ok(Launched { handle, events, extensions, warnings, messages })
}

/// The user's settings. Where nobody can be told, what cannot be read ends the start.
fn settings(paths: &Paths, face: &Face, warnings: &mut Vec<Card>) -> Result<Settings, Card> {
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

/// Nobody said anything about the project, and nobody will be asked.
fn undecided(extensions: &Extensions) -> bool {
    use atomic_extensions::trust::By;
    extensions.trust_decision().is_some_and(|d| !d.trusted && d.by == By::Nobody)
}

fn lending(typed_in: &Paths, paths: &Paths, args: &RunArgs) -> Result<Lending, Card> {
    let text = |given: &String| said::text_or_file(given, &typed_in.cwd);
    let append: Vec<String> = args.append_system_prompt.iter().map(text).collect::<Result<_, _>>()?;
    Ok(Lending {
        paths: paths.clone(),
        typed_in: typed_in.cwd.clone(),
        args: args.lend.clone(),
        system_prompt: args.system_prompt.as_ref().map(text).transpose()?,
        append_system_prompt: (!append.is_empty()).then(|| append.join("\n\n")),
    })
}

/// Built-in tools that are on by themselves; the others are there for the asking.
const ON: [&str; 7] = ["read", "bash", "powershell", "edit", "write", "find", "search"];

/// The command line, then the setting `defaultTools`, then what is usual.
fn selection(args: &RunArgs, settings: &Settings) -> ToolSelection {
    let usual = || ON.map(str::to_owned).to_vec();
    let builtin = match args.no_builtin_tools {
        true => Vec::new(),
        false => settings.default_tools.clone().unwrap_or_else(usual),
    };
    let none = || args.no_tools.then(Vec::new);
    ToolSelection {
        builtin: Some(builtin),
        only: args.tools.clone().or_else(none),
        exclude: args.exclude_tools.clone(),
    }
}

/// Without a project: that is for whoever has a session.
pub fn extensions_config(
    paths: &Paths,
    args: &RunArgs,
    face: &Face,
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
    let [libraries, memory, threads] = settings.left_behind;
    let whole = |n: Option<u64>| n.and_then(|n| usize::try_from(n).ok());
    config.budget.libraries = whole(libraries).unwrap_or(config.budget.libraries);
    config.budget.anon_kb = memory.map_or(config.budget.anon_kb, |mb| mb.saturating_mul(1024));
    config.budget.threads = whole(threads).unwrap_or(config.budget.threads);
    config.init_timeout = settings.init_timeout.unwrap_or(config.init_timeout);
    config.handler_timeout = settings.handler_timeout.unwrap_or(config.handler_timeout);
    config.gate_timeout = settings.gate_timeout.or(config.gate_timeout.filter(|_| !face.has_ui));
    config.crash_line = face.crash_line;
    config.breadcrumbs.clone_from(&face.page);
    config.skip.clone_from(&face.skip);
    let flags = <crate::args::Args as clap::CommandFactory>::command();
    config.reserved_flags = flags.get_arguments().filter_map(|a| a.get_long().map(str::to_owned)).collect();
    config.reserved_flags.extend(["help", "version"].map(str::to_owned));
    let own = atomic_tools::builtin_tools(ToolsConfig::default());
    config.builtin_tools = own.iter().map(|t| t.spec().name.clone()).collect();
    config
}

/// For `atomic extension run`: the extension without a session, a model, a tool or a project.
pub fn without_session(paths: &Paths, library: PathBuf) -> Result<ExtensionsConfig, Card> {
    let args = RunArgs { no_extensions: true, ..RunArgs::default() };
    let face = Face { mode: Mode::Print, has_ui: false, crash_line: true, page: None, skip: Vec::new() };
    let models = ModelSet::load(models::sources(paths));
    let settings = Settings::read(paths)?;
    let mut config = extensions_config(paths, &args, &face, vec![library], &settings);
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

//! What the host of extensions is told by the program around it.

use crate::{
    discover::Listed,
    graveyard::Budget,
    trust::{Surroundings, TrustPlan},
};
use atomic_agent::{handle::Mode, workbench::Workbench};
use serde_json::Value;
use std::{path::PathBuf, sync::Arc, time::Duration};

/// What the host needs to know. Nothing here is read from the environment.
#[derive(Clone, Debug)]
pub struct ExtensionsConfig {
    /// `$ATOMIC_HOME`.
    pub home: PathBuf,
    pub cwd: PathBuf,
    /// `-e`: libraries or folders.
    pub cli: Vec<PathBuf>,
    pub no_extensions: bool,
    /// Ids that are left out until the next `/reload`: what crashed or hung before. Whoever
    /// fills it says so.
    pub skip: Vec<String>,
    /// Load the extension of this id alone: it runs as a program (`main.v1`).
    pub only: Option<String>,
    pub global_dirs: Vec<PathBuf>,
    pub bundled_dir: Option<PathBuf>,
    /// The `extensions` list of the user's settings.
    pub listed: Option<Listed>,
    /// Names that are not loaded.
    pub disabled: Vec<String>,
    /// Without a `trust` plan: what is decided about the project. False: nothing of its own
    /// extensions is even opened.
    pub project_trusted: bool,
    /// How it is decided about the project; `None`: `project_trusted` says.
    pub trust: Option<TrustPlan>,
    /// Settings and files of projects, for those who know them.
    pub surroundings: Option<Arc<dyn Surroundings>>,
    /// The session belongs to a folder that is gone: the person is asked whether to go on here.
    pub gone_cwd: Option<PathBuf>,
    pub mode: Mode,
    pub has_ui: bool,
    pub init_timeout: Duration,
    /// Observers and chains; over it they are dropped and named.
    pub handler_timeout: Duration,
    /// Gates. `None`: they may wait for the user.
    pub gate_timeout: Option<Duration>,
    /// All `session_shutdown` handlers together, at the end of the program.
    pub shutdown_grace: Duration,
    /// Print and json: a fatal signal prints one line and exits 70.
    pub crash_line: bool,
    /// Where the breadcrumb page goes, for whoever looks after a crash; `None`: in memory only.
    pub breadcrumbs: Option<PathBuf>,
    /// What may be left behind before the engine should be replaced.
    pub budget: Budget,
    /// What the program's tools lend to extensions.
    pub workbench: Option<Arc<dyn Workbench>>,
    /// Variables that children of `exec` do not inherit.
    pub removed_env: Vec<String>,
    /// The program's own tools: an extension may replace one, which is told.
    pub builtin_tools: Vec<String>,
    /// The program's own flags, without dashes: no extension's flag would ever be given.
    pub reserved_flags: Vec<String>,
    /// Keys the program cannot do without, lower case: no extension gets them (events.md I.5).
    pub reserved_keys: Vec<String>,
    /// `ctx.orchestrationContext`: the session is a stage of a workflow.
    pub orchestration_context: Option<Value>,
    /// `ctx.subagentPolicy`: the session is a subagent's.
    pub subagent_policy: Option<Value>,
}

/// The reserved actions of events.md I.5 on the keys they have before the user changes them.
const RESERVED_KEYS: [&str; 14] = [
    "escape",
    "ctrl+c",
    "ctrl+d",
    "ctrl+z",
    "shift+tab",
    "ctrl+p",
    "shift+ctrl+p",
    "ctrl+l",
    "ctrl+o",
    "ctrl+t",
    "ctrl+g",
    "alt+enter",
    "enter",
    "ctrl+k",
];

impl ExtensionsConfig {
    /// The limits of decisions.md, nothing discovered but what `home` and `cwd` hold.
    pub fn new(home: impl Into<PathBuf>, cwd: impl Into<PathBuf>) -> Self {
        ExtensionsConfig {
            home: home.into(),
            cwd: cwd.into(),
            cli: Vec::new(),
            no_extensions: false,
            skip: Vec::new(),
            only: None,
            global_dirs: Vec::new(),
            bundled_dir: None,
            listed: None,
            disabled: Vec::new(),
            project_trusted: false,
            trust: None,
            surroundings: None,
            gone_cwd: None,
            mode: Mode::Print,
            has_ui: false,
            init_timeout: Duration::from_secs(30),
            handler_timeout: Duration::from_secs(30),
            gate_timeout: Some(Duration::from_secs(300)),
            shutdown_grace: Duration::from_secs(5),
            crash_line: false,
            breadcrumbs: None,
            budget: Budget::default(),
            workbench: None,
            removed_env: Vec::new(),
            builtin_tools: Vec::new(),
            reserved_flags: Vec::new(),
            reserved_keys: RESERVED_KEYS.map(str::to_owned).to_vec(),
            orchestration_context: None,
            subagent_policy: None,
        }
    }
}

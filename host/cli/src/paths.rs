//! Where things are (decisions.md, "Names and places"). The only file of this crate that
//! reads environment variables.

use crate::card::Card;
use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
};

/// The places of one process.
#[derive(Debug, Clone)]
pub struct Paths {
    /// `$ATOMIC_HOME`, default `~/.atomic`.
    pub home: PathBuf,
    pub cwd: PathBuf,
    /// The user's own, when there is one.
    pub user_home: Option<PathBuf>,
    /// Machine-wide extension directories.
    pub global: Vec<PathBuf>,
    /// `$ATOMIC_CODING_AGENT_SESSION_DIR`.
    pub session_dir: Option<PathBuf>,
    executable: Option<PathBuf>,
}

impl Paths {
    pub fn from_environment() -> Result<Self, Card> {
        let cwd = env::current_dir().map_err(|e| {
            Card::new("cli::no_cwd", "the current directory cannot be read")
                .why(e.to_string())
                .help("cd to a folder that exists")
        })?;
        let home = match set("ATOMIC_HOME") {
            Some(home) => cwd.join(home),
            None => match etcetera::home_dir() {
                Ok(home) => home.join(".atomic"),
                Err(_) => {
                    return Err(Card::new("cli::no_home", "there is no home directory to keep things in")
                        .help("set ATOMIC_HOME to a folder"));
                }
            },
        };
        let global = match set("ATOMIC_GLOBAL_EXTENSIONS") {
            Some(list) => env::split_paths(&list).filter(|p| p.is_absolute()).collect(),
            None => default_global().into_iter().collect(),
        };
        let session_dir = set("ATOMIC_CODING_AGENT_SESSION_DIR").map(|d| cwd.join(d));
        let user_home = etcetera::home_dir().ok();
        Ok(Paths { home, cwd, user_home, global, session_dir, executable: env::current_exe().ok() })
    }

    pub fn agent(&self) -> PathBuf {
        self.home.join("agent")
    }
    /// Where `install` puts things: the first of the user's directories.
    pub fn extensions(&self) -> PathBuf {
        self.home.join("extensions")
    }
    /// `extensions/` beside the executable.
    pub fn bundled(&self) -> Option<PathBuf> {
        Some(self.executable.as_deref()?.parent()?.join("extensions"))
    }
    pub fn trash(&self) -> PathBuf {
        self.home.join("trash")
    }
    pub fn models_json(&self) -> PathBuf {
        self.agent().join("models.json")
    }
    pub fn auth_json(&self) -> PathBuf {
        self.agent().join("auth.json")
    }
    pub fn log(&self) -> PathBuf {
        self.home.join("log").join("output.log")
    }

    /// The same program in another home and folder, with nothing else taken from the machine.
    pub fn scratch(&self, home: PathBuf, cwd: PathBuf) -> Self {
        Paths { home, cwd, user_home: None, global: Vec::new(), session_dir: None, executable: None }
    }

    /// The same program in another folder.
    pub fn at(&self, cwd: PathBuf) -> Self {
        Paths { cwd, ..self.clone() }
    }

    /// The cargo target directory this executable was built in, if it still lies there.
    pub fn target_dir(&self) -> Option<PathBuf> {
        let profile = self.executable.as_deref()?.parent()?;
        let target = profile.parent()?;
        target.join("CACHEDIR.TAG").is_file().then(|| target.to_owned())
    }

    /// The source tree this executable was built from, else the one around the current folder.
    pub fn source_tree(&self) -> Option<PathBuf> {
        let starts = [self.executable.clone(), Some(self.cwd.clone())];
        let is_tree = |p: &&Path| p.join("plugin-api/Cargo.toml").is_file() && p.join("plugins").is_dir();
        starts.iter().flatten().find_map(|start| start.ancestors().find(is_tree).map(Path::to_owned))
    }
}

#[cfg(unix)]
fn default_global() -> Option<PathBuf> {
    Some(PathBuf::from("/usr/local/lib/atomic/extensions"))
}

#[cfg(windows)]
fn default_global() -> Option<PathBuf> {
    set("ProgramData").map(|d| PathBuf::from(d).join("atomic").join("extensions"))
}

/// The cargo to build with; `cargo run` names its own.
pub fn cargo() -> OsString {
    set("CARGO").unwrap_or_else(|| "cargo".into())
}

/// What the demo is told to break, so that a test sees it fail. See `demo`.
pub fn demo_break() -> Option<String> {
    set("ATOMIC_DEMO_BREAK").and_then(|v| v.into_string().ok())
}

/// Variables by which the program speaks to its own engine: no child of the engine sees them.
pub fn control_variables() -> Vec<String> {
    let names = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    names.filter(|name| name.starts_with(ENGINE_PREFIX)).collect()
}

/// What the names of such variables begin with.
pub const ENGINE_PREFIX: &str = "ATOMIC_ENGINE_";

/// An empty variable counts as unset.
fn set(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|v| !v.is_empty())
}

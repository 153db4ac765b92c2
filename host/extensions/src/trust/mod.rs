//! Whether what a project brings may be opened: who is asked in which order (`order`), what was
//! answered before (`store`), which bytes the answer was given for (`pins`), what the person is
//! shown (`prompt`), and what then loads (`admit`). Until it is decided, names of a project are
//! listed, and for the question its files are read; nothing of it is opened as code.

mod admit;
mod ask;
mod command;
mod inputs;
pub mod kept_json;
mod order;
mod pins;
mod prompt;
mod store;
mod survey;

pub use inputs::{CONTEXT_FILES, Users, borrowed, inputs};
pub use order::{By, Choice, Decision, DefaultTrust, HookAnswer, Known, Next, SavedAnswer, resolve};
pub use pins::{Difference, Hashes, Pins, differences};
pub use prompt::described;
pub use store::{Answer, Entry, Saved, TrustStore, canonical};
pub use survey::{Shown, look};

pub(crate) use ask::{TrustCall, allowed, is_trust_call};
pub(crate) use survey::Judged;

use crate::discover::Listed;
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Who asks, in dialogs that are the program's own.
const ASKER: &str = "atomic";

/// How it is decided about the project, and what may be asked.
#[derive(Clone, Debug, Default)]
pub struct TrustPlan {
    /// Where trust.json and library-pins.json are.
    pub agent_dir: PathBuf,
    /// `--approve`, `--no-approve`.
    pub command_line: Option<bool>,
    pub default: DefaultTrust,
    /// What the engine before this one had decided, when this one goes on for it.
    pub carried: Option<bool>,
    /// `projectExtensionPinning` is not off.
    pub pinning: bool,
    /// Somebody can be asked: the decision is left to the session (events.md B.5).
    pub interactive: bool,
    pub user_home: Option<PathBuf>,
    /// Directories that `-e` names, for what they bring beside their libraries.
    pub borrowed: Vec<PathBuf>,
}

/// What the program around knows about projects and this crate does not: settings and files for
/// the model. Asked about a project's own only once it is trusted, but for `listed`, whose answer
/// is shown in the question.
pub trait Surroundings: Send + Sync + std::fmt::Debug {
    /// The `extensions` list of a project's settings.
    fn listed(&self, project: &Path) -> Option<Listed>;
    /// What the user's settings say now of what is loaded: the list of `extensions`, and the names
    /// that are not. An error is a sentence for a person; what was read before goes on.
    fn of_user(&self) -> Result<(Option<Listed>, Vec<String>), String>;
    /// Writes down that an extension is (not) to load; answers all that are not.
    fn set_disabled(&self, name: &str, disabled: bool) -> Result<Vec<String>, String>;
}

/// A directory that may bring libraries: the current one, or one that `-e` names.
#[derive(Clone, Debug)]
pub(crate) struct Territory {
    pub(crate) dir: PathBuf,
    pub(crate) borrowed: bool,
    /// `None`: not yet.
    pub(crate) decision: Option<Decision>,
}

/// The territories of one host; the first is the current directory.
#[derive(Default)]
pub(crate) struct State {
    territories: Mutex<Vec<Territory>>,
    /// What was decided about directories that sessions of this process work in, or are about to.
    entered: Mutex<HashMap<PathBuf, Decision>>,
    /// Notices of `project_trust` handlers from before there was anybody to tell.
    said: Mutex<Vec<String>>,
}

impl State {
    pub(crate) fn new(cwd: &Path, borrowed: &[PathBuf]) -> Self {
        let cwd = Territory { dir: cwd.to_owned(), borrowed: false, decision: None };
        let lent = borrowed.iter().map(|dir| Territory { dir: dir.clone(), borrowed: true, decision: None });
        State {
            territories: Mutex::new([cwd].into_iter().chain(lent).collect()),
            entered: Mutex::default(),
            said: Mutex::default(),
        }
    }
    fn territories(&self) -> MutexGuard<'_, Vec<Territory>> {
        self.territories.lock().unwrap_or_else(PoisonError::into_inner)
    }
    pub(crate) fn all(&self) -> Vec<Territory> {
        self.territories().clone()
    }
    pub(crate) fn decided(&self, dir: &Path, decision: &Decision) {
        for t in self.territories().iter_mut().filter(|t| t.dir == dir) {
            t.decision = Some(decision.clone());
        }
    }
    /// The current directory.
    pub(crate) fn here(&self) -> PathBuf {
        self.territories().first().map(|t| t.dir.clone()).unwrap_or_default()
    }
    /// Of this process; asked about once.
    pub(crate) fn known_of(&self, dir: &Path) -> Option<Decision> {
        let dir = canonical(dir);
        self.entered.lock().unwrap_or_else(PoisonError::into_inner).get(&dir).cloned()
    }
    pub(crate) fn entered(&self, dir: &Path, decision: Decision) {
        self.entered.lock().unwrap_or_else(PoisonError::into_inner).insert(canonical(dir), decision);
    }
    /// The session works there now.
    pub(crate) fn move_to(&self, dir: &Path) {
        let decision = self.known_of(dir);
        let mut territories = self.territories();
        let Some(here) = territories.first_mut() else { return };
        if let Some(decided) = &here.decision {
            let (left, decided) = (here.dir.clone(), decided.clone());
            self.entered(&left, decided);
        }
        *here = Territory { dir: dir.to_owned(), borrowed: false, decision };
    }
    /// About the current directory.
    pub(crate) fn project(&self) -> Option<Decision> {
        self.territories().first().and_then(|t| t.decision.clone())
    }
    pub(crate) fn say(&self, line: String) {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }
    pub(crate) fn said(&self) -> Vec<String> {
        std::mem::take(&mut *self.said.lock().unwrap_or_else(PoisonError::into_inner))
    }
    pub(crate) fn pending(&self) -> bool {
        self.territories().iter().any(|t| t.decision.is_none())
    }
}

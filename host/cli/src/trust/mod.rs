//! What this program knows about trust before a session decides: the command line, the settings,
//! and what stands in trust.json. The deciding itself is the extensions' host's.

pub mod command;

use crate::{
    args::RunArgs,
    card::Card,
    paths::Paths,
    settings::{self, Settings},
};
use atomic_extensions::trust::{self, TrustPlan, TrustStore, Users, borrowed};
use std::path::PathBuf;

/// For one start. `interactive`: somebody can be asked.
pub fn plan(
    paths: &Paths,
    args: &RunArgs,
    settings: &Settings,
    interactive: bool,
    carried: Option<bool>,
) -> TrustPlan {
    TrustPlan {
        agent_dir: paths.agent(),
        command_line: match (args.approve, args.no_approve) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        },
        default: settings.default_trust,
        carried,
        pinning: !settings.pinning_off,
        interactive,
        user_home: paths.user_home.clone(),
        borrowed: lenders(paths, args),
    }
}

/// Folders that `-e` names and that bring more than a library (events.md B.9). The current
/// folder is asked about anyway.
fn lenders(paths: &Paths, args: &RunArgs) -> Vec<PathBuf> {
    let named = args.lenders.iter().chain(&args.extensions);
    let dirs = named.filter_map(|path| paths.cwd.join(path).canonicalize().ok());
    let here = paths.cwd.canonicalize().unwrap_or_else(|_| paths.cwd.clone());
    let mut lend: Vec<PathBuf> =
        dirs.filter(|d| d.is_dir() && *d != here && !borrowed(d, users(paths)).is_empty()).collect();
    lend.dedup();
    lend
}

pub fn users(paths: &Paths) -> Users<'_> {
    Users { atomic_home: &paths.home, home: paths.user_home.as_deref() }
}

/// A trust.json that cannot be used, as a card.
pub fn broken_store(paths: &Paths) -> Option<Card> {
    TrustStore::of(&paths.agent()).read().err().map(|e| settings::card(&e))
}

/// For commands that list and run nothing: what was said before, without asking anyone.
pub fn standing(paths: &Paths) -> bool {
    if trust::inputs(&paths.cwd, users(paths)).is_empty() {
        return true;
    }
    let Ok(saved) = TrustStore::of(&paths.agent()).read() else { return false };
    let default = Settings::read(paths).map(|s| s.default_trust).unwrap_or_default();
    match saved.lookup(&paths.cwd) {
        Some(answer) => answer.trusted,
        None => default == trust::DefaultTrust::Always,
    }
}

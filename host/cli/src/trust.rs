//! Whether what a project brings may be opened and read (events.md B.2, B.4), as far as it is
//! decided without asking: by the command line, or because there is nothing to trust.
//! Saved decisions and the question itself are not here yet; undecided means no.

use crate::context_files;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// `--approve`, or a project without anything that needs trust.
    Yes,
    /// `--no-approve`.
    No,
    /// Nobody said anything: treated as no, and told.
    Undecided,
}

/// `home` is Atomic's own: in the folder that holds it, `.atomic` is the user's, not a project's.
pub fn decide(approve: bool, no_approve: bool, cwd: &Path, home: &Path) -> Trust {
    match (approve, no_approve) {
        (true, _) => Trust::Yes,
        (_, true) => Trust::No,
        _ if inputs(cwd, home).is_empty() => Trust::Yes,
        _ => Trust::Undecided,
    }
}

/// What in a folder, or above it, speaks for the project rather than for the user.
fn inputs(cwd: &Path, home: &Path) -> Vec<PathBuf> {
    const INSIDE: [&str; 7] =
        ["settings.json", "extensions", "skills", "prompts", "themes", "SYSTEM.md", "APPEND_SYSTEM.md"];
    let ancestral = || context_files::NAMES.into_iter().chain([".agents/skills"]);
    let own = [".atomic", ".pi"].into_iter().map(|d| cwd.join(d)).filter(|d| d != home);
    let own = own.flat_map(|d| INSIDE.map(|f| d.join(f)));
    let above = cwd.ancestors().flat_map(|d| ancestral().map(move |f| d.join(f)));
    let users = home.parent().map(|h| h.join(".agents/skills"));
    let above = above.filter(|p| Some(p) != users.as_ref());
    own.chain(above).filter(|p| p.exists()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_brings_nothing_is_trusted_without_a_question() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(decide(false, false, dir.path(), Path::new("/none")), Trust::Yes);
    }

    #[test]
    fn a_folder_with_extensions_of_its_own_is_not_trusted_until_someone_says_so() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join(".atomic/extensions")).unwrap();
        assert_eq!(decide(false, false, dir.path(), Path::new("/none")), Trust::Undecided);
        assert_eq!(decide(true, false, dir.path(), Path::new("/none")), Trust::Yes);
        assert_eq!(decide(false, true, dir.path(), Path::new("/none")), Trust::No);
    }

    #[test]
    fn in_the_folder_that_holds_atomics_home_its_extensions_are_the_users() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join(".atomic/extensions")).unwrap();
        assert_eq!(decide(false, false, dir.path(), &dir.path().join(".atomic")), Trust::Yes);
    }

    #[test]
    fn a_context_file_above_the_folder_is_a_trust_input_too() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("AGENTS.md"), "").unwrap();
        let below = dir.path().join("a/b");
        std::fs::create_dir_all(&below).unwrap();
        assert_eq!(decide(false, false, &below, Path::new("/none")), Trust::Undecided);
    }
}

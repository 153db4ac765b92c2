//! AGENTS.md and its relatives: what the user, and a trusted project, tell the model about
//! themselves (events.md B.2). Nothing of an untrusted folder is read.

use crate::{card::Card, paths::Paths};
use atomic_agent::hooks::ContextFile;
use atomic_extensions::trust::CONTEXT_FILES;
use std::path::{Path, PathBuf};

/// The user's, then a trusted project's from the outermost folder to this one, so that the
/// nearest has the last word.
pub fn read(paths: &Paths, trusted: bool, warnings: &mut Vec<String>) -> Vec<ContextFile> {
    let users = paths.agent().join("AGENTS.md");
    let mut of_project = if trusted { of_project(&paths.cwd) } else { Vec::new() };
    of_project.retain(|f| *f != users);
    let mut files = Vec::new();
    for path in users.is_file().then_some(users).into_iter().chain(of_project) {
        match std::fs::read(&path) {
            Ok(bytes) => files.push(ContextFile {
                path: path.to_string_lossy().into_owned(),
                content: String::from_utf8_lossy(&bytes).into_owned(),
            }),
            Err(e) => warnings.push(format!("{}, a file for the model, cannot be read: {e}", path.display())),
        }
    }
    files
}

/// What a folder that nobody said anything about would have told the model.
pub fn left_out(paths: &Paths) -> Option<Card> {
    let users = paths.agent().join("AGENTS.md");
    let nearest = of_project(&paths.cwd).into_iter().rfind(|f| *f != users)?;
    let card = Card::new("cli::not_trusted", "what this project says to the model is not read").file(nearest);
    Some(card.why("nobody said that this folder is to be trusted").help(
        "`atomic trust allow` trusts it, --approve only this time, --no-approve does not and says nothing",
    ))
}

fn of_project(cwd: &Path) -> Vec<PathBuf> {
    let first = |dir: &Path| CONTEXT_FILES.iter().map(|n| dir.join(n)).find(|p| p.is_file());
    let mut found: Vec<PathBuf> = cwd.ancestors().filter_map(first).collect();
    found.reverse();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn contents(dir: &Path, trusted: bool) -> Vec<String> {
        let paths = Paths::from_environment().unwrap().scratch(dir.join("home"), dir.join("project/below"));
        read(&paths, trusted, &mut Vec::new()).into_iter().map(|f| f.content).collect()
    }

    #[test]
    fn the_users_comes_first_and_the_nearest_last_one_a_folder() {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("home/agent/AGENTS.md", "user"),
            ("project/CLAUDE.md", "outer"),
            ("project/below/CLAUDE.md", "not taken"),
            ("project/below/AGENTS.override.md", "inner"),
        ] {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        assert_eq!(contents(dir.path(), true), ["user", "outer", "inner"]);
        assert_eq!(contents(dir.path(), false), ["user"]);
    }
}

//! What a project brings that could speak or act for it, and so needs trust (events.md B.2).
//! Asks the file system whether names exist; opens nothing.

use std::path::{Path, PathBuf};

/// Files that talk to the model; in one directory the first of these is taken.
pub const CONTEXT_FILES: [&str; 5] =
    ["AGENTS.override.md", "AGENTS.md", "AGENTS.MD", "CLAUDE.md", "CLAUDE.MD"];

const FOLDERS: [&str; 2] = [".atomic", ".pi"];
const INSIDE: [&str; 7] =
    ["settings.json", "extensions", "skills", "prompts", "themes", "SYSTEM.md", "APPEND_SYSTEM.md"];
const SKILLS: &str = ".agents/skills";

/// Whose directories these are.
#[derive(Clone, Copy, Debug)]
pub struct Users<'a> {
    /// `$ATOMIC_HOME`: a folder of that name in the project is the user's own.
    pub atomic_home: &'a Path,
    /// Its `.agents/skills` and `.pi` are the user's own too.
    pub home: Option<&'a Path>,
}

/// All there are, the project's own folder first, then from here upwards.
pub fn inputs(cwd: &Path, users: Users<'_>) -> Vec<PathBuf> {
    let own = inside(cwd, users);
    let skills_of_user = users.home.map(|h| h.join(SKILLS));
    let ancestral = || CONTEXT_FILES.into_iter().chain([SKILLS]);
    let above = cwd.ancestors().flat_map(|d| ancestral().map(move |f| d.join(f)));
    // What the user wrote for every session is not the project's.
    let users_own = users.atomic_home.join("agent");
    let above = above.filter(|p| Some(p) != skills_of_user.as_ref() && p.parent() != Some(&users_own));
    let mut found: Vec<PathBuf> = own.into_iter().chain(above.filter(|p| p.exists())).collect();
    // Two names of one file, where the system does not mind case.
    found.dedup_by_key(|p| std::fs::canonicalize(&*p).unwrap_or_else(|_| p.clone()));
    found
}

/// What is in the folder's own `.atomic` and `.pi`.
fn inside(dir: &Path, users: Users<'_>) -> Vec<PathBuf> {
    let is_users =
        |d: &Path| same(d, users.atomic_home) || users.home.is_some_and(|h| same(d, &h.join(".pi")));
    let folders = FOLDERS.into_iter().map(|f| dir.join(f)).filter(|d| !is_users(d));
    folders.flat_map(|d| INSIDE.map(|f| d.join(f))).filter(|p| p.exists()).collect()
}

/// What a directory that `-e` names brings beside its libraries (events.md B.9).
pub fn borrowed(dir: &Path, users: Users<'_>) -> Vec<PathBuf> {
    let mut found = inside(dir, users);
    found.extend([dir.join(SKILLS)].into_iter().filter(|p| p.exists()));
    found
}

fn same(a: &Path, b: &Path) -> bool {
    a == b || matches!((std::fs::canonicalize(a), std::fs::canonicalize(b)), (Ok(a), Ok(b)) if a == b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// The inputs of `p` after these paths (folders end with a slash) were made below a root.
    fn of(paths: &[&str]) -> Vec<String> {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("w/p")).unwrap();
        for path in paths {
            let full = root.join(path);
            if path.ends_with('/') {
                fs::create_dir_all(full).unwrap();
            } else {
                fs::create_dir_all(full.parent().unwrap()).unwrap();
                fs::write(full, "").unwrap();
            }
        }
        let users = Users { atomic_home: &root.join("w/.atomic"), home: Some(&root.join("w")) };
        let found = inputs(&root.join("w/p"), users);
        found.iter().map(|p| p.strip_prefix(&root).unwrap().display().to_string()).collect()
    }

    #[test]
    fn b02_what_needs_trust_and_what_does_not() {
        for path in [
            "w/p/.atomic/settings.json",
            "w/p/.atomic/extensions/",
            "w/p/.pi/settings.json",
            "w/p/.pi/prompts/",
            "w/p/.agents/skills/x/SKILL.md",
            "w/p/AGENTS.md",
            "w/CLAUDE.md",
        ] {
            assert_eq!(of(&[path]).len(), 1, "{path}");
        }
        for path in [
            "w/p/.atomic/sessions/",
            "w/p/.atomic/todos/",
            "w/p/.atomic/",
            "w/p/src/lib.rs",
            // The user's own.
            "w/.agents/skills/x/SKILL.md",
            "w/.atomic/extensions/",
            "w/.atomic/agent/AGENTS.md",
        ] {
            assert_eq!(of(&[path]), Vec::<String>::new(), "{path}");
        }
    }

    #[test]
    fn in_the_folder_that_holds_atomics_home_its_extensions_are_the_users() {
        let root = tempfile::tempdir().unwrap();
        let home = root.path().join(".atomic");
        fs::create_dir_all(home.join("extensions")).unwrap();
        let users = Users { atomic_home: &home, home: Some(root.path()) };
        assert!(inputs(root.path(), users).is_empty());
    }
}

//! The list, as data, and what matches it. Knows names, no file system.

use std::path::{Component, Path, PathBuf};

/// `NAME` or `NAME*` matches a file of that name, `FOLDER/` everything in such a folder.
const PROTECTED: &[&str] = &[
    ".env",
    ".env.*",
    ".envrc",
    ".git/",
    ".hg/",
    ".svn/",
    "node_modules/",
    ".ssh/",
    ".gnupg/",
    ".aws/",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    "*.pem",
    "*.p12",
    "*.pfx",
    ".netrc",
    ".npmrc",
    ".pypirc",
    "credentials.json",
];

/// Named like a secret, made to be shared.
const SHARED: &[&str] = &[".env.example", ".env.sample", ".env.template", ".env.dist", "*.pub"];

/// The built-in list and the user's.
pub(crate) struct Rules {
    patterns: Vec<String>,
}

impl Rules {
    /// `more` as it stands on the command line, by comma.
    pub(crate) fn new(more: &str) -> Self {
        let user = more.split(',').map(str::trim).filter(|p| !p.is_empty());
        Rules { patterns: PROTECTED.iter().copied().chain(user).map(str::to_owned).collect() }
    }

    /// The pattern that protects this path.
    pub(crate) fn hit(&self, path: &Path) -> Option<&str> {
        let names: Vec<String> = path
            .components()
            .filter_map(|c| match c {
                Component::Normal(n) => Some(n.to_string_lossy().to_lowercase()),
                _ => None,
            })
            .collect();
        let (file, folders) = names.split_last()?;
        let shared = SHARED.iter().any(|p| fits(p, file));
        let mut patterns = self.patterns.iter().map(String::as_str);
        patterns.find(|p| match p.trim_start_matches("./").strip_suffix('/') {
            // The folder itself can be written too: as the target of a move.
            Some(folder) => within(folder, folders) || fits(folder, file),
            None if p.contains('/') => tail(p, &names),
            None => !shared && fits(p, file),
        })
    }
}

/// `a/b` somewhere among the folders, in this order.
fn within(folder: &str, folders: &[String]) -> bool {
    let wanted: Vec<&str> = folder.split('/').collect();
    folders.windows(wanted.len()).any(|w| w.iter().zip(&wanted).all(|(have, want)| fits(want, have)))
}

/// `a/b.txt` at the end.
fn tail(pattern: &str, names: &[String]) -> bool {
    let wanted: Vec<&str> = pattern.trim_start_matches("./").split('/').filter(|p| !p.is_empty()).collect();
    names.len() >= wanted.len()
        && names[names.len() - wanted.len()..].iter().zip(&wanted).all(|(have, want)| fits(want, have))
}

/// `*` stands for anything, case is not minded: some file systems do not either.
fn fits(pattern: &str, name: &str) -> bool {
    let pattern = pattern.to_lowercase();
    let parts: Vec<&str> = pattern.split('*').collect();
    let [first, middle @ .., last] = parts.as_slice() else { return pattern == name };
    if !name.starts_with(first) || !name.ends_with(last) || name.len() < first.len() + last.len() {
        return false;
    }
    let mut rest = &name[first.len()..name.len() - last.len()];
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

/// Without `.` and `..`, as far as the words go.
pub(crate) fn plain(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for c in path.components() {
        match c {
            Component::CurDir => {}
            Component::ParentDir => drop(out.pop()),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_protected_and_what_is_not() {
        let rules = Rules::new("");
        for path in [
            ".env",
            "a/.env",
            ".env.local",
            ".ENV",
            ".git/config",
            "a/.git/hooks/pre-commit",
            ".git",
            "node_modules/x/index.js",
            "/root-less/.ssh/config",
            "id_rsa",
            "keys/id_ed25519",
            "tls/server.pem",
        ] {
            assert!(rules.hit(Path::new(path)).is_some(), "open: {path}");
        }
        for path in [
            ".env.example",
            "id_rsa.pub",
            ".gitignore",
            ".github/x.yml",
            "src/env.rs",
            "node_modules.md",
            "environment",
        ] {
            assert_eq!(rules.hit(Path::new(path)), None, "closed: {path}");
        }
    }

    #[test]
    fn the_user_adds_names_folders_and_paths() {
        let rules = Rules::new("Cargo.lock, vendor/ ,docs/api.md,*.key");
        for path in ["Cargo.lock", "x/Cargo.lock", "vendor/a/b", "docs/api.md", "x/docs/api.md", "a.key"] {
            assert!(rules.hit(Path::new(path)).is_some(), "open: {path}");
        }
        for path in ["Cargo.toml", "vendored/a", "api.md"] {
            assert_eq!(rules.hit(Path::new(path)), None, "closed: {path}");
        }
        assert!(rules.hit(Path::new(".env")).is_some(), "the built-in list stays");
    }
}

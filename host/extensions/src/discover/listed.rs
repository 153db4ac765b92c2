//! The `extensions` list of a settings file: paths and globs that add, `!glob` that leaves out,
//! `+path` that takes in whatever was left out, `-path` that has the last word (events.md I.1).
//! Relative to the file's directory; `~/` is the user's home. Lists directories, opens nothing.

use globset::{GlobBuilder, GlobMatcher};
use std::{
    env::consts::{DLL_PREFIX, DLL_SUFFIX},
    fs,
    path::{Component, Path, PathBuf},
};

/// Directories below a `**` that are looked into.
const DEEPEST: usize = 8;
/// Entries one glob looks at: the list of a project is read for the question whether to trust it,
/// and must not send that question through the whole disk.
const MOST: usize = 20_000;

/// A list and where its relative paths begin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    pub base: PathBuf,
    pub home: Option<PathBuf>,
    pub entries: Vec<String>,
}

impl Listed {
    fn absolute(&self, text: &str) -> PathBuf {
        match (text.strip_prefix("~/"), &self.home) {
            (Some(below), Some(home)) => home.join(below),
            _ => self.base.join(text),
        }
    }

    /// What is added, in the order of the list and of names; true: it was named, so that it is
    /// an error if it is not there.
    pub(super) fn added(&self) -> Vec<(PathBuf, bool)> {
        let mut all = Vec::new();
        for entry in &self.entries {
            match entry.chars().next() {
                None | Some('!' | '-') => {}
                Some('+') => all.push((self.absolute(&entry[1..]), true)),
                Some(_) if is_glob(entry) => {
                    all.extend(expand(&self.absolute(entry)).into_iter().map(|path| (path, false)));
                }
                Some(_) => all.push((self.absolute(entry), true)),
            }
        }
        all
    }

    /// False: the list leaves it out.
    pub(super) fn keeps(&self, path: &Path) -> bool {
        let is = |text: &str| same(&self.absolute(text), path);
        let any = |sign: char, test: &dyn Fn(&str) -> bool| {
            self.entries.iter().filter_map(|e| e.strip_prefix(sign)).any(test)
        };
        if any('-', &is) {
            return false;
        }
        any('+', &is) || !any('!', &|pattern| self.matches(pattern, path))
    }

    /// By its whole path, its path from the file's directory, its name, or the extension's name.
    fn matches(&self, pattern: &str, path: &Path) -> bool {
        let relative = path.strip_prefix(&self.base).unwrap_or(path);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let plain = name.strip_suffix(DLL_SUFFIX).unwrap_or(&name);
        let plain = plain.strip_prefix(DLL_PREFIX).unwrap_or(plain);
        let absolute = self.absolute(pattern);
        matcher(&absolute.to_string_lossy()).is_some_and(|m| m.is_match(path))
            || matcher(pattern)
                .is_some_and(|m| m.is_match(relative) || m.is_match(&*name) || m.is_match(plain))
    }
}

fn same(a: &Path, b: &Path) -> bool {
    a == b || matches!((fs::canonicalize(a), fs::canonicalize(b)), (Ok(a), Ok(b)) if a == b)
}

fn is_glob(text: &str) -> bool {
    text.contains(['*', '?', '[', '{'])
}

fn matcher(pattern: &str) -> Option<GlobMatcher> {
    Some(GlobBuilder::new(pattern).literal_separator(true).build().ok()?.compile_matcher())
}

/// All paths a glob means, sorted.
fn expand(pattern: &Path) -> Vec<PathBuf> {
    let Some(matcher) = matcher(&pattern.to_string_lossy()) else { return Vec::new() };
    let is_plain = |c: &Component<'_>| !is_glob(&c.as_os_str().to_string_lossy());
    let root: PathBuf = pattern.components().take_while(is_plain).collect();
    let below = pattern.components().count() - root.components().count();
    let deep = pattern.components().any(|c| c.as_os_str() == "**");
    let mut found = Vec::new();
    let mut left = MOST;
    walk(&root, if deep { DEEPEST } else { below }, &mut left, &mut |path| {
        if matcher.is_match(path) {
            found.push(path.to_owned());
        }
    });
    found.sort_by(|a, b| a.as_os_str().as_encoded_bytes().cmp(b.as_os_str().as_encoded_bytes()));
    found
}

/// Links to directories are named, not entered: a circle would have no end.
fn walk(dir: &Path, depth: usize, left: &mut usize, visit: &mut dyn FnMut(&Path)) {
    if depth == 0 {
        return;
    }
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let Some(less) = left.checked_sub(1) else { return };
        *left = less;
        visit(&entry.path());
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            walk(&entry.path(), depth - 1, left, visit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        for name in ["b.so", "a.so", "more/c.so", "more/deep/d.so", "note.txt"] {
            fs::create_dir_all(base.join(name).parent().unwrap()).unwrap();
            fs::write(base.join(name), "").unwrap();
        }
        (dir, base)
    }

    fn listed(base: &Path, entries: &[&str]) -> Listed {
        Listed {
            base: base.to_owned(),
            home: Some(base.join("more")),
            entries: entries.iter().map(|e| (*e).to_owned()).collect(),
        }
    }

    fn added(base: &Path, entries: &[&str]) -> Vec<String> {
        let all = listed(base, entries).added();
        all.iter().map(|(p, _)| p.strip_prefix(base).unwrap().display().to_string()).collect()
    }

    #[test]
    fn paths_come_in_the_order_of_the_list_and_globs_in_that_of_names() {
        let (_dir, base) = place();
        assert_eq!(added(&base, &["more/c.so", "*.so"]), ["more/c.so", "a.so", "b.so"]);
        assert_eq!(added(&base, &["**/*.so"]), ["a.so", "b.so", "more/c.so", "more/deep/d.so"]);
        assert_eq!(added(&base, &["~/c.so", "none*.so", "gone.so"]), ["more/c.so", "gone.so"]);
    }

    #[test]
    fn an_exclamation_mark_leaves_out_plus_takes_in_and_minus_has_the_last_word() {
        let (_dir, base) = place();
        let keeps = |entries: &[&str], name: &str| listed(&base, entries).keeps(&base.join(name));
        assert!(keeps(&[], "a.so"));
        assert!(!keeps(&["!*.so"], "a.so"));
        assert!(!keeps(&["!a.so"], "a.so") && keeps(&["!a.so"], "b.so"));
        assert!(keeps(&["!*.so", "+a.so"], "a.so") && !keeps(&["!*.so", "+a.so"], "b.so"));
        assert!(!keeps(&["+a.so", "-a.so"], "a.so"));
        let name = format!("more/{DLL_PREFIX}todo{DLL_SUFFIX}");
        assert!(!keeps(&["!todo"], &name), "by the extension's own name");
    }
}

//! Which file a path argument means. Knows the home directory, no tool.

use crate::args::Args;
use atomic_agent::tool::ToolError;
use std::path::{Component, Path, PathBuf};

/// A leading `@` (how people mention files) is dropped, `~` is the home directory, the rest is relative
/// to the session's directory.
pub fn resolve(cwd: &Path, given: &str) -> PathBuf {
    resolve_in(cwd, given, std::env::home_dir().as_deref())
}

fn resolve_in(cwd: &Path, given: &str, home: Option<&Path>) -> PathBuf {
    let given = given.strip_prefix('@').unwrap_or(given);
    let path = match (given.strip_prefix('~'), home) {
        (Some(""), Some(home)) => home.to_path_buf(),
        (Some(rest), Some(home)) if rest.starts_with(std::path::is_separator) => {
            home.join(rest.trim_start_matches(std::path::is_separator))
        }
        _ => PathBuf::from(given),
    };
    // `components` drops `.` parts and doubled separators; `..` stays, for the file system to resolve.
    cwd.join(path).components().collect()
}

/// The same for a path that is one already.
pub fn expanded(cwd: &Path, given: &Path) -> PathBuf {
    match given.to_str() {
        Some(text) => resolve(cwd, text),
        None => cwd.join(given),
    }
}

/// The path argument `field`, checked and resolved.
pub fn arg(args: &Args<'_>, cwd: &Path, field: &str) -> Result<PathBuf, ToolError> {
    let given = args.str(field)?;
    check(args, field, given)?;
    Ok(resolve(cwd, given))
}

/// What no file system has as a path.
pub fn check(args: &Args<'_>, field: &str, given: &str) -> Result<(), ToolError> {
    if given.trim_start_matches('@').is_empty() {
        return Err(args.error(field, "must not be empty"));
    }
    if given.contains('\0') {
        return Err(args.error(field, "must not contain a NUL character"));
    }
    Ok(())
}

/// The one name of a file that may not exist yet: what exists of it with its links followed, the rest
/// by its parts.
pub fn canonical(path: &Path) -> PathBuf {
    let mut missing = Vec::new();
    let mut existing = path;
    let mut base = loop {
        if let Ok(found) = existing.canonicalize() {
            break found;
        }
        let (Some(parent), Some(last)) = (existing.parent(), existing.components().next_back()) else {
            return path.to_path_buf();
        };
        missing.push(last);
        existing = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        if existing == Path::new(".") {
            break existing.canonicalize().unwrap_or_else(|_| existing.to_path_buf());
        }
    };
    for part in missing.iter().rev() {
        match part {
            Component::ParentDir => drop(base.pop()),
            other => base.push(other),
        }
    }
    base
}

/// How a result names a file: relative to the session's directory when it lies in there.
pub fn shown(cwd: &Path, path: &Path) -> String {
    let inside = path.strip_prefix(cwd).ok().filter(|p| !p.as_os_str().is_empty());
    let text = inside.unwrap_or(path).display().to_string();
    if cfg!(windows) { text.replace('\\', "/") } else { text }
}

/// "No such file" with the name that was probably meant.
pub fn missing(cwd: &Path, path: &Path) -> ToolError {
    let mut text = format!("No such file or directory: {}", shown(cwd, path));
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    if let Some(siblings) = path.parent().and_then(|p| p.read_dir().ok()) {
        let names: Vec<String> =
            siblings.flatten().take(1000).map(|e| e.file_name().to_string_lossy().into_owned()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        if let Some(close) = similar::get_close_matches(name.as_str(), &names, 1, 0.6).first() {
            text.push_str(&format!(" (is {} meant?)", shown(cwd, &path.with_file_name(close))));
        }
    }
    ToolError(text)
}

/// An error of the file system, naming the file.
pub fn io_error(cwd: &Path, path: &Path, doing: &str, error: &std::io::Error) -> ToolError {
    match error.kind() {
        std::io::ErrorKind::NotFound => missing(cwd, path),
        _ => ToolError(format!("Cannot {doing} {}: {error}", shown(cwd, path))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn home_at_sign_and_relative_paths_resolve() {
        let (cwd, home) = (Path::new("/w"), Some(Path::new("/home/u")));
        for (given, expected) in [
            ("a.txt", "/w/a.txt"),
            ("./a//b", "/w/a/b"),
            ("@a.txt", "/w/a.txt"),
            ("@/abs", "/abs"),
            ("/abs", "/abs"),
            ("~", "/home/u"),
            ("~/x", "/home/u/x"),
            ("@~/x", "/home/u/x"),
            ("~other/x", "/w/~other/x"),
            ("../x", "/w/../x"),
        ] {
            assert_eq!(resolve_in(cwd, given, home), Path::new(expected), "{given}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn one_file_has_one_canonical_name_also_before_it_exists() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().canonicalize().unwrap();
        std::fs::create_dir(real.join("d")).unwrap();
        std::os::unix::fs::symlink(real.join("d"), real.join("link")).unwrap();
        for way in ["d/new/f", "link/new/f", "d/../link/new/f", "d/new/x/../f"] {
            assert_eq!(canonical(&real.join(way)), real.join("d/new/f"), "{way}");
        }
    }

    #[test]
    fn a_misspelt_name_is_answered_with_the_near_one() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("settings.json"), "").unwrap();
        let error = missing(dir.path(), &dir.path().join("setings.json"));
        assert!(error.0.contains("is settings.json meant?"), "{error}");
    }
}

//! Where sessions live and which one is the latest.

use super::{SessionError, file};
use serde_json::Value;
use std::{
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
    time::SystemTime,
};

/// `<agentDir>/sessions/--<cwd>--/`.
pub fn default_dir(agent_dir: &Path, cwd: &Path) -> PathBuf {
    let cwd = cwd.to_string_lossy();
    let name = cwd.strip_prefix(['/', '\\']).unwrap_or(&cwd).replace(['/', '\\', ':'], "-");
    agent_dir.join("sessions").join(format!("--{name}--"))
}

/// `^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?$`
pub fn valid_id(id: &str) -> bool {
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    edge(id.chars().next())
        && edge(id.chars().last())
        && id.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
}

/// The session of `cwd` that was written last; workflow and internal ones are not the user's.
pub fn latest(dir: &Path, cwd: &Path) -> Result<Option<PathBuf>, SessionError> {
    let fail = |source| SessionError::Io { action: "list", path: dir.to_owned(), source };
    let listing = match std::fs::read_dir(dir) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(fail)?,
    };
    let mut files: Vec<(SystemTime, PathBuf)> = listing
        .flatten()
        .filter(|e| e.path().extension().is_some_and(|x| x == "jsonl"))
        .filter_map(|e| Some((e.metadata().ok()?.modified().ok()?, e.path())))
        .collect();
    files.sort();
    Ok(files.into_iter().rev().map(|(_, path)| path).find(|path| is_users(path, cwd)))
}

fn is_users(path: &Path, cwd: &Path) -> bool {
    // Longest header we ever look at: a foreign file may be one endless line.
    const MOST: u64 = 64 * 1024;
    let mut line = Vec::new();
    let Ok(file) = std::fs::File::open(path) else { return false };
    if BufReader::new(file.take(MOST)).read_until(b'\n', &mut line).is_err() {
        return false;
    }
    let Ok(header) = file::header(&line, path) else { return false };
    let hidden = header.get("internal") == Some(&Value::Bool(true)) || header.get("workflow").is_some();
    let here = header.get("cwd").and_then(Value::as_str).is_none_or(|c| Path::new(c) == cwd);
    !hidden && here
}

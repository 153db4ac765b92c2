//! Where sessions live and which one is the latest.

use super::{SessionError, file};
use serde_json::Value;
use std::{
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
    time::SystemTime,
};

/// Bytes that a file system takes for a name.
const NAME: usize = 255;
/// Of a longer one, what is kept in front of its hash.
const KEPT: usize = 200;

/// `<agentDir>/sessions/--<cwd>--/`. The end of a path that is too long for a name is hashed; the
/// sessions in such a folder still say in their headers where they belong.
pub fn default_dir(agent_dir: &Path, cwd: &Path) -> PathBuf {
    let cwd = cwd.to_string_lossy();
    let mut name = cwd.strip_prefix(['/', '\\']).unwrap_or(&cwd).replace(['/', '\\', ':'], "-");
    if name.len() + 4 > NAME {
        let hash = fnv(cwd.as_bytes());
        name.truncate(name.floor_char_boundary(KEPT));
        name += &format!("-{hash:016x}");
    }
    agent_dir.join("sessions").join(format!("--{name}--"))
}

/// FNV-1a: the same in every version of the program, which the standard hasher does not promise.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, b| (hash ^ u64::from(*b)).wrapping_mul(0x100_0000_01b3))
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
        .filter_map(|e| {
            // A pipe of that name would be waited for.
            let what = std::fs::metadata(e.path()).ok().filter(std::fs::Metadata::is_file)?;
            Some((what.modified().ok()?, e.path()))
        })
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
    let here = header.get("cwd").and_then(Value::as_str).is_none_or(|c| c == cwd.to_string_lossy());
    !hidden && here
}

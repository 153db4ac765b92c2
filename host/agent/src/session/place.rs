//! Where sessions live and which one is the latest.

use super::{SessionError, reading};
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
    peek(path).is_ok_and(|header| {
        let here = header.cwd.as_deref().is_none_or(|c| c == cwd);
        !header.hidden && here
    })
}

/// What the first line of a session file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    pub id: String,
    /// Where the session belongs.
    pub cwd: Option<PathBuf>,
    /// As it is in the file.
    pub timestamp: String,
    /// A workflow's, or the program's own.
    pub hidden: bool,
}

/// Longest header that is ever looked at: a foreign file may be one endless line.
const LONGEST: u64 = 64 * 1024;

/// Reads the first line, and nothing else of the file.
///
/// # Errors
/// The file cannot be read, or is no session.
pub fn peek(path: &Path) -> Result<Header, SessionError> {
    let fail = |source| SessionError::Io { action: "open", path: path.to_owned(), source };
    // A pipe would be waited for.
    if !std::fs::metadata(path).map_err(fail)?.is_file() {
        return Err(SessionError::Foreign { path: path.to_owned(), reason: "not a regular file".into() });
    }
    let mut line = Vec::new();
    let file = std::fs::File::open(path).map_err(fail)?;
    BufReader::new(file.take(LONGEST)).read_until(b'\n', &mut line).map_err(fail)?;
    let (header, _) = reading::header(&line, path)?;
    let text = |key: &str| header.get(key).and_then(Value::as_str);
    Ok(Header {
        id: text("id").unwrap_or_default().to_owned(),
        cwd: text("cwd").map(PathBuf::from),
        timestamp: text("timestamp").unwrap_or_default().to_owned(),
        hidden: header.get("internal") == Some(&Value::Bool(true)) || header.get("workflow").is_some(),
    })
}

/// The file in `dir` of the session with this id.
///
/// # Errors
/// The folder cannot be read.
pub fn with_id(dir: &Path, id: &str) -> Result<Option<PathBuf>, SessionError> {
    let fail = |source| SessionError::Io { action: "list", path: dir.to_owned(), source };
    let listing = match std::fs::read_dir(dir) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(fail)?,
    };
    let ends = format!("_{id}.jsonl");
    let named = listing.flatten().filter(|e| e.file_name().to_string_lossy().ends_with(&ends));
    Ok(named.map(|e| e.path()).find(|path| peek(path).is_ok_and(|h| h.id == id)))
}

/// Copies a session file into `dir`, as a session of `cwd`: what a file says of where it belongs
/// is not taken on trust. A session of its id that is there already stays; the copy has another.
///
/// # Errors
/// It is no session; it cannot be read or written.
pub fn import(from: &Path, dir: &Path, cwd: &Path) -> Result<PathBuf, SessionError> {
    let header = peek(from)?;
    let here = |p: &Path| p.canonicalize().ok();
    if here(from).and_then(|f| f.parent().map(Path::to_owned)) == here(dir) && here(dir).is_some() {
        return Ok(from.to_owned());
    }
    let read = |source| SessionError::Io { action: "read", path: from.to_owned(), source };
    let mut file = BufReader::new(std::fs::File::open(from).map_err(read)?);
    let mut line = Vec::new();
    file.read_until(b'\n', &mut line).map_err(read)?;
    let (mut first, _) = reading::header(&line, from)?;
    let taken = std::fs::read_dir(dir).is_ok_and(|all| {
        let ends = format!("_{}.jsonl", header.id);
        all.flatten().any(|e| e.file_name().to_string_lossy().ends_with(&ends))
    });
    let id = if taken { uuid::Uuid::now_v7().to_string() } else { header.id };
    first["id"] = id.clone().into();
    first["cwd"] = cwd.to_string_lossy().into();
    let stamp = super::iso(crate::message::now_ms()).replace([':', '.'], "-");
    let to = dir.join(format!("{stamp}_{id}.jsonl"));
    let write = |source| SessionError::Io { action: "write", path: to.clone(), source };
    std::fs::create_dir_all(dir).map_err(write)?;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut copy = options.open(&to).map_err(write)?;
    let copied = std::io::Write::write_all(&mut copy, format!("{first}\n").as_bytes())
        .and_then(|()| std::io::copy(&mut file, &mut copy).map(drop));
    if let Err(source) = copied {
        // Half a session would look like a whole one.
        let _ = std::fs::remove_file(&to);
        return Err(write(source));
    }
    Ok(to)
}

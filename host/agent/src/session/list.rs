//! Lists of session files, for pickers. Two thousand files of two megabytes are listed by their
//! heads and ends: only what is shown of a row is read, and only of the rows that are shown.

use super::{Header, SessionError, peek, tree::one_line};
use serde::Serialize;
use serde_json::Value;
use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

/// How far into a file the first message is looked for.
const HEAD: u64 = 256 * 1024;
/// What is read of its middle at a time, for the name.
const BLOCK: usize = 256 * 1024;
/// Longer than any line that names a session; such a line may lie across two blocks.
const NAME_LINE: usize = 16 * 1024;

/// One session file.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    #[serde(serialize_with = "lossy")]
    pub path: PathBuf,
    pub id: String,
    #[serde(serialize_with = "lossy")]
    pub cwd: PathBuf,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_message: Option<String>,
    /// Milliseconds.
    pub created: i64,
    pub modified: i64,
    /// Bytes.
    pub size: u64,
    /// It is the one that is open here.
    pub current: bool,
}

fn lossy<S: serde::Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&path.to_string_lossy())
}

/// What is asked for.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// The folder of the session files of one place of work.
    pub dir: PathBuf,
    /// Only sessions of this place; `None`: also of the folders beside `dir`.
    pub cwd: Option<PathBuf>,
    /// Words that must all be in what is shown of a session.
    pub search: Option<String>,
    pub offset: usize,
    /// 0: all.
    pub limit: usize,
    /// The session that is open.
    pub current: Option<PathBuf>,
}

/// Some of the sessions there are.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Page {
    pub sessions: Vec<Row>,
    /// How many there are; with a search, how many were found.
    pub total: usize,
    pub offset: usize,
    /// Files that could not be read, ready to be shown; never more than a few.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<String>,
}

struct Found {
    path: PathBuf,
    modified: SystemTime,
    size: u64,
}

/// The last written first.
///
/// # Errors
/// The folder cannot be read. One that is not there is empty.
pub fn list(query: &Query) -> Result<Page, SessionError> {
    let mut files = Vec::new();
    files_of(&query.dir, &mut files)?;
    if query.cwd.is_none()
        && let Some(above) = query.dir.parent()
    {
        for beside in folders(above)? {
            if beside != query.dir {
                files_of(&beside, &mut files)?;
            }
        }
    }
    files.sort_by(|a, b| b.modified.cmp(&a.modified).then_with(|| b.path.cmp(&a.path)));
    let words: Vec<String> =
        query.search.as_deref().unwrap_or_default().split_whitespace().map(str::to_lowercase).collect();
    let mut page = Page { offset: query.offset, ..Page::default() };
    for found in files {
        let header = match peek(&found.path) {
            Ok(header) => header,
            Err(SessionError::Io { source, path, .. }) if page.unread.len() < 3 => {
                page.unread.push(format!("cannot read {}: {source}", path.display()));
                continue;
            }
            Err(_) => continue,
        };
        let elsewhere = match (&query.cwd, &header.cwd) {
            (Some(here), Some(there)) => here != there,
            _ => false,
        };
        if header.hidden || elsewhere {
            continue;
        }
        let shown = page.total >= query.offset && (query.limit == 0 || page.sessions.len() < query.limit);
        if words.is_empty() {
            page.total += 1;
            if shown {
                page.sessions.push(row(&found, header, query));
            }
        } else {
            let row = row(&found, header, query);
            if matches(&row, &words) {
                page.total += 1;
                if shown {
                    page.sessions.push(row);
                }
            }
        }
    }
    Ok(page)
}

fn matches(row: &Row, words: &[String]) -> bool {
    let all = [
        row.name.as_deref().unwrap_or_default(),
        row.first_message.as_deref().unwrap_or_default(),
        &row.id,
        &row.cwd.to_string_lossy(),
    ]
    .join("\n")
    .to_lowercase();
    words.iter().all(|w| all.contains(w))
}

fn files_of(dir: &Path, into: &mut Vec<Found>) -> Result<(), SessionError> {
    for entry in entries(dir)? {
        let path = entry.path();
        if path.extension().is_none_or(|x| x != "jsonl") {
            continue;
        }
        // A pipe of that name would be waited for.
        let Some(meta) = std::fs::metadata(&path).ok().filter(std::fs::Metadata::is_file) else { continue };
        let modified = meta.modified().unwrap_or(UNIX_EPOCH);
        into.push(Found { path, modified, size: meta.len() });
    }
    Ok(())
}

fn folders(dir: &Path) -> Result<Vec<PathBuf>, SessionError> {
    Ok(entries(dir)?.iter().map(std::fs::DirEntry::path).filter(|p| p.is_dir()).collect())
}

/// A folder that is not there is an empty one; any other trouble is told.
fn entries(dir: &Path) -> Result<Vec<std::fs::DirEntry>, SessionError> {
    match std::fs::read_dir(dir) {
        Ok(listing) => Ok(listing.flatten().collect()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(source) => Err(SessionError::Io { action: "list", path: dir.to_owned(), source }),
    }
}

fn row(found: &Found, header: Header, query: &Query) -> Row {
    let (first_message, name) = read(&found.path).unwrap_or_default();
    let modified = millis(found.modified);
    let created: Option<jiff::Timestamp> = header.timestamp.parse().ok();
    Row {
        current: query.current.as_ref() == Some(&found.path),
        path: found.path.clone(),
        id: header.id,
        cwd: header.cwd.unwrap_or_default(),
        name,
        first_message,
        created: created.map_or(modified, jiff::Timestamp::as_millisecond),
        modified,
        size: found.size,
    }
}

fn millis(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// The first message of the user, and the last name.
fn read(path: &Path) -> io::Result<(Option<String>, Option<String>)> {
    let mut file = File::open(path)?;
    let mut head = BufReader::new((&mut file).take(HEAD));
    let mut line = Vec::new();
    let mut first = None;
    while first.is_none() {
        line.clear();
        if head.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        first = said(&line);
    }
    drop(head);
    Ok((first, last_name(&mut file)?))
}

fn said(line: &[u8]) -> Option<String> {
    let entry: Value = serde_json::from_slice(line).ok()?;
    let message = entry.get("message").filter(|m| m.get("role").and_then(Value::as_str) == Some("user"))?;
    let text = match message.get("content")? {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            blocks.iter().filter_map(|b| b.get("text")?.as_str()).collect::<Vec<_>>().join(" ")
        }
        _ => return None,
    };
    Some(one_line(&text)).filter(|t| !t.is_empty())
}

/// From the end of the file on backwards, without keeping it.
fn last_name(file: &mut File) -> io::Result<Option<String>> {
    let mut end = file.seek(SeekFrom::End(0))?;
    let mut block = vec![0; BLOCK + NAME_LINE];
    while end > 0 {
        let start = end.saturating_sub(BLOCK as u64);
        // With the beginning of the block behind it, for a line that lies across.
        let until = (end + NAME_LINE as u64).min(start + block.len() as u64);
        file.seek(SeekFrom::Start(start))?;
        let Some(part) = block.get_mut(..usize::try_from(until - start).unwrap_or(0)) else { break };
        let read = read_some(file, part)?;
        if let Some(name) = part.get(..read).and_then(|part| named_in(part, start == 0)) {
            return Ok(name);
        }
        end = start;
    }
    Ok(None)
}

fn read_some(file: &mut File, part: &mut [u8]) -> io::Result<usize> {
    let mut read = 0;
    while let Some(rest) = part.get_mut(read..).filter(|r| !r.is_empty()) {
        match file.read(rest)? {
            0 => break,
            n => read += n,
        }
    }
    Ok(read)
}

/// The last `session_info` of these bytes. `Some(None)`: the name was taken away.
fn named_in(part: &[u8], whole: bool) -> Option<Option<String>> {
    const KIND: &[u8] = b"\"session_info\"";
    let mut until = part.len();
    while let Some(at) = rfind(part.get(..until)?, KIND) {
        let begin = part.get(..at)?.iter().rposition(|b| *b == b'\n').map(|p| p + 1).or(whole.then_some(0));
        let length = part.get(at..)?.iter().position(|b| *b == b'\n').unwrap_or(part.len() - at);
        // The words may also be somebody's text.
        if let Some(begin) = begin
            && let Some(entry) = part.get(begin..at + length)
            && let Ok(entry) = serde_json::from_slice::<Value>(entry)
            && entry.get("type").and_then(Value::as_str) == Some("session_info")
        {
            let name = entry.get("name").and_then(Value::as_str).filter(|n| !n.is_empty());
            return Some(name.map(one_line));
        }
        until = at;
    }
    None
}

/// Horspool, from the end: on most bytes it goes on by the length of what is looked for.
fn rfind(bytes: &[u8], what: &[u8]) -> Option<usize> {
    let mut steps = [what.len(); 256];
    for (at, byte) in what.iter().enumerate().skip(1).rev() {
        steps[usize::from(*byte)] = at;
    }
    let mut at = bytes.len().checked_sub(what.len())?;
    loop {
        let window = bytes.get(at..at + what.len())?;
        if window == what {
            return Some(at);
        }
        at = at.checked_sub(steps[usize::from(*window.first()?)])?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{message::Message, session::Session};
    use serde_json::Map;

    fn named(session: &mut Session, name: &str) {
        session.append("session_info", Map::from_iter([("name".to_owned(), name.into())])).unwrap();
    }

    #[test]
    fn a_name_is_found_wherever_it_is_and_the_last_one_counts() {
        let dir = tempfile::tempdir().unwrap();
        let sessions = dir.path().join("--x--");
        let filler = "session_info ".repeat(2000);
        for before in [0, 1, 9, 30] {
            for after in [0, 1, 9, 30] {
                let mut session = Session::create(dir.path(), &sessions, None);
                session.append_message(&Message::user("first words", 1), false).unwrap();
                named(&mut session, "old");
                (0..before).for_each(|_| {
                    session.append_message(&Message::user(filler.clone(), 1), false).unwrap();
                });
                named(&mut session, "the name");
                (0..after).for_each(|_| {
                    session.append_message(&Message::user(filler.clone(), 1), false).unwrap();
                });
                let file = session.file().unwrap();
                let (first, name) = read(file).unwrap();
                assert_eq!(first.as_deref(), Some("first words"));
                assert_eq!(name.as_deref(), Some("the name"), "{before} {after}");
            }
        }
    }

    #[test]
    fn pages_and_searches_count_what_there_is() {
        let dir = tempfile::tempdir().unwrap();
        let sessions = dir.path().join("--x--");
        for n in 0..10 {
            let mut session = Session::create(dir.path(), &sessions, None);
            session.append_message(&Message::user(format!("message number {n}"), 1), false).unwrap();
            if n == 3 {
                named(&mut session, "Needle");
            }
        }
        std::fs::write(sessions.join("foreign.jsonl"), "not a session").unwrap();
        let query = Query { dir: sessions, cwd: Some(dir.path().to_owned()), limit: 4, ..Query::default() };
        let page = list(&Query { offset: 8, ..query.clone() }).unwrap();
        assert_eq!((page.total, page.sessions.len()), (10, 2));
        let found = list(&Query { search: Some("needle NUMBER".into()), ..query.clone() }).unwrap();
        assert_eq!((found.total, found.sessions[0].name.as_deref()), (1, Some("Needle")));
        let none = list(&Query { search: Some("absent".into()), ..query.clone() }).unwrap();
        assert_eq!((none.total, none.sessions.len()), (0, 0));
        let elsewhere = list(&Query { cwd: Some("/elsewhere".into()), ..query }).unwrap();
        assert_eq!(elsewhere.total, 0);
    }
}

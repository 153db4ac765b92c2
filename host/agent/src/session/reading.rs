//! What is in a session file: the header, the entries, and what a crash, another program or a
//! person left between them. Reads line by line, and writes nothing.

use super::{Entry, SessionError, VERSION, migrate};
use serde_json::Value;
use std::{
    fs::File,
    io::{BufRead, BufReader},
    path::Path,
};

/// The largest file that is opened. What it says is kept in memory, so a larger one is refused in
/// one line rather than taking all of it.
pub(crate) const LARGEST: u64 = 512 * 1024 * 1024;

/// All that a file says.
pub(super) struct Contents {
    pub header: Value,
    /// Of the file as it is, before anything is migrated.
    pub version: u64,
    pub entries: Vec<Entry>,
    /// Lines that are no entries, and stay.
    pub skipped: usize,
    /// The last line was not ended, and is no entry: so many bytes.
    pub torn: Option<usize>,
    /// The last line is an entry, and was not ended.
    pub unterminated: bool,
    /// Nothing but the beginning of a header: whoever created the file was stopped.
    pub unborn: bool,
}

pub(super) fn check_file(path: &Path) -> Result<(), SessionError> {
    let fail = |source| SessionError::Io { action: "open", path: path.to_owned(), source };
    let meta = std::fs::metadata(path).map_err(fail)?;
    // A pipe would be waited for, a device read for ever.
    if !meta.is_file() {
        return Err(SessionError::Foreign { path: path.to_owned(), reason: "not a regular file".into() });
    }
    if meta.len() > LARGEST {
        return Err(SessionError::TooLarge { path: path.to_owned(), size: meta.len() });
    }
    Ok(())
}

pub(super) fn read(file: &File, path: &Path) -> Result<Contents, SessionError> {
    let fail = |source| SessionError::Io { action: "read", path: path.to_owned(), source };
    let mut from = BufReader::with_capacity(256 * 1024, file);
    let mut line = Vec::new();
    from.read_until(b'\n', &mut line).map_err(fail)?;
    if !line.ends_with(b"\n") && begins_a_header(&line) {
        return Ok(Contents { torn: Some(line.len()), unborn: true, ..Contents::of(Value::Null, VERSION) });
    }
    // Nothing is touched before the header is known to be ours.
    let (header, version) = header(&line, path)?;
    let mut contents = Contents::of(header, version);
    contents.unterminated = !line.ends_with(b"\n");
    let mut old = Vec::new();
    loop {
        line.clear();
        if from.read_until(b'\n', &mut line).map_err(fail)? == 0 {
            break;
        }
        contents.unterminated = !line.ends_with(b"\n");
        let text = std::str::from_utf8(&line).unwrap_or_default().trim();
        if version < VERSION {
            match serde_json::from_str::<Value>(text) {
                Ok(value @ Value::Object(_)) => old.push(value),
                _ => contents.passed_over(&line),
            }
            continue;
        }
        match Entry::parse(text) {
            Some(entry) => contents.entries.push(entry),
            None => contents.passed_over(&line),
        }
    }
    if version < VERSION {
        migrate::migrate(&mut contents.header, &mut old, version);
        let all = old.len();
        contents.entries = old.iter().filter_map(Entry::of).collect();
        contents.skipped += all - contents.entries.len();
    }
    Ok(contents)
}

impl Contents {
    fn of(header: Value, version: u64) -> Self {
        Contents {
            header,
            version,
            entries: Vec::new(),
            skipped: 0,
            torn: None,
            unterminated: false,
            unborn: false,
        }
    }

    fn passed_over(&mut self, line: &[u8]) {
        if line.trim_ascii().is_empty() {
            return;
        }
        match line.ends_with(b"\n") {
            true => self.skipped += 1,
            false => self.torn = Some(line.len()),
        }
    }
}

/// All there is of this text is the beginning of a header: whoever began the file was stopped.
fn begins_a_header(line: &[u8]) -> bool {
    const BEGIN: &[u8] = br#"{"type":"session","#;
    let common = line.len().min(BEGIN.len());
    !line.is_empty()
        && line.get(..common) == BEGIN.get(..common)
        && serde_json::from_slice::<Value>(line).is_err()
}

/// The header as it is, and its version; errors name what is wrong with it.
pub(super) fn header(line: &[u8], path: &Path) -> Result<(Value, u64), SessionError> {
    let foreign = |reason: &str| SessionError::Foreign { path: path.to_owned(), reason: reason.to_owned() };
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
    let header: Value = serde_json::from_slice(line).map_err(|_| foreign("its first line is not JSON"))?;
    if header.get("type").and_then(Value::as_str) != Some("session") {
        return Err(foreign("it has no session header"));
    }
    let version = match header.get("version") {
        None => 1,
        Some(v) => v.as_u64().filter(|v| *v > 0).ok_or_else(|| foreign("its version is no number"))?,
    };
    if version > VERSION {
        return Err(SessionError::TooNew { path: path.to_owned(), version });
    }
    match header.get("id").and_then(Value::as_str) {
        Some(id) if super::valid_id(id) => Ok((header, version)),
        _ => Err(foreign("its header has no usable id")),
    }
}

//! The file of a session: one lock, one line an entry, and what to do with a file
//! that a crash, another program, or a person left behind.

use super::{SessionError, VERSION, iso};
use crate::message::now_ms;
use serde_json::Value;
use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

/// An open file with its exclusive lock, which ends with it.
pub(super) struct SessionFile {
    file: File,
    path: PathBuf,
    /// The last line of the file has no end yet.
    unterminated: bool,
}

pub(super) struct Opened {
    pub file: SessionFile,
    pub header: Value,
    pub entries: Vec<Value>,
    pub notices: Vec<String>,
}

impl SessionFile {
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A new file with these lines, which must not exist.
    pub fn create(path: &Path, lines: &[&Value]) -> Result<Self, SessionError> {
        let fail = |action| move |source| SessionError::Io { action, path: path.to_owned(), source };
        if let Some(dir) = path.parent() {
            std::fs::create_dir_all(dir).map_err(fail("create the directory of"))?;
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path).map_err(fail("create"))?;
        lock(&file, path)?;
        let mut created = SessionFile { file, path: path.to_owned(), unterminated: false };
        created.append(lines).inspect_err(|_| {
            // Half a header would be a foreign file for ever.
            let _ = std::fs::remove_file(path);
        })?;
        Ok(created)
    }

    pub fn open(path: &Path, new_header: impl FnOnce() -> Value) -> Result<Opened, SessionError> {
        let fail = |action| move |source| SessionError::Io { action, path: path.to_owned(), source };
        // A pipe would be waited for, a device read for ever.
        if !std::fs::metadata(path).map_err(fail("open"))?.is_file() {
            return Err(SessionError::Foreign { path: path.to_owned(), reason: "not a regular file".into() });
        }
        let mut file = OpenOptions::new().read(true).write(true).open(path).map_err(fail("open"))?;
        lock(&file, path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(fail("read"))?;
        let mut file = SessionFile { file, path: path.to_owned(), unterminated: false };
        if bytes.is_empty() {
            let header = new_header();
            file.append(&[&header])?;
            return Ok(Opened { file, header, entries: Vec::new(), notices: Vec::new() });
        }

        // Nothing is touched before the header is known to be ours.
        let mut lines = Lines { rest: &bytes };
        let header = header(lines.next().unwrap_or_default(), path)?;
        let mut notices = Vec::new();
        let mut entries = Vec::new();
        let mut skipped = 0;
        let mut torn = None;
        while let Some(line) = lines.next() {
            let last_unterminated = lines.rest.is_empty() && !bytes.ends_with(b"\n");
            match entry(line) {
                Some(value) => entries.push(value),
                None if line.trim_ascii().is_empty() => {}
                None if last_unterminated => torn = Some(line),
                None => skipped += 1,
            }
        }
        file.unterminated = !bytes.ends_with(b"\n");
        if let Some(tail) = torn {
            notices.push(file.set_aside(tail, bytes.len()));
        }
        if skipped > 0 {
            notices.push(format!(
                "{skipped} unreadable line(s) of {} were skipped; they stay in the file",
                path.display()
            ));
        }
        Ok(Opened { file, header, entries, notices })
    }

    /// All lines or none: a failed write is cut off again.
    pub fn append(&mut self, lines: &[&Value]) -> Result<(), SessionError> {
        let mut text = Vec::new();
        if self.unterminated {
            text.push(b'\n');
        }
        for line in lines {
            // A `Value` always serialises, and never to text with a line break.
            let _ = serde_json::to_writer(&mut text, line);
            text.push(b'\n');
        }
        self.write_all(&text).map_err(|source| SessionError::Io {
            action: "write",
            path: self.path.clone(),
            source,
        })?;
        self.unterminated = false;
        Ok(())
    }

    fn write_all(&mut self, text: &[u8]) -> io::Result<()> {
        let before = self.file.seek(SeekFrom::End(0))?;
        self.file.write_all(text).inspect_err(|_| {
            let _ = self.file.set_len(before);
        })
    }

    /// Moves the torn last line to a file of its own. If that fails it stays where it is,
    /// and the next entry still starts on its own line.
    fn set_aside(&mut self, tail: &[u8], len: usize) -> String {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let aside =
            self.path.with_file_name(format!("{name}.torn-{}", iso(now_ms()).replace([':', '.'], "-")));
        let moved = OpenOptions::new().write(true).create_new(true).open(&aside).and_then(|mut f| {
            f.write_all(tail)?;
            f.sync_all()?;
            self.file.set_len((len - tail.len()) as u64)
        });
        match moved {
            Ok(()) => {
                self.unterminated = false;
                format!(
                    "the last line of {} was torn (the program that wrote it was stopped); it is in {}",
                    self.path.display(),
                    aside.display()
                )
            }
            Err(e) => format!(
                "the last line of {} is torn and could not be set aside ({e}); it was skipped",
                self.path.display()
            ),
        }
    }
}

impl SessionFile {
    /// What is in a file, without its lock and without touching it.
    pub fn read(path: &Path) -> Result<(Value, Vec<Value>, Vec<String>), SessionError> {
        let fail = |action| move |source| SessionError::Io { action, path: path.to_owned(), source };
        if !std::fs::metadata(path).map_err(fail("open"))?.is_file() {
            return Err(SessionError::Foreign { path: path.to_owned(), reason: "not a regular file".into() });
        }
        let bytes = std::fs::read(path).map_err(fail("read"))?;
        let mut lines = Lines { rest: &bytes };
        let header = header(lines.next().unwrap_or_default(), path)?;
        let all: Vec<&[u8]> = lines.filter(|l| !l.trim_ascii().is_empty()).collect();
        let entries: Vec<Value> = all.iter().filter_map(|l| entry(l)).collect();
        let skipped = all.len() - entries.len();
        let notice = format!("{skipped} unreadable line(s) of {} were skipped", path.display());
        Ok((header, entries, (skipped > 0).then_some(notice).into_iter().collect()))
    }
}

/// Another program, or another session of this one, has the file.
pub fn in_use(path: &Path) -> bool {
    let Ok(file) = OpenOptions::new().read(true).open(path) else { return false };
    matches!(file.try_lock(), Err(TryLockError::WouldBlock))
}

/// Second opener: says so at once instead of waiting.
fn lock(file: &File, path: &Path) -> Result<(), SessionError> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(SessionError::Locked(path.to_owned())),
        Err(TryLockError::Error(source)) => {
            Err(SessionError::Io { action: "lock", path: path.to_owned(), source })
        }
    }
}

/// Lines without their ends; the last may lack one.
struct Lines<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];
    fn next(&mut self) -> Option<&'a [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        let (line, rest) = match self.rest.iter().position(|b| *b == b'\n') {
            Some(at) => (&self.rest[..at], &self.rest[at + 1..]),
            None => (self.rest, &[][..]),
        };
        self.rest = rest;
        Some(line)
    }
}

/// The header as it is; errors name what is wrong with it.
pub(super) fn header(line: &[u8], path: &Path) -> Result<Value, SessionError> {
    let foreign = |reason: &str| SessionError::Foreign { path: path.to_owned(), reason: reason.to_owned() };
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
    let header: Value = serde_json::from_slice(line).map_err(|_| foreign("its first line is not JSON"))?;
    if header.get("type").and_then(Value::as_str) != Some("session") {
        return Err(foreign("it has no session header"));
    }
    let version = match header.get("version") {
        None => 1,
        Some(v) => v.as_u64().ok_or_else(|| foreign("its version is no number"))?,
    };
    if version > VERSION {
        return Err(SessionError::TooNew { path: path.to_owned(), version });
    }
    if version < VERSION {
        return Err(SessionError::TooOld { path: path.to_owned(), version });
    }
    match header.get("id").and_then(Value::as_str) {
        Some(id) if super::valid_id(id) => Ok(header),
        _ => Err(foreign("its header has no usable id")),
    }
}

fn entry(line: &[u8]) -> Option<Value> {
    let value: Value = serde_json::from_slice(line).ok()?;
    let named = |key| value.get(key).and_then(Value::as_str).is_some_and(|s| !s.is_empty());
    (named("type") && named("id") && value["type"] != "session").then_some(value)
}

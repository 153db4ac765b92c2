//! A session: what happened, one entry after another, in memory and (unless asked
//! otherwise) in one JSONL file of format v3 (events.md C.4). Knows messages and
//! files; knows nothing of runs, models, or hooks.
//!
//! Lossless: an entry is the line that was read. Unknown kinds and keys stay, malformed lines
//! stay in the file, and no line is ever rewritten. What cannot be written is kept in memory,
//! told once, and written as soon as it can be.

mod branch;
mod check;
mod context;
#[cfg(test)]
mod disk_tests;
mod entry;
mod file;
mod list;
mod migrate;
mod pending;
mod place;
mod reading;
#[cfg(test)]
mod tests;
mod tree;

pub use check::{Finding, Report, check, each_line};
pub(crate) use context::VERBATIM;
pub use context::{Condensable, PromptState, SessionContext, Shown, fold_system};
pub use entry::Entry;
pub use file::in_use;
pub use list::{Page, Query, Row, list};
pub use pending::Pending;
pub(crate) use pending::RECONCILIATION;
pub use place::{Header, default_dir, import, latest, peek, valid_id, with_id};
pub use tree::{Node, stats};

use crate::message::{Message, now_ms};
use file::{Lost, SessionFile, another_name};
use serde_json::{Map, Value, json};
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
};

/// The format that is written.
pub const VERSION: u64 = 3;

/// Why a session could not be opened or written.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// Another program, or another session of this one, has the file.
    #[error("{} is in use by another Atomic; close that one, or go on with a copy: atomic --fork FILE", .0.display())]
    Locked(PathBuf),
    /// Nothing was changed in it.
    #[error("{} is not a session file ({reason}); it was left as it is", path.display())]
    Foreign { path: PathBuf, reason: String },
    #[error("{} has session format {version}, this program writes {VERSION}; it was left as it is. Open it with a newer Atomic", path.display())]
    TooNew { path: PathBuf, version: u64 },
    #[error("{} has {} MB, more than a session of {} MB that can be opened; it was left as it is. `atomic sessions export` writes it as text", path.display(), size / 1_000_000, reading::LARGEST / 1_000_000)]
    TooLarge { path: PathBuf, size: u64 },
    #[error("cannot {action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: std::io::Error },
    #[error("no entry {0} in this session")]
    UnknownEntry(String),
    #[error("Invalid entry ID for forking: {0} is no message of the user")]
    NotForkable(String),
    #[error("there is nothing to fork yet: this session has no message of the user")]
    Unsaved,
}

impl SessionError {
    /// Stable, for programs.
    pub fn code(&self) -> &'static str {
        match self {
            SessionError::Locked(_) => "session_locked",
            SessionError::Foreign { .. } => "session_foreign",
            SessionError::TooNew { .. } => "session_too_new",
            SessionError::TooLarge { .. } => "session_too_large",
            SessionError::Io { .. } => "session_io",
            SessionError::UnknownEntry(_) => "unknown_entry",
            SessionError::NotForkable(_) => "invalid_fork_entry",
            SessionError::Unsaved => "session_unsaved",
        }
    }
}

enum Backing {
    Memory,
    /// Somebody else's to write.
    Read(PathBuf),
    /// Named, not written: nothing is on disk before the user said something.
    Pending(PathBuf),
    File(SessionFile),
}

pub struct Session {
    header: Value,
    id: String,
    dir: PathBuf,
    backing: Backing,
    entries: Vec<Entry>,
    /// Of them, what is in the file; the rest waits until it can be written.
    written: usize,
    index: HashMap<Arc<str>, usize>,
    leaf: Option<String>,
    notices: Vec<String>,
    /// The file could not be written, and the user knows.
    in_trouble: bool,
    news: Vec<News>,
}

/// What happened to the file, for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct News {
    /// `info`, `warning`, `error`.
    pub level: &'static str,
    pub message: String,
}

impl Session {
    /// Never written (`--no-session`). `dir` is only where oversized tool results go.
    pub fn in_memory(cwd: &Path, dir: &Path) -> Self {
        Self::fresh(cwd, dir, None, |_, _| Backing::Memory)
    }

    /// A new session whose file appears with the first message.
    pub fn create(cwd: &Path, dir: &Path, parent_session: Option<&Path>) -> Self {
        Self::fresh(cwd, dir, parent_session, |id, header| Backing::Pending(file_of(dir, id, header)))
    }

    /// The same with an id that somebody chose; [`valid_id`] says what can be one.
    pub fn create_named(cwd: &Path, dir: &Path, parent_session: Option<&Path>, id: &str) -> Self {
        Self::fresh_as(id.to_owned(), cwd, dir, parent_session, |id, header| {
            Backing::Pending(file_of(dir, id, header))
        })
    }

    fn fresh(
        cwd: &Path,
        dir: &Path,
        parent: Option<&Path>,
        backing: impl FnOnce(&str, &Value) -> Backing,
    ) -> Self {
        Self::fresh_as(uuid::Uuid::now_v7().to_string(), cwd, dir, parent, backing)
    }

    fn fresh_as(
        id: String,
        cwd: &Path,
        dir: &Path,
        parent: Option<&Path>,
        backing: impl FnOnce(&str, &Value) -> Backing,
    ) -> Self {
        let header = new_header(&id, cwd, parent);
        Self::of(backing(&id, &header), header, id, dir.to_owned(), Vec::new())
    }

    /// Reads a file without locking it, writing to it, or minding who has it open: what is
    /// appended to this session is nobody's.
    ///
    /// # Errors
    /// The file cannot be read, or is no session.
    pub fn read(path: &Path) -> Result<Self, SessionError> {
        let (header, entries, notices) = SessionFile::read(path)?;
        let id = header.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
        let dir = path.parent().unwrap_or(Path::new(".")).to_owned();
        let mut session = Self::of(Backing::Read(path.to_owned()), header, id, dir, notices);
        entries.into_iter().for_each(|entry| session.remember(entry));
        Ok(session)
    }

    /// Opens, locks, and reads a file. An empty one becomes a new session of `cwd` in its place.
    pub fn open(path: &Path, cwd: &Path) -> Result<Self, SessionError> {
        let opened = SessionFile::open(path, || {
            let id = uuid::Uuid::now_v7().to_string();
            new_header(&id, cwd, None)
        })?;
        let id = opened.header.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
        let dir = path.parent().unwrap_or(Path::new(".")).to_owned();
        let mut session = Self::of(Backing::File(opened.file), opened.header, id, dir, opened.notices);
        opened.entries.into_iter().for_each(|entry| session.remember(entry));
        session.written = session.entries.len();
        Ok(session)
    }

    fn of(backing: Backing, header: Value, id: String, dir: PathBuf, notices: Vec<String>) -> Self {
        Session {
            header,
            id,
            dir,
            backing,
            entries: Vec::new(),
            written: 0,
            index: HashMap::new(),
            leaf: None,
            notices,
            in_trouble: false,
            news: Vec::new(),
        }
    }

    /// The latest session of `cwd` in `dir`, or a new one if there is none.
    pub fn continue_latest(cwd: &Path, dir: &Path) -> Result<Self, SessionError> {
        match latest(dir, cwd)? {
            Some(path) => Self::open(&path, cwd),
            None => Ok(Self::create(cwd, dir, None)),
        }
    }

    pub fn id(&self) -> &str {
        &self.id
    }
    pub fn header(&self) -> &Value {
        &self.header
    }
    pub fn dir(&self) -> &Path {
        &self.dir
    }
    /// Absent while nothing is written.
    pub fn file(&self) -> Option<&Path> {
        match &self.backing {
            Backing::File(f) => Some(f.path()),
            Backing::Read(path) => Some(path),
            Backing::Memory | Backing::Pending(_) => None,
        }
    }
    /// Where the session was started; a resumed one runs there.
    pub fn cwd(&self) -> Option<&str> {
        self.header.get("cwd").and_then(Value::as_str)
    }
    pub fn is_in_memory(&self) -> bool {
        matches!(self.backing, Backing::Memory)
    }
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }
    pub fn leaf_id(&self) -> Option<&str> {
        self.leaf.as_deref()
    }
    /// What opening found and mended, ready to be shown.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    pub fn note(&mut self, notice: String) {
        self.notices.push(notice);
    }

    pub fn entry(&self, id: &str) -> Option<&Entry> {
        self.index.get(id).and_then(|at| self.entries.get(*at))
    }

    /// The last `session_info`; an empty name clears.
    pub fn name(&self) -> Option<String> {
        let last = self.entries.iter().rev().find(|e| e.kind() == "session_info")?;
        last.str("name").filter(|n| !n.is_empty())
    }

    pub fn has_entry(&self, id: &str) -> bool {
        self.index.contains_key(id)
    }

    /// From the root to the leaf.
    pub fn path(&self) -> Vec<&Entry> {
        self.path_to(self.leaf.as_deref())
    }

    /// From the root to this entry.
    pub fn path_to(&self, id: Option<&str>) -> Vec<&Entry> {
        let mut path = Vec::new();
        let mut next = id;
        // A parent loop in a foreign file ends the path instead of the program.
        while let Some(entry) = next.and_then(|id| self.index.get(id)).and_then(|i| self.entries.get(*i)) {
            if path.len() >= self.entries.len() {
                break;
            }
            path.push(entry);
            next = entry.parent_id();
        }
        path.reverse();
        path
    }

    /// A message becomes a `message` entry, a custom one a `custom_message`. `hidden`: shown,
    /// never in a model's context.
    pub fn append_message(&mut self, message: &Message, hidden: bool) -> Result<Arc<Value>, SessionError> {
        let mut fields = Map::new();
        let kind = match message {
            Message::Custom(custom) => {
                if let Ok(Value::Object(all)) = serde_json::to_value(custom) {
                    // The entry has its own ISO timestamp.
                    fields.extend(all.into_iter().filter(|(k, _)| k != "timestamp"));
                }
                if hidden {
                    fields.insert("excludeFromContext".into(), Value::Bool(true));
                }
                "custom_message"
            }
            other => {
                fields.insert("message".into(), serde_json::to_value(other).unwrap_or(Value::Null));
                "message"
            }
        };
        self.append(kind, fields)
    }

    /// Adds an entry below the leaf and writes it. What a file cannot take now is kept, told by
    /// [`Session::take_news`], and written later.
    ///
    /// # Errors
    /// There is no file yet, and none can be made: then nothing was added.
    pub fn append(&mut self, kind: &str, fields: Map<String, Value>) -> Result<Arc<Value>, SessionError> {
        let mut raw = Map::new();
        raw.insert("type".into(), kind.into());
        raw.insert("id".into(), self.new_entry_id().into());
        raw.insert("parentId".into(), self.leaf.clone().map_or(Value::Null, Value::String));
        raw.insert("timestamp".into(), iso(now_ms()).into());
        raw.extend(fields);
        let raw = Arc::new(Value::Object(raw));
        // It has a kind and an id, so it is one.
        if let Some(entry) = Entry::of(&raw) {
            self.add(entry)?;
        }
        Ok(raw)
    }

    /// The branch in memory: what is appended to it is nobody's.
    pub fn throw_away(&self) -> Session {
        let mut copy =
            Self::of(Backing::Memory, self.header.clone(), self.id.clone(), self.dir.clone(), Vec::new());
        for entry in self.path() {
            copy.remember(entry.clone());
        }
        copy
    }

    /// Lets go of the file and its lock; what comes now is kept in memory only.
    pub fn close(&mut self) {
        self.flush();
        if self.in_trouble {
            self.news.push(News {
                level: "error",
                message: format!(
                    "{} entries of this session could not be written to the end",
                    self.entries.len() - self.written
                ),
            });
        }
        self.backing = Backing::Memory;
    }

    /// What there is to tell of the file since the last time.
    pub fn take_news(&mut self) -> Vec<News> {
        std::mem::take(&mut self.news)
    }

    /// Writes what waits, and answers the file that the disk itself can be asked to keep. That
    /// takes its time: elsewhere, and not through the open file, whose lock would outlive it.
    pub fn flushed(&mut self) -> Option<PathBuf> {
        self.flush();
        match &self.backing {
            Backing::File(file) => Some(file.path().to_owned()),
            _ => None,
        }
    }

    fn add(&mut self, entry: Entry) -> Result<(), SessionError> {
        if let Backing::Pending(path) = &self.backing
            && entry.is_spoken()
        {
            let mut all = self.entries.clone();
            all.push(entry.clone());
            self.backing = Backing::File(SessionFile::create(path, &self.header, &all)?);
            self.remember(entry);
            self.written = self.entries.len();
            return Ok(());
        }
        self.remember(entry);
        self.flush();
        Ok(())
    }

    /// Everything that is not in the file yet.
    fn flush(&mut self) {
        let Backing::File(file) = &mut self.backing else { return };
        let Some(due) = self.entries.get(self.written..).filter(|due| !due.is_empty()) else { return };
        let path = file.path().to_owned();
        let (again, at, what) = match file.append(due) {
            Ok(()) => {
                self.written = self.entries.len();
                if std::mem::take(&mut self.in_trouble) {
                    let message =
                        format!("{} is written again, and nothing is missing in it", path.display());
                    self.news.push(News { level: "info", message });
                }
                return;
            }
            Err(Lost::Io(e)) => return self.fails(&path, &e.to_string()),
            Err(Lost::Gone) => ("warning", path.clone(), "was deleted; it has been written again".to_owned()),
            Err(Lost::Replaced) => {
                let other = another_name(&path);
                let what = format!(
                    "is not what this session wrote any more, and is left alone; the session goes on in {}",
                    other.display()
                );
                ("error", other, what)
            }
        };
        match SessionFile::create(&at, &self.header, &self.entries) {
            Ok(file) => {
                self.backing = Backing::File(file);
                self.written = self.entries.len();
                self.in_trouble = false;
                self.news.push(News { level: again, message: format!("{} {what}", path.display()) });
            }
            Err(e) => self.fails(&path, &e.to_string()),
        }
    }

    /// Told once, until it goes well again.
    fn fails(&mut self, path: &Path, why: &str) {
        if !std::mem::replace(&mut self.in_trouble, true) {
            let message = format!(
                "{} cannot be written: {why}. What is said now is kept in memory, and written as soon as it can be",
                path.display()
            );
            self.news.push(News { level: "error", message });
        }
    }

    fn remember(&mut self, entry: Entry) {
        self.leaf = Some(entry.id().to_owned());
        self.index.insert(entry.shared_id(), self.entries.len());
        self.entries.push(entry);
    }

    /// 8 hex digits, unique in the file.
    fn new_entry_id(&self) -> String {
        random_id(|id| self.index.contains_key(id))
    }
}

fn random_id(taken: impl Fn(&str) -> bool) -> String {
    loop {
        let random = uuid::Uuid::now_v7().as_u128() as u32;
        let id = format!("{random:08x}");
        if !taken(&id) {
            return id;
        }
    }
}

fn file_of(dir: &Path, id: &str, header: &Value) -> PathBuf {
    let stamp = header["timestamp"].as_str().unwrap_or("").replace([':', '.'], "-");
    dir.join(format!("{stamp}_{id}.jsonl"))
}

fn new_header(id: &str, cwd: &Path, parent: Option<&Path>) -> Value {
    let mut header = json!({
        "type": "session",
        "version": VERSION,
        "id": id,
        "timestamp": iso(now_ms()),
        "cwd": cwd.to_string_lossy(),
    });
    if let Some(parent) = parent {
        header["parentSession"] = parent.to_string_lossy().into();
    }
    header
}

/// `2026-01-31 12:00`, where the reader is; `ms`: milliseconds.
pub fn minute(ms: i64) -> String {
    let time = jiff::Timestamp::from_millisecond(ms).unwrap_or_default();
    time.to_zoned_datetime(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string()
}

/// `2026-01-31T12:00:00.000Z`.
pub(crate) fn iso(ms: i64) -> String {
    let time = jiff::Timestamp::from_millisecond(ms).unwrap_or_default();
    time.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

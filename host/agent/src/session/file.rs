//! The file of a session as it is written: one lock, one line an entry, each line whole or not at
//! all. Notices when the file is no longer the one it was.
//!
//! A line is handed to the system before the program goes on, so that it survives the program;
//! what survives the power is asked of the disk when a run has settled.

use super::{
    Entry, SessionError, VERSION, iso,
    reading::{self, Contents},
};
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
    /// Bytes that are known to be in it.
    len: u64,
    /// The last line of the file has no end yet.
    unterminated: bool,
    /// Bytes from which on writing fails, as on a disk that is full.
    #[cfg(test)]
    pub fails_at: Option<u64>,
}

pub(super) struct Opened {
    pub file: SessionFile,
    pub header: Value,
    pub entries: Vec<Entry>,
    pub notices: Vec<String>,
}

/// Why an entry is not on disk.
#[derive(Debug)]
pub(super) enum Lost {
    /// The file is as it was before.
    Io(io::Error),
    /// Nothing is where it was.
    Gone,
    /// Something else is there now.
    Replaced,
}

impl SessionFile {
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A new file, which must not exist. It appears whole: half a header would be a foreign file
    /// for ever.
    pub fn create(path: &Path, header: &Value, entries: &[Entry]) -> Result<Self, SessionError> {
        let fail = |action| move |source| SessionError::Io { action, path: path.to_owned(), source };
        if let Some(dir) = path.parent() {
            std::fs::create_dir_all(dir).map_err(fail("create the directory of"))?;
        }
        if path.symlink_metadata().is_ok() {
            return Err(fail("create")(io::ErrorKind::AlreadyExists.into()));
        }
        let temporary = beside(path, &format!("new-{}", std::process::id()));
        let made = Self::whole(&temporary, path, header, entries);
        let mut file = made.inspect_err(|_| drop(std::fs::remove_file(&temporary)))?;
        std::fs::rename(&temporary, path).map_err(fail("create")).inspect_err(|_| {
            let _ = std::fs::remove_file(&temporary);
        })?;
        file.path = path.to_owned();
        Ok(file)
    }

    /// `told`: the path that errors name.
    fn whole(at: &Path, told: &Path, header: &Value, entries: &[Entry]) -> Result<Self, SessionError> {
        let fail = |action| move |source| SessionError::Io { action, path: told.to_owned(), source };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(at).map_err(fail("create"))?;
        lock(&file, told)?;
        let mut made = SessionFile::of(file, at);
        let mut text = header.to_string();
        text.push('\n');
        for entry in entries {
            text.push_str(entry.text());
            text.push('\n');
        }
        made.write_all(text.as_bytes()).map_err(fail("write"))?;
        Ok(made)
    }

    fn of(file: File, path: &Path) -> Self {
        SessionFile {
            file,
            path: path.to_owned(),
            len: 0,
            unterminated: false,
            #[cfg(test)]
            fails_at: None,
        }
    }

    pub fn open(path: &Path, new_header: impl FnOnce() -> Value) -> Result<Opened, SessionError> {
        let fail = |action| move |source| SessionError::Io { action, path: path.to_owned(), source };
        reading::check_file(path)?;
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(fail("open"))?;
        lock(&file, path)?;
        let mut file = SessionFile::of(file, path);
        file.len = file.file.metadata().map_err(fail("read"))?.len();
        if file.len == 0 {
            return file.initialised(new_header(), Vec::new());
        }
        let contents = reading::read(&file.file, path)?;
        if contents.unborn {
            let notice = file.set_aside(contents.torn.unwrap_or_default());
            return file.initialised(new_header(), vec![notice]);
        }
        let Contents { header, version, entries, skipped, torn, unterminated, .. } = contents;
        let mut notices = Vec::new();
        file.unterminated = unterminated;
        if let Some(tail) = torn {
            notices.push(file.set_aside(tail));
        }
        if skipped > 0 {
            notices.push(format!(
                "{skipped} unreadable line(s) of {} were skipped; {}",
                path.display(),
                match version < VERSION {
                    true => "the older file keeps them",
                    false => "they stay in the file",
                }
            ));
        }
        if version < VERSION {
            let (migrated, notice) = file.migrated(&header, &entries, version)?;
            file = migrated;
            notices.push(notice);
        }
        Ok(Opened { file, header, entries, notices })
    }

    fn initialised(mut self, header: Value, notices: Vec<String>) -> Result<Opened, SessionError> {
        let text = format!("{header}\n");
        let written = self.write_all(text.as_bytes());
        written.map_err(|source| SessionError::Io { action: "write", path: self.path.clone(), source })?;
        Ok(Opened { file: self, header, entries: Vec::new(), notices })
    }

    /// The older file is kept beside; the new one takes its place in one step.
    fn migrated(
        self,
        header: &Value,
        entries: &[Entry],
        version: u64,
    ) -> Result<(SessionFile, String), SessionError> {
        let fail = |action| {
            let path = self.path.clone();
            move |source| SessionError::Io { action, path, source }
        };
        let backup = beside(&self.path, &format!("v{version}-{}", stamp()));
        std::fs::copy(&self.path, &backup).map_err(fail("keep a copy of"))?;
        File::open(&backup).and_then(|f| f.sync_all()).map_err(fail("keep a copy of"))?;
        let temporary = beside(&self.path, &format!("new-{}", std::process::id()));
        let made = Self::whole(&temporary, &self.path, header, entries);
        let mut file = made.inspect_err(|_| drop(std::fs::remove_file(&temporary)))?;
        file.file.sync_all().map_err(fail("write"))?;
        std::fs::rename(&temporary, &self.path).map_err(fail("write"))?;
        file.path.clone_from(&self.path);
        let notice = format!(
            "{} had format {version} and was rewritten as {VERSION}; as it was it is in {}",
            self.path.display(),
            backup.display()
        );
        Ok((file, notice))
    }

    /// What is in a file, without its lock and without touching it.
    pub fn read(path: &Path) -> Result<(Value, Vec<Entry>, Vec<String>), SessionError> {
        reading::check_file(path)?;
        let fail = |source| SessionError::Io { action: "open", path: path.to_owned(), source };
        let contents = reading::read(&File::open(path).map_err(fail)?, path)?;
        if contents.unborn {
            let reason = "its first line is not JSON".into();
            return Err(SessionError::Foreign { path: path.to_owned(), reason });
        }
        let skipped = contents.skipped + usize::from(contents.torn.is_some());
        let notice = format!("{skipped} unreadable line(s) of {} were skipped", path.display());
        Ok((contents.header, contents.entries, (skipped > 0).then_some(notice).into_iter().collect()))
    }

    /// All lines or none: a failed write is cut off again.
    pub fn append(&mut self, entries: &[Entry]) -> Result<(), Lost> {
        self.is_there()?;
        let mut text = Vec::new();
        if self.unterminated {
            text.push(b'\n');
        }
        for entry in entries {
            text.extend_from_slice(entry.text().as_bytes());
            text.push(b'\n');
        }
        self.write_all(&text).map_err(Lost::Io)
    }

    /// The file that was opened is the one under its name, and nobody cut it.
    fn is_there(&mut self) -> Result<(), Lost> {
        let open = self.file.metadata().map_err(Lost::Io)?;
        match std::fs::symlink_metadata(&self.path).and_then(|_| std::fs::metadata(&self.path)) {
            Ok(named) if !same_file(&open, &named) => return Err(Lost::Replaced),
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Err(Lost::Gone),
            Err(e) if e.kind() == io::ErrorKind::NotADirectory => return Err(Lost::Gone),
            Err(e) => return Err(Lost::Io(e)),
        }
        if open.len() < self.len {
            return Err(Lost::Replaced);
        }
        if open.len() > self.len {
            // Somebody added to it all the same, or a failed line could not be taken back.
            self.len = open.len();
            let mut last = [0];
            self.file
                .seek(SeekFrom::End(-1))
                .and_then(|_| self.file.read_exact(&mut last))
                .map_err(Lost::Io)?;
            self.unterminated = last != *b"\n";
        }
        Ok(())
    }

    fn write_all(&mut self, text: &[u8]) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(self.len))?;
        match self.write_some(text) {
            Ok(()) => {
                self.len += text.len() as u64;
                self.unterminated = false;
                Ok(())
            }
            Err(e) => {
                let _ = self.file.set_len(self.len);
                Err(e)
            }
        }
    }

    #[cfg(not(test))]
    fn write_some(&mut self, text: &[u8]) -> io::Result<()> {
        self.file.write_all(text)
    }

    #[cfg(test)]
    fn write_some(&mut self, text: &[u8]) -> io::Result<()> {
        let room = self.fails_at.map_or(u64::MAX, |at| at.saturating_sub(self.len));
        let fits = text.get(..usize::try_from(room).unwrap_or(usize::MAX)).unwrap_or(text);
        self.file.write_all(fits)?;
        match fits.len() == text.len() {
            true => Ok(()),
            false => Err(io::ErrorKind::StorageFull.into()),
        }
    }

    /// Moves the torn last line to a file of its own. If that fails it stays where it is,
    /// and the next entry still starts on its own line.
    fn set_aside(&mut self, tail: usize) -> String {
        let aside = beside(&self.path, &format!("torn-{}", stamp()));
        let from = self.len.saturating_sub(tail as u64);
        let moved = self.file.seek(SeekFrom::Start(from)).and_then(|_| {
            let mut bytes = Vec::new();
            Read::by_ref(&mut self.file).take(tail as u64).read_to_end(&mut bytes)?;
            let mut to = OpenOptions::new().write(true).create_new(true).open(&aside)?;
            to.write_all(&bytes)?;
            to.sync_all()?;
            self.file.set_len(from)
        });
        match moved {
            Ok(()) => {
                (self.len, self.unterminated) = (from, false);
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

fn stamp() -> String {
    iso(now_ms()).replace([':', '.'], "-")
}

/// `x.jsonl` → `x.jsonl.WHAT`.
fn beside(path: &Path, what: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{name}.{what}"))
}

/// A free name for a session whose own name belongs to something else by now.
pub(super) fn another_name(path: &Path) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{stem}-{}.jsonl", stamp()))
}

#[cfg(unix)]
fn same_file(a: &std::fs::Metadata, b: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

/// Without a number for files, the kind must do; a file that is open cannot be replaced there.
#[cfg(not(unix))]
fn same_file(a: &std::fs::Metadata, b: &std::fs::Metadata) -> bool {
    a.is_file() == b.is_file()
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

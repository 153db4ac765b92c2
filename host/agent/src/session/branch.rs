//! Branches of a session: going to another place of its tree, and a session of its own made of
//! one branch (events.md C.2, C.3, C.6). The tree is never rewritten: what is left stays.

use super::{Backing, Entry, Session, SessionError, SessionFile};
use crate::{
    message::{Message, MessageContent},
    op::SetupEntry,
};
use serde_json::{Map, Value};
use std::{
    collections::{HashMap, HashSet},
    path::Path,
};

impl Session {
    /// Where the next entry hangs; `None`: a root of its own. Nothing is written: the next entry
    /// says it.
    ///
    /// # Errors
    /// No such entry.
    pub fn move_leaf(&mut self, to: Option<&str>) -> Result<(), SessionError> {
        if let Some(id) = to
            && !self.has_entry(id)
        {
            return Err(SessionError::UnknownEntry(id.to_owned()));
        }
        self.leaf = to.map(str::to_owned);
        Ok(())
    }

    /// The last entry that two places have in common.
    pub fn common_ancestor(&self, a: Option<&str>, b: Option<&str>) -> Option<&str> {
        let there: HashSet<&str> = self.path_to(b).into_iter().map(Entry::id).collect();
        self.path_to(a).into_iter().map(Entry::id).rfind(|id| there.contains(id))
    }

    /// The last label of each entry that has one.
    pub fn labels(&self) -> HashMap<String, String> {
        let mut labels = HashMap::new();
        for entry in self.entries.iter().filter(|e| e.kind() == "label") {
            let Some(target) = entry.str("targetId") else { continue };
            match entry.str("label").filter(|l| !l.is_empty()) {
                Some(label) => drop(labels.insert(target, label)),
                None => drop(labels.remove(&target)),
            }
        }
        labels
    }

    /// Where a fork before this entry begins, and what the entry said.
    ///
    /// # Errors
    /// It is no message of the user.
    pub fn before(&self, id: &str) -> Result<(Option<String>, String), SessionError> {
        let entry = self.entry(id).ok_or_else(|| SessionError::NotForkable(id.to_owned()))?;
        match entry.message() {
            Some(Message::User(m)) => Ok((entry.parent_id().map(str::to_owned), m.content.plain_text())),
            _ => Err(SessionError::NotForkable(id.to_owned())),
        }
    }

    /// Where going to this entry leads (events.md C.3): what can be said again is gone back
    /// before, with its text.
    ///
    /// # Errors
    /// No such entry.
    pub fn landing(&self, id: &str) -> Result<(Option<String>, Option<String>), SessionError> {
        let entry = self.entry(id).ok_or_else(|| SessionError::UnknownEntry(id.to_owned()))?;
        let text = match (entry.kind(), entry.message()) {
            (_, Some(Message::User(m))) => Some(m.content.plain_text()),
            ("custom_message", _) => {
                let content = entry.get("content").unwrap_or(Value::Null);
                let content = serde_json::from_value::<MessageContent>(content).ok();
                Some(content.map(|c| c.plain_text()).unwrap_or_default())
            }
            _ => None,
        };
        match text {
            Some(text) => Ok((entry.parent_id().map(str::to_owned), Some(text))),
            None => Ok((Some(id.to_owned()), None)),
        }
    }

    /// A session of `cwd` that begins as this one until `leaf`: its own file, this one as its
    /// parent, the entries as they are but for labels, which come behind them. Nothing is written
    /// to this one.
    ///
    /// # Errors
    /// Nothing was said in this session; the file cannot be written.
    pub fn fork(&self, cwd: &Path, leaf: Option<&str>) -> Result<Session, SessionError> {
        if !self.is_in_memory() && self.file().is_none() {
            return Err(SessionError::Unsaved);
        }
        if let Some(id) = leaf
            && !self.has_entry(id)
        {
            return Err(SessionError::UnknownEntry(id.to_owned()));
        }
        self.fork_to(cwd, &self.dir, leaf)
    }

    /// A session of `cwd`, in `dir`, with all of this one's branch.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn copy_to(&self, cwd: &Path, dir: &Path) -> Result<Session, SessionError> {
        self.fork_to(cwd, dir, self.leaf_id())
    }

    fn fork_to(&self, cwd: &Path, dir: &Path, leaf: Option<&str>) -> Result<Session, SessionError> {
        let mut next = match self.is_in_memory() {
            true => Session::in_memory(cwd, dir),
            false => Session::create(cwd, dir, self.file()),
        };
        let mut copied: Vec<&str> = Vec::new();
        for entry in self.path_to(leaf) {
            if entry.kind() == "label" {
                continue;
            }
            // A label that hung in between is not copied: what hung under it hangs under what is.
            let parent = copied.last().copied();
            copied.push(entry.id());
            next.remember(match entry.parent_id() == parent {
                true => entry.clone(),
                false => entry.under(parent),
            });
        }
        let labels = self.labels();
        for id in copied {
            if let Some(label) = labels.get(id) {
                let mut fields = Map::new();
                fields.insert("targetId".into(), id.into());
                fields.insert("label".into(), label.clone().into());
                next.append("label", fields)?;
            }
        }
        next.settle_file()?;
        Ok(next)
    }

    /// What was copied is written at once if somebody spoke in it.
    fn settle_file(&mut self) -> Result<(), SessionError> {
        let spoken = self.entries.iter().any(Entry::is_spoken);
        if let (Backing::Pending(path), true) = (&self.backing, spoken) {
            self.backing = Backing::File(SessionFile::create(path, &self.header, &self.entries)?);
            self.written = self.entries.len();
        }
        Ok(())
    }

    /// What a new session holds before anybody is told of it.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn set_up(&mut self, setup: Vec<SetupEntry>) -> Result<(), SessionError> {
        for entry in setup {
            let (kind, fields) = match entry {
                SetupEntry::Custom { custom_type, data } => {
                    let mut fields = Map::new();
                    fields.insert("customType".into(), custom_type.into());
                    if let Some(data) = data {
                        fields.insert("data".into(), data);
                    }
                    ("custom", fields)
                }
                SetupEntry::CustomMessage(message) => match serde_json::to_value(message) {
                    Ok(Value::Object(fields)) => ("custom_message", fields),
                    _ => continue,
                },
                SetupEntry::SessionInfo { name } => {
                    ("session_info", Map::from_iter([("name".to_owned(), name.trim().into())]))
                }
            };
            self.append(kind, fields)?;
        }
        Ok(())
    }
}

impl Entry {
    /// Somebody said something: from here on there is a file.
    pub(super) fn is_spoken(&self) -> bool {
        matches!(self.role(), Some("user" | "assistant"))
    }
}

//! What is wrong with a session file, line by line. Reads it once and keeps no text of it, so the
//! size does not matter; writes nothing, and needs no lock.

use super::{Entry, SessionError, VERSION, reading};
use crate::message::{Content, Message};
use serde::Serialize;
use std::{
    collections::{HashMap, HashSet},
    fs::File,
    io::{BufRead, BufReader},
    path::Path,
};

/// One thing that is wrong, or worth knowing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// 1 is the header.
    pub line: usize,
    /// Something is lost or means nothing; otherwise it is mended when the file is used.
    pub is_error: bool,
    pub what: String,
}

/// What a file is, and what is wrong with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    pub id: String,
    pub version: u64,
    pub entries: usize,
    pub bytes: u64,
    pub longest_line: usize,
    pub findings: Vec<Finding>,
}

impl Report {
    pub fn is_sound(&self) -> bool {
        !self.findings.iter().any(|f| f.is_error)
    }
}

/// Calls `each` with the number and the bytes of every line, without its end; 1 is the header.
///
/// # Errors
/// The file cannot be read.
pub fn each_line(path: &Path, mut each: impl FnMut(usize, &[u8], bool)) -> Result<(), SessionError> {
    let fail = |source| SessionError::Io { action: "read", path: path.to_owned(), source };
    let mut from = BufReader::with_capacity(256 * 1024, File::open(path).map_err(fail)?);
    let mut line = Vec::new();
    let mut number = 0;
    loop {
        line.clear();
        if from.read_until(b'\n', &mut line).map_err(fail)? == 0 {
            return Ok(());
        }
        number += 1;
        let ended = line.ends_with(b"\n");
        each(number, line.trim_ascii_end(), ended);
    }
}

/// # Errors
/// It cannot be read, or is no session at all.
pub fn check(path: &Path) -> Result<Report, SessionError> {
    let fail = |source| SessionError::Io { action: "open", path: path.to_owned(), source };
    let meta = std::fs::metadata(path).map_err(fail)?;
    if !meta.is_file() {
        return Err(SessionError::Foreign { path: path.to_owned(), reason: "not a regular file".into() });
    }
    let mut check = Check::default();
    let mut header = Err(SessionError::Foreign { path: path.to_owned(), reason: "it is empty".into() });
    each_line(path, |number, line, ended| {
        check.report.longest_line = check.report.longest_line.max(line.len());
        match number {
            1 => header = reading::header(line, path),
            _ => check.line(number, line, ended),
        }
    })?;
    let (header, version) = header?;
    let mut report = check.ended();
    report.id = header["id"].as_str().unwrap_or_default().to_owned();
    report.version = version;
    report.bytes = meta.len();
    if version < VERSION {
        let what = format!("it has format {version}; opening it writes {VERSION}, and keeps a copy");
        report.findings.insert(0, Finding { line: 1, is_error: false, what });
        // It has none of what would be looked for.
        report.findings.retain(|f| !f.what.contains(NO_ENTRY) || version > 1);
    }
    Ok(report)
}

const NO_ENTRY: &str = "no entry";
/// Of the same kind more would say nothing new.
const MOST: usize = 200;

#[derive(Default)]
struct Check {
    report: Report,
    /// Where each id is.
    known: HashMap<String, usize>,
    /// `(line, what it is, id)` of ids that must be somewhere.
    named: Vec<(usize, &'static str, String)>,
    /// Calls without a result so far.
    open: HashMap<String, usize>,
    answered: HashSet<String>,
}

impl Check {
    fn find(&mut self, line: usize, is_error: bool, what: impl Into<String>) {
        if self.report.findings.len() < MOST {
            self.report.findings.push(Finding { line, is_error, what: what.into() });
        }
    }

    fn line(&mut self, number: usize, bytes: &[u8], ended: bool) {
        if bytes.trim_ascii().is_empty() {
            return;
        }
        let entry = match std::str::from_utf8(bytes) {
            Err(_) => return self.find(number, true, "it is not UTF-8; it is passed over"),
            Ok(text) => Entry::parse(text.trim()),
        };
        let Some(entry) = entry else {
            let what = match (ended, serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok()) {
                (false, false) => "it is torn: whoever wrote it was stopped; opening the file sets it aside",
                (_, false) => "it is not JSON; it is passed over",
                _ => "it is no entry (an entry has a type and an id); it is passed over",
            };
            return self.find(number, true, what);
        };
        self.report.entries += 1;
        self.place(number, &entry);
        match entry.kind() {
            "label" | "context_edit" => {
                if let Some(target) = entry.str("targetId") {
                    self.named.push((number, "the target", target));
                }
            }
            "compaction" => {
                if let Some(kept) = entry.str("firstKeptEntryId") {
                    self.named.push((number, "the first entry that is kept", kept));
                }
            }
            "message" => self.message(number, &entry),
            _ => {}
        }
    }

    fn place(&mut self, number: usize, entry: &Entry) {
        if let Some(parent) = entry.parent_id() {
            if parent == entry.id() {
                self.find(number, true, "it is its own parent; it is a root");
            } else if !self.known.contains_key(parent) {
                self.find(number, true, format!("its parent {parent} is nowhere before it; it is a root"));
            }
        }
        if let Some(first) = self.known.insert(entry.id().to_owned(), number) {
            self.find(number, true, format!("its id {} is that of line {first} too", entry.id()));
        }
    }

    fn message(&mut self, number: usize, entry: &Entry) {
        match entry.message() {
            None => self.find(number, true, "its message cannot be read; no model is told of it"),
            Some(Message::Assistant(m)) => {
                for content in &m.content {
                    if let Content::ToolCall(call) = content {
                        self.open.insert(call.id.clone(), number);
                    }
                }
            }
            Some(Message::ToolResult(r)) => {
                if self.open.remove(&r.tool_call_id).is_some() {
                    self.answered.insert(r.tool_call_id.clone());
                } else {
                    let again = if self.answered.contains(&r.tool_call_id) { "twice" } else { "and no call" };
                    let what =
                        format!("the result of {} is there {again}; a model is not told", r.tool_call_id);
                    self.find(number, false, what);
                }
            }
            _ => {}
        }
    }

    fn ended(mut self) -> Report {
        for (line, what, id) in std::mem::take(&mut self.named) {
            if !self.known.contains_key(&id) {
                self.find(line, true, format!("{what}, {id}, is nowhere in the file"));
            }
        }
        let mut open: Vec<_> = std::mem::take(&mut self.open).into_iter().collect();
        open.sort_by_key(|(_, line)| *line);
        for (id, line) in open {
            self.find(line, false, format!("the call {id} has no result; a model is told that it has none"));
        }
        self.report.findings.sort_by_key(|f| f.line);
        self.report
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn each_fault_is_named_with_its_line_and_the_file_stays_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        let lines = [
            r#"{"type":"session","version":3,"id":"a","cwd":"/x"}"#,
            r#"{"type":"message","id":"1","parentId":null,"timestamp":"t","message":{"role":"user","content":"hi","timestamp":1}}"#,
            "garbage",
            r#"{"type":"custom"}"#,
            r#"{"type":"custom","id":"1","parentId":"1"}"#,
            r#"{"type":"custom","id":"2","parentId":"nowhere"}"#,
            r#"{"type":"label","id":"3","parentId":"2","targetId":"lost","label":"x"}"#,
            r#"{"type":"message","id":"4","parentId":"3","timestamp":"t","message":{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"bash","arguments":{}}],"api":"a","provider":"p","model":"m","timestamp":1}}"#,
            r#"{"type":"message","id":"5","parentId":"4","timestamp":"t","message":{"role":"toolResult","toolCallId":"other","toolName":"bash","content":[],"isError":false,"timestamp":1}}"#,
            r#"{"type":"mess"#,
        ];
        fs::write(&path, lines.join("\n")).unwrap();
        let before = fs::read(&path).unwrap();
        let report = check(&path).unwrap();
        let at: Vec<(usize, bool)> = report.findings.iter().map(|f| (f.line, f.is_error)).collect();
        assert_eq!(
            at,
            [
                (3, true),
                (4, true),
                (5, true),
                (5, true),
                (6, true),
                (7, true),
                (8, false),
                (9, false),
                (10, true)
            ],
            "{:#?}",
            report.findings
        );
        assert!(!report.is_sound());
        assert_eq!(fs::read(&path).unwrap(), before);
        fs::write(&path, lines[..2].join("\n")).unwrap();
        assert!(check(&path).unwrap().findings.is_empty());
        fs::write(&path, "not one").unwrap();
        assert_eq!(check(&path).unwrap_err().code(), "session_foreign");
    }
}

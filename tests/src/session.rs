//! Reads a session file and judges its form: every tree of entries hangs together, every tool
//! call on the path is answered exactly once.

use serde_json::Value;
use std::{collections::BTreeSet, fs, path::Path};

/// Header and entries.
pub struct SessionFile {
    pub header: Value,
    pub entries: Vec<Value>,
}

/// Parses and checks; a torn last line (no newline) is not counted.
pub fn read(path: &Path) -> SessionFile {
    let text = fs::read_to_string(path).unwrap();
    let complete = text.rfind('\n').map_or("", |end| &text[..end]);
    let parse = |l: &str| -> Value { serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}")) };
    let mut lines = complete.lines().map(parse);
    let header = lines.next().expect("a session file has a header");
    assert_eq!(header["type"], "session");
    assert_eq!(header["version"], 3);
    let entries: Vec<Value> = lines.collect();
    let mut ids = BTreeSet::new();
    for e in &entries {
        let id = e["id"].as_str().expect("an entry has an id").to_owned();
        if let Some(parent) = e["parentId"].as_str() {
            assert!(ids.contains(parent), "the parent of {id} is not written before it");
        }
        assert!(ids.insert(id.clone()), "{id} twice");
    }
    SessionFile { header, entries }
}

impl SessionFile {
    /// The messages, in file order.
    pub fn messages(&self) -> Vec<&Value> {
        self.entries.iter().filter(|e| e["type"] == "message").map(|e| &e["message"]).collect()
    }
    /// Messages of one role.
    pub fn of_role(&self, role: &str) -> Vec<&Value> {
        self.messages().into_iter().filter(|m| m["role"] == role).collect()
    }
    /// Every tool call has exactly one result, later.
    #[track_caller]
    pub fn assert_paired(&self) {
        let mut open: Vec<String> = Vec::new();
        for m in self.messages() {
            for part in m["content"].as_array().into_iter().flatten().filter(|c| c["type"] == "toolCall") {
                open.push(part["id"].as_str().unwrap().to_owned());
            }
            if m["role"] == "toolResult" {
                let id = m["toolCallId"].as_str().unwrap();
                let at = open.iter().position(|o| o == id);
                open.remove(at.unwrap_or_else(|| panic!("a result without a call: {id}")));
            }
        }
        assert!(open.is_empty(), "calls without a result: {open:?}");
    }
}

/// The text of a message, its text blocks joined.
pub fn text(message: &Value) -> String {
    match &message["content"] {
        Value::String(s) => s.clone(),
        content => {
            let parts = content.as_array().into_iter().flatten();
            parts.filter_map(|c| c["text"].as_str()).collect::<Vec<_>>().concat()
        }
    }
}

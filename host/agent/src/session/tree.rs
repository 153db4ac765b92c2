//! What front ends are shown of a session's tree, and its numbers. Flat: a chain of ten thousand
//! entries would be as deep as it is long.

use super::{Entry, Session};
use crate::message::{Content, Message, Usage};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};

/// Characters of an entry that a list shows.
const SHOWN: usize = 160;

/// One entry, in the order of a tree view.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Node {
    pub id: String,
    pub parent_id: Option<String>,
    #[serde(rename = "type")]
    pub kind: String,
    /// Of a `message`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Its beginning, on one line.
    pub text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    pub timestamp: String,
    /// How many partings lie above it.
    pub depth: usize,
    /// On the way from the root to the leaf.
    pub on_path: bool,
}

/// The last pushed is shown first; a parting is one step further in.
fn push<'e>(open: &mut Vec<(&'e Entry, usize)>, mut list: Vec<&'e Entry>, depth: usize) {
    list.sort_by(|a, b| a.timestamp().cmp(b.timestamp()));
    let depth = depth + usize::from(list.len() > 1);
    open.extend(list.into_iter().rev().map(|e| (e, depth)));
}

impl Session {
    /// All entries but labels; children by time, an orphan or its own parent as a root.
    pub fn nodes(&self) -> Vec<Node> {
        let labels = self.labels();
        let on_path: HashSet<&str> = self.path().into_iter().map(Entry::id).collect();
        let mut children: HashMap<Option<&str>, Vec<&Entry>> = HashMap::new();
        // By place: a file of another program may have an id twice.
        let place: HashMap<&str, usize> =
            self.entries.iter().enumerate().map(|(at, e)| (e.id(), at)).collect();
        for (at, entry) in self.entries.iter().enumerate() {
            if entry.kind() == "label" {
                continue;
            }
            // A parent stands before its children; anything else would be a circle.
            let parent = self.shown_parent(entry).filter(|p| place.get(p).is_some_and(|place| *place < at));
            children.entry(parent).or_default().push(entry);
        }
        let mut nodes = Vec::with_capacity(self.entries.len());
        let mut seen = HashSet::new();
        let mut open: Vec<(&Entry, usize)> = Vec::new();
        push(&mut open, children.remove(&None).unwrap_or_default(), 0);
        while let Some((entry, depth)) = open.pop() {
            if !seen.insert(entry.id()) {
                continue;
            }
            nodes.push(Node {
                id: entry.id().to_owned(),
                parent_id: self.shown_parent(entry).map(str::to_owned),
                kind: entry.kind().to_owned(),
                role: entry.role().map(str::to_owned),
                text: entry.preview(),
                label: labels.get(entry.id()).cloned(),
                timestamp: entry.timestamp().to_owned(),
                depth,
                on_path: on_path.contains(entry.id()),
            });
            push(&mut open, children.remove(&Some(entry.id())).unwrap_or_default(), depth);
        }
        nodes
    }

    /// The nearest ancestor that is no label.
    fn shown_parent<'s>(&'s self, entry: &'s Entry) -> Option<&'s str> {
        let mut parent = entry.parent_id();
        for _ in 0..self.entries.len() {
            match parent.and_then(|id| self.entry(id)) {
                Some(above) if above.kind() == "label" => parent = above.parent_id(),
                Some(_) => return parent,
                None => return None,
            }
        }
        None
    }

    /// The user's messages on this branch: id and text.
    pub fn fork_messages(&self) -> Vec<(String, String)> {
        let said = |e: &&Entry| match e.message() {
            Some(Message::User(m)) => Some((e.id().to_owned(), m.content.plain_text())),
            _ => None,
        };
        self.path().iter().filter_map(said).collect()
    }
}

impl Entry {
    /// Its beginning on one line, for lists.
    pub fn preview(&self) -> String {
        one_line(&self.said())
    }

    /// All that it says, as text.
    pub fn said(&self) -> String {
        match (self.kind(), self.message()) {
            ("message", Some(message)) => of_message(message),
            ("custom_message", _) => of_content(self.get("content").as_ref()),
            ("compaction" | "branch_summary" | "session_summary", _) => {
                self.str("summary").unwrap_or_default()
            }
            ("model_change", _) => format!(
                "{}/{}",
                self.str("provider").unwrap_or_default(),
                self.str("modelId").unwrap_or_default()
            ),
            ("thinking_level_change", _) => self.str("thinkingLevel").unwrap_or_default(),
            ("session_info", _) => self.str("name").unwrap_or_default(),
            ("custom", _) => self.str("customType").unwrap_or_default(),
            _ => String::new(),
        }
    }
}

fn of_message(message: &Message) -> String {
    match message {
        Message::User(m) => m.content.plain_text(),
        Message::Custom(m) => m.content.plain_text(),
        Message::ToolResult(m) => {
            let text: Vec<&str> = m.content.iter().filter_map(Content::as_text).collect();
            format!("{}: {}", m.tool_name, text.join("\n"))
        }
        Message::BashExecution(m) => format!("!{}\n{}", m.command, m.output),
        Message::BranchSummary(m) => m.summary.clone(),
        Message::Assistant(m) => {
            let text: Vec<&str> = m.content.iter().filter_map(Content::as_text).collect();
            let calls = m.tool_calls().map(|c| format!("{} {}", c.name, c.arguments));
            let said = text.join("\n");
            let said = (!said.trim().is_empty()).then_some(said);
            said.into_iter().chain(calls).collect::<Vec<_>>().join("\n")
        }
        Message::System(_) | Message::Other(_) => String::new(),
    }
}

fn of_content(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(blocks)) => {
            blocks.iter().filter_map(|b| b.get("text")?.as_str()).collect::<Vec<_>>().join(" ")
        }
        _ => String::new(),
    }
}

/// Cut to what a list shows; never more work than that.
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::new();
    let mut count = 0;
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        for c in word.chars() {
            if count >= SHOWN {
                line.push('…');
                return line;
            }
            line.push(c);
            count += 1;
        }
        count += 1;
    }
    line
}

/// What a session has come to, also what is on other branches: it was paid for.
pub fn stats(session: &Session) -> Value {
    let (mut user, mut assistant, mut calls, mut results, mut total) = (0, 0, 0, 0, 0);
    let mut usage = Usage::default();
    let mut add = |of: &Usage| {
        usage.input += of.input;
        usage.output += of.output;
        usage.cache_read += of.cache_read;
        usage.cache_write += of.cache_write;
        usage.total_tokens += of.total_tokens;
        usage.cost.total += of.cost.total;
    };
    let mut parents: HashMap<&str, usize> = HashMap::new();
    for entry in session.entries() {
        if let Some(parent) = entry.parent_id().filter(|_| entry.kind() != "label") {
            *parents.entry(parent).or_default() += 1;
        }
        total += usize::from(entry.message().is_some());
        match entry.message() {
            Some(Message::User(_)) => user += 1,
            Some(Message::ToolResult(_)) => results += 1,
            Some(Message::Assistant(m)) => {
                assistant += 1;
                calls += m.tool_calls().count();
                add(&m.usage);
            }
            _ => {
                if let Some(of) = entry.get("usage").and_then(|u| serde_json::from_value::<Usage>(u).ok()) {
                    add(&of);
                }
            }
        }
    }
    let partings: usize = parents.values().map(|n| n.saturating_sub(1)).sum();
    let size = session.file().and_then(|f| std::fs::metadata(f).ok()).map(|m| m.len());
    json!({
        "sessionId": session.id(),
        "sessionFile": session.file().map(|f| f.to_string_lossy()),
        "sessionName": session.name(),
        "userMessages": user,
        "assistantMessages": assistant,
        "toolCalls": calls,
        "toolResults": results,
        "totalMessages": total,
        "entries": session.entries().len(),
        "branches": partings + 1,
        "fileSize": size,
        "tokens": {
            "input": usage.input, "output": usage.output, "cacheRead": usage.cache_read,
            "cacheWrite": usage.cache_write, "total": usage.total_tokens,
        },
        "cost": usage.cost.total,
    })
}

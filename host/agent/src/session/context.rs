//! What a model is to know of a session, derived from the path to the leaf
//! (events.md C.5). Reads entries, writes nothing.

use super::{Entry, Session};
use crate::{
    message::{BranchSummaryMessage, CustomMessage, Extra, Message, MessageContent, SystemMessage},
    model::ThinkingLevel,
};
use serde_json::{Map, Value};
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

/// Says that older messages are gone and what stands for them.
const COMPACTED: &str = "Earlier parts of this conversation were condensed. What was kept of them:\n\n";

#[derive(Clone, Debug, Default)]
pub struct SessionContext {
    /// Without system messages, otherwise in order; not yet paired.
    pub messages: Vec<Message>,
    /// `(provider, model id)` that was used last.
    pub model: Option<(String, String)>,
    pub thinking: Option<ThinkingLevel>,
    /// What the system messages on the path add up to.
    pub prompt: PromptState,
}

/// The recorded prompt: its sections and the tools it declared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PromptState {
    /// Nothing was ever recorded.
    pub absent: bool,
    pub sections: BTreeMap<String, String>,
    pub tools: Vec<String>,
}

impl Session {
    pub fn context(&self) -> SessionContext {
        let (model, thinking) = self.settings();
        SessionContext { messages: self.messages(), model, thinking, prompt: self.recorded_prompt() }
    }

    /// `(provider, model id)` and the level of thinking that were used last on this branch.
    pub fn settings(&self) -> (Option<(String, String)>, Option<ThinkingLevel>) {
        let (mut model, mut thinking) = (None, None);
        for entry in self.path().into_iter().rev() {
            if model.is_some() && thinking.is_some() {
                break;
            }
            match (entry.kind(), entry.role()) {
                ("model_change", _) if model.is_none() => {
                    model = entry.str("provider").zip(entry.str("modelId"));
                }
                ("thinking_level_change", _) if thinking.is_none() => {
                    thinking = entry.str("thinkingLevel").as_deref().and_then(ThinkingLevel::parse);
                }
                (_, Some("assistant")) if model.is_none() => {
                    if let Some(Message::Assistant(m)) = entry.message()
                        && !m.provider.is_empty()
                        && !m.model.is_empty()
                    {
                        model = Some((m.provider.clone(), m.model.clone()));
                    }
                }
                _ => {}
            }
        }
        (model, thinking)
    }

    /// What a model is to know, in order; not yet paired, without system messages.
    pub fn messages(&self) -> Vec<Message> {
        messages(&self.path())
    }

    /// The same with its system messages in their places; those of what was condensed are folded
    /// into one at the head.
    pub fn transcript(&self) -> Vec<Message> {
        let path = self.path();
        let (mut out, start) = beginning(&path);
        let condensed = path[..start].iter().filter_map(|e| system(e));
        if let Some(head) = fold_system(condensed) {
            out.insert(0, Message::System(head));
        }
        out.extend(shown(&path, start, true));
        out
    }

    /// The way from the root to the leaf as a screen shows it: also what was condensed, and what
    /// is only displayed.
    pub fn shown_messages(&self) -> Vec<Message> {
        self.path().into_iter().filter_map(displayed).collect()
    }

    /// Entries that make the context, from the latest summary on.
    pub fn context_entries(&self) -> Vec<Arc<Value>> {
        let path = self.path();
        let (_, start) = beginning(&path);
        path[start..].iter().map(|e| Arc::new(e.raw())).collect()
    }

    /// What the system messages on the path add up to.
    pub fn recorded_prompt(&self) -> PromptState {
        let mut prompt = PromptState { absent: true, ..Default::default() };
        for entry in self.path().into_iter().filter(|e| e.role() == Some("system")) {
            if let Some(Message::System(m)) = entry.message() {
                prompt.apply(&m.extra);
            }
        }
        prompt
    }
}

impl PromptState {
    /// A system message holds what changed: `null` removes a section.
    fn apply(&mut self, patch: &Extra) {
        self.absent = false;
        if let Some(Value::Object(sections)) = patch.get("sections") {
            for (tag, text) in sections {
                match text {
                    Value::String(text) => _ = self.sections.insert(tag.clone(), text.clone()),
                    _ => _ = self.sections.remove(tag),
                }
            }
        }
        let names = |key: &str| -> Vec<String> {
            let list = patch.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
            list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let removed = names("toolsRemoved");
        self.tools.retain(|t| !removed.contains(t));
        for tool in names("toolsAdded") {
            if !self.tools.contains(&tool) {
                self.tools.push(tool);
            }
        }
    }
}

/// What several system messages add up to, as the one that could stand for them.
pub fn fold_system<'m>(messages: impl Iterator<Item = &'m SystemMessage>) -> Option<SystemMessage> {
    let mut folded: Option<SystemMessage> = None;
    let (mut state, mut sections) = (PromptState::default(), Map::new());
    for message in messages {
        state.apply(&message.extra);
        if let Some(Value::Object(changed)) = message.extra.get("sections") {
            // In the order they came to be, which is the order they are sent in.
            sections.extend(changed.clone());
        }
        let content = folded.take().and_then(|f| f.content);
        let said = message.content.clone().filter(|c| !c.plain_text().is_empty());
        folded = Some(SystemMessage { content: said.or(content), ..message.clone() });
    }
    let mut folded = folded?;
    sections.retain(|_, text| !text.is_null());
    let tools = std::mem::take(&mut state.tools).into_iter().map(Value::from).collect();
    folded.extra =
        [("sections".into(), Value::Object(sections)), ("toolsAdded".into(), tools)].into_iter().collect();
    folded.content.get_or_insert_with(|| MessageContent::Text(String::new()));
    Some(folded)
}

fn system<'e>(entry: &&'e Entry) -> Option<&'e SystemMessage> {
    match entry.message().filter(|_| entry.role() == Some("system")) {
        Some(Message::System(m)) => Some(m),
        _ => None,
    }
}

fn messages(path: &[&Entry]) -> Vec<Message> {
    let (mut out, start) = beginning(path);
    out.extend(shown(path, start, false));
    out
}

/// What stands for the condensed part, and where the rest begins.
fn beginning(path: &[&Entry]) -> (Vec<Message>, usize) {
    let mut out = Vec::new();
    // The latest summary stands for what is older than the tail it keeps. Entries without
    // one are history of another program's strategy.
    let boundary = path.iter().rposition(|e| e.kind() == "compaction" && e.str("summary").is_some());
    let start = match boundary {
        None => 0,
        Some(at) => {
            out.extend(summary(path[at]));
            let kept = path[at].str("firstKeptEntryId");
            path[..at].iter().position(|e| Some(e.id()) == kept.as_deref()).unwrap_or(at)
        }
    };
    (out, start)
}

fn shown(path: &[&Entry], start: usize, with_system: bool) -> Vec<Message> {
    let edits = edits(path);
    let mut out = Vec::new();
    for entry in &path[start..] {
        if with_system && let Some(message) = system(entry) {
            out.push(Message::System(message.clone()));
        }
        let Some(message) = visible(entry) else { continue };
        match edits.get(entry.id()) {
            None => out.push(message),
            Some(None) => {}
            Some(Some(content)) => out.push(with_content(message, content.clone())),
        }
    }
    out
}

/// The last edit of each target.
fn edits(path: &[&Entry]) -> HashMap<String, Option<MessageContent>> {
    let mut edits = HashMap::new();
    for entry in path.iter().filter(|e| e.kind() == "context_edit") {
        let Some(target) = entry.str("targetId") else { continue };
        match entry.get("replacement") {
            Some(Value::Null) => _ = edits.insert(target, None),
            Some(r) => {
                let content = r.get("content").and_then(|c| serde_json::from_value(c.clone()).ok());
                if let Some(content) = content {
                    edits.insert(target, Some(content));
                }
            }
            None => {}
        }
    }
    edits
}

fn with_content(message: Message, content: MessageContent) -> Message {
    match message {
        Message::User(mut m) => {
            m.content = content;
            Message::User(m)
        }
        Message::Custom(mut m) => {
            m.content = content;
            Message::Custom(m)
        }
        Message::Assistant(mut m) => {
            m.content = content.blocks();
            Message::Assistant(m)
        }
        Message::ToolResult(mut m) => {
            m.content = content.blocks();
            Message::ToolResult(m)
        }
        other => other,
    }
}

fn summary(entry: &Entry) -> Option<Message> {
    let summary = entry.str("summary")?;
    Some(Message::Custom(CustomMessage {
        custom_type: "compaction".into(),
        content: MessageContent::Text(format!("{COMPACTED}{summary}")),
        display: false,
        details: None,
        timestamp: millis(entry),
        extra: Extra::new(),
    }))
}

fn visible(entry: &Entry) -> Option<Message> {
    match entry.kind() {
        "message" => match entry.message()? {
            Message::System(_) | Message::Other(_) => None,
            Message::BashExecution(b) if b.exclude_from_context => None,
            other => Some(other.clone()),
        },
        "custom_message" => {
            let raw = entry.raw();
            if raw.get("excludeFromContext") == Some(&Value::Bool(true)) {
                return None;
            }
            custom(entry, &raw)
        }
        "branch_summary" => Some(Message::BranchSummary(BranchSummaryMessage {
            summary: entry.str("summary")?,
            from_id: entry.str("fromId").unwrap_or_else(|| "root".to_owned()),
            timestamp: millis(entry),
            extra: Extra::new(),
        })),
        _ => None,
    }
}

fn displayed(entry: &Entry) -> Option<Message> {
    match (entry.kind(), entry.message()) {
        ("message", Some(Message::System(_))) => None,
        ("message", message) => message.cloned(),
        ("custom_message", _) => {
            let raw = entry.raw();
            custom(entry, &raw).filter(|_| raw.get("display") == Some(&Value::Bool(true)))
        }
        ("compaction", _) => summary(entry),
        _ => visible(entry),
    }
}

fn custom(entry: &Entry, raw: &Value) -> Option<Message> {
    Some(Message::Custom(CustomMessage {
        custom_type: raw.get("customType").and_then(Value::as_str).unwrap_or_default().to_owned(),
        content: serde_json::from_value(raw.get("content")?.clone()).ok()?,
        display: raw.get("display").and_then(Value::as_bool).unwrap_or(false),
        details: raw.get("details").cloned(),
        timestamp: millis(entry),
        extra: Extra::new(),
    }))
}

fn millis(entry: &Entry) -> i64 {
    let time: Option<jiff::Timestamp> = entry.timestamp().parse().ok();
    time.map_or(0, jiff::Timestamp::as_millisecond)
}

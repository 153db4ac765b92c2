//! What a model is to know of a session, derived from the path to the leaf
//! (events.md C.5). Reads entries, writes nothing.

use super::{Entry, Session};
use crate::{
    compact::transcript as text,
    message::{BranchSummaryMessage, Content, CustomMessage, Extra, Message, MessageContent, SystemMessage},
    model::ThinkingLevel,
};
use serde_json::{Map, Value};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    ops::{ControlFlow, Range},
    sync::Arc,
};

/// Says that older messages are gone and what stands for them.
const COMPACTED: &str = "Earlier parts of this conversation were condensed. What was kept of them:\n\n";

/// The same, where lines were taken out and none was written.
const FILTERED: &str = "Earlier parts of this conversation were shortened: what follows is its transcript, word for word, \
but for lines that were taken out; each (filtered N lines) says how many. Its last part is complete.\n\n";

/// What a compaction can work on: what is left of earlier ones, and the messages behind it.
#[derive(Clone, Debug, Default)]
pub struct Condensable {
    pub summary: Option<String>,
    pub shown: Vec<Shown>,
}

/// A message that a model is shown.
#[derive(Clone, Debug)]
pub struct Shown {
    pub entry_id: String,
    pub message: Message,
    /// It came after the latest compaction.
    pub fresh: bool,
}

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
        out.extend(shown(&path, start..path.len(), true).map(|(_, message)| message));
        out
    }

    /// What a compaction would begin with.
    pub fn condensable(&self) -> Condensable {
        let path = self.path();
        let Some((at, kept)) = boundary(&path) else {
            let all = shown(&path, 0..path.len(), false);
            return Condensable { summary: None, shown: all.map(|(e, m)| of_entry(e, m, true)).collect() };
        };
        let fresh: HashSet<&str> = path[at..].iter().map(|e| e.id()).collect();
        let behind =
            shown(&path, kept..path.len(), false).map(|(e, m)| of_entry(e, m, fresh.contains(e.id())));
        Condensable { summary: path[at].str("summary"), shown: behind.collect() }
    }

    /// Messages that a model is shown, from the newest back, and whether each came after the latest
    /// compaction. Ends where the visitor says; after the last one it answers what stands for all
    /// that is older.
    pub fn visit_back(&self, mut visit: impl FnMut(&Message, bool) -> ControlFlow<()>) -> Option<String> {
        let path = self.path();
        let (at, kept) = boundary(&path).unwrap_or_default();
        let summary = path.get(at).filter(|e| e.kind() == "compaction").and_then(|e| e.str("summary"));
        for (part, fresh) in [(at..path.len(), true), (kept..at, false)] {
            for (_, message) in shown(&path, part, false).rev() {
                if visit(&message, fresh).is_break() {
                    return None;
                }
            }
        }
        summary
    }

    /// The first entry behind this one that a model is shown.
    pub fn first_shown_behind(&self, id: Option<&str>) -> Option<String> {
        let path = self.path();
        let from = id.and_then(|id| path.iter().position(|e| e.id() == id)).map_or(0, |at| at + 1);
        shown(&path, from..path.len(), false).next().map(|(entry, _)| entry.id().to_owned())
    }

    /// The way from the root to the leaf as a screen shows it: also what was condensed, and what
    /// is only displayed.
    pub fn shown_messages(&self) -> Vec<Message> {
        self.path().into_iter().filter_map(displayed).collect()
    }

    /// Entries that make the context, from the latest summary on.
    pub fn context_entries(&self) -> Vec<Arc<Value>> {
        let path = self.path();
        let start = boundary(&path).map_or(0, |(_, kept)| kept);
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
    out.extend(shown(path, start..path.len(), false).map(|(_, message)| message));
    out
}

/// The latest compaction on the path, and where the tail that it keeps begins. Entries without a
/// summary are history of another program's strategy.
fn boundary(path: &[&Entry]) -> Option<(usize, usize)> {
    let at = path.iter().rposition(|e| e.kind() == "compaction" && e.str("summary").is_some())?;
    let kept = path[at].str("firstKeptEntryId");
    Some((at, path[..at].iter().position(|e| Some(e.id()) == kept.as_deref()).unwrap_or(at)))
}

/// What stands for the condensed part, and where the rest begins.
fn beginning(path: &[&Entry]) -> (Vec<Message>, usize) {
    let Some((at, kept)) = boundary(path) else { return (Vec::new(), 0) };
    let entry = path[at];
    let summary = entry.str("summary").unwrap_or_default();
    if !is_verbatim(entry) {
        // Of another program: its summary, and the tail as it is.
        return (vec![compacted(entry, MessageContent::Text(format!("{COMPACTED}{summary}")))], kept);
    }
    // The tail is text too, so that no call and no result is parted from the other.
    let tail: Vec<Message> = shown(path, kept..at, false).map(|(_, message)| message).collect();
    let (tail, images) = text::serialize(tail.iter());
    let gap = if tail.is_empty() { "" } else { "\n\n" };
    let text = format!("{FILTERED}{summary}{gap}{tail}");
    let content = match images.is_empty() {
        true => MessageContent::Text(text),
        false => {
            let images = images.into_iter().map(Content::Image);
            MessageContent::Blocks(std::iter::once(Content::text(text)).chain(images).collect())
        }
    };
    (vec![compacted(entry, content)], at + 1)
}

fn is_verbatim(entry: &Entry) -> bool {
    entry.raw().pointer("/details/strategy").and_then(Value::as_str) == Some(VERBATIM)
}

/// The strategy whose lines are those of the transcript.
pub(crate) const VERBATIM: &str = "verbatim-lines";

fn of_entry(entry: &Entry, message: Message, fresh: bool) -> Shown {
    Shown { entry_id: entry.id().to_owned(), message, fresh }
}

/// Edits count wherever on the path they stand.
fn shown<'p>(
    path: &'p [&'p Entry],
    part: Range<usize>,
    with_system: bool,
) -> impl DoubleEndedIterator<Item = (&'p Entry, Message)> {
    let mut edits = edits(path);
    path[part].iter().filter_map(move |entry| {
        if with_system && let Some(message) = system(entry) {
            return Some((*entry, Message::System(message.clone())));
        }
        let message = visible(entry)?;
        match edits.remove(entry.id()) {
            None => Some((*entry, message)),
            Some(None) => None,
            Some(Some(content)) => Some((*entry, with_content(message, content))),
        }
    })
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

fn compacted(entry: &Entry, content: MessageContent) -> Message {
    Message::Custom(CustomMessage {
        custom_type: "compaction".into(),
        content,
        display: false,
        details: None,
        timestamp: millis(entry),
        extra: Extra::new(),
    })
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
        ("compaction", _) => {
            let what = if is_verbatim(entry) { FILTERED } else { COMPACTED };
            Some(compacted(entry, MessageContent::Text(format!("{what}{}", entry.str("summary")?))))
        }
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

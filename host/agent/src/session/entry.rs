//! One line of a session file. The text is what is kept: a tree of values of it would take twenty
//! times as much, and most lines of a long session are never looked into again.

use crate::message::Message;
use serde::{Deserialize, Serialize, Serializer, de::IgnoredAny};
use serde_json::{Value, value::RawValue};
use std::{
    borrow::Cow,
    sync::{Arc, OnceLock},
};

/// One line after the header. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Entry(Arc<Line>);

#[derive(Debug)]
struct Line {
    /// As it is in the file, without the line's end.
    text: Box<str>,
    kind: Kind,
    id: Arc<str>,
    parent: Option<Arc<str>>,
    timestamp: Box<str>,
    /// Of a `message`.
    role: Option<Kind>,
    /// Made when somebody asks for it.
    message: OnceLock<Option<Arc<Message>>>,
}

/// The few names that nearly all lines share cost nothing.
#[derive(Clone, Debug)]
enum Kind {
    Known(&'static str),
    Other(Box<str>),
}

const KNOWN: [&str; 12] = [
    "message",
    "custom",
    "custom_message",
    "model_change",
    "thinking_level_change",
    "label",
    "user",
    "assistant",
    "toolResult",
    "system",
    "bashExecution",
    "compaction",
];

impl Kind {
    fn of(text: &str) -> Self {
        KNOWN.iter().find(|k| **k == text).map_or_else(|| Kind::Other(text.into()), |k| Kind::Known(k))
    }
    fn text(&self) -> &str {
        match self {
            Kind::Known(text) => text,
            Kind::Other(text) => text,
        }
    }
}

/// What is looked at of every line.
#[derive(Deserialize)]
struct Head<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(rename = "parentId", borrow, default)]
    parent: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    timestamp: Option<Lenient<'a>>,
    #[serde(borrow, default)]
    message: Option<MessageHead<'a>>,
}

/// A text, or something that another program put in its place.
#[derive(Deserialize)]
#[serde(untagged)]
enum Lenient<'a> {
    Text(#[serde(borrow)] Cow<'a, str>),
    #[allow(dead_code)]
    Else(IgnoredAny),
}

impl Lenient<'_> {
    fn text(&self) -> &str {
        match self {
            Lenient::Text(text) => text,
            Lenient::Else(_) => "",
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum MessageHead<'a> {
    Object {
        #[serde(borrow)]
        role: Cow<'a, str>,
    },
    #[allow(dead_code)]
    Else(IgnoredAny),
}

impl Entry {
    /// `None`: no entry of a session.
    pub fn parse(line: &str) -> Option<Entry> {
        let head: Head<'_> = serde_json::from_str(line).ok()?;
        if head.kind.is_empty() || head.id.is_empty() || head.kind == "session" {
            return None;
        }
        let role = match &head.message {
            Some(MessageHead::Object { role }) if head.kind == "message" => Some(Kind::of(role)),
            _ => None,
        };
        Some(Entry(Arc::new(Line {
            kind: Kind::of(&head.kind),
            id: (*head.id).into(),
            parent: head.parent.as_deref().map(Into::into),
            timestamp: head.timestamp.as_ref().map(Lenient::text).unwrap_or_default().into(),
            role,
            text: line.into(),
            message: OnceLock::new(),
        })))
    }

    /// An object with `type` and `id`.
    pub fn of(value: &Value) -> Option<Entry> {
        // A `Value` always serialises, and never to text with a line break.
        Entry::parse(&value.to_string())
    }

    /// As it is in the file.
    pub fn text(&self) -> &str {
        &self.0.text
    }
    pub fn kind(&self) -> &str {
        self.0.kind.text()
    }
    pub fn id(&self) -> &str {
        &self.0.id
    }
    pub(super) fn shared_id(&self) -> Arc<str> {
        self.0.id.clone()
    }
    pub fn parent_id(&self) -> Option<&str> {
        self.0.parent.as_deref()
    }
    /// ISO 8601; empty when there is none.
    pub fn timestamp(&self) -> &str {
        &self.0.timestamp
    }
    /// Of a `message`.
    pub fn role(&self) -> Option<&str> {
        self.0.role.as_ref().map(Kind::text)
    }

    /// All of it, made anew each time.
    pub fn raw(&self) -> Value {
        serde_json::from_str(self.text()).unwrap_or_default()
    }
    /// One field, at the cost of all of them.
    pub fn get(&self, key: &str) -> Option<Value> {
        match self.raw() {
            Value::Object(mut fields) => fields.remove(key),
            _ => None,
        }
    }
    /// The same, when it is a text.
    pub fn str(&self, key: &str) -> Option<String> {
        match self.get(key) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        }
    }
    pub fn is_true(&self, key: &str) -> bool {
        self.get(key) == Some(Value::Bool(true))
    }

    /// Of a `message` entry.
    pub fn message(&self) -> Option<&Message> {
        self.role()?;
        self.0.message.get_or_init(|| self.read_message().map(Arc::new)).as_deref()
    }

    fn read_message(&self) -> Option<Message> {
        #[derive(Deserialize)]
        struct Of {
            message: Message,
        }
        serde_json::from_str::<Of>(self.text()).ok().map(|of| of.message)
    }

    /// The same line under another parent.
    pub(super) fn under(&self, parent: Option<&str>) -> Entry {
        let mut raw = self.raw();
        raw["parentId"] = parent.map_or(Value::Null, Value::from);
        Entry::of(&raw).unwrap_or_else(|| self.clone())
    }
}

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(self.text()).map_err(serde::ser::Error::custom)?;
        raw.serialize(to)
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_line_says_what_it_is_and_stays_as_it_was() {
        let line = r#"{"type":"message","id":"a","parentId":null,"timestamp":"t","message":{"role":"user","content":"hi","timestamp":1},"extra":[1]}"#;
        let entry = Entry::parse(line).unwrap();
        assert_eq!(
            (entry.kind(), entry.id(), entry.parent_id(), entry.role()),
            ("message", "a", None, Some("user"))
        );
        assert_eq!(serde_json::to_string(&entry).unwrap(), line);
        assert_eq!(entry.get("extra"), Some(json!([1])));
        assert!(matches!(entry.message(), Some(Message::User(_))));
    }

    #[test]
    fn odd_values_in_odd_places_are_no_reason_to_lose_a_line() {
        let odd = r#"{"type":"custom","id":"a","timestamp":7,"message":[1],"parentId":"p\"q"}"#;
        let entry = Entry::parse(odd).unwrap();
        assert_eq!((entry.timestamp(), entry.parent_id()), ("", Some("p\"q")));
        for none in [
            "",
            "[]",
            "{}",
            r#"{"type":"x"}"#,
            r#"{"type":"session","id":"a"}"#,
            r#"{"type":"x","id":""}"#,
            "{\"type\":\"x\",\"id\":\"a\"} tail",
        ] {
            assert!(Entry::parse(none).is_none(), "{none}");
        }
    }
}

//! Messages that were promised a run: written when they were admitted, named by the message that
//! a run takes. What is not named by any is pending.

use super::{Entry, Session};
use crate::{
    hooks::StreamingBehavior,
    message::{CustomMessage, Extra, MessageContent, now_ms},
};
use serde_json::{Value, json};
use std::collections::HashSet;

/// The key of both notes.
pub(crate) const RECONCILIATION: &str = "protectedReconciliation";

/// A message that no run has taken.
#[derive(Clone, Debug)]
pub struct Pending {
    pub entry_id: String,
    pub place: StreamingBehavior,
    custom_type: String,
    content: MessageContent,
    details: Option<Value>,
    timestamp: Value,
    stage_admission_key: Option<Value>,
    display: bool,
}

impl Session {
    /// On this branch, in their order.
    pub fn pending_deliveries(&self) -> Vec<Pending> {
        let path = self.path();
        let note = |e: &'_ Entry, key: &str| Some(e.get(RECONCILIATION)?.get(key)?.clone());
        let mut settled: HashSet<String> = HashSet::new();
        let of_it = |e: &&&Entry| e.kind() == "custom_message" || e.kind() == "context_edit";
        for entry in path.iter().filter(of_it) {
            if let Some(Value::String(id)) = note(entry, "consumes") {
                settled.insert(id);
            }
            if entry.kind() == "context_edit"
                && entry.get("replacement") == Some(Value::Null)
                && let Some(target) = entry.str("targetId")
            {
                settled.insert(target);
            }
        }
        let pending = path.into_iter().filter(|e| e.kind() == "custom_message" && !settled.contains(e.id()));
        pending
            .filter_map(|e| {
                let place = serde_json::from_value(note(e, "delivery")?).ok()?;
                Some(Pending {
                    entry_id: e.id().to_owned(),
                    place,
                    custom_type: e.str("customType").unwrap_or_default(),
                    content: serde_json::from_value(e.get("content")?).ok()?,
                    details: e.get("details"),
                    timestamp: e.get("timestamp").unwrap_or_default(),
                    stage_admission_key: e.get("stageAdmissionKey"),
                    display: note(e, "display") == Some(Value::Bool(true)),
                })
            })
            .collect()
    }
}

impl Pending {
    /// As extensions are told.
    pub fn told(&self) -> Value {
        let mut told = json!({
            "entryId": self.entry_id,
            "customType": self.custom_type,
            "content": self.content,
            "timestamp": self.timestamp,
            "delivery": self.place,
        });
        if let Some(details) = &self.details {
            told["details"] = details.clone();
        }
        if let Some(key) = &self.stage_admission_key {
            told["stageAdmissionKey"] = key.clone();
        }
        told
    }

    /// As a run takes it: it names what it settles.
    pub fn message(&self) -> CustomMessage {
        let mut extra = Extra::new();
        if let Some(key) = &self.stage_admission_key {
            extra.insert("stageAdmissionKey".into(), key.clone());
        }
        extra.insert(RECONCILIATION.into(), json!({"consumes": self.entry_id}));
        CustomMessage {
            custom_type: self.custom_type.clone(),
            content: self.content.clone(),
            display: self.display,
            details: self.details.clone(),
            timestamp: now_ms(),
            extra,
        }
    }
}

//! Older formats (events.md C.7). Version 1 had a list without ids, version 2 called an
//! extension's message a hook's.

use super::VERSION;
use serde_json::{Value, json};
use std::collections::HashSet;

/// `entries`: all lines after the header, as they were.
pub(super) fn migrate(header: &mut Value, entries: &mut [Value], version: u64) {
    if version < 2 {
        give_ids(entries);
    }
    if version < 3 {
        for entry in entries.iter_mut() {
            if let Some(role) = entry.get_mut("message").and_then(|m| m.get_mut("role"))
                && role == "hookMessage"
            {
                *role = "custom".into();
            }
        }
    }
    header["version"] = VERSION.into();
}

fn give_ids(entries: &mut [Value]) {
    let mut taken = HashSet::new();
    let mut ids: Vec<String> = Vec::with_capacity(entries.len());
    for entry in entries.iter() {
        // One that has an id already was written by a newer program; it is kept.
        let own = entry.get("id").and_then(Value::as_str).filter(|id| !id.is_empty() && !taken.contains(*id));
        let id = own.map_or_else(|| super::random_id(|id| taken.contains(id)), str::to_owned);
        taken.insert(id.clone());
        ids.push(id);
    }
    let mut above: Option<&String> = None;
    for (entry, id) in entries.iter_mut().zip(&ids) {
        let Some(fields) = entry.as_object_mut() else { continue };
        fields.insert("id".into(), id.clone().into());
        if !fields.contains_key("parentId") {
            fields.insert("parentId".into(), above.map_or(Value::Null, |id| json!(id)));
        }
        above = Some(id);
        // It counted the header as the first.
        if let Some(at) = fields.remove("firstKeptEntryIndex").as_ref().and_then(Value::as_u64) {
            let kept = usize::try_from(at).ok().and_then(|at| ids.get(at.checked_sub(1)?));
            fields.insert("firstKeptEntryId".into(), kept.map_or(Value::Null, |id| json!(id)));
        }
    }
}

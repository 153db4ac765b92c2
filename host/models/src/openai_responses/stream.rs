//! Events of a response, folded into a draft. The items at the end are whole and correct what the
//! deltas did not say.

use super::{JOINT, TEXT_ITEM};
use crate::{
    draft::Draft,
    exchange::{Ending, Flow, Reader},
    fault::Reported,
};
use atomic_agent::message::StopReason;
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct Events {
    /// Content index of each item by its index on the wire.
    items: BTreeMap<u64, Item>,
    ending: Option<Ending>,
}

#[derive(Clone, Copy)]
struct Item {
    index: usize,
    kind: Kind,
    /// Parts of the summary so far.
    parts: usize,
    /// Something of it came in deltas.
    told: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Reasoning,
    Message,
    Call,
}

impl Reader for Events {
    fn read(&mut self, event: &Value, draft: &mut Draft) -> Flow {
        let piece = event.get("delta").and_then(Value::as_str).unwrap_or("");
        match event.get("type").and_then(Value::as_str).unwrap_or("") {
            "response.output_item.added" => self.start(event, draft),
            "response.reasoning_summary_part.added" => {
                if let Some(item) = self.of(event, Kind::Reasoning) {
                    item.parts += 1;
                    if item.parts > 1 {
                        draft.append(item.index, "\n\n");
                    }
                }
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.more(event, Kind::Reasoning, piece, draft);
            }
            "response.output_text.delta" | "response.refusal.delta" => {
                self.more(event, Kind::Message, piece, draft);
            }
            "response.function_call_arguments.delta" => self.more(event, Kind::Call, piece, draft),
            "response.output_item.done" => self.finish(event, draft),
            "response.completed" | "response.incomplete" => {
                let response = event.get("response").unwrap_or(&Value::Null);
                read_usage(response.get("usage"), draft);
                draft.close_all();
                self.ending = Some(ending(response));
                return Flow::End;
            }
            "response.failed" => {
                let response = event.get("response").unwrap_or(&Value::Null);
                read_usage(response.get("usage"), draft);
                return Flow::Failed(Reported::of(response));
            }
            "error" => return Flow::Failed(Reported::of(event)),
            // What is told besides, and what later versions add.
            _ => {}
        }
        Flow::More
    }

    fn finished(&self) -> Option<Ending> {
        self.ending.clone()
    }
}

fn number(event: &Value) -> Option<u64> {
    event.get("output_index").and_then(Value::as_u64)
}

impl Events {
    fn of(&mut self, event: &Value, kind: Kind) -> Option<&mut Item> {
        self.items.get_mut(&number(event)?).filter(|i| i.kind == kind)
    }

    fn more(&mut self, event: &Value, kind: Kind, piece: &str, draft: &mut Draft) {
        if let Some(item) = self.of(event, kind).filter(|_| !piece.is_empty()) {
            item.told = true;
            draft.append(item.index, piece);
        }
    }

    fn start(&mut self, event: &Value, draft: &mut Draft) {
        let Some(wire) = number(event) else { return };
        let item = event.get("item").unwrap_or(&Value::Null);
        let text = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or("");
        let (kind, index) = match text("type") {
            "reasoning" => (Kind::Reasoning, draft.open_thinking()),
            "message" => (Kind::Message, draft.open_text()),
            "function_call" => {
                let id = match text("id") {
                    "" => text("call_id").to_owned(),
                    item => format!("{}{JOINT}{item}", text("call_id")),
                };
                let id = if text("call_id").is_empty() { String::new() } else { id };
                (Kind::Call, draft.open_tool(&id, text("name")))
            }
            // Items of the server's own tools and of later versions.
            _ => return,
        };
        // A second start of the same index leaves the first one behind.
        if let Some(old) = self.items.insert(wire, Item { index, kind, parts: 0, told: false }) {
            draft.close(old.index);
        }
    }

    fn finish(&mut self, event: &Value, draft: &mut Draft) {
        let known = number(event).is_some_and(|n| self.items.contains_key(&n));
        if !known {
            self.start(event, draft);
        }
        let Some(Item { index, kind, told, .. }) = number(event).and_then(|n| self.items.get(&n)).copied()
        else {
            return;
        };
        let item = event.get("item").unwrap_or(&Value::Null);
        match kind {
            Kind::Reasoning => {
                if !told {
                    draft.append(index, &summary(item));
                }
                if item.is_object() {
                    draft.sign(index, &item.to_string());
                }
            }
            Kind::Message => {
                if !told {
                    draft.append(index, &said(item));
                }
                if let Some(id) = item.get("id").filter(|id| id.is_string()) {
                    draft.mark(index, TEXT_ITEM, id.clone());
                }
            }
            Kind::Call => {
                if let Some(arguments) = item.get("arguments").and_then(Value::as_str).filter(|_| !told) {
                    draft.append(index, arguments);
                }
            }
        }
        draft.close(index);
    }
}

fn summary(item: &Value) -> String {
    let parts = item.get("summary").and_then(Value::as_array).into_iter().flatten();
    parts.filter_map(|p| p.get("text").and_then(Value::as_str)).collect::<Vec<_>>().join("\n\n")
}

fn said(item: &Value) -> String {
    let parts = item.get("content").and_then(Value::as_array).into_iter().flatten();
    let text =
        |p: &Value| p.get("text").or_else(|| p.get("refusal")).and_then(Value::as_str).map(str::to_owned);
    parts.filter_map(text).collect()
}

fn ending(response: &Value) -> Ending {
    let why = response.pointer("/incomplete_details/reason").and_then(Value::as_str);
    match (response.get("status").and_then(Value::as_str), why) {
        (_, Some("content_filter")) => Ending::refused("the answer was stopped by a content filter"),
        (Some("incomplete"), _) | (_, Some(_)) => Ending::Complete(StopReason::Length),
        (Some("cancelled"), _) => Ending::refused("the answer was cancelled by the server"),
        // A status of a later version still ends the answer.
        _ => Ending::Complete(StopReason::Stop),
    }
}

fn read_usage(from: Option<&Value>, draft: &mut Draft) {
    let Some(from) = from.filter(|u| u.is_object()) else { return };
    let number = |pointer: &str| from.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
    let input = number("/input_tokens");
    let cached = number("/input_tokens_details/cached_tokens").min(input);
    let written = number("/input_tokens_details/cache_write_tokens").min(input - cached);
    let usage = draft.usage();
    usage.input = input - cached - written;
    usage.cache_read = cached;
    usage.cache_write = written;
    usage.output = number("/output_tokens");
    usage.total_tokens = number("/total_tokens");
}

//! Chunks of `chat.completion.chunk`, folded into a draft.

use crate::{
    draft::Draft,
    exchange::{Ending, Flow, Reader},
    fault::Reported,
};
use atomic_agent::message::StopReason;
use serde_json::Value;
use std::collections::BTreeMap;

/// Where servers stream their reasoning; the first that is there counts, some send two.
pub(super) const REASONING: [&str; 3] = ["reasoning_content", "reasoning", "reasoning_text"];

#[derive(Default)]
pub(super) struct Chunks {
    text: Option<usize>,
    thinking: Option<usize>,
    /// Content index of each call by its index on the wire.
    calls: BTreeMap<u64, usize>,
    last_call: Option<u64>,
    ending: Option<Ending>,
}

impl Reader for Chunks {
    fn read(&mut self, chunk: &Value, draft: &mut Draft) -> Flow {
        if chunk.get("error").is_some_and(|e| !e.is_null()) {
            return Flow::Failed(Reported::of(chunk));
        }
        if let Some(usage) = chunk.get("usage").filter(|u| u.is_object()) {
            read_usage(usage, draft);
        }
        let Some(choice) = chunk.get("choices").and_then(|c| c.get(0)) else {
            return Flow::More;
        };
        // Some servers put it here.
        if let Some(usage) = choice.get("usage").filter(|u| u.is_object()) {
            read_usage(usage, draft);
        }
        if let Some(delta) = choice.get("delta").filter(|_| self.ending.is_none()) {
            self.delta(delta, draft);
        }
        if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str).filter(|r| !r.is_empty()) {
            draft.close_all();
            self.ending.get_or_insert_with(|| ending(reason));
        }
        Flow::More
    }

    fn finished(&self) -> Option<Ending> {
        self.ending.clone()
    }
}

impl Chunks {
    fn delta(&mut self, delta: &Value, draft: &mut Draft) {
        let piece = |name: &str| delta.get(name).and_then(Value::as_str).filter(|p| !p.is_empty());
        if let Some((field, piece)) = REASONING.iter().find_map(|f| piece(f).map(|p| (*f, p))) {
            self.end_text(draft);
            let index = match self.thinking {
                Some(index) => index,
                None => {
                    let index = draft.open_thinking();
                    draft.sign(index, field);
                    index
                }
            };
            self.thinking = Some(index);
            draft.append(index, piece);
        }
        for piece in [piece("content"), piece("refusal")].into_iter().flatten() {
            self.end_thinking(draft);
            let index = *self.text.get_or_insert_with(|| draft.open_text());
            draft.append(index, piece);
        }
        for call in delta.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
            self.end_thinking(draft);
            self.end_text(draft);
            self.call(call, draft);
        }
    }

    fn call(&mut self, call: &Value, draft: &mut Draft) {
        let id = call.get("id").and_then(Value::as_str).unwrap_or("");
        let function = call.get("function").unwrap_or(&Value::Null);
        let name = function.get("name").and_then(Value::as_str).unwrap_or("");
        // Servers that leave the index out send whole calls, each with a name.
        let wire = match (call.get("index").and_then(Value::as_u64), self.last_call) {
            (Some(index), _) => index,
            (None, Some(last)) if name.is_empty() => last,
            (None, Some(last)) => last.saturating_add(1),
            (None, None) => 0,
        };
        self.last_call = Some(wire);
        let index = match self.calls.get(&wire) {
            Some(index) => {
                draft.name_tool(*index, name);
                *index
            }
            None => {
                let index = draft.open_tool(id, name);
                self.calls.insert(wire, index);
                index
            }
        };
        match function.get("arguments") {
            Some(Value::String(piece)) => draft.append(index, piece),
            Some(Value::Object(whole)) => draft.preset_arguments(index, whole),
            _ => {}
        }
    }

    fn end_text(&mut self, draft: &mut Draft) {
        if let Some(index) = self.text.take() {
            draft.close(index);
        }
    }

    fn end_thinking(&mut self, draft: &mut Draft) {
        if let Some(index) = self.thinking.take() {
            draft.close(index);
        }
    }
}

fn ending(reason: &str) -> Ending {
    Ending::Complete(match reason {
        "length" => StopReason::Length,
        "tool_calls" | "function_call" => StopReason::ToolUse,
        "content_filter" => return Ending::refused("the answer was stopped by a content filter"),
        "error" => return Ending::garbled("the answer ended with an error".to_owned()),
        // A reason of a later version still ends the answer.
        _ => StopReason::Stop,
    })
}

fn read_usage(from: &Value, draft: &mut Draft) {
    let number = |pointer: &str| from.pointer(pointer).and_then(Value::as_u64);
    let prompt = number("/prompt_tokens").unwrap_or(0);
    let cached =
        number("/prompt_tokens_details/cached_tokens").or_else(|| number("/prompt_cache_hit_tokens"));
    let cached = cached.unwrap_or(0).min(prompt);
    let written = number("/prompt_tokens_details/cache_write_tokens").unwrap_or(0).min(prompt - cached);
    let usage = draft.usage();
    usage.input = prompt - cached - written;
    usage.cache_read = cached;
    usage.cache_write = written;
    usage.output = number("/completion_tokens").unwrap_or(0);
    usage.total_tokens = number("/total_tokens").unwrap_or(0);
}

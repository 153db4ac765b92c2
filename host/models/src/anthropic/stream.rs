//! Events of the messages stream, folded into a draft.

use crate::{
    draft::Draft,
    exchange::{Ending, Flow, Reader},
    fault::Reported,
};
use atomic_agent::message::StopReason;
use serde_json::Value;
use std::collections::BTreeMap;

/// Key of a thinking block whose signature holds encrypted thinking.
pub(super) const REDACTED: &str = "redacted";

#[derive(Default)]
pub(super) struct Events {
    /// Content index of each block by its index on the wire.
    blocks: BTreeMap<u64, usize>,
    ending: Option<Ending>,
}

impl Reader for Events {
    fn read(&mut self, event: &Value, draft: &mut Draft) -> Flow {
        match event.get("type").and_then(Value::as_str).unwrap_or("") {
            "message_start" => read_usage(event.pointer("/message/usage"), draft),
            "content_block_start" => self.start(event, draft),
            "content_block_delta" => self.delta(event, draft),
            "content_block_stop" => {
                if let Some(index) = self.block(event) {
                    draft.close(index);
                }
            }
            "message_delta" => {
                read_usage(event.get("usage"), draft);
                let delta = event.get("delta").unwrap_or(&Value::Null);
                if let Some(reason) = delta.get("stop_reason").and_then(Value::as_str) {
                    self.ending = Some(ending(reason));
                }
            }
            "message_stop" => return Flow::End,
            "error" => return Flow::Failed(Reported::of(event)),
            // `ping`, and what later versions add.
            _ => {}
        }
        Flow::More
    }

    fn finished(&self) -> Option<Ending> {
        self.ending.clone()
    }
}

impl Events {
    fn block(&self, event: &Value) -> Option<usize> {
        event.get("index").and_then(Value::as_u64).and_then(|wire| self.blocks.get(&wire)).copied()
    }

    fn start(&mut self, event: &Value, draft: &mut Draft) {
        let Some(wire) = event.get("index").and_then(Value::as_u64) else { return };
        let block = event.get("content_block").unwrap_or(&Value::Null);
        let text = |name: &str| block.get(name).and_then(Value::as_str).unwrap_or("");
        let index = match text("type") {
            "text" => {
                let index = draft.open_text();
                draft.append(index, text("text"));
                index
            }
            "thinking" => {
                let index = draft.open_thinking();
                draft.append(index, text("thinking"));
                if !text("signature").is_empty() {
                    draft.sign(index, text("signature"));
                }
                index
            }
            "redacted_thinking" => {
                let index = draft.open_thinking();
                draft.sign(index, text("data"));
                draft.mark(index, REDACTED, Value::Bool(true));
                index
            }
            "tool_use" => {
                let index = draft.open_tool(text("id"), text("name"));
                if let Some(Value::Object(input)) = block.get("input") {
                    draft.preset_arguments(index, input);
                }
                index
            }
            // Blocks of server tools and of later versions.
            _ => return,
        };
        // A second start of the same index leaves the first one behind.
        if let Some(old) = self.blocks.insert(wire, index) {
            draft.close(old);
        }
    }

    fn delta(&mut self, event: &Value, draft: &mut Draft) {
        let Some(index) = self.block(event) else { return };
        let delta = event.get("delta").unwrap_or(&Value::Null);
        let piece = |name: &str| delta.get(name).and_then(Value::as_str).unwrap_or("");
        match piece("type") {
            "text_delta" => draft.append(index, piece("text")),
            "thinking_delta" => draft.append(index, piece("thinking")),
            "input_json_delta" => draft.append(index, piece("partial_json")),
            "signature_delta" => draft.sign(index, piece("signature")),
            _ => {}
        }
    }
}

fn ending(reason: &str) -> Ending {
    Ending::Complete(match reason {
        "max_tokens" | "model_context_window_exceeded" => StopReason::Length,
        "tool_use" => StopReason::ToolUse,
        "refusal" => return Ending::refused("the model declined to answer"),
        // A reason of a later version still ends the answer.
        _ => StopReason::Stop,
    })
}

/// Numbers that are not there keep what an earlier event said.
fn read_usage(from: Option<&Value>, draft: &mut Draft) {
    let number = |name: &str| from.and_then(|u| u.get(name)).and_then(Value::as_u64);
    let usage = draft.usage();
    for (slot, name) in [
        (&mut usage.input, "input_tokens"),
        (&mut usage.output, "output_tokens"),
        (&mut usage.cache_read, "cache_read_input_tokens"),
        (&mut usage.cache_write, "cache_creation_input_tokens"),
    ] {
        if let Some(n) = number(name) {
            *slot = n;
        }
    }
}

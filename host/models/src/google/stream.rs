//! Chunks of `GenerateContentResponse`, folded into a draft. Calls come whole.

use super::{CALL_SIGNATURE, TEXT_SIGNATURE};
use crate::{
    draft::Draft,
    exchange::{Ending, Flow, Reader},
    fault::Reported,
};
use atomic_agent::message::StopReason;
use serde_json::Value;

#[derive(Default)]
pub(super) struct Chunks {
    open: Option<Open>,
    ending: Option<Ending>,
}

#[derive(Clone, Copy)]
struct Open {
    index: usize,
    thought: bool,
}

impl Reader for Chunks {
    fn read(&mut self, chunk: &Value, draft: &mut Draft) -> Flow {
        if chunk.get("error").is_some_and(|e| !e.is_null()) {
            return Flow::Failed(Reported::of(chunk));
        }
        read_usage(chunk.get("usageMetadata"), draft);
        if let Some(reason) = chunk.pointer("/promptFeedback/blockReason").and_then(Value::as_str) {
            self.ending = Some(Ending::refused(format!("the prompt was blocked ({reason})")));
            return Flow::More;
        }
        let Some(candidate) = chunk.get("candidates").and_then(|c| c.get(0)) else { return Flow::More };
        let parts = candidate.pointer("/content/parts").and_then(Value::as_array);
        if self.ending.is_none() {
            for part in parts.into_iter().flatten() {
                self.part(part, draft);
            }
        }
        if let Some(reason) = candidate.get("finishReason").and_then(Value::as_str).filter(|r| !r.is_empty())
        {
            draft.close_all();
            self.ending.get_or_insert_with(|| ending(reason, candidate));
        }
        Flow::More
    }

    fn finished(&self) -> Option<Ending> {
        self.ending.clone()
    }
}

impl Chunks {
    fn part(&mut self, part: &Value, draft: &mut Draft) {
        let signature = part.get("thoughtSignature").and_then(Value::as_str).filter(|s| !s.is_empty());
        if let Some(call) = part.get("functionCall").filter(|c| c.is_object()) {
            self.end(draft);
            let text = |name: &str| call.get(name).and_then(Value::as_str).unwrap_or("");
            let index = draft.open_tool(text("id"), text("name"));
            match call.get("args") {
                Some(Value::Object(_)) | None | Some(Value::Null) => {
                    let args = call.get("args").filter(|a| a.is_object());
                    draft.append(index, &args.map(Value::to_string).unwrap_or_default());
                }
                Some(other) => draft.append(index, &other.to_string()),
            }
            if let Some(signature) = signature {
                draft.mark(index, CALL_SIGNATURE, signature.into());
            }
            draft.close(index);
            return;
        }
        let Some(piece) = part.get("text").and_then(Value::as_str) else { return };
        let thought = part.get("thought").and_then(Value::as_bool).unwrap_or(false);
        // A signature may come in a part of its own, after the text.
        if piece.is_empty() && signature.is_none() {
            return;
        }
        let open = match self.open {
            Some(open) if open.thought == thought => open,
            Some(open) if piece.is_empty() => open,
            _ if piece.is_empty() => return,
            _ => {
                self.end(draft);
                let index = if thought { draft.open_thinking() } else { draft.open_text() };
                Open { index, thought }
            }
        };
        self.open = Some(open);
        draft.append(open.index, piece);
        match signature {
            Some(signature) if open.thought => draft.sign(open.index, signature),
            Some(signature) => draft.mark(open.index, TEXT_SIGNATURE, signature.into()),
            None => {}
        }
    }

    fn end(&mut self, draft: &mut Draft) {
        if let Some(open) = self.open.take() {
            draft.close(open.index);
        }
    }
}

fn ending(reason: &str, candidate: &Value) -> Ending {
    let said = candidate.get("finishMessage").and_then(Value::as_str);
    let said = said.map(|m| format!(": {m}")).unwrap_or_default();
    match reason {
        "MAX_TOKENS" => Ending::Complete(StopReason::Length),
        // The model wrote a call that cannot be read: asking again helps.
        "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" => {
            Ending::garbled(format!("the model's call cannot be read ({reason}){said}"))
        }
        "SAFETY" | "RECITATION" | "LANGUAGE" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII"
        | "IMAGE_SAFETY" => Ending::refused(format!("the answer was stopped by the server ({reason}){said}")),
        // A reason of a later version still ends the answer.
        _ => Ending::Complete(StopReason::Stop),
    }
}

/// Each chunk has the numbers so far.
fn read_usage(from: Option<&Value>, draft: &mut Draft) {
    let Some(from) = from.filter(|u| u.is_object()) else { return };
    let number = |name: &str| from.get(name).and_then(Value::as_u64).unwrap_or(0);
    let prompt = number("promptTokenCount").saturating_add(number("toolUsePromptTokenCount"));
    let cached = number("cachedContentTokenCount").min(prompt);
    let usage = draft.usage();
    usage.input = prompt - cached;
    usage.cache_read = cached;
    usage.output = number("candidatesTokenCount").saturating_add(number("thoughtsTokenCount"));
    usage.total_tokens = number("totalTokenCount");
}

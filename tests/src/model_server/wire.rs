//! Answers as bytes of either format, and what of a request tests look at.

mod newer;

use super::{Answer, Format, answer::Part};
use serde_json::{Value, json};

/// Each one is sent as its own chunk. With a cut or a hang the end is left out.
pub(super) fn frames(format: Format, answer: &Answer, turn: usize) -> Vec<Vec<u8>> {
    if let Some(bytes) = &answer.garbage {
        return vec![bytes.clone()];
    }
    let mut events = match format {
        Format::OpenAi => open_ai(answer, turn),
        Format::Anthropic => anthropic(answer, turn),
        Format::Responses => newer::responses(answer, turn),
        Format::Google => newer::google(answer, turn),
    };
    if answer.cut || answer.hang {
        let ending = match format {
            Format::OpenAi => 3,
            Format::Anthropic => 2,
            Format::Responses | Format::Google => 1,
        };
        events.truncate(events.len() - ending);
    }
    events.into_iter().map(String::into_bytes).collect()
}

fn call_id(given: &Option<String>, turn: usize, index: usize) -> String {
    given.clone().unwrap_or_else(|| format!("call_{turn}_{index}"))
}

/// Several pieces, cut between characters.
fn pieces(text: &str) -> Vec<String> {
    text.chars().collect::<Vec<_>>().chunks(8).map(|piece| piece.iter().collect()).collect()
}

fn has_calls(answer: &Answer) -> bool {
    answer.parts.iter().any(|p| matches!(p, Part::Call { .. }))
}

fn open_ai(answer: &Answer, turn: usize) -> Vec<String> {
    let chunk = |delta: Value, finish: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        let event =
            json!({"id": format!("chatcmpl-{turn}"), "object": "chat.completion.chunk", "choices": [choice]});
        format!("data: {event}\n\n")
    };
    let mut out = vec![chunk(json!({"role": "assistant", "content": ""}), Value::Null)];
    let mut calls = 0;
    for (index, part) in answer.parts.iter().enumerate() {
        match part {
            Part::Text(text) => {
                out.extend(pieces(text).iter().map(|p| chunk(json!({"content": p}), Value::Null)));
            }
            Part::Thinking(text) => {
                out.extend(pieces(text).iter().map(|p| chunk(json!({"reasoning_content": p}), Value::Null)));
            }
            Part::Call { id, name, arguments } => {
                let head = json!({"index": calls, "id": call_id(id, turn, index), "type": "function", "function": {"name": name, "arguments": ""}});
                out.push(chunk(json!({"tool_calls": [head]}), Value::Null));
                for piece in pieces(arguments) {
                    let more = json!({"index": calls, "function": {"arguments": piece}});
                    out.push(chunk(json!({"tool_calls": [more]}), Value::Null));
                }
                calls += 1;
            }
        }
    }
    let fits = if has_calls(answer) { "tool_calls" } else { "stop" };
    out.push(chunk(json!({}), json!(answer.stop.as_deref().unwrap_or(fits))));
    let prompt = answer.prompt_tokens.unwrap_or(100);
    let usage = json!({"prompt_tokens": prompt, "completion_tokens": 20, "total_tokens": prompt + 20, "prompt_tokens_details": {"cached_tokens": 40}});
    out.push(format!("data: {}\n\n", json!({"choices": [], "usage": usage})));
    out.push("data: [DONE]\n\n".to_owned());
    out
}

fn anthropic(answer: &Answer, turn: usize) -> Vec<String> {
    let event = |value: Value| {
        let kind = value["type"].as_str().unwrap_or_default().to_owned();
        format!("event: {kind}\ndata: {value}\n\n")
    };
    let prompt = answer.prompt_tokens.unwrap_or(100) - 40;
    let start = json!({"type": "message_start", "message": {"id": format!("msg_{turn}"), "role": "assistant",
        "usage": {"input_tokens": prompt, "output_tokens": 1, "cache_read_input_tokens": 40, "cache_creation_input_tokens": 0}}});
    let mut out = vec![event(start), event(json!({"type": "ping"}))];
    for (index, part) in answer.parts.iter().enumerate() {
        let (block, deltas): (Value, Vec<Value>) = match part {
            Part::Text(text) => (
                json!({"type": "text", "text": ""}),
                pieces(text).iter().map(|p| json!({"type": "text_delta", "text": p})).collect(),
            ),
            Part::Thinking(text) => (
                json!({"type": "thinking", "thinking": ""}),
                pieces(text)
                    .iter()
                    .map(|p| json!({"type": "thinking_delta", "thinking": p}))
                    .chain([
                        json!({"type": "signature_delta", "signature": format!("signature-{turn}-{index}")}),
                    ])
                    .collect(),
            ),
            Part::Call { id, name, arguments } => (
                json!({"type": "tool_use", "id": call_id(id, turn, index), "name": name, "input": {}}),
                pieces(arguments)
                    .iter()
                    .map(|p| json!({"type": "input_json_delta", "partial_json": p}))
                    .collect(),
            ),
        };
        out.push(event(json!({"type": "content_block_start", "index": index, "content_block": block})));
        out.extend(
            deltas
                .into_iter()
                .map(|d| event(json!({"type": "content_block_delta", "index": index, "delta": d}))),
        );
        out.push(event(json!({"type": "content_block_stop", "index": index})));
    }
    let fits = if has_calls(answer) { "tool_use" } else { "end_turn" };
    let reason = answer.stop.as_deref().unwrap_or(fits);
    out.push(event(
        json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 20}}),
    ));
    out.push(event(json!({"type": "message_stop"})));
    out
}

pub(super) fn error_body(format: Format, message: &str) -> String {
    match format {
        Format::OpenAi | Format::Responses => {
            json!({"error": {"message": message, "type": "invalid_request_error"}})
        }
        Format::Google => json!({"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}),
        Format::Anthropic => {
            json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}})
        }
    }
    .to_string()
}

/// The text of a content that is a string or a list of blocks.
pub(super) fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts = blocks.iter().filter_map(|b| b["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

pub(super) fn last_results(body: &Value) -> Vec<String> {
    if let Some(items) = body["input"].as_array() {
        let last = items.iter().rev().take_while(|i| i["type"] == "function_call_output");
        let mut out: Vec<String> = last.map(|i| text_of(&i["output"])).collect();
        out.reverse();
        return out;
    }
    if let Some(contents) = body["contents"].as_array() {
        let answered = |c: &&Value| c["parts"][0]["functionResponse"].is_object();
        let last = contents.iter().rev().find(answered);
        let parts = last.and_then(|c| c["parts"].as_array()).into_iter().flatten();
        let said = |p: &Value| {
            let response = &p["functionResponse"]["response"];
            response["output"].as_str().or(response["error"].as_str()).unwrap_or_default().to_owned()
        };
        return parts.map(said).collect();
    }
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    let mut out = Vec::new();
    for message in messages.iter().rev() {
        if message["role"] == "tool" {
            out.push(text_of(&message["content"]));
            continue;
        }
        if let (true, Some(blocks)) = (out.is_empty(), message["content"].as_array()) {
            let results = blocks.iter().filter(|b| b["type"] == "tool_result");
            return results.map(|b| text_of(&b["content"])).collect();
        }
        break;
    }
    out.reverse();
    out
}

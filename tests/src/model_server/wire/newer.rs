//! Answers as bytes of the newer formats.

use super::{call_id, pieces};
use crate::model_server::{Answer, answer::Part};
use serde_json::{Value, json};

pub(super) fn responses(answer: &Answer, turn: usize) -> Vec<String> {
    let mut number = 0;
    let mut event = |mut value: Value| {
        value["sequence_number"] = json!(number);
        number += 1;
        let kind = value["type"].as_str().unwrap_or_default().to_owned();
        format!("event: {kind}\ndata: {value}\n\n")
    };
    let id = format!("resp_{turn}");
    let mut out =
        vec![event(json!({"type": "response.created", "response": {"id": id, "status": "in_progress"}}))];
    for (index, part) in answer.parts.iter().enumerate() {
        let (started, deltas, done): (Value, Vec<Value>, Value) = match part {
            Part::Text(text) => {
                let item = format!("msg_{turn}_{index}");
                (
                    json!({"type": "message", "id": item, "role": "assistant", "content": []}),
                    pieces(text)
                        .iter()
                        .map(|p| json!({"type": "response.output_text.delta", "delta": p}))
                        .collect(),
                    json!({"type": "message", "id": item, "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": text, "annotations": []}]}),
                )
            }
            Part::Thinking(text) => {
                let item = format!("rs_{turn}_{index}");
                let delta = |p: &String| json!({"type": "response.reasoning_summary_text.delta", "delta": p});
                (
                    json!({"type": "reasoning", "id": item, "summary": []}),
                    pieces(text).iter().map(delta).collect(),
                    json!({"type": "reasoning", "id": item, "status": "completed", "summary": [{"type": "summary_text", "text": text}], "encrypted_content": format!("sealed-{turn}-{index}")}),
                )
            }
            Part::Call { id, name, arguments } => {
                let (item, call) = (format!("fc_{turn}_{index}"), call_id(id, turn, index));
                let delta =
                    |p: &String| json!({"type": "response.function_call_arguments.delta", "delta": p});
                (
                    json!({"type": "function_call", "id": item, "call_id": call, "name": name, "arguments": ""}),
                    pieces(arguments).iter().map(delta).collect(),
                    json!({"type": "function_call", "id": item, "call_id": call, "name": name, "arguments": arguments, "status": "completed"}),
                )
            }
        };
        out.push(event(
            json!({"type": "response.output_item.added", "output_index": index, "item": started}),
        ));
        for mut delta in deltas {
            delta["output_index"] = json!(index);
            out.push(event(delta));
        }
        out.push(event(json!({"type": "response.output_item.done", "output_index": index, "item": done})));
    }
    let prompt = answer.prompt_tokens.unwrap_or(100);
    let usage = json!({"input_tokens": prompt, "input_tokens_details": {"cached_tokens": 40}, "output_tokens": 20, "total_tokens": prompt + 20});
    let why = answer.stop.as_deref().map(|reason| json!({"reason": reason}));
    let status = if why.is_some() { "incomplete" } else { "completed" };
    let response = json!({"id": id, "status": status, "incomplete_details": why, "usage": usage});
    out.push(event(json!({"type": format!("response.{status}"), "response": response})));
    out
}

pub(super) fn google(answer: &Answer, turn: usize) -> Vec<String> {
    let chunk = |parts: Value, finish: Option<&str>| {
        let mut candidate = json!({"content": {"parts": parts, "role": "model"}, "index": 0});
        if let Some(finish) = finish {
            candidate["finishReason"] = json!(finish);
        }
        let prompt = answer.prompt_tokens.unwrap_or(100);
        let usage = json!({"promptTokenCount": prompt, "cachedContentTokenCount": 40, "candidatesTokenCount": 20, "totalTokenCount": prompt + 20});
        let event =
            json!({"candidates": [candidate], "usageMetadata": usage, "responseId": format!("r{turn}")});
        format!("data: {event}\n\n")
    };
    let mut out = Vec::new();
    for (index, part) in answer.parts.iter().enumerate() {
        match part {
            Part::Text(text) => out.extend(pieces(text).iter().map(|p| chunk(json!([{"text": p}]), None))),
            Part::Thinking(text) => {
                out.extend(pieces(text).iter().map(|p| chunk(json!([{"text": p, "thought": true}]), None)));
            }
            Part::Call { id, name, arguments } => {
                let args: Value = serde_json::from_str(arguments).unwrap_or(json!(arguments));
                let call = json!({"id": call_id(id, turn, index), "name": name, "args": args});
                out.push(chunk(
                    json!([{"functionCall": call, "thoughtSignature": format!("sig-{turn}-{index}")}]),
                    None,
                ));
            }
        }
    }
    out.push(chunk(json!([{"text": ""}]), Some(answer.stop.as_deref().unwrap_or("STOP"))));
    out
}

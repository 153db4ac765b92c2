//! The order that the newer formats want: every call answered once, behind it.

use super::{Pending, Verdict, ensure};
use serde_json::Value;

pub(super) fn responses(input: &[Value]) -> Verdict {
    let mut pending = Pending::default();
    for (at, item) in input.iter().enumerate() {
        let kind = item["type"].as_str().unwrap_or("message");
        if kind != "function_call_output" && kind != "function_call" {
            pending.none_open(at)?;
        }
        match kind {
            "function_call" => {
                pending.call(at, &item["call_id"], &item["name"])?;
                ensure(item["arguments"].is_string(), || format!("item {at}: arguments are not a string"))?;
            }
            "function_call_output" => {
                pending.result(at, &item["call_id"])?;
                let output = &item["output"];
                let filled = output.as_str().is_some_and(|o| !o.is_empty())
                    || output.as_array().is_some_and(|o| !o.is_empty());
                ensure(filled, || format!("item {at}: an empty output"))?;
            }
            "reasoning" => {
                let sealed = item["encrypted_content"].as_str().is_some_and(|c| !c.is_empty());
                ensure(item["id"].is_string() && item["summary"].is_array() && sealed, || {
                    format!("item {at}: reasoning that is not kept there has to come back sealed")
                })?;
                // It belongs to what was said or called with it.
                let next = input.get(at + 1).map(|i| i["type"].as_str().unwrap_or_default());
                ensure(matches!(next, Some("message" | "function_call" | "reasoning")), || {
                    format!("item {at}: reasoning without what followed it")
                })?;
            }
            _ => {
                let role = item["role"].as_str().unwrap_or_default();
                ensure(matches!(role, "user" | "assistant" | "system" | "developer"), || {
                    format!("item {at}: role {role:?} does not exist")
                })?;
                ensure(item["content"].as_array().is_some_and(|c| !c.is_empty()), || {
                    format!("item {at}: no content")
                })?;
            }
        }
    }
    pending.none_open(input.len())?;
    let last = input.last().map(|i| (i["type"].clone(), i["role"].clone())).unwrap_or_default();
    ensure(last.0 == "function_call_output" || last.1 != "assistant", || {
        "the last item is of the assistant, nothing is asked".into()
    })
}

pub(super) fn google(contents: &[Value]) -> Verdict {
    ensure(contents[0]["role"] == "user", || "the first content is not of the user".into())?;
    let mut pending = Pending::default();
    for (at, content) in contents.iter().enumerate() {
        let role = content["role"].as_str().unwrap_or_default();
        ensure(matches!(role, "user" | "model"), || format!("content {at}: role {role:?} does not exist"))?;
        let parts = content["parts"].as_array().filter(|p| !p.is_empty());
        let parts = parts.ok_or(format!("content {at}: no parts"))?;
        let answers = parts.iter().filter(|p| p["functionResponse"].is_object()).count();
        ensure(answers == 0 || (role == "user" && answers == parts.len()), || {
            format!("content {at}: answers of functions stand alone, in a content of the user")
        })?;
        if answers == 0 {
            pending.none_open(at)?;
        }
        for part in parts {
            if let Some(call) = part.get("functionCall") {
                ensure(role == "model", || format!("content {at}: a call of the {role}"))?;
                pending.call(at, &call["id"], &call["name"])?;
                ensure(call["args"].is_object(), || format!("content {at}: args are no object"))?;
            } else if let Some(answer) = part.get("functionResponse") {
                pending.result(at, &answer["id"])?;
                ensure(answer["response"].is_object(), || {
                    format!("content {at}: a response that is no object")
                })?;
            } else {
                ensure(part["text"].is_string() || part["inlineData"]["data"].is_string(), || {
                    format!("content {at}: a part of no kind")
                })?;
            }
        }
        if answers > 0 {
            pending.none_open(at)?;
        }
    }
    pending.none_open(contents.len())?;
    ensure(contents.last().is_some_and(|c| c["role"] == "user"), || {
        "the last content is not of the user".into()
    })
}

//! The request body. Takes what the core's pairing has made; panics on nothing.

use crate::{
    compat::{Compat, ThinkingStyle},
    transcript::{UNSEEN, sees, sendable, thought_here, wire_id},
};
use atomic_agent::{
    message::{AssistantMessage, Content, ImageContent, Message, ToolResultMessage},
    model::{ModelInfo, ModelRequest, ThinkingLevel},
};
use serde_json::{Value, json};

/// Tokens of an answer when neither request nor model says.
const DEFAULT_MAX_TOKENS: u64 = 8_192;
/// The format's smallest thinking budget.
const LEAST_BUDGET: u64 = 1_024;
/// Of an answer that thinks on a budget, what is left for the answer itself.
const LEAST_ANSWER: u64 = 1_024;

pub(super) fn body(info: &ModelInfo, compat: &Compat, request: &ModelRequest) -> Value {
    let own = if info.max_tokens > 0 { info.max_tokens } else { DEFAULT_MAX_TOKENS };
    let max_tokens = request.max_tokens.unwrap_or(own);
    let mut body = json!({
        "model": info.id,
        "max_tokens": max_tokens,
        "messages": messages(info, request),
        "stream": true,
    });
    if !request.system_prompt.is_empty() {
        body["system"] = json!([{"type": "text", "text": request.system_prompt}]);
    }
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            json!({"name": tool.name, "description": tool.description, "input_schema": tool.parameters})
        });
        body["tools"] = tools.collect();
    }
    if info.reasoning {
        think(&mut body, compat, request.thinking, max_tokens);
    }
    if compat.supports_cache_control.unwrap_or(true) {
        mark_for_cache(&mut body);
    }
    body
}

fn think(body: &mut Value, compat: &Compat, level: ThinkingLevel, max_tokens: u64) {
    let style = compat.thinking.unwrap_or_default();
    if level == ThinkingLevel::Off {
        match style {
            ThinkingStyle::Adaptive => body["thinking"] = json!({"type": "disabled"}),
            // It cannot be told not to think, only to think little.
            ThinkingStyle::AdaptiveAlways => body["output_config"] = json!({"effort": "low"}),
            _ => {}
        }
        return;
    }
    if !matches!(style, ThinkingStyle::Adaptive | ThinkingStyle::AdaptiveAlways) {
        let budget = match level {
            ThinkingLevel::Off | ThinkingLevel::Minimal => LEAST_BUDGET,
            ThinkingLevel::Low => 4_096,
            ThinkingLevel::Medium => 10_240,
            ThinkingLevel::High => 20_480,
            ThinkingLevel::Xhigh => 28_672,
            ThinkingLevel::Max => 32_000,
        };
        let budget = budget.min(max_tokens.saturating_sub(LEAST_ANSWER));
        // A turn that is under way without thinking cannot begin to: the format refuses it.
        if budget >= LEAST_BUDGET && !resumes_without_thinking(body) {
            body["thinking"] = json!({"type": "enabled", "budget_tokens": budget});
        }
        return;
    }
    let effort = match level {
        ThinkingLevel::Off | ThinkingLevel::Minimal | ThinkingLevel::Low => "low",
        ThinkingLevel::Medium => "medium",
        ThinkingLevel::High => "high",
        ThinkingLevel::Xhigh => "xhigh",
        ThinkingLevel::Max => "max",
    };
    body["thinking"] = json!({"type": "adaptive", "display": "summarized"});
    if let Some(effort) = compat.level_name(level, Some(effort)) {
        body["output_config"] = json!({"effort": effort});
    }
}

/// Longest id of a tool call.
const ID_LIMIT: usize = 64;

/// The last message answers calls of an assistant message that does not begin with thinking.
fn resumes_without_thinking(body: &Value) -> bool {
    let Some(messages) = body["messages"].as_array() else { return false };
    let kind = |m: &Value, k: &str| m["content"][0]["type"] == k;
    match messages.as_slice() {
        [.., before, last] if kind(last, "tool_result") => {
            !kind(before, "thinking") && !kind(before, "redacted_thinking")
        }
        _ => false,
    }
}

fn messages(info: &ModelInfo, request: &ModelRequest) -> Vec<Value> {
    let sees = sees(info);
    let mut out: Vec<Value> = Vec::new();
    let mut results: Vec<Value> = Vec::new();
    let mut changes: Vec<String> = Vec::new();
    for message in sendable(&request.messages) {
        match message.as_ref() {
            Message::ToolResult(result) => {
                results.push(tool_result(result, sees));
                continue;
            }
            // It may only stand between what the user says and what the model answers.
            Message::System(change) => {
                changes.extend(change.content.as_ref().map(|c| c.plain_text()));
                continue;
            }
            _ => {}
        }
        push(&mut out, "user", std::mem::take(&mut results));
        match message.as_ref() {
            Message::User(m) => push(&mut out, "user", blocks(&m.content.blocks(), sees)),
            Message::Assistant(m) => {
                push_system(&mut out, std::mem::take(&mut changes));
                push(&mut out, "assistant", assistant(info, m));
            }
            // The core has turned the other roles into these.
            _ => {}
        }
    }
    push(&mut out, "user", results);
    push_system(&mut out, changes);
    out
}

/// Changes of the prompt, behind a message of the user.
fn push_system(out: &mut Vec<Value>, changes: Vec<String>) {
    if !changes.is_empty() && out.last().is_some_and(|m| m["role"] == "user") {
        out.push(json!({"role": "system", "content": changes.join("\n\n")}));
    }
}

/// The format refuses a message without content.
fn push(out: &mut Vec<Value>, role: &str, content: Vec<Value>) {
    if !content.is_empty() {
        out.push(json!({"role": role, "content": content}));
    }
}

/// Text and images; empty text is refused by the format.
fn blocks(content: &[Content], sees: bool) -> Vec<Value> {
    let of = |block: &Content| match block {
        Content::Text(t) if !t.text.trim().is_empty() => Some(json!({"type": "text", "text": t.text})),
        Content::Image(image) if sees => Some(image_block(image)),
        Content::Image(_) => Some(json!({"type": "text", "text": UNSEEN})),
        _ => None,
    };
    content.iter().filter_map(of).collect()
}

fn image_block(image: &ImageContent) -> Value {
    json!({"type": "image", "source": {"type": "base64", "media_type": image.mime_type, "data": image.data}})
}

fn assistant(info: &ModelInfo, message: &AssistantMessage) -> Vec<Value> {
    let own = thought_here(info, message);
    let of = |content: &Content| match content {
        Content::Text(t) if !t.text.trim().is_empty() => Some(json!({"type": "text", "text": t.text})),
        Content::Thinking(t) => {
            let signature = t.thinking_signature.as_deref().filter(|s| own && !s.is_empty())?;
            Some(match t.extra.get(super::stream::REDACTED) {
                Some(Value::Bool(true)) => json!({"type": "redacted_thinking", "data": signature}),
                _ => json!({"type": "thinking", "thinking": t.thinking, "signature": signature}),
            })
        }
        Content::ToolCall(call) => {
            let input = match &call.arguments {
                Value::Object(_) => call.arguments.clone(),
                // Only objects are taken; the model sees what it wrote.
                Value::String(raw) => json!({"invalidJson": raw}),
                other => json!({"notAnObject": other}),
            };
            Some(
                json!({"type": "tool_use", "id": wire_id(&call.id, ID_LIMIT), "name": call.name, "input": input}),
            )
        }
        _ => None,
    };
    message.content.iter().filter_map(of).collect()
}

fn tool_result(message: &ToolResultMessage, sees: bool) -> Value {
    let mut content = blocks(&message.content, sees);
    if content.is_empty() {
        content.push(json!({"type": "text", "text": "(no output)"}));
    }
    let mut out = json!({"type": "tool_result", "tool_use_id": wire_id(&message.tool_call_id, ID_LIMIT), "content": content});
    if message.is_error {
        out["is_error"] = json!(true);
    }
    out
}

/// The prompt, the tools, and the end of the last user message: what the next request repeats.
fn mark_for_cache(body: &mut Value) {
    mark_last(body.get_mut("system"));
    mark_last(body.get_mut("tools"));
    let messages = body.get_mut("messages").and_then(Value::as_array_mut);
    let user = messages.and_then(|m| m.iter_mut().rev().find(|m| m["role"] == "user"));
    mark_last(user.and_then(|m| m.get_mut("content")));
}

fn mark_last(list: Option<&mut Value>) {
    if let Some(block) = list.and_then(Value::as_array_mut).and_then(|blocks| blocks.last_mut()) {
        block["cache_control"] = json!({"type": "ephemeral"});
    }
}

//! The request body. Takes what the core's pairing has made; panics on nothing.

use crate::{
    compat::{Compat, ThinkingStyle},
    transcript::{UNSEEN, result_text, sees, sendable, short_id, thought_here, wire_id},
};
use atomic_agent::{
    message::{AssistantMessage, Content, ImageContent, Message, MessageContent, ToolResultMessage},
    model::{ModelInfo, ModelRequest, ThinkingLevel},
};
use serde_json::{Map, Value, json};

/// Longest id of a tool call that OpenAI takes.
const ID_LIMIT: usize = 40;

pub(super) fn body(info: &ModelInfo, compat: &Compat, request: &ModelRequest) -> Value {
    let mut body = json!({
        "model": info.id,
        "messages": messages(info, compat, request),
        "stream": true,
    });
    if compat.supports_usage_in_streaming.unwrap_or(true) {
        body["stream_options"] = json!({"include_usage": true});
    }
    if let Some(limit) = request.max_tokens {
        body[compat.max_tokens_field.as_deref().unwrap_or("max_tokens")] = json!(limit);
    }
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            json!({"type": "function", "function": {
                "name": tool.name, "description": tool.description, "parameters": tool.parameters,
            }})
        });
        body["tools"] = tools.collect();
    }
    if info.reasoning {
        think(&mut body, compat, request.thinking);
    }
    if compat.supports_prompt_cache_key.unwrap_or(false) && !request.session_id.is_empty() {
        body["prompt_cache_key"] = json!(request.session_id);
    }
    if compat.supports_cache_control.unwrap_or(false) {
        mark_for_cache(&mut body);
    }
    body
}

fn think(body: &mut Value, compat: &Compat, level: ThinkingLevel) {
    let named = || compat.level_name(level, effort(level));
    let on = level != ThinkingLevel::Off;
    match compat.thinking {
        Some(ThinkingStyle::Reasoning) => {
            body["reasoning"] = match named() {
                Some(effort) => json!({"effort": effort}),
                None => json!({"enabled": false}),
            };
        }
        Some(ThinkingStyle::ChatTemplate) => body["chat_template_kwargs"] = json!({"enable_thinking": on}),
        Some(ThinkingStyle::Switch) => {
            body["thinking"] = json!({"type": if on { "enabled" } else { "disabled" }});
            // Said only where a level has a name of its own there.
            if let Some(Some(effort)) = compat.level_names.get(level.name()) {
                body["reasoning_effort"] = json!(effort);
            }
        }
        _ => {
            if let Some(effort) = named().filter(|_| compat.supports_reasoning_effort.unwrap_or(true)) {
                body["reasoning_effort"] = json!(effort);
            }
        }
    }
}

/// The prompt and the end of the last message of the user: what the next request repeats.
fn mark_for_cache(body: &mut Value) {
    let Some(messages) = body["messages"].as_array_mut() else { return };
    let last = messages.iter().rposition(|m| m["role"] == "user");
    let first = messages.iter().position(|m| m["role"] == "system" || m["role"] == "developer");
    for at in [first, last].into_iter().flatten() {
        let content = &mut messages[at]["content"];
        if let Value::String(text) = content {
            *content = json!([{"type": "text", "text": text}]);
        }
        if let Some(part) = content.as_array_mut().and_then(|parts| parts.last_mut()) {
            part["cache_control"] = json!({"type": "ephemeral"});
        }
    }
}

fn effort(level: ThinkingLevel) -> Option<&'static str> {
    match level {
        ThinkingLevel::Off => None,
        ThinkingLevel::Minimal => Some("minimal"),
        ThinkingLevel::Low => Some("low"),
        ThinkingLevel::Medium => Some("medium"),
        ThinkingLevel::High | ThinkingLevel::Xhigh | ThinkingLevel::Max => Some("high"),
    }
}

fn messages(info: &ModelInfo, compat: &Compat, request: &ModelRequest) -> Vec<Value> {
    let developer = info.reasoning && compat.supports_developer_role.unwrap_or(false);
    let role = if developer { "developer" } else { "system" };
    let mut out = Vec::new();
    if !request.system_prompt.is_empty() {
        out.push(json!({"role": role, "content": request.system_prompt}));
    }
    let sees = sees(info);
    let ids = |id: &str| match compat.tool_call_id_length {
        Some(length) => short_id(id, length),
        None => wire_id(id, ID_LIMIT),
    };
    let mut shown = Vec::new();
    for message in sendable(&request.messages) {
        if !matches!(*message, Message::ToolResult(_)) {
            push_images(&mut out, &mut shown);
        }
        match message.as_ref() {
            Message::User(m) => out.extend(user(&m.content, sees)),
            Message::System(m) => {
                let text = m.content.as_ref().map(MessageContent::plain_text).unwrap_or_default();
                out.push(json!({"role": role, "content": text}));
            }
            Message::Assistant(m) => out.extend(assistant(info, m, &ids)),
            Message::ToolResult(m) => {
                let mut result = tool_result(m, sees, &mut shown);
                result["tool_call_id"] = json!(ids(&m.tool_call_id));
                if compat.requires_tool_result_name.unwrap_or(false) {
                    result["name"] = json!(m.tool_name);
                }
                out.push(result);
            }
            // The core has turned the other roles into these.
            _ => {}
        }
    }
    push_images(&mut out, &mut shown);
    out
}

fn user(content: &MessageContent, sees: bool) -> Option<Value> {
    let blocks = content.blocks();
    let has_image = blocks.iter().any(|b| matches!(b, Content::Image(_)));
    let content = if has_image {
        let parts: Vec<Value> = blocks
            .iter()
            .filter_map(|block| match block {
                Content::Text(t) if !t.text.is_empty() => Some(json!({"type": "text", "text": t.text})),
                Content::Image(image) if sees => Some(image_part(image)),
                Content::Image(_) => Some(json!({"type": "text", "text": UNSEEN})),
                _ => None,
            })
            .collect();
        json!(parts)
    } else {
        json!(content.plain_text())
    };
    (content != json!("")).then(|| json!({"role": "user", "content": content}))
}

fn image_part(image: &ImageContent) -> Value {
    let url = format!("data:{};base64,{}", image.mime_type, image.data);
    json!({"type": "image_url", "image_url": {"url": url}})
}

fn assistant(info: &ModelInfo, message: &AssistantMessage, ids: &impl Fn(&str) -> String) -> Option<Value> {
    let text: Vec<&str> = message.content.iter().filter_map(Content::as_text).collect();
    let text = text.join("\n");
    let calls: Vec<Value> = message
        .tool_calls()
        .map(|call| {
            let arguments = match &call.arguments {
                Value::String(raw) => raw.clone(),
                other => other.to_string(),
            };
            json!({"id": ids(&call.id), "type": "function", "function": {"name": call.name, "arguments": arguments}})
        })
        .collect();
    if text.is_empty() && calls.is_empty() {
        return None;
    }
    let mut out = Map::new();
    out.insert("role".into(), json!("assistant"));
    out.insert("content".into(), if text.is_empty() { Value::Null } else { json!(text) });
    if thought_here(info, message) {
        out.extend(own_thinking(message));
    }
    if !calls.is_empty() {
        out.insert("tool_calls".into(), json!(calls));
    }
    Some(Value::Object(out))
}

/// Servers that stream their reasoning in a field of its own want it back there beside tool
/// calls; the signature remembers which field it was.
fn own_thinking(message: &AssistantMessage) -> Option<(String, Value)> {
    let mut field = None;
    let mut all = String::new();
    for content in &message.content {
        if let Content::Thinking(t) = content
            && let Some(name) =
                t.thinking_signature.as_deref().filter(|n| super::stream::REASONING.contains(n))
        {
            field = Some(name.to_owned());
            all.push_str(&t.thinking);
        }
    }
    field.map(|name| (name, json!(all)))
}

/// This format takes only text from tools; images follow in a user message once all
/// results of the batch are there.
fn tool_result(message: &ToolResultMessage, sees: bool, shown: &mut Vec<Value>) -> Value {
    let text = result_text(message, sees, |of, image| {
        shown.push(json!({"type": "text", "text": of}));
        shown.push(image_part(image));
    });
    json!({"role": "tool", "content": text})
}

fn push_images(out: &mut Vec<Value>, shown: &mut Vec<Value>) {
    if !shown.is_empty() {
        out.push(json!({"role": "user", "content": std::mem::take(shown)}));
    }
}

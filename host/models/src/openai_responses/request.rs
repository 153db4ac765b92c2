//! The request body: items in the order they were said.

use super::{JOINT, TEXT_ITEM};
use crate::{
    compat::Compat,
    transcript::{UNSEEN, sees, sendable, thought_here, wire_id},
};
use atomic_agent::{
    message::{AssistantMessage, Content, ImageContent, Message, ToolCall, ToolResultMessage},
    model::{ModelInfo, ModelRequest, ThinkingLevel},
};
use serde_json::{Value, json};

/// Longest id of a tool call.
const ID_LIMIT: usize = 64;

pub(super) fn body(info: &ModelInfo, compat: &Compat, request: &ModelRequest) -> Value {
    let mut body = json!({
        "model": info.id,
        "input": input(info, compat, request),
        "stream": true,
        "store": false,
    });
    if !request.system_prompt.is_empty() {
        body["instructions"] = json!(request.system_prompt);
    }
    if let Some(limit) = request.max_tokens {
        body["max_output_tokens"] = json!(limit);
    }
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            json!({
                "type": "function", "name": tool.name, "description": tool.description,
                "parameters": tool.parameters, "strict": false,
            })
        });
        body["tools"] = tools.collect();
    }
    if info.reasoning {
        let effort = compat.level_name(request.thinking, effort(request.thinking));
        if let Some(effort) = effort {
            // Without a summary nothing of the thinking could be shown.
            body["reasoning"] = match request.thinking {
                ThinkingLevel::Off => json!({"effort": effort}),
                _ => json!({"effort": effort, "summary": "auto"}),
            };
        }
        // Nothing is kept there, so what was thought has to come back with us.
        body["include"] = json!(["reasoning.encrypted_content"]);
    }
    if compat.supports_prompt_cache_key.unwrap_or(false) && !request.session_id.is_empty() {
        body["prompt_cache_key"] = json!(request.session_id);
    }
    body
}

fn effort(level: ThinkingLevel) -> Option<&'static str> {
    match level {
        ThinkingLevel::Off => None,
        ThinkingLevel::Minimal => Some("minimal"),
        ThinkingLevel::Low => Some("low"),
        ThinkingLevel::Medium => Some("medium"),
        ThinkingLevel::High => Some("high"),
        ThinkingLevel::Xhigh | ThinkingLevel::Max => Some("xhigh"),
    }
}

fn input(info: &ModelInfo, compat: &Compat, request: &ModelRequest) -> Vec<Value> {
    let sees = sees(info);
    let mut out = Vec::new();
    for message in sendable(&request.messages) {
        match message.as_ref() {
            Message::User(m) => {
                let parts = parts(&m.content.blocks(), sees);
                if !parts.is_empty() {
                    out.push(json!({"role": "user", "content": parts}));
                }
            }
            Message::System(m) => {
                let role =
                    if compat.supports_developer_role.unwrap_or(true) { "developer" } else { "system" };
                let text = m.content.as_ref().map(|c| c.plain_text()).unwrap_or_default();
                out.push(json!({"role": role, "content": [{"type": "input_text", "text": text}]}));
            }
            Message::Assistant(m) => assistant(info, m, &mut out),
            Message::ToolResult(m) => out.push(tool_result(m, sees)),
            // The core has turned the other roles into these.
            _ => {}
        }
    }
    out
}

/// Text and images; empty text says nothing.
fn parts(content: &[Content], sees: bool) -> Vec<Value> {
    let of = |block: &Content| match block {
        Content::Text(t) if !t.text.is_empty() => Some(json!({"type": "input_text", "text": t.text})),
        Content::Image(image) if sees => Some(image_part(image)),
        Content::Image(_) => Some(json!({"type": "input_text", "text": UNSEEN})),
        _ => None,
    };
    content.iter().filter_map(of).collect()
}

fn image_part(image: &ImageContent) -> Value {
    let url = format!("data:{};base64,{}", image.mime_type, image.data);
    json!({"type": "input_image", "detail": "auto", "image_url": url})
}

fn assistant(info: &ModelInfo, message: &AssistantMessage, out: &mut Vec<Value>) {
    let own = thought_here(info, message);
    for content in &message.content {
        match content {
            Content::Text(t) if !t.text.is_empty() => {
                let mut item = json!({
                    "type": "message", "role": "assistant", "status": "completed",
                    "content": [{"type": "output_text", "text": t.text, "annotations": []}],
                });
                if let Some(Value::String(id)) = t.extra.get(TEXT_ITEM).filter(|_| own) {
                    item["id"] = json!(id);
                }
                out.push(item);
            }
            Content::Thinking(t) if own => {
                // The signature is the item itself, as it came.
                let item =
                    t.thinking_signature.as_deref().and_then(|s| serde_json::from_str::<Value>(s).ok());
                if let Some(mut item) = item.filter(|i| i["type"] == "reasoning") {
                    // Its state while it came, which no input has.
                    if let Some(o) = item.as_object_mut() {
                        o.remove("status");
                        o.retain(|_, value| !value.is_null());
                    }
                    out.push(item);
                }
            }
            Content::ToolCall(call) => out.push(function_call(call, own)),
            _ => {}
        }
    }
}

fn function_call(call: &ToolCall, own: bool) -> Value {
    let arguments = match &call.arguments {
        Value::String(raw) => raw.clone(),
        other => other.to_string(),
    };
    let (id, item) = split(&call.id);
    let mut out = json!({"type": "function_call", "call_id": id, "name": call.name, "arguments": arguments});
    if let Some(item) = item.filter(|i| own && i.starts_with("fc")) {
        out["id"] = json!(item);
    }
    out
}

fn tool_result(message: &ToolResultMessage, sees: bool) -> Value {
    let has_image = message.content.iter().any(|c| matches!(c, Content::Image(_)));
    let mut parts = parts(&message.content, sees);
    if parts.is_empty() {
        parts.push(json!({"type": "input_text", "text": "(no output)"}));
    }
    let output = match has_image {
        true => json!(parts),
        false => {
            let texts = parts.iter().filter_map(|p| p["text"].as_str());
            json!(texts.collect::<Vec<_>>().join("\n"))
        }
    };
    json!({"type": "function_call_output", "call_id": split(&message.tool_call_id).0, "output": output})
}

/// The call's own id, and that of its item.
fn split(id: &str) -> (String, Option<&str>) {
    let (call, item) = id.split_once(JOINT).map_or((id, None), |(call, item)| (call, Some(item)));
    (wire_id(call, ID_LIMIT), item)
}

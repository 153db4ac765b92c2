//! The request body. Takes what the core's pairing has made; panics on nothing.

use crate::{
    compat::Compat,
    transcript::{sendable, thought_here},
};
use atomic_agent::{
    message::{AssistantMessage, Content, ImageContent, Message, MessageContent, ToolResultMessage},
    model::{ModelInfo, ModelRequest, ThinkingLevel},
};
use serde_json::{Map, Value, json};

/// Longest id of a tool call that OpenAI takes.
const ID_LIMIT: usize = 40;

pub(super) fn body(info: &ModelInfo, compat: &Compat, request: &ModelRequest) -> Value {
    let official = info.base_url.contains("://api.openai.com");
    let mut body = json!({
        "model": info.id,
        "messages": messages(info, compat, official, request),
        "stream": true,
    });
    if compat.supports_usage_in_streaming.unwrap_or(true) {
        body["stream_options"] = json!({"include_usage": true});
    }
    if let Some(limit) = request.max_tokens {
        let field = if official { "max_completion_tokens" } else { "max_tokens" };
        body[compat.max_tokens_field.as_deref().unwrap_or(field)] = json!(limit);
    }
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            json!({"type": "function", "function": {
                "name": tool.name, "description": tool.description, "parameters": tool.parameters,
            }})
        });
        body["tools"] = tools.collect();
    }
    if info.reasoning
        && compat.supports_reasoning_effort.unwrap_or(true)
        && let Some(effort) = compat.level_name(request.thinking, effort(request.thinking))
    {
        body["reasoning_effort"] = json!(effort);
    }
    body
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

fn messages(info: &ModelInfo, compat: &Compat, official: bool, request: &ModelRequest) -> Vec<Value> {
    let mut out = Vec::new();
    if !request.system_prompt.is_empty() {
        let developer = info.reasoning && compat.supports_developer_role.unwrap_or(official);
        let role = if developer { "developer" } else { "system" };
        out.push(json!({"role": role, "content": request.system_prompt}));
    }
    let sees = info.input.iter().any(|kind| kind == "image");
    let mut shown = Vec::new();
    for message in sendable(&request.messages) {
        if !matches!(*message, Message::ToolResult(_)) {
            push_images(&mut out, &mut shown);
        }
        match message.as_ref() {
            Message::User(m) => out.extend(user(&m.content, sees)),
            Message::Assistant(m) => out.extend(assistant(info, m)),
            Message::ToolResult(m) => out.push(tool_result(m, sees, &mut shown)),
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

const UNSEEN: &str = "(an image was left out: this model does not take images)";

fn image_part(image: &ImageContent) -> Value {
    let url = format!("data:{};base64,{}", image.mime_type, image.data);
    json!({"type": "image_url", "image_url": {"url": url}})
}

fn assistant(info: &ModelInfo, message: &AssistantMessage) -> Option<Value> {
    let text: Vec<&str> = message.content.iter().filter_map(Content::as_text).collect();
    let text = text.join("\n");
    let calls: Vec<Value> = message
        .tool_calls()
        .map(|call| {
            let arguments = match &call.arguments {
                Value::String(raw) => raw.clone(),
                other => other.to_string(),
            };
            json!({"id": wire_id(&call.id), "type": "function", "function": {"name": call.name, "arguments": arguments}})
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
    let mut text = MessageContent::Blocks(message.content.clone()).plain_text();
    for content in &message.content {
        let Content::Image(image) = content else { continue };
        let note = if sees {
            shown.push(json!({"type": "text", "text": format!("Image from {}:", message.tool_name)}));
            shown.push(image_part(image));
            "(see the image below)"
        } else {
            UNSEEN
        };
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(note);
    }
    if text.is_empty() {
        text.push_str("(no output)");
    }
    json!({"role": "tool", "tool_call_id": wire_id(&message.tool_call_id), "content": text})
}

fn push_images(out: &mut Vec<Value>, shown: &mut Vec<Value>) {
    if !shown.is_empty() {
        out.push(json!({"role": "user", "content": std::mem::take(shown)}));
    }
}

/// Ids of other providers can be too long; call and result are shortened alike.
fn wire_id(id: &str) -> String {
    if id.len() <= ID_LIMIT {
        return id.to_owned();
    }
    // FNV-1a: the same in every build, so that a resumed session sends the same ids.
    let hash = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let start: String = id.chars().filter(char::is_ascii_alphanumeric).take(20).collect();
    format!("{start}_{hash:016x}")
}

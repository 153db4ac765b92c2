//! The request body: contents of the user and of the model in turn.

use super::{CALL_SIGNATURE, TEXT_SIGNATURE};
use crate::{
    compat::{Compat, ThinkingStyle},
    transcript::{UNSEEN, result_text, sees, sendable, thought_here},
};
use atomic_agent::{
    message::{AssistantMessage, Content, ImageContent, Message, ToolResultMessage},
    model::{ModelInfo, ModelRequest, ThinkingLevel},
};
use serde_json::{Map, Value, json};

/// What stands for the signature of a call that another model made; models that check signatures
/// take it.
const UNSIGNED: &str = "skip_thought_signature_validator";

pub(super) fn body(info: &ModelInfo, compat: &Compat, request: &ModelRequest) -> Value {
    let mut body = json!({"contents": contents(info, compat, request)});
    if !request.system_prompt.is_empty() {
        body["systemInstruction"] = json!({"parts": [{"text": request.system_prompt}]});
    }
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            json!({"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.parameters})
        });
        body["tools"] = json!([{"functionDeclarations": tools.collect::<Vec<_>>()}]);
    }
    let mut config = Map::new();
    if let Some(limit) = request.max_tokens {
        config.insert("maxOutputTokens".into(), json!(limit));
    }
    if let Some(thinking) = thinking(info, compat, request.thinking) {
        config.insert("thinkingConfig".into(), thinking);
    }
    if !config.is_empty() {
        body["generationConfig"] = Value::Object(config);
    }
    body
}

fn thinking(info: &ModelInfo, compat: &Compat, level: ThinkingLevel) -> Option<Value> {
    if !info.reasoning {
        return None;
    }
    if compat.thinking == Some(ThinkingStyle::Level) {
        let name = match level {
            ThinkingLevel::Off | ThinkingLevel::Minimal => "minimal",
            ThinkingLevel::Low => "low",
            ThinkingLevel::Medium => "medium",
            ThinkingLevel::High | ThinkingLevel::Xhigh | ThinkingLevel::Max => "high",
        };
        let name = compat.level_name(level, Some(name))?;
        return Some(json!({"thinkingLevel": name, "includeThoughts": level != ThinkingLevel::Off}));
    }
    let budget = match level {
        ThinkingLevel::Off => return Some(json!({"thinkingBudget": 0})),
        ThinkingLevel::Minimal => 512,
        ThinkingLevel::Low => 2_048,
        ThinkingLevel::Medium => 8_192,
        ThinkingLevel::High | ThinkingLevel::Xhigh | ThinkingLevel::Max => 24_576,
    };
    Some(json!({"thinkingBudget": budget, "includeThoughts": true}))
}

fn contents(info: &ModelInfo, compat: &Compat, request: &ModelRequest) -> Vec<Value> {
    let sees = sees(info);
    let mut out: Vec<Value> = Vec::new();
    let (mut answers, mut shown): (Vec<Value>, Vec<Value>) = Default::default();
    for message in sendable(&request.messages) {
        if let Message::ToolResult(m) = message.as_ref() {
            answers.push(tool_result(m, sees, &mut shown));
            continue;
        }
        // All answers of a turn stand together, and nothing else beside them.
        push(&mut out, "user", std::mem::take(&mut answers));
        push(&mut out, "user", std::mem::take(&mut shown));
        match message.as_ref() {
            Message::User(m) => push(&mut out, "user", parts(&m.content.blocks(), sees)),
            Message::Assistant(m) => push(&mut out, "model", assistant(info, compat, m)),
            // The core has turned the other roles into these.
            _ => {}
        }
    }
    push(&mut out, "user", answers);
    push(&mut out, "user", shown);
    out
}

/// The format refuses a content without parts.
fn push(out: &mut Vec<Value>, role: &str, parts: Vec<Value>) {
    if !parts.is_empty() {
        out.push(json!({"role": role, "parts": parts}));
    }
}

fn parts(content: &[Content], sees: bool) -> Vec<Value> {
    let of = |block: &Content| match block {
        Content::Text(t) if !t.text.is_empty() => Some(json!({"text": t.text})),
        Content::Image(image) if sees => Some(image_part(image)),
        Content::Image(_) => Some(json!({"text": UNSEEN})),
        _ => None,
    };
    content.iter().filter_map(of).collect()
}

fn image_part(image: &ImageContent) -> Value {
    json!({"inlineData": {"mimeType": image.mime_type, "data": image.data}})
}

fn assistant(info: &ModelInfo, compat: &Compat, message: &AssistantMessage) -> Vec<Value> {
    let own = thought_here(info, message);
    let signed =
        |extra: &Map<String, Value>, key: &str| extra.get(key).filter(|s| own && s.is_string()).cloned();
    let mut unsigned = !own && compat.thinking == Some(ThinkingStyle::Level);
    let mut out = Vec::new();
    for content in &message.content {
        match content {
            Content::Text(t) if !t.text.is_empty() => {
                let mut part = json!({"text": t.text});
                if let Some(signature) = signed(&t.extra, TEXT_SIGNATURE) {
                    part["thoughtSignature"] = signature;
                }
                out.push(part);
            }
            Content::Thinking(t) if own => {
                let Some(signature) = t.thinking_signature.as_deref().filter(|s| !s.is_empty()) else {
                    continue;
                };
                out.push(json!({"text": t.thinking, "thought": true, "thoughtSignature": signature}));
            }
            Content::ToolCall(call) => {
                let args = match &call.arguments {
                    Value::Object(_) => call.arguments.clone(),
                    // Only objects are taken; the model sees what it wrote.
                    Value::String(raw) => json!({"invalidJson": raw}),
                    other => json!({"notAnObject": other}),
                };
                let mut part = json!({"functionCall": {"id": call.id, "name": call.name, "args": args}});
                if let Some(signature) = signed(&call.extra, CALL_SIGNATURE) {
                    part["thoughtSignature"] = signature;
                } else if std::mem::take(&mut unsigned) {
                    // Of several calls at once only the first is signed.
                    part["thoughtSignature"] = json!(UNSIGNED);
                }
                out.push(part);
            }
            _ => {}
        }
    }
    out
}

/// The format takes an object from tools; images follow once all answers of the turn are there.
fn tool_result(message: &ToolResultMessage, sees: bool, shown: &mut Vec<Value>) -> Value {
    let text = result_text(message, sees, |of, image| {
        shown.push(json!({"text": of}));
        shown.push(image_part(image));
    });
    let key = if message.is_error { "error" } else { "output" };
    json!({"functionResponse": {"id": message.tool_call_id, "name": message.tool_name, "response": {key: text}}})
}

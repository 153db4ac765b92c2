//! What a request of each format may hold, field by field, as the providers' references list it.
//! An unknown field is refused, as the strictest of the servers of a format do.
//!
//! Sources: platform.claude.com/docs/en/api/messages, platform.openai.com/docs/api-reference/chat/create,
//! platform.openai.com/docs/api-reference/responses/create,
//! ai.google.dev/api/generate-content.

use super::{Format, Verdict, ensure};
use serde_json::Value;

/// Fields of one object; `*` takes any.
fn only(at: &str, value: &Value, known: &[&str]) -> Verdict {
    let unknown = value.as_object().and_then(|o| o.keys().find(|k| !known.contains(&k.as_str())));
    ensure(unknown.is_none(), || {
        format!("{at}: unknown field {}", unknown.map(String::as_str).unwrap_or_default())
    })
}

fn each<'v>(value: &'v Value, key: &str) -> impl Iterator<Item = (usize, &'v Value)> {
    value[key].as_array().into_iter().flatten().enumerate()
}

pub(super) fn known_fields(format: Format, body: &Value) -> Verdict {
    match format {
        Format::OpenAi => open_ai(body),
        Format::Anthropic => anthropic(body),
        Format::Responses => responses(body),
        Format::Google => google(body),
    }
}

fn open_ai(body: &Value) -> Verdict {
    only(
        "body",
        body,
        &[
            "model",
            "messages",
            "stream",
            "stream_options",
            "max_tokens",
            "max_completion_tokens",
            "tools",
            "tool_choice",
            "parallel_tool_calls",
            "reasoning_effort",
            "prompt_cache_key",
            "temperature",
            "top_p",
            "store",
            "metadata",
            "user",
            "stop",
            "seed",
            "response_format",
            "service_tier",
            // Of compatible servers.
            "reasoning",
            "chat_template_kwargs",
            "thinking",
        ],
    )?;
    only("stream_options", &body["stream_options"], &["include_usage", "include_obfuscation"])?;
    for (n, message) in each(body, "messages") {
        let at = format!("message {n}");
        let known: &[&str] = match message["role"].as_str().unwrap_or_default() {
            "assistant" => &[
                "role",
                "content",
                "tool_calls",
                "name",
                "refusal",
                "reasoning_content",
                "reasoning",
                "reasoning_text",
            ],
            "tool" => &["role", "content", "tool_call_id", "name"],
            _ => &["role", "content", "name"],
        };
        only(&at, message, known)?;
        for (_, part) in each(message, "content") {
            only(&at, part, &["type", "text", "image_url", "cache_control"])?;
            only(&at, &part["image_url"], &["url", "detail"])?;
        }
        for (_, call) in each(message, "tool_calls") {
            only(&at, call, &["id", "type", "function"])?;
            only(&at, &call["function"], &["name", "arguments"])?;
        }
    }
    for (n, tool) in each(body, "tools") {
        only(&format!("tool {n}"), tool, &["type", "function"])?;
        only(&format!("tool {n}"), &tool["function"], &["name", "description", "parameters", "strict"])?;
    }
    Ok(())
}

fn anthropic(body: &Value) -> Verdict {
    only(
        "body",
        body,
        &[
            "model",
            "max_tokens",
            "messages",
            "stream",
            "system",
            "tools",
            "tool_choice",
            "thinking",
            "output_config",
            "metadata",
            "stop_sequences",
            "temperature",
            "top_p",
            "top_k",
            "service_tier",
        ],
    )?;
    only("thinking", &body["thinking"], &["type", "budget_tokens", "display"])?;
    only("output_config", &body["output_config"], &["effort", "format"])?;
    for (_, block) in each(body, "system") {
        only("system", block, &["type", "text", "cache_control"])?;
    }
    for (n, tool) in each(body, "tools") {
        only(&format!("tool {n}"), tool, &["name", "description", "input_schema", "cache_control"])?;
    }
    for (n, message) in each(body, "messages") {
        let at = format!("message {n}");
        only(&at, message, &["role", "content"])?;
        for (_, block) in each(message, "content") {
            let known: &[&str] = match block["type"].as_str().unwrap_or_default() {
                "text" => &["type", "text", "cache_control"],
                "image" => &["type", "source", "cache_control"],
                "tool_use" => &["type", "id", "name", "input", "cache_control"],
                "tool_result" => &["type", "tool_use_id", "content", "is_error", "cache_control"],
                "thinking" => &["type", "thinking", "signature"],
                "redacted_thinking" => &["type", "data"],
                _ => continue,
            };
            only(&at, block, known)?;
            only(&at, &block["source"], &["type", "media_type", "data"])?;
            only(&at, &block["cache_control"], &["type", "ttl"])?;
        }
    }
    Ok(())
}

fn responses(body: &Value) -> Verdict {
    only(
        "body",
        body,
        &[
            "model",
            "input",
            "stream",
            "store",
            "instructions",
            "max_output_tokens",
            "tools",
            "tool_choice",
            "parallel_tool_calls",
            "reasoning",
            "include",
            "prompt_cache_key",
            "previous_response_id",
            "temperature",
            "top_p",
            "text",
            "truncation",
            "metadata",
            "service_tier",
        ],
    )?;
    only("reasoning", &body["reasoning"], &["effort", "summary"])?;
    for (n, item) in each(body, "input") {
        let at = format!("item {n}");
        let known: &[&str] = match item["type"].as_str().unwrap_or("message") {
            "message" => &["type", "id", "role", "status", "content"],
            "reasoning" => &["type", "id", "summary", "encrypted_content", "content"],
            "function_call" => &["type", "id", "call_id", "name", "arguments"],
            "function_call_output" => &["type", "id", "call_id", "output"],
            other => return Err(format!("{at}: type {other} does not exist")),
        };
        only(&at, item, known)?;
        for key in ["content", "output"] {
            for (_, part) in each(item, key) {
                let known: &[&str] = match part["type"].as_str().unwrap_or_default() {
                    "input_text" => &["type", "text"],
                    "output_text" => &["type", "text", "annotations"],
                    "input_image" => &["type", "detail", "image_url"],
                    other => return Err(format!("{at}: a part of type {other}")),
                };
                only(&at, part, known)?;
            }
        }
    }
    for (n, tool) in each(body, "tools") {
        only(&format!("tool {n}"), tool, &["type", "name", "description", "parameters", "strict"])?;
    }
    Ok(())
}

fn google(body: &Value) -> Verdict {
    only(
        "body",
        body,
        &["contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "safetySettings"],
    )?;
    only("systemInstruction", &body["systemInstruction"], &["parts", "role"])?;
    let config = &body["generationConfig"];
    only("generationConfig", config, &["maxOutputTokens", "temperature", "topP", "topK", "thinkingConfig"])?;
    only(
        "thinkingConfig",
        &config["thinkingConfig"],
        &["includeThoughts", "thinkingBudget", "thinkingLevel"],
    )?;
    for (n, content) in each(body, "contents") {
        let at = format!("content {n}");
        only(&at, content, &["role", "parts"])?;
        for (_, part) in each(content, "parts") {
            only(
                &at,
                part,
                &["text", "thought", "thoughtSignature", "inlineData", "functionCall", "functionResponse"],
            )?;
            only(&at, &part["inlineData"], &["mimeType", "data"])?;
            only(&at, &part["functionCall"], &["id", "name", "args"])?;
            only(&at, &part["functionResponse"], &["id", "name", "response"])?;
        }
    }
    for (_, tools) in each(body, "tools") {
        only("tools", tools, &["functionDeclarations"])?;
        for (n, tool) in each(tools, "functionDeclarations") {
            only(&format!("tool {n}"), tool, &["name", "description", "parameters", "parametersJsonSchema"])?;
        }
    }
    Ok(())
}

//! What a real provider refuses, refused here: each story checks for free that every tool
//! call is answered exactly once, in order, and that roles and schemas are legal.

mod newer;
mod shapes;

use super::{Format, Recorded};
use serde_json::Value;
use std::collections::HashSet;

type Verdict = Result<(), String>;

pub(super) fn judge(format: Format, request: &Recorded) -> Verdict {
    let body = &request.body;
    shapes::known_fields(format, body)?;
    if format != Format::Google {
        ensure(body["model"].as_str().is_some_and(|m| !m.is_empty()), || "\"model\" is missing".into())?;
        ensure(body["stream"] == true, || "\"stream\" is not true".into())?;
    }
    let kind = request.headers.get("content-type").map(String::as_str).unwrap_or("none");
    ensure(kind.starts_with("application/json"), || format!("content-type is {kind}"))?;
    let list = match format {
        Format::Responses => "input",
        Format::Google => "contents",
        Format::OpenAi | Format::Anthropic => "messages",
    };
    let messages = body[list].as_array().filter(|m| !m.is_empty()).ok_or(format!("\"{list}\" is empty"))?;
    match format {
        Format::OpenAi => open_ai(body, messages)?,
        Format::Anthropic => {
            ensure(request.headers.contains_key("anthropic-version"), || "no anthropic-version".into())?;
            anthropic(body, messages)?;
        }
        Format::Responses => newer::responses(messages)?,
        Format::Google => newer::google(messages)?,
    }
    tools(format, body)
}

fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(otherwise()) }
}

/// The calls that wait for their results.
#[derive(Default)]
struct Pending {
    ids: Vec<String>,
    seen: HashSet<String>,
}

impl Pending {
    fn call(&mut self, at: usize, id: &Value, name: &Value) -> Verdict {
        let id = id.as_str().filter(|id| !id.is_empty()).ok_or(format!("message {at}: a call without id"))?;
        ensure(name.as_str().is_some_and(|n| !n.is_empty()), || {
            format!("message {at}: call {id} has no name")
        })?;
        ensure(self.seen.insert(id.to_owned()), || format!("message {at}: call id {id} is used twice"))?;
        self.ids.push(id.to_owned());
        Ok(())
    }
    fn result(&mut self, at: usize, id: &Value) -> Verdict {
        let id = id.as_str().unwrap_or("");
        match self.ids.first() {
            Some(next) if next == id => {
                self.ids.remove(0);
                Ok(())
            }
            Some(next) if self.ids.iter().any(|i| i == id) => {
                Err(format!("message {at}: result of {id} comes before that of {next}"))
            }
            _ if self.seen.contains(id) => Err(format!("message {at}: a second result of {id}")),
            _ => Err(format!("message {at}: a result of {id}, which no call asked for")),
        }
    }
    fn none_open(&self, at: usize) -> Verdict {
        ensure(self.ids.is_empty(), || format!("message {at}: calls without result: {}", self.ids.join(", ")))
    }
}

/// The model that takes system messages between the others.
const MIDWAY: &str = "midway";

fn open_ai(body: &Value, messages: &[Value]) -> Verdict {
    let mut pending = Pending::default();
    for (at, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or("");
        if role != "tool" {
            pending.none_open(at)?;
        }
        let content = &message["content"];
        match role {
            "system" | "developer" => {
                // Only OpenAI itself and servers that say so take one between the others.
                ensure(at == 0 || body["model"] == MIDWAY, || {
                    format!("message {at}: role {role} is not first")
                })?;
                ensure(!super::wire::text_of(content).is_empty(), || format!("message {at}: empty prompt"))?;
            }
            "user" => filled(at, content)?,
            "tool" => {
                pending.result(at, &message["tool_call_id"])?;
                filled(at, content)?;
            }
            "assistant" => {
                let calls = message["tool_calls"].as_array();
                ensure(message.get("tool_calls").is_none() || calls.is_some_and(|c| !c.is_empty()), || {
                    format!("message {at}: \"tool_calls\" is empty")
                })?;
                ensure(calls.is_some() || content.as_str().is_some_and(|c| !c.is_empty()), || {
                    format!("message {at}: an assistant message without text and calls")
                })?;
                for call in calls.into_iter().flatten() {
                    pending.call(at, &call["id"], &call["function"]["name"])?;
                    ensure(call["function"]["arguments"].is_string(), || {
                        format!("message {at}: arguments are not a string")
                    })?;
                }
            }
            other => return Err(format!("message {at}: role {other:?} does not exist")),
        }
    }
    pending.none_open(messages.len())?;
    let last = messages.last().map(|m| m["role"].clone()).unwrap_or_default();
    ensure(last == "user" || last == "tool", || format!("the last message is {last}, nothing is asked"))
}

fn filled(at: usize, content: &Value) -> Verdict {
    let ok = match content {
        Value::String(text) => !text.is_empty(),
        Value::Array(parts) => {
            !parts.is_empty()
                && parts.iter().all(|p| p["text"].is_string() || p["image_url"]["url"].is_string())
        }
        _ => false,
    };
    ensure(ok, || format!("message {at}: content is empty or of an unknown shape"))
}

fn anthropic(body: &Value, messages: &[Value]) -> Verdict {
    let max_tokens = body["max_tokens"].as_u64().filter(|n| *n > 0).ok_or("\"max_tokens\" is missing")?;
    if let Some(budget) = body["thinking"]["budget_tokens"].as_u64() {
        ensure(budget >= 1024 && budget < max_tokens, || format!("a thinking budget of {budget}"))?;
    }
    let marks = body.to_string().matches("\"cache_control\"").count();
    ensure(marks <= 4, || format!("{marks} cache_control markers, 4 are allowed"))?;
    ensure(messages[0]["role"] == "user", || "the first message is not of the user".into())?;

    let mut pending = Pending::default();
    for (at, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or("");
        if role == "system" {
            midway(body, messages, at)?;
            continue;
        }
        ensure(matches!(role, "user" | "assistant"), || {
            format!("message {at}: role {role:?} does not exist")
        })?;
        if role == "assistant" {
            pending.none_open(at)?;
        }
        let text = Value::Array(vec![serde_json::json!({"type": "text", "text": message["content"]})]);
        let content = if message["content"].is_string() { &text } else { &message["content"] };
        let blocks =
            content.as_array().filter(|b| !b.is_empty()).ok_or(format!("message {at}: no content"))?;
        let mut results_over = false;
        for block in blocks {
            let kind = block["type"].as_str().unwrap_or("");
            let wrong = || format!("message {at}: a {kind} block of the {role}");
            if kind != "tool_result" && role == "user" {
                pending.none_open(at)?;
                results_over = true;
            }
            match kind {
                "text" => {
                    let filled = block["text"].as_str().is_some_and(|t| !t.trim().is_empty());
                    ensure(filled, || format!("message {at}: an empty text block"))?;
                }
                "image" => ensure(role == "user" && block["source"]["data"].is_string(), wrong)?,
                "tool_result" => {
                    ensure(role == "user" && !results_over, wrong)?;
                    pending.result(at, &block["tool_use_id"])?;
                }
                "tool_use" => {
                    ensure(role == "assistant", wrong)?;
                    pending.call(at, &block["id"], &block["name"])?;
                    ensure(block["input"].is_object(), || format!("message {at}: input is no object"))?;
                    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
                    ensure(block["id"].as_str().unwrap_or("").chars().all(legal), || {
                        format!("message {at}: an illegal call id")
                    })?;
                }
                "thinking" => {
                    let signed = block["signature"].as_str().is_some_and(|s| !s.is_empty());
                    ensure(role == "assistant" && signed, wrong)?;
                }
                "redacted_thinking" => ensure(role == "assistant" && block["data"].is_string(), wrong)?,
                _ => return Err(wrong()),
            }
        }
        if role == "user" {
            pending.none_open(at)?;
        }
    }
    pending.none_open(messages.len())?;
    let last = messages.last().map(|m| m["role"].clone()).unwrap_or_default();
    ensure(last == "user" || last == "system", || "the last message is not of the user".into())
}

/// Behind a message of the user, and last or before one of the assistant; only some models.
fn midway(body: &Value, messages: &[Value], at: usize) -> Verdict {
    ensure(body["model"] == MIDWAY, || format!("message {at}: this model takes no system messages"))?;
    let role = |at: Option<usize>| at.and_then(|at| messages.get(at)).map(|m| m["role"].clone());
    let (before, after) = (role(at.checked_sub(1)), role(Some(at + 1)));
    ensure(before.is_some_and(|r| r == "user") && after.is_none_or(|r| r == "assistant"), || {
        format!("message {at}: a system message in a place where none may be")
    })?;
    let text = messages[at]["content"].as_str();
    ensure(text.is_some_and(|t| !t.is_empty()), || format!("message {at}: an empty system message"))
}

fn tools(format: Format, body: &Value) -> Verdict {
    let Some(tools) = body.get("tools") else { return Ok(()) };
    let tools = tools.as_array().filter(|t| !t.is_empty()).ok_or("\"tools\" is there and empty")?;
    let declared = tools[0]["functionDeclarations"].as_array();
    let tools = if format == Format::Google { declared.ok_or("no functionDeclarations")? } else { tools };
    let mut names = HashSet::new();
    for tool in tools {
        let (tool, schema) = match format {
            Format::OpenAi => {
                ensure(tool["type"] == "function", || "a tool that is no function".into())?;
                (&tool["function"], &tool["function"]["parameters"])
            }
            Format::Anthropic => (tool, &tool["input_schema"]),
            Format::Responses => {
                ensure(tool["type"] == "function", || "a tool that is no function".into())?;
                (tool, &tool["parameters"])
            }
            Format::Google => (tool, &tool["parametersJsonSchema"]),
        };
        let name = tool["name"].as_str().unwrap_or("");
        let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        ensure(!name.is_empty() && name.len() <= 64 && name.chars().all(legal), || {
            format!("an illegal tool name {name:?}")
        })?;
        ensure(names.insert(name), || format!("two tools named {name}"))?;
        ensure(tool["description"].is_string(), || format!("tool {name}: no description"))?;
        ensure(schema["type"] == "object", || format!("tool {name}: its schema is no object's"))?;
        well_formed(schema).map_err(|why| format!("tool {name}: {why}"))?;
    }
    Ok(())
}

/// The shape of a schema, as far as providers look at it.
fn well_formed(schema: &Value) -> Verdict {
    let Some(schema) = schema.as_object() else {
        return ensure(schema.is_boolean(), || format!("{schema} is no schema"));
    };
    let properties = schema.get("properties");
    if let Some(properties) = properties {
        let properties = properties.as_object().ok_or("\"properties\" is no object")?;
        for inner in properties.values() {
            well_formed(inner)?;
        }
    }
    if let Some(required) = schema.get("required") {
        for name in required.as_array().ok_or("\"required\" is no list")? {
            let name = name.as_str().ok_or("\"required\" holds something else than names")?;
            ensure(properties.is_none_or(|p| p.get(name).is_some()), || {
                format!("required {name} does not exist")
            })?;
        }
    }
    for key in ["items", "additionalProperties", "not"] {
        schema.get(key).map_or(Ok(()), well_formed)?;
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        for inner in schema.get(key).and_then(Value::as_array).into_iter().flatten() {
            well_formed(inner)?;
        }
    }
    Ok(())
}

//! Bodies of requests beside the examples that providers publish: each field of an example is sent
//! by us with a value of the same kind, and nothing is sent that the page's reference does not
//! list. The examples are written anew with the same fields; `source` is the page.

use crate::{
    common::{Recorder, messages, prompt, request},
    formats::{ANTHROPIC, GOOGLE, OPEN_AI, RESPONSES, hello, model_with},
    peer::Peer,
};
use atomic_agent::model::{ModelRequest, ThinkingLevel};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tokio_util::sync::CancellationToken;

struct Published {
    source: &'static str,
    api: &'static str,
    /// Name of the provider in models.json: what is known of its server is known by it.
    provider: &'static str,
    model: Value,
    request: ModelRequest,
    example: Value,
    /// Fields that the page's reference lists and its example has not.
    more: &'static [&'static str],
}

/// Each place of a value, with its kind: lists count as one place, words of a vocabulary by value.
fn places(value: &Value) -> BTreeSet<String> {
    fn walk(at: &str, value: &Value, out: &mut BTreeSet<String>) {
        match value {
            // What a schema and the arguments of a call hold is the tool's affair.
            _ if ["parameters", "input_schema", "parametersJsonSchema", "input", "args"]
                .iter()
                .any(|k| at.ends_with(&format!("/{k}")))
                && value.is_object() =>
            {
                out.insert(format!("{at} object"));
            }
            Value::Object(o) => o.iter().for_each(|(k, v)| walk(&format!("{at}/{k}"), v, out)),
            Value::Array(list) => list.iter().for_each(|v| walk(&format!("{at}[]"), v, out)),
            Value::String(word) if ["/type", "/role"].iter().any(|k| at.ends_with(k)) => {
                out.insert(format!("{at}={word}"));
            }
            Value::String(_) => drop(out.insert(format!("{at} text"))),
            Value::Number(_) => drop(out.insert(format!("{at} number"))),
            Value::Bool(_) => drop(out.insert(format!("{at} bool"))),
            Value::Null => drop(out.insert(format!("{at} null"))),
        }
    }
    let mut out = BTreeSet::new();
    walk("", value, &mut out);
    out
}

fn thinking(level: ThinkingLevel, mut request: ModelRequest) -> ModelRequest {
    request.thinking = level;
    request
}

/// A call and its answer, as this provider's own model would have made it.
fn tool_turn(api: &str, provider: &str, thought: Value) -> ModelRequest {
    let mut content =
        vec![json!({"type": "toolCall", "id": "call_1", "name": "bash", "arguments": {"command": "ls"}})];
    if !thought.is_null() {
        content.insert(0, thought);
    }
    request(messages(json!([
        {"role": "user", "content": "what is here?"},
        {"role": "assistant", "api": api, "provider": provider, "model": "fake", "stopReason": "toolUse", "content": content},
        {"role": "toolResult", "toolCallId": "call_1", "toolName": "bash", "content": [{"type": "text", "text": "a"}]},
    ])))
}

fn published() -> Vec<Published> {
    let tool = |key: &str| json!({"name": "n", "description": "d", key: {"type": "object"}});
    let function = json!({"type": "function", "function": tool("parameters")});
    let thought =
        |signature: &str| json!({"type": "thinking", "thinking": "t", "thinkingSignature": signature});
    vec![
        Published {
            source: "https://platform.claude.com/docs/en/build-with-claude/extended-thinking",
            api: ANTHROPIC,
            provider: "peer",
            model: json!({}),
            request: thinking(ThinkingLevel::Medium, tool_turn(ANTHROPIC, "peer", thought("sig"))),
            example: json!({
                "model": "m", "max_tokens": 16000, "stream": true,
                "thinking": {"type": "enabled", "budget_tokens": 10000},
                "tools": [tool("input_schema")],
                "messages": [
                    {"role": "user", "content": [{"type": "text", "text": "t"}]},
                    {"role": "assistant", "content": [
                        {"type": "thinking", "thinking": "t", "signature": "s"},
                        {"type": "tool_use", "id": "i", "name": "n", "input": {}},
                    ]},
                    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "i", "content": [{"type": "text", "text": "t"}]}]},
                ],
            }),
            // docs/en/build-with-claude/prompt-caching
            more: &[
                "/system[]/type=text",
                "/system[]/text text",
                "/system[]/cache_control/type=ephemeral",
                "/tools[]/cache_control/type=ephemeral",
                "/messages[]/content[]/cache_control/type=ephemeral",
            ],
        },
        Published {
            source: "https://platform.claude.com/docs/en/build-with-claude/adaptive-thinking",
            api: ANTHROPIC,
            provider: "peer",
            model: json!({"compat": {"thinking": "adaptive", "supportsCacheControl": false}}),
            request: thinking(ThinkingLevel::High, ModelRequest { tools: vec![], ..prompt("hi") }),
            example: json!({
                "model": "m", "max_tokens": 16000, "stream": true,
                "thinking": {"type": "adaptive"}, "output_config": {"effort": "high"},
                "messages": [{"role": "user", "content": [{"type": "text", "text": "t"}]}],
            }),
            more: &["/system[]/type=text", "/system[]/text text", "/thinking/display text"],
        },
        Published {
            source: "https://platform.openai.com/docs/guides/function-calling?api-mode=chat",
            api: OPEN_AI,
            provider: "openai",
            model: json!({"reasoning": false}),
            request: tool_turn(OPEN_AI, "openai", Value::Null),
            example: json!({
                "model": "m", "stream": true, "stream_options": {"include_usage": true}, "tools": [function],
                "messages": [
                    {"role": "system", "content": "t"},
                    {"role": "user", "content": "t"},
                    {"role": "assistant", "content": null, "tool_calls": [{"id": "i", "type": "function", "function": {"name": "n", "arguments": "{}"}}]},
                    {"role": "tool", "tool_call_id": "i", "content": "t"},
                ],
            }),
            more: &["/prompt_cache_key text"],
        },
        Published {
            source: "https://platform.openai.com/docs/guides/reasoning#encrypted-reasoning-items",
            api: RESPONSES,
            provider: "openai",
            model: json!({}),
            request: thinking(
                ThinkingLevel::High,
                tool_turn(
                    RESPONSES,
                    "openai",
                    thought(
                        r#"{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"t"}],"encrypted_content":"x","status":"completed"}"#,
                    ),
                ),
            ),
            example: json!({
                "model": "m", "stream": true, "store": false, "instructions": "t",
                "include": ["reasoning.encrypted_content"],
                "reasoning": {"effort": "high", "summary": "auto"},
                "tools": [{"type": "function", "name": "n", "description": "d", "parameters": {"type": "object"}, "strict": false}],
                "input": [
                    {"role": "user", "content": [{"type": "input_text", "text": "t"}]},
                    {"type": "reasoning", "id": "i", "summary": [{"type": "summary_text", "text": "t"}], "encrypted_content": "e"},
                    {"type": "function_call", "call_id": "i", "name": "n", "arguments": "{}"},
                    {"type": "function_call_output", "call_id": "i", "output": "t"},
                ],
            }),
            more: &["/prompt_cache_key text"],
        },
        Published {
            source: "https://ai.google.dev/gemini-api/docs/function-calling",
            api: GOOGLE,
            provider: "peer",
            model: json!({"compat": {"thinking": "level"}}),
            request: thinking(ThinkingLevel::Low, tool_turn(GOOGLE, "peer", thought("sig"))),
            example: json!({
                "systemInstruction": {"parts": [{"text": "t"}]},
                "tools": [{"functionDeclarations": [tool("parametersJsonSchema")]}],
                "generationConfig": {"thinkingConfig": {"thinkingLevel": "low", "includeThoughts": true}},
                "contents": [
                    {"role": "user", "parts": [{"text": "t"}]},
                    {"role": "model", "parts": [{"functionCall": {"name": "n", "args": {}, "id": "i"}}]},
                    {"role": "user", "parts": [{"functionResponse": {"name": "n", "id": "i", "response": {"output": "t"}}}]},
                ],
            }),
            // docs/thought-signatures
            more: &["/contents[]/parts[]/thought bool", "/contents[]/parts[]/thoughtSignature text"],
        },
        Published {
            source: "https://openrouter.ai/docs/use-cases/reasoning-tokens",
            api: OPEN_AI,
            provider: "openrouter",
            model: json!({}),
            request: thinking(ThinkingLevel::High, ModelRequest { tools: vec![], ..prompt("hi") }),
            example: json!({
                "model": "m", "stream": true, "reasoning": {"effort": "high"},
                "messages": [{"role": "user", "content": "t"}],
            }),
            more: &["/messages[]/role=system", "/stream_options/include_usage bool"],
        },
        Published {
            source: "https://api-docs.deepseek.com/guides/thinking_mode",
            api: OPEN_AI,
            provider: "deepseek",
            model: json!({}),
            request: thinking(
                ThinkingLevel::High,
                tool_turn(OPEN_AI, "deepseek", thought("reasoning_content")),
            ),
            example: json!({
                "model": "m", "stream": true, "thinking": {"type": "enabled"}, "tools": [function],
                "messages": [
                    {"role": "user", "content": "t"},
                    {"role": "assistant", "reasoning_content": "t", "content": null, "tool_calls": [{"id": "i", "type": "function", "function": {"name": "n", "arguments": "{}"}}]},
                    {"role": "tool", "tool_call_id": "i", "content": "t"},
                ],
            }),
            more: &["/messages[]/role=system", "/stream_options/include_usage bool"],
        },
        Published {
            source: "https://docs.vllm.ai/en/latest/features/reasoning_outputs.html",
            api: OPEN_AI,
            provider: "vllm",
            model: json!({}),
            request: ModelRequest { tools: vec![], ..prompt("hi") },
            example: json!({
                "model": "m", "stream": true, "chat_template_kwargs": {"enable_thinking": false},
                "messages": [{"role": "user", "content": "t"}],
            }),
            more: &["/messages[]/role=system", "/stream_options/include_usage bool"],
        },
        Published {
            source: "https://github.com/ollama/ollama/blob/main/docs/api/openai-compatibility.mdx",
            api: OPEN_AI,
            provider: "ollama",
            model: json!({}),
            request: thinking(
                ThinkingLevel::Low,
                ModelRequest { tools: vec![], max_tokens: Some(9), ..prompt("hi") },
            ),
            example: json!({
                "model": "m", "stream": true, "stream_options": {"include_usage": true},
                "reasoning_effort": "low", "max_tokens": 300,
                "messages": [{"role": "system", "content": "t"}, {"role": "user", "content": "t"}],
            }),
            more: &[],
        },
        Published {
            source: "https://docs.mistral.ai/capabilities/function_calling",
            api: OPEN_AI,
            provider: "mistral",
            model: json!({}),
            request: tool_turn(OPEN_AI, "mistral", Value::Null),
            example: json!({
                "model": "m", "stream": true, "tools": [function],
                "messages": [
                    {"role": "system", "content": "t"},
                    {"role": "user", "content": "t"},
                    {"role": "assistant", "content": null, "tool_calls": [{"id": "i", "type": "function", "function": {"name": "n", "arguments": "{}"}}]},
                    {"role": "tool", "name": "n", "content": "t", "tool_call_id": "i"},
                ],
            }),
            more: &[],
        },
    ]
}

#[tokio::test]
async fn every_body_has_the_published_fields_and_no_other() {
    for Published { source, api, provider, model, request, example, more } in published() {
        let peer = Peer::start(vec![hello(api)]).await;
        let asked = model_with(&peer.url, api, json!({"name": provider}), model);
        let asked = crate::formats::named(provider, asked, &peer.url);
        asked.stream(request, &mut Recorder::default(), &CancellationToken::new()).await;
        let body = peer.sent()[0].body.clone();
        let (ours, theirs) = (places(&body), places(&example));
        let missing: Vec<&String> = theirs.difference(&ours).collect();
        assert!(missing.is_empty(), "{source}: not sent: {missing:?}\n{body:#}");
        let known: BTreeSet<String> =
            theirs.iter().cloned().chain(more.iter().map(|m| (*m).to_owned())).collect();
        let unknown: Vec<&String> = ours.difference(&known).collect();
        assert!(unknown.is_empty(), "{source}: sent and not published: {unknown:?}\n{body:#}");
    }
}

/// platform.claude.com/docs/en/build-with-claude/prompt-caching, "Mid-conversation system messages",
/// and platform.openai.com/docs/guides/text: a change of the prompt stands where it came, or the
/// whole prompt is sent in front.
#[tokio::test]
async fn a_changed_prompt_is_a_message_for_models_that_take_it_and_replayed_in_front_for_others() {
    let with_change = || {
        let mut request = request(messages(json!([
            {"role": "user", "content": "one"},
            {"role": "assistant", "content": [{"type": "text", "text": "1"}], "stopReason": "stop"},
            {"role": "system", "content": "From now on be long."},
            {"role": "user", "content": "two"},
        ])));
        request.tools.clear();
        request
    };
    let said = |role: &str, text: &str| json!({"role": role, "content": text});
    let block = |text: &str| json!([{"type": "text", "text": text}]);
    let item = |text: &str| json!([{"type": "input_text", "text": text}]);
    for (api, list, golden) in [
        (
            OPEN_AI,
            "messages",
            json!([
                said("system", "Be brief."),
                said("user", "one"),
                said("assistant", "1"),
                said("system", "From now on be long."),
                said("user", "two")
            ]),
        ),
        (
            ANTHROPIC,
            "messages",
            json!([
                {"role": "user", "content": block("one")}, {"role": "assistant", "content": block("1")},
                {"role": "user", "content": block("two")}, said("system", "From now on be long."),
            ]),
        ),
        (
            RESPONSES,
            "input",
            json!([
                {"role": "user", "content": item("one")},
                {"type": "message", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": "1", "annotations": []}]},
                {"role": "developer", "content": item("From now on be long.")},
                {"role": "user", "content": item("two")},
            ]),
        ),
    ] {
        let peer = Peer::start(vec![hello(api), hello(api)]).await;
        let settings = json!({"reasoning": false, "compat": {"supportsCacheControl": false, "supportsMidConversationSystem": true}});
        let model = model_with(&peer.url, api, json!({}), settings);
        assert!(model.info().mid_conversation_system);
        model.stream(with_change(), &mut Recorder::default(), &CancellationToken::new()).await;
        assert_eq!(peer.sent()[0].body[list], golden, "{api}");
        // Without it the core sends none; what is in front then is the prompt as it is now.
        let plain = model_with(
            &peer.url,
            api,
            json!({}),
            json!({"compat": {"supportsMidConversationSystem": false}}),
        );
        assert!(!plain.info().mid_conversation_system);
    }
}

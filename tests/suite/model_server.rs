//! The fake model server, and through it all wire formats end to end: it takes what our
//! models send, and refuses what a provider would refuse.

#![allow(clippy::unwrap_used)] // the lint's exception for tests does not reach their helpers

use async_trait::async_trait;
use atomic_agent::{
    message::{AssistantEvent, AssistantMessage, Content, Message, StopReason, ToolResultMessage},
    model::{Model, ModelRequest, StreamSink, ThinkingLevel, ToolDeclaration},
};
use atomic_models::{ModelSet, Sources};
use atomic_tests::model_server::{Answer, Format, Gate, ModelServer};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    io::{Read as _, Write as _},
    sync::Arc,
};
use tokio_util::sync::CancellationToken;

struct Deaf;

#[async_trait]
impl StreamSink for Deaf {
    async fn headers(&mut self, _: &mut BTreeMap<String, Option<String>>) {}
    async fn payload(&mut self, _: &mut Value) {}
    async fn response(&mut self, _: u16, _: BTreeMap<String, String>) {}
    async fn provider_event(&mut self, _: &Value) {}
    async fn event(&mut self, _: AssistantEvent) {}
}

fn model(server: &ModelServer, provider: &str) -> Arc<dyn Model> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("models.json");
    std::fs::write(&path, server.models_json()).unwrap();
    let set = ModelSet::load(Sources { models_json: Some(path), ..Sources::default() });
    assert!(set.problems().is_empty());
    set.get(provider, "fake").unwrap()
}

fn request(messages: Vec<Message>) -> ModelRequest {
    ModelRequest {
        system_prompt: "Be brief.".to_owned(),
        messages,
        tools: vec![ToolDeclaration {
            name: "bash".to_owned(),
            description: "Run a command".to_owned(),
            parameters: json!({"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}),
        }],
        thinking: ThinkingLevel::Medium,
        max_tokens: None,
        session_id: "s".to_owned(),
    }
}

async fn ask(model: &Arc<dyn Model>, messages: Vec<Message>) -> AssistantMessage {
    model.stream(request(messages), &mut Deaf, &CancellationToken::new()).await
}

fn result_of(id: &str, text: &str) -> Message {
    Message::ToolResult(ToolResultMessage {
        tool_call_id: id.to_owned(),
        tool_name: "bash".to_owned(),
        content: vec![Content::text(text)],
        details: None,
        is_error: false,
        timestamp: 0,
        extra: Default::default(),
    })
}

#[tokio::test]
async fn a_tool_loop_with_thinking_is_accepted_in_every_format() {
    for (provider, format) in [
        ("fake-openai", Format::OpenAi),
        ("fake-anthropic", Format::Anthropic),
        ("fake-responses", Format::Responses),
        ("fake-google", Format::Google),
    ] {
        let server = ModelServer::start([
            Answer::default()
                .thinking("Which files are there?")
                .and_text("Looking around.")
                .call("bash", json!({"command": "ls"}))
                .call("bash", json!({"command": "pwd"})),
            Answer::text("Two files."),
        ]);
        let model = model(&server, provider);
        let mut transcript = vec![Message::user("what is here?", 0)];
        let first = ask(&model, transcript.clone()).await;
        assert_eq!(first.stop_reason, Some(StopReason::ToolUse), "{provider}: {:?}", first.error_message);
        assert_eq!((first.usage.input, first.usage.cache_read, first.usage.output), (60, 40, 20));
        assert!(first.usage.cost.total > 0.0);

        let ids: Vec<String> = first.tool_calls().map(|c| c.id.clone()).collect();
        transcript.push(Message::Assistant(first));
        transcript.extend(ids.iter().map(|id| result_of(id, &format!("output of {id}"))));
        let second = ask(&model, transcript).await;
        assert_eq!(second.stop_reason, Some(StopReason::Stop), "{:?}", second.error_message);

        let requests = server.requests();
        assert_eq!(requests[1].format, Some(format));
        assert_eq!(requests[0].last_user_text(), "what is here?");
        assert_eq!(requests[0].tools(), ["bash"]);
        let outputs: Vec<String> = ids.iter().map(|id| format!("output of {id}")).collect();
        assert_eq!(requests[1].last_results(), outputs);
        server.assert_finished();
    }
}

#[tokio::test]
async fn errors_cuts_and_garbage_end_as_messages_not_as_hangs() {
    for provider in ["fake-openai", "fake-anthropic", "fake-responses", "fake-google"] {
        let server = ModelServer::start([
            Answer::status(529),
            Answer::text("half of it").cut(),
            Answer::garbage(b"\xff\xfe\x00 nothing of the kind \n\n"),
            Answer::garbage(b"data: {\"type\": \n\n"),
            Answer::default().call_raw("bash", "{\"command\": \"ls"),
        ]);
        let model = model(&server, provider);
        let hello = || vec![Message::user("hi", 0)];
        for words in ["529", "incomplete", "UTF-8", "not JSON"] {
            let message = ask(&model, hello()).await;
            assert_eq!(message.stop_reason, Some(StopReason::Error), "{provider} {words}");
            let said = message.error_message.unwrap();
            assert!(said.contains(words), "{provider}: {said}");
        }
        let message = ask(&model, hello()).await;
        let call = message.tool_calls().next().unwrap();
        assert_eq!(
            call.arguments,
            json!("{\"command\": \"ls"),
            "{provider}: broken arguments fail every object schema"
        );
    }
}

#[tokio::test]
async fn an_answer_that_never_goes_on_can_be_cancelled() {
    for provider in ["fake-openai", "fake-anthropic", "fake-responses", "fake-google"] {
        let server = ModelServer::start([Answer::text("and then").hang()]);
        let model = model(&server, provider);
        let cancel = CancellationToken::new();
        let asked = tokio::spawn({
            let cancel = cancel.clone();
            async move { model.stream(request(vec![Message::user("hi", 0)]), &mut Deaf, &cancel).await }
        });
        let arrived = tokio::task::spawn_blocking(move || {
            server.wait_for_requests(1);
            server
        });
        let server = arrived.await.unwrap();
        cancel.cancel();
        assert_eq!(asked.await.unwrap().stop_reason, Some(StopReason::Aborted));
        server.assert_ok();
    }
}

#[test]
fn an_answer_waits_for_its_gate() {
    let gate = Gate::new();
    let server = ModelServer::start([Answer::text("late").behind(&gate)]);
    let url = server.url();
    let asked = std::thread::spawn(move || post(&url, "/v1/chat/completions", &open_ai(json!([user()]))));
    server.wait_for_requests(1);
    assert!(!asked.is_finished());
    gate.open();
    assert!(asked.join().unwrap().contains("late"));
}

fn user() -> Value {
    json!({"role": "user", "content": "hi"})
}

fn open_ai(messages: Value) -> Value {
    json!({"model": "m", "stream": true, "messages": messages})
}

fn anthropic(messages: Value) -> Value {
    json!({"model": "m", "stream": true, "max_tokens": 100, "messages": messages})
}

/// The whole answer, head and body.
fn post(url: &str, path: &str, body: &Value) -> String {
    let address = url.strip_prefix("http://").unwrap();
    let mut socket = std::net::TcpStream::connect(address).unwrap();
    let body = body.to_string();
    write!(
        socket,
        "POST {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\nanthropic-version: 1\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn what_a_provider_refuses_is_refused_and_named() {
    let call =
        |id: &str| json!({"id": id, "type": "function", "function": {"name": "bash", "arguments": "{}"}});
    let calls = |ids: &[&str]| json!({"role": "assistant", "content": null, "tool_calls": ids.iter().map(|id| call(id)).collect::<Vec<_>>()});
    let tool = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "out"});
    let uses = |id: &str| json!({"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "bash", "input": {}}]});
    let result = |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": "out"});
    let tools = |tools: Value| json!({"model": "m", "stream": true, "messages": [user()], "tools": tools});
    let function = |name: &str, schema: Value| json!({"type": "function", "function": {"name": name, "description": "d", "parameters": schema}});
    let midway =
        |messages: Value| json!({"model": "midway", "stream": true, "max_tokens": 100, "messages": messages});
    let responses = |input: Value| json!({"model": "m", "stream": true, "store": false, "input": input});
    let google = |contents: Value| json!({"contents": contents});
    let user_item = || json!({"role": "user", "content": [{"type": "input_text", "text": "hi"}]});
    let made = |id: &str| json!({"type": "function_call", "call_id": id, "name": "bash", "arguments": "{}"});
    let output = |id: &str| json!({"type": "function_call_output", "call_id": id, "output": "out"});
    let user_content = || json!({"role": "user", "parts": [{"text": "hi"}]});
    let model_calls = |id: &str| json!({"role": "model", "parts": [{"functionCall": {"id": id, "name": "bash", "args": {}}}]});
    let answered = |id: &str| json!({"role": "user", "parts": [{"functionResponse": {"id": id, "name": "bash", "response": {}}}]});
    let (chat, msgs) = ("/v1/chat/completions", "/v1/messages");
    let (items, gemini) = ("/v1/responses", "/v1beta/models/m:streamGenerateContent");

    let refused = [
        (chat, open_ai(json!([user(), calls(&["a"]), user()])), "calls without result: a"),
        (chat, open_ai(json!([user(), calls(&["a", "b"]), tool("a")])), "calls without result: b"),
        (chat, open_ai(json!([user(), calls(&["a", "b"]), tool("b"), tool("a")])), "comes before"),
        (chat, open_ai(json!([user(), calls(&["a"]), tool("a"), tool("a")])), "a second result of a"),
        (chat, open_ai(json!([user(), tool("x")])), "which no call asked for"),
        (chat, open_ai(json!([user(), calls(&["a"]), tool("a"), calls(&["a"]), tool("a")])), "used twice"),
        (chat, open_ai(json!([{"role": "toolResult", "content": "x"}])), "does not exist"),
        (chat, open_ai(json!([user(), {"role": "assistant", "content": "hi"}])), "nothing is asked"),
        (chat, open_ai(json!([])), "\"messages\" is empty"),
        (chat, json!({"model": "m", "messages": [user()]}), "\"stream\""),
        (chat, tools(json!([function("bash", json!({"type": "string"}))])), "no object's"),
        (chat, tools(json!([function("a b", json!({"type": "object"}))])), "illegal tool name"),
        (
            chat,
            tools(json!([
                function("a", json!({"type": "object"})),
                function("a", json!({"type": "object"}))
            ])),
            "two tools",
        ),
        (
            chat,
            tools(json!([function("a", json!({"type": "object", "properties": {}, "required": ["x"]}))])),
            "required x",
        ),
        (msgs, anthropic(json!([user(), uses("a"), user()])), "calls without result: a"),
        (
            msgs,
            anthropic(
                json!([user(), uses("a"), {"role": "user", "content": [{"type": "text", "text": "t"}, result("a")]}]),
            ),
            "calls without result: a",
        ),
        (msgs, anthropic(json!([{"role": "user", "content": [result("x")]}])), "which no call asked for"),
        (
            msgs,
            anthropic(json!([user(), uses("a.b"), {"role": "user", "content": [result("a.b")]}])),
            "illegal call id",
        ),
        (
            msgs,
            anthropic(json!([{"role": "user", "content": [{"type": "text", "text": " "}]}])),
            "empty text",
        ),
        (msgs, anthropic(json!([{"role": "assistant", "content": "hi"}, user()])), "first message"),
        (
            chat,
            json!({"model": "m", "stream": true, "messages": [user()], "hologram": 1}),
            "unknown field hologram",
        ),
        (
            chat,
            open_ai(json!([user(), {"role": "user", "content": "x", "timestamp": 1}])),
            "message 1: unknown field timestamp",
        ),
        (chat, open_ai(json!([user(), {"role": "system", "content": "x"}])), "is not first"),
        (msgs, anthropic(json!([user(), {"role": "system", "content": "x"}])), "takes no system messages"),
        (
            msgs,
            midway(
                json!([user(), {"role": "assistant", "content": "a"}, {"role": "system", "content": "x"}, user()]),
            ),
            "in a place where none may be",
        ),
        (
            msgs,
            anthropic(json!([user(), {"role": "user", "content": [{"type": "text", "text": "t", "id": 1}]}])),
            "unknown field id",
        ),
        (
            msgs,
            anthropic(
                json!([{"role": "user", "content": (0..5).map(|n| json!({"type": "text", "text": n.to_string(), "cache_control": {"type": "ephemeral"}})).collect::<Vec<_>>()}]),
            ),
            "5 cache_control markers",
        ),
        (items, responses(json!([user_item(), made("a"), user_item()])), "calls without result: a"),
        (items, responses(json!([user_item(), output("a")])), "which no call asked for"),
        (
            items,
            responses(
                json!([user_item(), {"type": "reasoning", "id": "rs", "summary": []}, made("a"), output("a")]),
            ),
            "come back sealed",
        ),
        (
            items,
            responses(
                json!([user_item(), {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "x"}]),
            ),
            "without what followed it",
        ),
        (items, responses(json!([{"role": "user", "content": [], "type": "message"}])), "no content"),
        (gemini, google(json!([model_calls("a"), answered("a")])), "first content is not of the user"),
        (
            gemini,
            google(json!([user_content(), model_calls("a"), user_content()])),
            "calls without result: a",
        ),
        (
            gemini,
            google(
                json!([user_content(), model_calls("a"), {"role": "user", "parts": [answered("a")["parts"][0], {"text": "and"}]}]),
            ),
            "stand alone",
        ),
        (
            gemini,
            google(json!([{"role": "user", "parts": [{"text": "x", "hologram": 1}]}])),
            "unknown field hologram",
        ),
        ("/v2/elsewhere", json!({}), "no such path"),
    ];
    let server = ModelServer::start([]);
    for (path, body, words) in refused {
        let answer = post(&server.url(), path, &body);
        assert!(answer.starts_with("HTTP/1.1 400"), "{body}: {answer}");
        let failures = server.take_failures();
        assert!(failures.len() == 1 && failures[0].contains(words), "{words}: {failures:?}");
    }
    let accepted = open_ai(json!([user(), calls(&["a", "b"]), tool("a"), tool("b")]));
    assert!(post(&server.url(), chat, &accepted).starts_with("HTTP/1.1 500"), "the script is empty");
    assert!(server.take_failures()[0].contains("no answer is left"));
}

#[test]
fn a_refused_request_fails_the_test_that_owns_the_server() {
    let dropped = std::panic::catch_unwind(|| {
        let server = ModelServer::start([]);
        post(&server.url(), "/v1/messages", &anthropic(json!([])));
    });
    let why = dropped.unwrap_err();
    assert!(why.downcast_ref::<String>().unwrap().contains("the model server refused"));
}

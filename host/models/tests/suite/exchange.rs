//! One request over a real socket: what is sent, what hooks may change, how it ends.

use crate::{
    common::{Recorder, Told, messages, prompt, request},
    formats::{ALL, ANTHROPIC, GOOGLE, KEY, OPEN_AI, RESPONSES, hello, model, model_with},
    peer::{Peer, Reply, status},
};
use atomic_agent::{
    message::{AssistantEvent, AssistantMessage, ERROR_CODE, ERROR_HELP, StopReason},
    model::{Model, ModelRequest, ThinkingLevel},
};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

async fn ask(model: &Arc<dyn Model>, sink: &mut Recorder, request: ModelRequest) -> AssistantMessage {
    model.stream(request, sink, &CancellationToken::new()).await
}

#[tokio::test]
async fn hooks_are_told_headers_payload_response_and_then_each_event_before_its_meaning() {
    for api in ALL {
        let peer = Peer::start(vec![hello(api)]).await;
        let mut sink = Recorder::default();
        let message = ask(&model(&peer.url, api), &mut sink, prompt("hi")).await;
        assert_eq!(message.stop_reason, Some(StopReason::Stop), "{:?}", message.error_message);
        assert_eq!(sink.told[..3], [Told::Headers, Told::Payload, Told::Response(200)]);
        assert_eq!(sink.told[3], Told::Event(AssistantEvent::Start));
        assert!(
            matches!(sink.told[4], Told::Raw(_))
                && matches!(sink.told[5], Told::Event(AssistantEvent::TextStart { .. }))
        );
        assert!(matches!(sink.told.last(), Some(Told::Event(AssistantEvent::Done { .. }))));
        assert_eq!(sink.response_headers["x-request-id"], "r1");
    }
}

#[tokio::test]
async fn the_key_goes_where_the_format_wants_it() {
    for (api, provider, line, name, value) in [
        (OPEN_AI, json!({}), "POST /v1/chat/completions HTTP/1.1", "authorization", format!("Bearer {KEY}")),
        (ANTHROPIC, json!({}), "POST /v1/messages HTTP/1.1", "x-api-key", KEY.to_owned()),
        (
            ANTHROPIC,
            json!({"authHeader": true}),
            "POST /v1/messages HTTP/1.1",
            "authorization",
            format!("Bearer {KEY}"),
        ),
        (RESPONSES, json!({}), "POST /v1/responses HTTP/1.1", "authorization", format!("Bearer {KEY}")),
        (
            GOOGLE,
            json!({}),
            "POST /v1/models/fake:streamGenerateContent?alt=sse HTTP/1.1",
            "x-goog-api-key",
            KEY.to_owned(),
        ),
    ] {
        let peer = Peer::start(vec![hello(api)]).await;
        let model = model_with(&format!("{}/v1/", peer.url), api, provider, json!({}));
        ask(&model, &mut Recorder::default(), prompt("hi")).await;
        let sent = &peer.sent()[0];
        assert_eq!(sent.line, line);
        assert_eq!(sent.headers[name], value);
        assert_eq!(sent.headers["content-type"], "application/json");
        assert!(sent.headers["user-agent"].starts_with("atomic/"));
        let keys = ["authorization", "x-api-key", "x-goog-api-key"]
            .iter()
            .filter(|k| sent.headers.contains_key(**k));
        assert_eq!(keys.count(), 1);
    }
}

#[tokio::test]
async fn configured_headers_are_resolved_and_a_null_takes_a_default_away() {
    let peer = Peer::start(vec![hello(ANTHROPIC)]).await;
    let headers = json!({"headers": {"X-Tenant": "$TENANT", "Anthropic-Version": null}});
    ask(&model_with(&peer.url, ANTHROPIC, headers, json!({})), &mut Recorder::default(), prompt("hi")).await;
    let sent = &peer.sent()[0].headers;
    assert_eq!(sent["x-tenant"], "tenant-7");
    assert!(!sent.contains_key("anthropic-version"));
}

#[tokio::test]
async fn a_hook_adds_replaces_suppresses_and_deletes_headers() {
    let peer = Peer::start(vec![hello(ANTHROPIC)]).await;
    let mut sink = Recorder {
        edit_headers: Some(Box::new(|headers| {
            headers.insert("x-added".into(), Some("yes".into()));
            headers.insert("X-Api-Key".into(), Some("another".into()));
            headers.insert("anthropic-version".into(), None);
            headers.remove("user-agent");
        })),
        ..Recorder::default()
    };
    ask(&model(&peer.url, ANTHROPIC), &mut sink, prompt("hi")).await;
    let sent = &peer.sent()[0].headers;
    assert_eq!((sent["x-added"].as_str(), sent["x-api-key"].as_str()), ("yes", "another"));
    assert!(!sent.contains_key("anthropic-version") && !sent.contains_key("user-agent"));
}

#[tokio::test]
async fn a_header_that_cannot_be_sent_is_named_and_nothing_is_sent() {
    let peer = Peer::start(vec![hello(OPEN_AI)]).await;
    let mut sink = Recorder {
        edit_headers: Some(Box::new(|headers| {
            headers.insert("x-broken".into(), Some("two\nlines".into()));
        })),
        ..Recorder::default()
    };
    let message = ask(&model(&peer.url, OPEN_AI), &mut sink, prompt("hi")).await;
    assert!(message.error_message.unwrap().contains("x-broken"));
    assert!(peer.sent().is_empty());
}

#[tokio::test]
async fn a_replaced_payload_is_what_goes_out() {
    for api in ALL {
        let peer = Peer::start(vec![hello(api)]).await;
        let mut sink = Recorder { replace_payload: Some(json!({"all": "mine"})), ..Recorder::default() };
        ask(&model(&peer.url, api), &mut sink, prompt("hi")).await;
        assert_eq!(peer.sent()[0].body, json!({"all": "mine"}));
    }
}

#[tokio::test]
async fn an_error_status_is_quoted_without_the_key() {
    let echo =
        format!("{{\"error\":{{\"message\":\"bad key {KEY}\\u001b[31m for tenant-7\",\"type\":\"auth\"}}}}");
    for api in ALL {
        let peer = Peer::start(vec![status("401 Unauthorized", "application/json", &echo)]).await;
        let mut sink = Recorder::default();
        let model = model_with(&peer.url, api, json!({"headers": {"x-t": "$TENANT"}}), json!({}));
        let message = ask(&model, &mut sink, prompt("hi")).await;
        assert_eq!(message.stop_reason, Some(StopReason::Error));
        assert_eq!(
            message.error_message.as_deref(),
            Some("peer answered 401 Unauthorized: bad key [redacted][31m for [redacted] (auth)")
        );
        assert_eq!(message.extra[ERROR_CODE], "models::key_rejected");
        assert!(message.extra[ERROR_HELP].as_str().unwrap().contains("apiKey"));
        assert_eq!(sink.steps(), ["start", "error"]);
        assert_eq!(sink.told[2], Told::Response(401));
    }
}

#[tokio::test]
async fn what_is_no_event_stream_is_an_error_that_quotes_it() {
    for (kind, body) in
        [("text/html; charset=utf-8", "<h1>log in</h1>"), ("application/json", "{\"detail\":\"log in\"}")]
    {
        let peer = Peer::start(vec![status("200 OK", kind, body)]).await;
        let message = ask(&model(&peer.url, OPEN_AI), &mut Recorder::default(), prompt("hi")).await;
        let said = message.error_message.unwrap();
        assert!(said.contains("instead of an event stream") && said.contains("log in"), "{said}");
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed_with_the_key() {
    let other = Peer::start(vec![hello(OPEN_AI)]).await;
    let moved =
        format!("HTTP/1.1 307 Temporary Redirect\r\nlocation: {}/v1\r\nconnection: close\r\n\r\n", other.url);
    let peer = Peer::start(vec![Reply::Bytes(moved.into_bytes())]).await;
    let message = ask(&model(&peer.url, OPEN_AI), &mut Recorder::default(), prompt("hi")).await;
    assert!(message.error_message.unwrap().contains("307"));
    assert!(other.sent().is_empty());
}

#[tokio::test]
async fn an_address_where_nobody_answers_is_named_without_its_secrets() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let url = format!("http://user:hunter22@127.0.0.1:{port}/v1");
    let mut sink = Recorder::default();
    let message = ask(&model(&url, OPEN_AI), &mut sink, prompt("hi")).await;
    let said = message.error_message.unwrap();
    let words = format!("cannot reach peer at http://127.0.0.1:{port}: Connection refused");
    assert!(said.starts_with(&words), "{said}");
    assert!(!said.contains("hunter22"), "{said}");
    assert_eq!(message.extra[ERROR_CODE], "models::unreachable");
    assert_eq!(sink.steps(), ["start", "error"]);
}

#[tokio::test]
async fn a_server_that_speaks_no_tls_is_an_error_of_tls() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        std::io::Write::write_all(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
        // Closed only after the greeting was read, so that no reset overtakes the answer.
        let _ = std::io::Read::read(&mut stream, &mut [0; 1024]);
    });
    let message = ask(&model(&url, OPEN_AI), &mut Recorder::default(), prompt("hi")).await;
    assert_eq!(message.extra[ERROR_CODE], "models::tls", "{:?}", message.error_message);
}

#[tokio::test]
async fn a_request_can_be_cancelled_before_while_and_after_the_server_speaks() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n".to_vec();
    let silent_error = b"HTTP/1.1 500 Oops\r\ncontent-length: 100\r\n\r\nwhy".to_vec();
    for api in ALL {
        for start in
            [vec![], head.clone(), [head.clone(), b"data: {\"a\":".to_vec()].concat(), silent_error.clone()]
        {
            let mut peer = Peer::start(vec![Reply::Silence(start)]).await;
            let model = model(&peer.url, api);
            let cancel = CancellationToken::new();
            let asked = tokio::spawn({
                let cancel = cancel.clone();
                async move { model.stream(prompt("hi"), &mut Recorder::default(), &cancel).await }
            });
            peer.answered().await;
            cancel.cancel();
            assert_eq!(asked.await.unwrap().stop_reason, Some(StopReason::Aborted));
        }
    }
}

#[tokio::test]
async fn what_came_before_an_abort_stays() {
    let chunk = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\n";
    let peer = Peer::start(vec![Reply::Silence(chunk.into())]).await;
    let cancel = CancellationToken::new();
    let mut sink = Recorder { cancel_at_delta: Some(cancel.clone()), ..Recorder::default() };
    let message = model(&peer.url, OPEN_AI).stream(prompt("hi"), &mut sink, &cancel).await;
    assert_eq!(message.stop_reason, Some(StopReason::Aborted));
    assert_eq!(serde_json::to_value(&message.content).unwrap(), json!([{"type": "text", "text": "half"}]));
    assert_eq!(sink.steps().last().unwrap(), "error");
}

#[tokio::test]
async fn a_request_cancelled_before_it_starts_is_not_sent() {
    let peer = Peer::start(vec![hello(OPEN_AI)]).await;
    let cancel = CancellationToken::new();
    cancel.cancel();
    let message = model(&peer.url, OPEN_AI).stream(prompt("hi"), &mut Recorder::default(), &cancel).await;
    assert_eq!(message.stop_reason, Some(StopReason::Aborted));
    assert!(peer.sent().is_empty());
}

/// Runs a story of this file again in a process that has a proxy where nobody listens.
#[test]
fn this_machine_is_never_asked_through_a_proxy() {
    let story = "exchange::a_replaced_payload_is_what_goes_out";
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", story])
        .envs(["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"].map(|name| (name, "http://127.0.0.1:1")))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

/// A transcript with everything in it.
fn rich(api: &str) -> ModelRequest {
    let mut request = request(messages(json!([
        {"role": "user", "content": [{"type": "text", "text": "look"}, {"type": "image", "data": "QUJD", "mimeType": "image/png"}]},
        {"role": "assistant", "api": api, "provider": "peer", "model": "fake", "stopReason": "toolUse", "content": [
            {"type": "thinking", "thinking": "hm", "thinkingSignature": "reasoning_content"},
            {"type": "text", "text": "Two calls."},
            {"type": "toolCall", "id": "call|1.x", "name": "bash", "arguments": {"command": "ls"}},
            {"type": "toolCall", "id": "call-2-of-a-provider-with-long-ids-of-many-characters", "name": "bash", "arguments": "{\"broken"}
        ]},
        {"role": "toolResult", "toolCallId": "call|1.x", "toolName": "bash", "content": [{"type": "text", "text": "a.png"}, {"type": "image", "data": "REVG", "mimeType": "image/gif"}]},
        {"role": "toolResult", "toolCallId": "call-2-of-a-provider-with-long-ids-of-many-characters", "toolName": "bash", "content": [], "isError": true},
        {"role": "assistant", "provider": "other", "model": "else", "stopReason": "stop", "content": [
            {"type": "thinking", "thinking": "foreign", "thinkingSignature": "abc"}, {"type": "text", "text": "Seen."}
        ]},
        {"role": "assistant", "provider": "peer", "model": "fake", "stopReason": "aborted", "content": [
            {"type": "toolCall", "id": "never", "name": "bash", "arguments": {}}
        ]},
        {"role": "toolResult", "toolCallId": "never", "toolName": "bash", "content": [], "isError": true},
        {"role": "user", "content": "and now?"},
        {"role": "hologram", "content": "of a later version"}
    ])));
    request.thinking = ThinkingLevel::High;
    request.max_tokens = Some(12_000);
    request
}

#[tokio::test]
async fn a_rich_transcript_is_sent_as_the_golden_body() {
    let goldens = [
        (OPEN_AI, json!({}), include_str!("golden/openai_completions.json")),
        (ANTHROPIC, json!({}), include_str!("golden/anthropic_budget.json")),
        (RESPONSES, json!({}), include_str!("golden/openai_responses.json")),
        (GOOGLE, json!({}), include_str!("golden/google.json")),
        (
            ANTHROPIC,
            json!({"compat": {"thinking": "adaptive"}}),
            include_str!("golden/anthropic_adaptive.json"),
        ),
    ];
    for (api, settings, golden) in goldens {
        let peer = Peer::start(vec![hello(api)]).await;
        ask(&model_with(&peer.url, api, json!({}), settings), &mut Recorder::default(), rich(api)).await;
        let golden: Value = serde_json::from_str(golden).unwrap();
        let body = &peer.sent()[0].body;
        assert_eq!(*body, golden, "sent:\n{body:#}");
    }
}

#[tokio::test]
async fn a_model_that_does_not_see_is_told_that_an_image_was_left_out() {
    for api in ALL {
        let peer = Peer::start(vec![hello(api)]).await;
        let blind = model_with(&peer.url, api, json!({}), json!({"input": ["text"]}));
        ask(&blind, &mut Recorder::default(), rich(api)).await;
        let body = peer.sent()[0].body.to_string();
        assert_eq!(body.matches("an image was left out").count(), 2);
        assert!(!body.contains("QUJD") && !body.contains("REVG"));
    }
}

#[tokio::test]
async fn thinking_levels_take_the_names_a_model_has_for_them() {
    let peer = Peer::start(vec![hello(OPEN_AI), hello(OPEN_AI)]).await;
    let mapped = json!({"thinkingLevelMap": {"high": "very", "off": null}});
    let model = model_with(&peer.url, OPEN_AI, json!({}), mapped);
    let mut request = prompt("hi");
    request.thinking = ThinkingLevel::High;
    ask(&model, &mut Recorder::default(), request).await;
    ask(&model, &mut Recorder::default(), prompt("hi")).await;
    assert_eq!(peer.sent()[0].body["reasoning_effort"], "very");
    assert_eq!(peer.sent()[1].body.get("reasoning_effort"), None);
}

//! Servers that misbehave, in every format: what comes of it is a message with a code that says
//! whether asking again may help.

use crate::{
    common::{Recorder, prompt},
    formats::{ALL, hello, hello_body, model, model_idle},
    peer::{Peer, Reply, events, status},
};
use atomic_agent::{
    message::{AssistantMessage, ERROR_CODE, RETRY_AFTER, StopReason},
    model::Model,
};
use std::{sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;

async fn ask(model: &Arc<dyn Model>) -> AssistantMessage {
    model.stream(prompt("hi"), &mut Recorder::default(), &CancellationToken::new()).await
}

fn code(message: &AssistantMessage) -> &str {
    message.extra.get(ERROR_CODE).and_then(|c| c.as_str()).unwrap_or_default()
}

#[tokio::test]
async fn a_busy_server_says_when_to_come_back_and_each_status_has_its_code() {
    for api in ALL {
        for (line, header, wanted, after) in [
            ("429 Too Many Requests", "retry-after: 7", "models::rate_limited", Some(7_000)),
            ("529 Overloaded", "retry-after-ms: 250", "models::server_error", Some(250)),
            ("500 Internal Server Error", "x-nothing: 1", "models::server_error", None),
            ("503 Service Unavailable", "retry-after: 1.5", "models::server_error", Some(1_500)),
        ] {
            let reply =
                format!("HTTP/1.1 {line}\r\n{header}\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{{}}");
            let peer = Peer::start(vec![Reply::Bytes(reply.into_bytes())]).await;
            let message = ask(&model(&peer.url, api)).await;
            assert_eq!(code(&message), wanted, "{api} {line}");
            let said = message.extra.get(RETRY_AFTER).and_then(serde_json::Value::as_u64);
            assert_eq!(said, after, "{api} {line}");
        }
    }
}

#[tokio::test]
async fn b63_a_server_that_falls_silent_is_given_up_after_the_deadline_and_what_came_is_kept() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
    for api in ALL {
        let half: String = hello_body(api).chars().take(40).collect();
        for said in [String::new(), head.to_owned(), format!("{head}{half}")] {
            let peer = Peer::start(vec![Reply::Silence(said.into_bytes())]).await;
            let message = ask(&model_idle(&peer.url, api, Duration::from_millis(200))).await;
            assert_eq!(message.stop_reason, Some(StopReason::Error));
            assert_eq!(code(&message), "models::stalled", "{api}: {:?}", message.error_message);
        }
    }
}

#[tokio::test]
async fn b63_an_answer_that_comes_compressed_and_damaged_is_a_passing_fault() {
    for api in ALL {
        let mut reply = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip\r\nconnection: close\r\n\r\n".to_vec();
        reply.extend([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xff, 0x00, 0x13, 0x37]);
        let peer = Peer::start(vec![Reply::Bytes(reply), hello(api)]).await;
        let model = model(&peer.url, api);
        let message = ask(&model).await;
        assert_eq!(code(&message), "models::garbled_stream", "{api}");
        assert!(message.error_message.unwrap().contains("compressed (gzip)"));
        assert_eq!(peer.sent()[0].headers["accept-encoding"], "identity", "nobody asked for it");
        assert_eq!(ask(&model).await.stop_reason, Some(StopReason::Stop));
    }
}

#[tokio::test]
async fn signs_of_life_empty_choices_and_events_of_later_versions_are_passed_over() {
    let noise = concat!(
        ": keep-alive\n\n",
        "event: ping\ndata: {\"type\": \"ping\"}\n\n",
        "data: {\"choices\": []}\n\n",
        "data: {\"candidates\": []}\n\n",
        "data: {\"type\": \"hologram.delta\", \"index\": 7, \"delta\": {\"type\": \"light\"}}\n\n",
        "retry: 10\n\nid: 4\n\n",
        ": OPENROUTER PROCESSING\r\n\r\n",
    );
    for api in ALL {
        let peer = Peer::start(vec![events(&format!("{noise}{}", hello_body(api)))]).await;
        let message = ask(&model(&peer.url, api)).await;
        assert_eq!(message.stop_reason, Some(StopReason::Stop), "{api}: {:?}", message.error_message);
        assert_eq!(message.content[0].as_text(), Some("hello"), "{api}");
    }
}

#[tokio::test]
async fn a_stream_that_breaks_in_the_middle_is_a_passing_fault_that_keeps_what_came() {
    for api in ALL {
        let body = hello_body(api);
        let upto = body.find("hello").unwrap() + 5;
        let peer = Peer::start(vec![events(&body[..upto]), status("200 OK", "text/event-stream", "")]).await;
        let model = model(&peer.url, api);
        for _ in 0..2 {
            let message = ask(&model).await;
            assert_eq!(
                (message.stop_reason, code(&message)),
                (Some(StopReason::Error), "models::connection"),
                "{api}"
            );
        }
    }
}

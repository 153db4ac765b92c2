//! A model that cannot answer just now, as a person and a program see it.

use atomic_tests::{
    env::Home,
    model_server::{Answer, ModelServer},
};
use serde_json::{Value, json};

fn impatient(server: &ModelServer, more: &Value) -> Home {
    let home = Home::new();
    home.models_json(&serde_json::from_str(&server.models_json()).unwrap());
    let mut settings = json!({"retry": {"baseDelayMs": 1, "maxRetries": 2}});
    for (key, value) in more.as_object().unwrap() {
        settings[key] = value.clone();
    }
    std::fs::write(home.atomic_home().join("agent/settings.json"), settings.to_string()).unwrap();
    home
}

fn kinds(lines: &[Value]) -> Vec<&str> {
    let shown =
        ["auto_retry_start", "auto_retry_end", "model_fallback_start", "model_fallback_end", "agent_settled"];
    lines.iter().filter_map(|l| l["type"].as_str()).filter(|t| shown.contains(t)).collect()
}

#[test]
fn b63_an_overloaded_server_and_a_broken_stream_are_asked_again_until_they_answer() {
    for (first, model) in [
        (Answer::status(529), "fake-anthropic/fake"),
        (Answer::status(503), "fake-openai/fake"),
        (Answer::text("half an answer").cut(), "fake-openai/fake"),
        (Answer::garbage(b"\x1f\x8b\x08 this is no gzip"), "fake-anthropic/fake"),
    ] {
        let server = ModelServer::start([first, Answer::text("at last")]);
        let home = impatient(&server, &json!({}));
        let done = home.atomic(["--mode", "json", "-p", "hi", "--model", model]).run().ok();
        let lines = done.json_lines();
        assert_eq!(kinds(&lines), ["auto_retry_start", "auto_retry_end", "agent_settled"], "{model}");
        let ends: Vec<&Value> =
            lines.iter().filter(|l| l["type"] == "agent_end").map(|l| &l["willRetry"]).collect();
        assert_eq!(ends, [true, false]);
        // Two questions with the same words; what was half said is not among them.
        let bodies: Vec<String> = server.requests().iter().map(|r| r.body["messages"].to_string()).collect();
        assert_eq!(bodies[0], bodies[1]);
        server.assert_finished();
    }
}

#[test]
fn when_nothing_helps_print_says_what_it_was_and_ends_with_one() {
    let server = ModelServer::start([Answer::status(500), Answer::status(500), Answer::status(500)]);
    let home = impatient(&server, &json!({}));
    let done = home.atomic(["-p", "hi", "--model", "fake-openai/fake"]).run().exit(1);
    assert!(done.stderr.contains("models::server_error"), "{}", done.stderr);
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn another_model_stands_in_when_the_settings_name_one() {
    let server = ModelServer::start([Answer::status(401), Answer::text("from the other")]);
    let home = impatient(&server, &json!({"modelFallbacks": ["fake-anthropic/fake"]}));
    let done = home.atomic(["--mode", "json", "-p", "hi", "--model", "fake-openai/fake"]).run().ok();
    assert_eq!(kinds(&done.json_lines()), ["model_fallback_start", "model_fallback_end", "agent_settled"]);
    assert!(done.stdout.contains("from the other"));
    server.assert_finished();
}

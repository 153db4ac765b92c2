//! A provider's cache of the prompt is kept warm where it is worth its price, and not otherwise.

use atomic_tests::{
    env::Home,
    model_server::{Answer, ModelServer},
    session,
};
use serde_json::{Value, json};
use std::fs;

/// A provider that forgets at once; so much a million tokens that are not in its cache.
fn home(server: &ModelServer, dollars: f64, mode: &str) -> Home {
    let home = Home::new();
    let mut models: Value = serde_json::from_str(&server.models_json()).unwrap();
    let fake = &mut models["providers"]["fake-anthropic"];
    fake["compat"] = json!({"cacheTtlSeconds": 10});
    fake["models"][0]["cost"] = json!({"input": dollars, "output": 1, "cacheRead": 1, "cacheWrite": dollars});
    home.models_json(&models);
    let settings = json!({"cacheWarming.mode": mode}).to_string();
    fs::write(home.atomic_home().join("agent/settings.json"), settings).unwrap();
    home
}

#[test]
fn a_dear_prompt_is_sent_again_while_nothing_runs_and_the_session_has_what_it_cost() {
    let server = ModelServer::start((0..50).map(|_| Answer::text("hello there")));
    let home = home(&server, 100_000.0, "idle");
    let mut run = home.atomic(["--mode", "lines", "--model", "fake-anthropic/fake"]).start();
    run.say("hi");
    let sent = server.wait_for_requests(2);
    assert_eq!(sent[0].body, sent[1].body, "what is in the cache is what was asked");
    let entry = loop {
        let file = session::read(&home.sessions()[0]);
        match file.entries.iter().find(|e| e["type"] == "usage") {
            Some(entry) => break entry.clone(),
            None => std::thread::yield_now(),
        }
    };
    assert_eq!((&entry["kind"], &entry["provider"]), (&json!("cache_warm"), &json!("fake-anthropic")));
    assert!(entry["usage"]["input"].as_u64().unwrap() > 0, "{entry}");
    run.say("/quit");
    run.finish().ok();
    // What was said to keep the cache is no part of the conversation.
    let file = session::read(&home.sessions()[0]);
    assert_eq!(file.of_role("assistant").len(), 1);
}

#[test]
fn a_cheap_prompt_or_warming_that_is_off_sends_nothing() {
    for (dollars, mode) in [(1.0, "idle"), (100_000.0, "off"), (100_000.0, "streaming")] {
        let server = ModelServer::start([Answer::text("one"), Answer::text("two")]);
        let home = home(&server, dollars, mode);
        // What would be sent would be sent before the second.
        home.atomic(["--mode", "lines", "--model", "fake-anthropic/fake"]).run_with("hi\nmore\n").ok();
        assert_eq!(server.requests().len(), 2, "{dollars} {mode}");
        server.assert_finished();
    }
}

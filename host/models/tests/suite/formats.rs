//! The wire formats, and a short answer in each.

use crate::peer::{Reply, events};
use atomic_agent::model::Model;
use atomic_models::{Environment, ModelSet, Sources};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};

pub const KEY: &str = "sk-secret-key-of-this-test";
pub const OPEN_AI: &str = "openai-completions";
pub const ANTHROPIC: &str = "anthropic-messages";
pub const RESPONSES: &str = "openai-responses";
pub const GOOGLE: &str = "google-generative-ai";
pub const ALL: [&str; 4] = [OPEN_AI, ANTHROPIC, RESPONSES, GOOGLE];

/// The stream that says hello.
pub fn hello_body(api: &str) -> &'static str {
    match api {
        RESPONSES => concat!(
            "data: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"type\":\"message\",\"id\":\"msg_1\"}}\n\n",
            "data: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"delta\":\"hello\"}\n\n",
            "data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\"}}\n\n"
        ),
        GOOGLE => {
            "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"hello\"}]},\"finishReason\":\"STOP\"}]}\n\n"
        }
        OPEN_AI => {
            "data: {\"choices\":[{\"delta\":{\"content\":\"hello\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
        }
        _ => concat!(
            "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"hello\"}}\n\n",
            "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n"
        ),
    }
}

pub fn hello(api: &str) -> Reply {
    events(hello_body(api))
}

/// The set with one provider `peer` at this address, with more of its or its model's settings.
pub fn set(url: &str, api: &str, provider: Value, model: Value, idle: Option<Duration>) -> ModelSet {
    let merge = |mut base: Value, more: Value| {
        base.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        base
    };
    let model = merge(
        json!({"id": "fake", "reasoning": true, "input": ["text", "image"], "maxTokens": 16_000}),
        model,
    );
    let provider =
        merge(json!({"baseUrl": url, "api": api, "apiKey": "$PEER_KEY", "models": [model]}), provider);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("models.json");
    std::fs::write(&path, json!({"providers": {"peer": provider}}).to_string()).unwrap();
    let environment = Environment::fixed([("PEER_KEY", KEY), ("TENANT", "tenant-7")]);
    let set = ModelSet::load(Sources { models_json: Some(path), environment, idle, ..Sources::default() });
    assert_eq!(set.problems(), []);
    set
}

pub fn model_with(url: &str, api: &str, provider: Value, model: Value) -> Arc<dyn Model> {
    let id = model["id"].as_str().unwrap_or("fake").to_owned();
    set(url, api, provider, model, None).get("peer", &id).unwrap()
}

pub fn model(url: &str, api: &str) -> Arc<dyn Model> {
    model_with(url, api, json!({}), json!({}))
}

/// Given up after so long without a byte.
pub fn model_idle(url: &str, api: &str, idle: Duration) -> Arc<dyn Model> {
    set(url, api, json!({}), json!({}), Some(idle)).get("peer", "fake").unwrap()
}

/// The same model under another provider's name, which says what is known of its server.
pub fn named(provider: &str, like: Arc<dyn Model>, url: &str) -> Arc<dyn Model> {
    if provider == "peer" {
        return like;
    }
    let info = like.info();
    let model = json!({"id": info.id, "reasoning": info.reasoning, "maxTokens": info.max_tokens});
    let provider_json = json!({"baseUrl": url, "api": info.api, "apiKey": "k", "models": [model]});
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("models.json");
    std::fs::write(&path, json!({"providers": {provider: provider_json}}).to_string()).unwrap();
    let set = ModelSet::load(Sources { models_json: Some(path), ..Sources::default() });
    assert_eq!(set.problems(), []);
    set.get(provider, &info.id).unwrap()
}

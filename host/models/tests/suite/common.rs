//! A sink that remembers, and the small requests of these stories.

use async_trait::async_trait;
use atomic_agent::{
    message::{AssistantEvent, Message},
    model::{ModelRequest, StreamSink, ThinkingLevel, ToolDeclaration},
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tokio_util::sync::CancellationToken;

/// What the sink was told, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    Headers,
    Payload,
    Response(u16),
    Raw(Value),
    Event(AssistantEvent),
}

type HeaderEdit = Box<dyn Fn(&mut BTreeMap<String, Option<String>>) + Send>;

#[derive(Default)]
pub struct Recorder {
    pub told: Vec<Told>,
    pub headers: BTreeMap<String, Option<String>>,
    pub payload: Value,
    pub response_headers: BTreeMap<String, String>,
    pub edit_headers: Option<HeaderEdit>,
    pub replace_payload: Option<Value>,
    /// Cancelled when the first delta is told.
    pub cancel_at_delta: Option<CancellationToken>,
}

impl Recorder {
    pub fn events(&self) -> Vec<&AssistantEvent> {
        self.told.iter().filter_map(|t| if let Told::Event(e) = t { Some(e) } else { None }).collect()
    }
    /// Steps by name, deltas of one block once.
    pub fn steps(&self) -> Vec<String> {
        let mut out: Vec<String> = Vec::new();
        for event in self.events() {
            let value = serde_json::to_value(event).unwrap();
            let name = value["type"].as_str().unwrap().to_owned();
            if out.last() != Some(&name) {
                out.push(name);
            }
        }
        out
    }
}

#[async_trait]
impl StreamSink for Recorder {
    async fn headers(&mut self, headers: &mut BTreeMap<String, Option<String>>) {
        if let Some(edit) = &self.edit_headers {
            edit(headers);
        }
        self.headers = headers.clone();
        self.told.push(Told::Headers);
    }
    async fn payload(&mut self, payload: &mut Value) {
        if let Some(other) = self.replace_payload.take() {
            *payload = other;
        }
        self.payload = payload.clone();
        self.told.push(Told::Payload);
    }
    async fn response(&mut self, status: u16, headers: BTreeMap<String, String>) {
        self.response_headers = headers;
        self.told.push(Told::Response(status));
    }
    async fn provider_event(&mut self, data: &Value) {
        self.told.push(Told::Raw(data.clone()));
    }
    async fn event(&mut self, event: AssistantEvent) {
        let delta = matches!(
            event,
            AssistantEvent::TextDelta { .. }
                | AssistantEvent::ThinkingDelta { .. }
                | AssistantEvent::ToolCallDelta { .. }
        );
        self.told.push(Told::Event(event));
        if let Some(cancel) = self.cancel_at_delta.as_ref().filter(|_| delta) {
            cancel.cancel();
        }
    }
}

pub fn request(messages: Vec<Message>) -> ModelRequest {
    ModelRequest {
        system_prompt: "Be brief.".to_owned(),
        messages,
        tools: vec![ToolDeclaration {
            name: "bash".to_owned(),
            description: "Run a command".to_owned(),
            parameters: json!({"type": "object", "properties": {"command": {"type": "string"}}}),
        }],
        thinking: ThinkingLevel::Off,
        max_tokens: None,
        session_id: "s1".to_owned(),
    }
}

pub fn prompt(text: &str) -> ModelRequest {
    request(vec![Message::user(text, 1)])
}

pub fn messages(value: Value) -> Vec<Message> {
    serde_json::from_value(value).unwrap()
}

//! Listens to a model's stream on behalf of the hooks and the listeners, and keeps what
//! came so far, in case the model never says how it ended.

use crate::{
    event::Event,
    hooks::Notice,
    message::{AssistantEvent, AssistantMessage, Content, Extra, Message, StopReason, Usage, now_ms},
    model::{ModelInfo, StreamSink},
    run::Run,
};
use async_trait::async_trait;
use serde_json::Value;
use std::collections::BTreeMap;

pub(crate) struct Listener<'r, 'c> {
    run: &'r Run<'c>,
    info: ModelInfo,
    pub started: bool,
    /// Text by content index.
    texts: BTreeMap<usize, String>,
}

impl<'r, 'c> Listener<'r, 'c> {
    pub fn new(run: &'r Run<'c>) -> Self {
        Listener { run, info: run.model.info().clone(), started: false, texts: BTreeMap::new() }
    }

    /// What is known of a message whose end was never told.
    pub fn aborted(&self) -> AssistantMessage {
        let mut message = shell(&self.info);
        message.content = self.texts.values().cloned().map(Content::text).collect();
        message.stop_reason = Some(StopReason::Aborted);
        message.error_message = Some("Operation aborted".into());
        message
    }
}

/// The message before it has any content.
pub(crate) fn shell(info: &ModelInfo) -> AssistantMessage {
    AssistantMessage {
        content: Vec::new(),
        api: info.api.clone(),
        provider: info.provider.clone(),
        model: info.id.clone(),
        usage: Usage::default(),
        stop_reason: None,
        error_message: None,
        timestamp: now_ms(),
        extra: Extra::new(),
    }
}

#[async_trait]
impl StreamSink for Listener<'_, '_> {
    async fn headers(&mut self, headers: &mut BTreeMap<String, Option<String>>) {
        let hooks = &self.run.core.hooks;
        self.run.dispatch(hooks.before_provider_headers(headers, &self.info)).await;
    }

    async fn payload(&mut self, payload: &mut Value) {
        self.run.dispatch(self.run.core.hooks.before_provider_request(payload)).await;
    }

    async fn response(&mut self, status: u16, headers: BTreeMap<String, String>) {
        self.run.tell(Notice::AfterProviderResponse { status, headers: &headers }).await;
    }

    async fn provider_event(&mut self, data: &Value) {
        self.run.tell(Notice::ProviderStreamEvent { model: &self.info, data }).await;
    }

    async fn event(&mut self, event: AssistantEvent) {
        match &event {
            AssistantEvent::Start => {
                if !std::mem::replace(&mut self.started, true) {
                    self.run.message_start(&Message::Assistant(shell(&self.info))).await;
                }
                return;
            }
            // The message itself comes back from the stream, and is told by message_end.
            AssistantEvent::Done { .. } | AssistantEvent::Error { .. } => return,
            AssistantEvent::TextDelta { content_index, delta } => {
                self.texts.entry(*content_index).or_default().push_str(delta);
            }
            _ => {}
        }
        self.run.tell(Notice::MessageUpdate { event: &event }).await;
        self.run
            .core
            .handle
            .emit(Event::MessageUpdate { usage: Usage::default(), assistant_message_event: event });
    }
}

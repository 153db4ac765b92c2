//! Providers that extensions register, and models that they ask beside the session
//! (events.md E.5). What is registered before there is a session waits for it.

use super::{Asker, Failure, NOTHING, Outcome, body, json, unsupported};
use crate::{
    breadcrumb::{self, kind},
    generation::Generation,
    host::{Extensions, lock},
    load::{EventState, Live},
    provider::streaming,
};
use async_trait::async_trait;
use atomic_agent::{
    message::{AssistantEvent, AssistantMessage, Message},
    model::{ModelInfo, ModelRequest, Models, StreamSink, ThinkingLevel, ToolDeclaration},
    providers::Providers,
};
use serde::Deserialize;
use serde_json::Value;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};
use tokio_util::sync::CancellationToken;

type Change = Box<dyn FnOnce(&Extensions, &Providers) + Send>;

/// Changes from before there was an engine, in their order.
#[derive(Default)]
pub(crate) struct Waiting(Mutex<Vec<Change>>);

impl Extensions {
    fn change_providers(&self, change: Change) {
        match self.engine("providers").ok().and_then(|e| e.models()) {
            Some(providers) => change(self, providers),
            None => lock(&self.waiting_providers().0).push(change),
        }
    }

    /// There is an engine now.
    pub(crate) fn flush_providers(&self) {
        let waiting = std::mem::take(&mut *lock(&self.waiting_providers().0));
        for change in waiting {
            self.change_providers(change);
        }
    }

    /// What a generation registered goes with it.
    pub(crate) fn forget_providers(&self, generation: u64) {
        if let Some(providers) = self.engine("providers").ok().and_then(|e| e.models()) {
            providers.forget(generation);
        }
    }
}

#[derive(Deserialize)]
struct Configured {
    name: String,
    config: Value,
}

#[derive(Deserialize)]
struct Streaming {
    name: String,
    models: Vec<Value>,
    handler: u64,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

#[derive(Deserialize)]
struct Find {
    provider: String,
    model: String,
}

pub(super) fn named(name: String) -> Result<String, Failure> {
    if name.trim().is_empty() || name.contains(|c: char| c == '/' || c.is_control()) {
        return Err(Failure::new("bad_request", format!("provider name {name:?}: one word without a slash")));
    }
    Ok(name)
}

/// With its commit, in the order of the calls.
pub(super) fn stage(a: &Asker, change: Change) -> Outcome {
    let host = a.host.weak();
    let staged = a.generation.stage(Box::new(move || {
        if let Some(host) = host.upgrade() {
            host.change_providers(change);
        }
    }));
    staged.map(|()| NOTHING).map_err(|_| Failure::stale())
}

pub(super) fn call(a: &Asker, op: &str, bytes: &[u8]) -> Outcome {
    let (owner, number) = (a.generation.owner(), a.generation.number());
    match op {
        "providers.register" => {
            let Configured { name, config } = body(op, bytes)?;
            let name = named(name)?;
            stage(
                a,
                Box::new(move |host, providers| {
                    if let Err(e) = providers.configure(&name, number, &config) {
                        host.diagnose(owner, "register_provider", &format!("provider {name}: {e}"));
                    }
                }),
            )
        }
        "providers.registerStreaming" => {
            let Streaming { name, models, handler } = body(op, bytes)?;
            let name = named(name)?;
            let models = models
                .into_iter()
                .map(|m| described(&name, m))
                .collect::<Result<Vec<_>, _>>()
                .map_err(|e| Failure::new("bad_request", format!("provider {name}: {e}")))?;
            let generation = a.generation.clone();
            stage(
                a,
                Box::new(move |_, providers| {
                    let models =
                        models.into_iter().map(|m| streaming(m, generation.clone(), handler)).collect();
                    providers.register(&name, number, models);
                }),
            )
        }
        "providers.registerRefreshing" => super::model_lists::register(a, op, bytes),
        "providers.unregister" => {
            let Named { name } = body(op, bytes)?;
            stage(
                a,
                Box::new(move |_, providers| {
                    let _ = providers.unregister(&name);
                }),
            )
        }
        "models.list" => json(&providers(a, op)?.list()),
        "models.find" => {
            let Find { provider, model } = body(op, bytes)?;
            json(&providers(a, op)?.get(&provider, &model).map(|m| m.info().clone()))
        }
        _ => Err(unsupported(op)),
    }
}

fn described(provider: &str, mut model: Value) -> Result<ModelInfo, serde_json::Error> {
    if let Some(o) = model.as_object_mut() {
        let id = o.get("id").cloned().unwrap_or_default();
        o.entry("name").or_insert(id);
        o.entry("api").or_insert_with(|| "extension".into());
        o.insert("provider".into(), provider.into());
        if o.get("input").is_none() {
            o.insert("input".into(), serde_json::json!(["text"]));
        }
    }
    serde_json::from_value(model)
}

fn providers(a: &Asker, op: &str) -> Result<Arc<Providers>, Failure> {
    a.host
        .engine(op)?
        .models()
        .cloned()
        .ok_or_else(|| Failure::new("not_available", format!("{op}: the models are in another process")))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct Wire {
    system_prompt: String,
    messages: Vec<Message>,
    tools: Vec<ToolDeclaration>,
    thinking: Option<ThinkingLevel>,
    max_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct Complete {
    provider: String,
    model: String,
    #[serde(default)]
    request: Wire,
    #[serde(default)]
    handler: Option<u64>,
}

/// Cancels when it is dropped: nobody waits any more.
struct Dropped(CancellationToken);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Out of the session: no handler of the session's requests hears of it.
pub(super) async fn complete(a: &Asker, op: &str, bytes: &[u8]) -> Outcome {
    let Complete { provider, model, request, handler } = body(op, bytes)?;
    let model = providers(a, op)?.get(&provider, &model).ok_or_else(|| {
        Failure::new("unknown_model", format!("{provider}/{model} is not known, or has no credentials"))
    })?;
    let session_id = a.host.engine(op)?.view(|v| v.session_id.clone());
    let request = ModelRequest {
        system_prompt: request.system_prompt,
        messages: atomic_agent::pairing::for_model(request.messages),
        tools: request.tools,
        thinking: request.thinking.unwrap_or_default(),
        max_tokens: request.max_tokens,
        session_id,
    };
    let cancel = Dropped(CancellationToken::new());
    let mut listener = Listener { generation: a.generation.clone(), handler };
    let message = model.stream(request, &mut listener, &cancel.0).await;
    json(&Message::Assistant(message))
}

struct Listener {
    generation: Arc<Generation>,
    handler: Option<u64>,
}

#[async_trait]
impl StreamSink for Listener {
    async fn headers(&mut self, _: &mut BTreeMap<String, Option<String>>) {}
    async fn payload(&mut self, _: &mut Value) {}
    async fn response(&mut self, _: u16, _: BTreeMap<String, String>) {}
    async fn provider_event(&mut self, _: &Value) {}
    async fn event(&mut self, event: AssistantEvent) {
        let (Some(handler), Some(live)) = (self.handler, Live::of(&self.generation)) else { return };
        let Some(call) = self.generation.enter(kind::TASK) else { return };
        let state = EventState::ready(serde_json::to_vec(&event).unwrap_or_default());
        let frame = breadcrumb::push(self.generation.owner(), kind::TASK);
        // Its error is its own affair: the answer comes whole at the end.
        let _ = live.sync(handler, call.id(), &state);
        breadcrumb::pop(frame);
    }
}

/// An answer without content, for what ends before there is any.
pub(crate) fn shell(info: &ModelInfo) -> AssistantMessage {
    AssistantMessage {
        content: Vec::new(),
        api: info.api.clone(),
        provider: info.provider.clone(),
        model: info.id.clone(),
        usage: Default::default(),
        stop_reason: None,
        error_message: None,
        timestamp: atomic_agent::message::now_ms(),
        extra: Default::default(),
    }
}

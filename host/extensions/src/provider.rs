//! A provider whose answers an extension makes, as the core sees one: a model like any other.
//! What its handler tells on the way comes over a channel, in order.

use crate::{
    breadcrumb::kind,
    calls::{Failure, Outcome, providers::shell},
    dispatch::{Asked, ask_entry},
    generation::{Body, Cancel, Generation},
    load::{EventState, Live},
};
use async_trait::async_trait;
use atomic_agent::{
    message::{AssistantEvent, AssistantMessage, StopReason},
    model::{Model, ModelInfo, ModelRequest, StreamSink},
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// After its signal a provider may end in its own way for this long.
const CANCEL_GRACE: Duration = Duration::from_millis(300);

type Headers = BTreeMap<String, Option<String>>;

enum Told {
    Event(AssistantEvent),
    Headers(Headers, oneshot::Sender<Headers>),
    Payload(Value, oneshot::Sender<Value>),
    Response(u16, BTreeMap<String, String>, oneshot::Sender<()>),
    Raw(Value, oneshot::Sender<()>),
}

/// Answers that are being made, by the handler's call.
static OPEN: LazyLock<Mutex<HashMap<u64, mpsc::UnboundedSender<Told>>>> = LazyLock::new(Mutex::default);

fn open() -> MutexGuard<'static, HashMap<u64, mpsc::UnboundedSender<Told>>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Open(u64);

impl Drop for Open {
    fn drop(&mut self) {
        open().remove(&self.0);
    }
}

fn bad(op: &str, e: &serde_json::Error) -> Failure {
    Failure::new("bad_request", format!("{op}: {e}"))
}

/// `provider.emit`: ignored once the answer has ended.
pub(crate) fn emit(call: u64, bytes: &[u8]) -> Outcome {
    let event = serde_json::from_slice(bytes).map_err(|e| bad("provider.emit", &e))?;
    let to = open().get(&call).cloned();
    if let Some(to) = to {
        let _ = to.send(Told::Event(event));
    }
    Ok(Vec::new())
}

/// What goes through the session's handlers before it is used.
pub(crate) async fn ask(call: u64, op: &str, bytes: &[u8]) -> Outcome {
    #[derive(serde::Deserialize)]
    struct Response {
        status: u16,
        #[serde(default)]
        headers: BTreeMap<String, String>,
    }
    let gone = || Failure::new("not_available", format!("{op}: this answer has ended"));
    let to = open().get(&call).cloned().ok_or_else(gone)?;
    let encoded = |v: serde_json::Result<Vec<u8>>| v.map_err(|e| bad(op, &e));
    macro_rules! through {
        ($told:ident($($value:expr),*)) => {{
            let (tx, rx) = oneshot::channel();
            to.send(Told::$told($($value,)* tx)).map_err(|_| gone())?;
            rx.await.map_err(|_| gone())?
        }};
    }
    match op {
        "provider.headers" => {
            let headers = serde_json::from_slice(bytes).map_err(|e| bad(op, &e))?;
            encoded(serde_json::to_vec(&through!(Headers(headers))))
        }
        "provider.payload" => {
            let payload = serde_json::from_slice(bytes).map_err(|e| bad(op, &e))?;
            encoded(serde_json::to_vec(&through!(Payload(payload))))
        }
        "provider.response" => {
            let r: Response = serde_json::from_slice(bytes).map_err(|e| bad(op, &e))?;
            through!(Response(r.status, r.headers));
            Ok(Vec::new())
        }
        _ => {
            let data = serde_json::from_slice(bytes).map_err(|e| bad(op, &e))?;
            through!(Raw(data));
            Ok(Vec::new())
        }
    }
}

async fn tell(told: Told, sink: &mut dyn StreamSink) {
    match told {
        Told::Event(event) => sink.event(event).await,
        Told::Headers(mut headers, back) => {
            sink.headers(&mut headers).await;
            let _ = back.send(headers);
        }
        Told::Payload(mut payload, back) => {
            sink.payload(&mut payload).await;
            let _ = back.send(payload);
        }
        Told::Response(status, headers, back) => {
            sink.response(status, headers).await;
            let _ = back.send(());
        }
        Told::Raw(data, back) => {
            sink.provider_event(&data).await;
            let _ = back.send(());
        }
    }
}

struct ExtensionModel {
    info: ModelInfo,
    generation: Arc<Generation>,
    handler: u64,
}

pub(crate) fn streaming(info: ModelInfo, generation: Arc<Generation>, handler: u64) -> Arc<dyn Model> {
    Arc::new(ExtensionModel { info, generation, handler })
}

impl ExtensionModel {
    fn failed(&self, reason: StopReason, text: impl Into<String>) -> AssistantMessage {
        AssistantMessage { stop_reason: Some(reason), error_message: Some(text.into()), ..shell(&self.info) }
    }

    /// What the handler answered, under our own name.
    fn read(&self, bytes: &[u8]) -> AssistantMessage {
        #[derive(serde::Deserialize)]
        struct Wire {
            result: AssistantMessage,
        }
        match serde_json::from_slice::<Wire>(bytes) {
            Ok(Wire { result }) => {
                let own = shell(&self.info);
                AssistantMessage {
                    api: own.api,
                    provider: own.provider,
                    model: own.model,
                    timestamp: own.timestamp,
                    stop_reason: Some(result.stop_reason.unwrap_or(StopReason::Stop)),
                    ..result
                }
            }
            Err(e) => {
                self.failed(StopReason::Error, format!("the provider answered a malformed message: {e}"))
            }
        }
    }

    async fn asked(
        &self,
        live: &Live,
        request: ModelRequest,
        sink: &mut dyn StreamSink,
        cancel: &CancellationToken,
    ) -> AssistantMessage {
        let event = json!({
            "type": "provider_stream", "provider": self.info.provider,
            "request": {
                "model": self.info.id, "systemPrompt": request.system_prompt, "messages": request.messages,
                "tools": request.tools, "thinking": request.thinking, "maxTokens": request.max_tokens,
            },
        });
        let state = EventState::ready(serde_json::to_vec(&event).unwrap_or_default());
        let (tx, mut told) = mpsc::unbounded_channel();
        let mut entry = None;
        let (started, id) = oneshot::channel();
        let ask = ask_entry(&self.generation, live, self.handler, kind::TASK, &state, |id| {
            open().insert(id, tx);
            entry = Some(Open(id));
            let _ = started.send(id);
        });
        tokio::pin!(ask);
        let mut id = Some(id);
        let mut over = None;
        let asked = loop {
            let grace = async {
                match over {
                    Some(until) => tokio::time::sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                // What was told comes before the end.
                biased;
                Some(told) = told.recv() => tell(told, sink).await,
                asked = &mut ask => break asked,
                () = grace => break Asked::Reloaded,
                () = cancel.cancelled(), if over.is_none() => {
                    over = Some(tokio::time::Instant::now() + CANCEL_GRACE);
                    if let Some(id) = id.take()
                        && let Ok(id) = id.await
                    {
                        live.cancel(id, Cancel::Signal);
                    }
                }
            }
        };
        while let Ok(last) = told.try_recv() {
            tell(last, sink).await;
        }
        if cancel.is_cancelled() {
            return self.failed(StopReason::Aborted, "aborted");
        }
        match asked {
            Asked::Answered(bytes) => self.read(&bytes),
            Asked::Failed(e) => self.failed(StopReason::Error, e.message),
            Asked::Reloaded | Asked::Overran(_) => self.failed(
                StopReason::Error,
                format!("the extension {} was reloaded while its provider answered", self.generation.name()),
            ),
        }
    }
}

#[async_trait]
impl Model for ExtensionModel {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    async fn stream(
        &self,
        request: ModelRequest,
        sink: &mut dyn StreamSink,
        cancel: &CancellationToken,
    ) -> AssistantMessage {
        sink.event(AssistantEvent::Start).await;
        let message = match Live::of(&self.generation) {
            Some(live) => self.asked(&live, request, sink, cancel).await,
            None => self.failed(StopReason::Error, "the provider's extension is gone"),
        };
        let reason = message.stop_reason.unwrap_or(StopReason::Stop);
        let last = match reason {
            StopReason::Error | StopReason::Aborted => {
                AssistantEvent::Error { reason, error: Box::new(message.clone()) }
            }
            _ => AssistantEvent::Done { reason, message: Box::new(message.clone()) },
        };
        sink.event(last).await;
        message
    }
}

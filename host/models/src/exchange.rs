//! One request and its streamed answer, whatever the wire format: hooks told in order,
//! cancellation at every wait, every failure a message. The formats are behind `Wire`.

use crate::{
    anthropic::Anthropic,
    compat::Compat,
    credential::Secret,
    draft::Draft,
    excerpt::{self, Redactor},
    fault::Fault,
    framing::{self, whole_lines},
    openai_completions::OpenAiCompletions,
    retry_after,
    transport::{Transport, causes},
};
use async_trait::async_trait;
use atomic_agent::{
    message::{AssistantMessage, StopReason},
    model::{Model, ModelInfo, ModelRequest, StreamSink},
};
use eventsource_stream::Eventsource as _;
use futures_util::{Stream, StreamExt as _};
use reqwest::{
    Response, Url,
    header::{HeaderMap, HeaderName, HeaderValue},
};
use serde_json::Value;
use std::{collections::BTreeMap, future::Future, sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;

/// Bytes of an error body that are read.
const ERROR_BODY: usize = 64 * 1024;
/// For the body of an error, and for what may follow a finished answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// How a stream breaks off.
const CONNECTION: &str = "models::connection";
const GARBLED: &str = "models::garbled_stream";
const TOO_LONG: &str = "models::event_too_long";

const USER_AGENT: &str = concat!("atomic/", env!("CARGO_PKG_VERSION"));

/// Where a model is and how one gets in.
pub(crate) struct Endpoint {
    pub info: ModelInfo,
    pub key: Option<Secret>,
    pub auth_header: bool,
    pub headers: BTreeMap<String, Option<Secret>>,
    pub compat: Compat,
    pub transport: Arc<Transport>,
}

/// One wire format.
pub(crate) trait Wire: Send + Sync {
    /// The full address of a request.
    fn url(&self, base_url: &str) -> String;
    /// Headers of the format, lower-case: the key, the version.
    fn headers(&self, endpoint: &Endpoint, request: &ModelRequest) -> BTreeMap<String, String>;
    fn payload(&self, endpoint: &Endpoint, request: &ModelRequest) -> Value;
    fn reader(&self) -> Box<dyn Reader>;
}

/// Folds the events of one answer into a draft.
pub(crate) trait Reader: Send {
    fn read(&mut self, event: &Value, draft: &mut Draft) -> Flow;
    /// Set once the provider has said how the answer ended.
    fn finished(&self) -> Option<Ending>;
}

#[derive(Debug, PartialEq)]
pub(crate) enum Flow {
    More,
    /// Nothing of interest follows.
    End,
    /// The provider reported an error inside the stream.
    Failed(String),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ending {
    Complete(StopReason),
    /// Refused or filtered.
    Failed(String),
}

#[derive(Debug)]
enum Failure {
    Aborted,
    Told(Fault),
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Failure::Told(fault)
    }
}

pub(crate) struct HttpModel {
    endpoint: Endpoint,
    wire: Box<dyn Wire>,
}

impl HttpModel {
    /// The format is one of `config::SUPPORTED_APIS`.
    pub fn new(endpoint: Endpoint) -> Self {
        let wire: Box<dyn Wire> = match endpoint.info.api.as_str() {
            "anthropic-messages" => Box::new(Anthropic),
            _ => Box::new(OpenAiCompletions),
        };
        HttpModel { endpoint, wire }
    }

    fn headers(&self, request: &ModelRequest) -> BTreeMap<String, Option<String>> {
        let defaults = self.wire.headers(&self.endpoint, request);
        let mut headers: BTreeMap<_, _> = defaults.into_iter().map(|(k, v)| (k, Some(v))).collect();
        let common = [
            ("accept", "text/event-stream"),
            ("content-type", "application/json"),
            ("user-agent", USER_AGENT),
        ];
        headers.extend(common.map(|(name, value)| (name.to_owned(), Some(value.to_owned()))));
        for (name, value) in &self.endpoint.headers {
            headers.insert(name.to_ascii_lowercase(), value.as_ref().map(|s| s.expose().to_owned()));
        }
        headers
    }

    async fn exchange(
        &self,
        request: &ModelRequest,
        draft: &mut Draft,
        redactor: &mut Redactor,
        sink: &mut dyn StreamSink,
        cancel: &CancellationToken,
    ) -> Result<StopReason, Failure> {
        let provider = &self.endpoint.info.provider;
        let mut headers = self.headers(request);
        sink.headers(&mut headers).await;
        redactor.add_headers(&headers);
        let mut payload = self.wire.payload(&self.endpoint, request);
        sink.payload(&mut payload).await;

        let address = self.wire.url(&self.endpoint.info.base_url);
        let url = Url::parse(&address).ok().filter(|u| matches!(u.scheme(), "http" | "https"));
        let url = url.ok_or_else(|| Fault::address(provider))?;
        let place = origin(&url);
        let client = self.endpoint.transport.client(&url).map_err(|why| {
            Fault::new("models::no_client", why, "the system's certificates or its limits are in the way")
        })?;
        let call = client.post(url).headers(header_map(&headers)?).body(payload.to_string());
        let response = unless(cancel, call.send())
            .await?
            .map_err(|error| Fault::of_request(provider, &place, &error.without_url()))?;

        let status = response.status();
        sink.response(status.as_u16(), lower_case(response.headers())).await;
        for event in draft.take_events() {
            sink.event(event).await;
        }
        if !status.is_success() {
            let after = retry_after::of(response.headers(), jiff::Timestamp::now());
            let body = unless(cancel, beginning(response)).await?;
            let said = excerpt::of_body(&body, redactor);
            return Err(Fault { after, ..Fault::of_status(provider, status, &said) }.into());
        }
        let kind = response.headers().get("content-type").and_then(|v| v.to_str().ok()).unwrap_or("");
        if kind.starts_with("application/json") || kind.starts_with("text/html") {
            let kind = kind.to_owned();
            let body = unless(cancel, beginning(response)).await?;
            let said = excerpt::of_body(&body, redactor);
            return Err(Fault::new(
                "models::not_a_stream",
                format!("{provider} at {place} answered with {kind} instead of an event stream: {said}"),
                format!("look at the \"baseUrl\" and the \"api\" of \"{provider}\" in models.json, and at the proxy"),
            )
            .into());
        }
        let bytes =
            response.bytes_stream().map(|chunk| chunk.map(|b| b.to_vec()).map_err(|e| e.without_url()));
        follow(provider, bytes, self.wire.reader().as_mut(), draft, redactor, sink, cancel).await
    }
}

#[async_trait]
impl Model for HttpModel {
    fn info(&self) -> &ModelInfo {
        &self.endpoint.info
    }

    async fn stream(
        &self,
        request: ModelRequest,
        sink: &mut dyn StreamSink,
        cancel: &CancellationToken,
    ) -> AssistantMessage {
        let mut draft = Draft::new(&self.endpoint.info);
        let mut redactor = Redactor::default();
        if let Some(key) = &self.endpoint.key {
            redactor.add(key.expose());
        }
        for value in self.endpoint.headers.values().flatten() {
            redactor.add(value.expose());
        }
        let result = self.exchange(&request, &mut draft, &mut redactor, sink, cancel).await;
        let (message, rest) = match result {
            Ok(reason) => draft.finish(reason),
            Err(Failure::Aborted) => draft.fail(StopReason::Aborted, "aborted".to_owned()),
            Err(Failure::Told(fault)) => {
                fault.mark(draft.extra());
                draft.fail(StopReason::Error, redactor.clean(&fault.what))
            }
        };
        for event in rest {
            sink.event(event).await;
        }
        message
    }
}

/// Reads a body to its end: each provider event is told, then what it means.
async fn follow<E: std::error::Error + Send + 'static>(
    provider: &str,
    bytes: impl Stream<Item = Result<Vec<u8>, E>> + Send,
    reader: &mut dyn Reader,
    draft: &mut Draft,
    redactor: &Redactor,
    sink: &mut dyn StreamSink,
    cancel: &CancellationToken,
) -> Result<StopReason, Failure> {
    use eventsource_stream::EventStreamError as Broken;
    let mut events = std::pin::pin!(whole_lines(bytes, framing::LONGEST).eventsource());
    let broke_off = loop {
        let over = reader.finished().is_some();
        let next = unless(cancel, async {
            if over {
                tokio::time::timeout(PATIENCE, events.next()).await.ok()
            } else {
                Some(events.next().await)
            }
        });
        let event = match next.await? {
            None | Some(None) => break None,
            Some(Some(Ok(event))) => event,
            Some(Some(Err(error))) => {
                break Some(match error {
                    Broken::Transport(framing::Broken::Connection(error)) => {
                        (CONNECTION, format!("the connection broke: {}", causes(&error)))
                    }
                    Broken::Transport(long @ framing::Broken::TooLong) => (TOO_LONG, long.to_string()),
                    Broken::Utf8(_) => (GARBLED, "the stream is not UTF-8 text".to_owned()),
                    Broken::Parser(_) => (GARBLED, "the stream is not an event stream".to_owned()),
                });
            }
        };
        if event.data.trim().is_empty() {
            continue;
        }
        if event.data.trim() == "[DONE]" {
            break None;
        }
        let Ok(data) = serde_json::from_str::<Value>(&event.data) else {
            let quoted = excerpt::of_body(&event.data, redactor);
            break Some((GARBLED, format!("an event is not JSON: {quoted}")));
        };
        sink.provider_event(&data).await;
        let flow = reader.read(&data, draft);
        for event in draft.take_events() {
            sink.event(event).await;
        }
        match flow {
            Flow::More => {}
            Flow::End => break None,
            Flow::Failed(why) => {
                let why = excerpt::shorten(&redactor.clean(&why));
                return Err(Fault::new(
                    "models::reported",
                    format!("{provider} reported an error: {why}"),
                    "the fault is the server's: ask again, or choose another model with --model",
                )
                .into());
            }
        }
    };
    match (reader.finished(), broke_off) {
        // What comes after the end of an answer cannot spoil it.
        (Some(Ending::Complete(reason)), _) => Ok(reason),
        (Some(Ending::Failed(why)), _) => Err(Fault::new(
            "models::refused",
            format!("{provider}: {why}"),
            "the model did not answer this; say it in another way, or choose another one with --model",
        )
        .into()),
        (None, Some((code, why))) => {
            let what = format!("{provider}: {why}; the answer is incomplete");
            Err(Fault::new(code, what, "what came is kept; ask again, or say \"go on\"").into())
        }
        (None, None) => {
            let what = format!("{provider}: the stream ended before the answer did");
            Err(Fault::new(CONNECTION, what, "what came is kept; ask again, or say \"go on\"").into())
        }
    }
}

async fn unless<F: Future>(cancel: &CancellationToken, wait: F) -> Result<F::Output, Failure> {
    cancel.run_until_cancelled(wait).await.ok_or(Failure::Aborted)
}

/// The start of an error body; a server that never ends it is not waited for.
async fn beginning(response: Response) -> String {
    let mut body = Vec::new();
    let mut chunks = response.bytes_stream();
    let read = async {
        while let Some(Ok(chunk)) = chunks.next().await {
            body.extend_from_slice(&chunk);
            if body.len() >= ERROR_BODY {
                break;
            }
        }
    };
    let _ = tokio::time::timeout(PATIENCE, read).await;
    String::from_utf8_lossy(&body).into_owned()
}

/// What a hook wrote in other letter case wins over the default of the same name.
fn header_map(headers: &BTreeMap<String, Option<String>>) -> Result<HeaderMap, Failure> {
    let mut map = HeaderMap::new();
    let is_lower = |name: &&String| name.bytes().all(|b| !b.is_ascii_uppercase());
    let (lower, other): (Vec<_>, Vec<_>) = headers.iter().partition(|(name, _)| is_lower(name));
    for (name, value) in lower.into_iter().chain(other) {
        let bad = |what| {
            let what = format!("the request header {name:?} {what}");
            Fault::new("models::bad_header", what, "correct \"headers\" or the key in models.json")
        };
        let key = HeaderName::try_from(name.as_str()).map_err(|_| bad("has an illegal name"))?;
        match value {
            None => {
                map.remove(key);
            }
            Some(value) => {
                let value = HeaderValue::try_from(value.as_str())
                    .map_err(|_| bad("has a value that cannot be sent"))?;
                map.insert(key, value);
            }
        }
    }
    Ok(map)
}

fn lower_case(headers: &HeaderMap) -> BTreeMap<String, String> {
    let mut out = BTreeMap::<String, String>::new();
    for (name, value) in headers {
        let value = String::from_utf8_lossy(value.as_bytes());
        out.entry(name.as_str().to_owned())
            .and_modify(|all| {
                all.push_str(", ");
                all.push_str(&value);
            })
            .or_insert_with(|| value.into_owned());
    }
    out
}

/// Scheme, host and port: the rest may hold a key.
fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

#[cfg(test)]
mod tests;

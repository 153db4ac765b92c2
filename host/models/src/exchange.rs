//! One request and its streamed answer, whatever the wire format: hooks told in order,
//! cancellation at every wait, every failure a message. The formats are behind `Wire`.

use crate::{
    anthropic::Anthropic,
    compat::Compat,
    credential::{Credential, Secret},
    draft::Draft,
    excerpt::{self, Redactor},
    fault::{Fault, Reported},
    framing::{self, whole_lines},
    google::Google,
    openai_completions::OpenAiCompletions,
    openai_responses::OpenAiResponses,
    received::{Body, Lost, Received},
    retry_after,
    tape::Tape,
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
    StatusCode, Url,
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
const STALLED: &str = "models::stalled";

const USER_AGENT: &str = concat!("atomic/", env!("CARGO_PKG_VERSION"));

/// Where a model is and how one gets in.
pub(crate) struct Endpoint {
    pub info: ModelInfo,
    pub key: Option<Credential>,
    pub auth_header: bool,
    pub headers: BTreeMap<String, Option<Credential>>,
    pub compat: Compat,
    pub transport: Arc<Transport>,
    /// How long nothing may come; `None`: for ever.
    pub idle: Option<Duration>,
    pub tape: Option<Tape>,
}

/// One wire format.
pub(crate) trait Wire: Send + Sync {
    /// The full address of a request.
    fn url(&self, endpoint: &Endpoint) -> String;
    /// Headers of the format, lower-case: the key, the version.
    fn headers(
        &self,
        endpoint: &Endpoint,
        key: Option<&str>,
        request: &ModelRequest,
    ) -> BTreeMap<String, String>;
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
    Failed(Reported),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ending {
    Complete(StopReason),
    /// Refused, filtered, or of no use.
    Failed {
        code: &'static str,
        why: String,
    },
}

impl Ending {
    /// It will not be answered however often it is asked.
    pub fn refused(why: impl Into<String>) -> Self {
        Ending::Failed { code: "models::refused", why: why.into() }
    }
    /// Asking again may help.
    pub fn garbled(why: String) -> Self {
        Ending::Failed { code: GARBLED, why }
    }
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
            "openai-responses" => Box::new(OpenAiResponses),
            "google-generative-ai" => Box::new(Google),
            _ => Box::new(OpenAiCompletions),
        };
        HttpModel { endpoint, wire }
    }

    /// What goes out before anybody changes it. Learns the secrets in it.
    async fn headers(
        &self,
        request: &ModelRequest,
        redactor: &mut Redactor,
    ) -> Result<BTreeMap<String, Option<String>>, Failure> {
        let endpoint = &self.endpoint;
        let key = match &endpoint.key {
            Some(key) => Some(self.secret(key, "its key").await?),
            None => None,
        };
        if let Some(key) = &key {
            redactor.add(key.expose());
        }
        let defaults = self.wire.headers(endpoint, key.as_ref().map(Secret::expose), request);
        let mut headers: BTreeMap<_, _> = defaults.into_iter().map(|(k, v)| (k, Some(v))).collect();
        let common = [
            ("accept", "text/event-stream"),
            // What is asked for compressed can be damaged, and saves nothing in small pieces.
            ("accept-encoding", "identity"),
            ("content-type", "application/json"),
            ("user-agent", USER_AGENT),
        ];
        headers.extend(common.map(|(name, value)| (name.to_owned(), Some(value.to_owned()))));
        for (name, value) in &endpoint.headers {
            let value = match value {
                Some(value) => Some(self.secret(value, &format!("the header {name}")).await?),
                None => None,
            };
            if let Some(secret) = &value {
                redactor.add(secret.expose());
            }
            headers.insert(name.to_ascii_lowercase(), value.map(|s| s.expose().to_owned()));
        }
        Ok(headers)
    }

    async fn secret(&self, credential: &Credential, what: &str) -> Result<Secret, Failure> {
        credential.resolve().await.map_err(|why| {
            let provider = &self.endpoint.info.provider;
            Failure::Told(Fault::new(
                "models::key_command",
                format!("the command that prints {what} for \"{provider}\" gave none: {why}"),
                format!(
                    "run the command behind the \"!\" of \"{provider}\" in models.json or auth.json by hand"
                ),
            ))
        })
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
        let mut headers = unless(cancel, self.headers(request, redactor)).await??;
        sink.headers(&mut headers).await;
        redactor.add_headers(&headers);
        let mut payload = self.wire.payload(&self.endpoint, request);
        sink.payload(&mut payload).await;

        let address = self.wire.url(&self.endpoint);
        let url = Url::parse(&address).ok().filter(|u| matches!(u.scheme(), "http" | "https"));
        let url = url.ok_or_else(|| Fault::address(provider))?;
        let place = origin(&url);
        let mut received = unless(cancel, self.ask(&url, &headers, &payload, redactor)).await??;

        let status = StatusCode::from_u16(received.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        sink.response(received.status, lower_case(&received.headers)).await;
        for event in draft.take_events() {
            sink.event(event).await;
        }
        if !status.is_success() {
            if let (401, Some(Credential::Command(command))) = (received.status, &self.endpoint.key) {
                command.forget().await;
            }
            let after = retry_after::of(&received.headers, jiff::Timestamp::now());
            let body = unless(cancel, beginning(&mut received.body)).await?;
            let said = excerpt::of_body(&body, redactor);
            return Err(Fault { after, ..Fault::of_status(provider, status, &said) }.into());
        }
        let coding = received.header("content-encoding").to_owned();
        if !coding.is_empty() && !coding.eq_ignore_ascii_case("identity") {
            let what = format!(
                "{provider} at {place} sent its answer compressed ({}), which was not asked for",
                excerpt::shorten(&coding)
            );
            return Err(
                Fault::new(GARBLED, what, "ask again; if it stays so, look at the proxy in between").into()
            );
        }
        let kind = received.header("content-type").to_owned();
        if kind.starts_with("application/json") || kind.starts_with("text/html") {
            let body = unless(cancel, beginning(&mut received.body)).await?;
            let said = excerpt::of_body(&body, redactor);
            return Err(Fault::new(
                "models::not_a_stream",
                format!("{provider} at {place} answered with {kind} instead of an event stream: {said}"),
                format!("look at the \"baseUrl\" and the \"api\" of \"{provider}\" in models.json, and at the proxy"),
            )
            .into());
        }
        follow(provider, received.body, self.wire.reader().as_mut(), draft, redactor, sink, cancel).await
    }

    /// The answer's beginning, from the network or from a recording.
    async fn ask(
        &self,
        url: &Url,
        headers: &BTreeMap<String, Option<String>>,
        payload: &Value,
        redactor: &Redactor,
    ) -> Result<Received, Failure> {
        let Endpoint { info, transport, idle, tape, .. } = &self.endpoint;
        let provider = &info.provider;
        if let Some(answer) = tape.as_ref().and_then(|t| t.answer(url, payload)) {
            return answer.map_err(|why| {
                let help = "record again, or ask what was asked then";
                Fault::new("models::replay", format!("{provider}: {why}"), help).into()
            });
        }
        let client = transport.client(url).map_err(|why| {
            Fault::new("models::no_client", why, "the system's certificates or its limits are in the way")
        })?;
        let place = origin(url);
        let call = client.post(url.clone()).headers(header_map(headers)?).body(payload.to_string()).send();
        let sent = match idle {
            Some(idle) => tokio::time::timeout(*idle, call).await.map_err(|_| {
                let what = format!("{provider} at {place}: no answer for {} seconds", idle.as_secs());
                Fault::new(
                    STALLED,
                    what,
                    "ask again; models.idleTimeoutMs in settings.json says how long is waited",
                )
            })?,
            None => call.await,
        };
        let response = sent.map_err(|error| Fault::of_request(provider, &place, &error.without_url()))?;
        let received = Received::of_network(response, *idle);
        Ok(match tape {
            Some(tape) => tape.listen(url, payload, redactor, received),
            None => received,
        })
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
                        match (&error as &(dyn std::error::Error + 'static)).downcast_ref::<Lost>() {
                            Some(stalled @ Lost::Stalled(_)) => (STALLED, stalled.to_string()),
                            _ => (CONNECTION, format!("the connection broke: {}", causes(&error))),
                        }
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
            Flow::Failed(Reported { code, why }) => {
                let why = excerpt::shorten(&redactor.clean(&why));
                return Err(Fault::new(
                    code,
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
        (Some(Ending::Failed { code, why }), _) => Err(Fault::new(
            code,
            format!("{provider}: {}", excerpt::shorten(&redactor.clean(&why))),
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
async fn beginning(chunks: &mut Body) -> String {
    let mut body = Vec::new();
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

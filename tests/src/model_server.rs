//! A model server on 127.0.0.1 for the story tests. It speaks all wire formats, follows a
//! list of answers, records every request, and judges each one itself: a request that a real
//! provider would refuse is refused with 400 and fails the test when the server is dropped.
//! Runs on a thread of its own, so sync and async tests use it alike. Knows nothing of the
//! programs it serves.
//!
//! ```no_run
//! use atomic_tests::model_server::{Answer, ModelServer};
//! use serde_json::json;
//! let server = ModelServer::start([
//!     Answer::text("Looking.").call("bash", json!({"command": "ls"})),
//!     Answer::text("Done."),
//! ]);
//! // write server.models_json() to $ATOMIC_HOME/agent/models.json, run with
//! // --model fake-openai/fake or --model fake-anthropic/fake, then
//! assert_eq!(server.requests().len(), 2);
//! server.assert_ok();
//! ```

#![allow(clippy::expect_used)] // part of tests: its panic is their failure

mod answer;
mod judge;
mod wire;

pub use answer::{Answer, Gate};

use http_body_util::{BodyExt as _, StreamBody, combinators::BoxBody};
use hyper::{
    Request, Response,
    body::{Bytes, Frame, Incoming},
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, VecDeque},
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::JoinHandle,
    time::Duration,
};
use tokio::sync::{mpsc, oneshot};

/// The wire format a request came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    OpenAi,
    Anthropic,
    Responses,
    Google,
}

/// One request as it arrived.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub path: String,
    /// Names in lower case.
    pub headers: BTreeMap<String, String>,
    /// `Null` if it was no JSON.
    pub body: Value,
    pub format: Option<Format>,
}

impl Recorded {
    /// The text of the last message that is not a result, whatever the format.
    pub fn last_user_text(&self) -> String {
        let lists = ["messages", "input", "contents"].map(|key| self.body[key].as_array());
        let messages = lists.into_iter().flatten().next().cloned().unwrap_or_default();
        let users = messages.iter().rev().filter(|m| m["role"] == "user");
        let content =
            |m: &Value| if m["parts"].is_array() { m["parts"].clone() } else { m["content"].clone() };
        users.map(|m| wire::text_of(&content(m))).find(|t| !t.is_empty()).unwrap_or_default()
    }
    /// The texts of the results at the end of the request, in order.
    pub fn last_results(&self) -> Vec<String> {
        wire::last_results(&self.body)
    }
    /// Names of the tools it offers.
    pub fn tools(&self) -> Vec<String> {
        let tools = self.body["tools"].as_array().cloned().unwrap_or_default();
        let declared = tools.first().and_then(|t| t["functionDeclarations"].as_array()).cloned();
        let tools = declared.unwrap_or(tools);
        let name = |t: &Value| t["name"].as_str().or(t["function"]["name"].as_str()).map(str::to_owned);
        tools.iter().filter_map(name).collect()
    }
}

#[derive(Default)]
struct State {
    answers: VecDeque<Answer>,
    served: usize,
    requests: Vec<Recorded>,
    failures: Vec<String>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    arrived: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A panicking test must still be told what the server saw.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ModelServer {
    /// Answers in this order, whatever the format of each request. A request beyond the last
    /// answer gets 500 and is a failure.
    pub fn start(answers: impl IntoIterator<Item = Answer>) -> Self {
        let shared = Arc::new(Shared::default());
        shared.lock().answers = answers.into_iter().collect();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port on 127.0.0.1");
        let address = listener.local_addr().expect("the address of a bound listener");
        listener.set_nonblocking(true).expect("a listener for tokio");
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("model-server".to_owned())
            .spawn({
                let shared = shared.clone();
                move || serve(listener, shared, stopped)
            })
            .expect("a thread");
        ModelServer { address, shared, stop: Some(stop), thread: Some(thread) }
    }

    /// `http://127.0.0.1:PORT`; paths are accepted with and without `/v1`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A `models.json` with the providers `fake-openai`, `fake-anthropic`, `fake-responses` and
    /// `fake-google`, each with the model `fake`, which thinks and sees.
    pub fn models_json(&self) -> String {
        let provider = |api: &str| {
            json!({
                "baseUrl": self.url(), "api": api, "apiKey": "fake-key-of-the-tests",
                "models": [{
                    "id": "fake", "name": "Fake", "reasoning": true, "input": ["text", "image"],
                    "contextWindow": 200_000, "maxTokens": 16_384,
                    "cost": {"input": 1.0, "output": 2.0, "cacheRead": 0.1, "cacheWrite": 1.25},
                }],
            })
        };
        json!({"providers": {
            "fake-openai": provider("openai-completions"),
            "fake-anthropic": provider("anthropic-messages"),
            "fake-responses": provider("openai-responses"),
            "fake-google": provider("google-generative-ai"),
        }})
        .to_string()
    }

    pub fn push(&self, answer: Answer) {
        self.shared.lock().answers.push_back(answer);
    }

    /// All so far, refused ones included.
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.lock().requests.clone()
    }

    /// Blocks until so many have arrived; a minute without them is the test's failure.
    pub fn wait_for_requests(&self, count: usize) -> Vec<Recorded> {
        let minute = Duration::from_secs(60);
        let waiting = |state: &mut State| state.requests.len() < count;
        let (state, timeout) = self
            .shared
            .arrived
            .wait_timeout_while(self.shared.lock(), minute, waiting)
            .unwrap_or_else(PoisonError::into_inner);
        assert!(!timeout.timed_out(), "{} of {count} requests came within a minute", state.requests.len());
        state.requests.clone()
    }

    pub fn failures(&self) -> Vec<String> {
        self.shared.lock().failures.clone()
    }

    /// For the tests of the server itself: what was refused is taken out and returned.
    pub fn take_failures(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.lock().failures)
    }

    /// Every request so far was one that a provider takes.
    pub fn assert_ok(&self) {
        let failures = self.failures();
        assert!(failures.is_empty(), "the model server refused:\n  {}", failures.join("\n  "));
    }

    /// `assert_ok`, and every answer has been asked for.
    pub fn assert_finished(&self) {
        self.assert_ok();
        let left = self.shared.lock().answers.len();
        assert_eq!(left, 0, "{left} answers were never asked for");
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        let served = self.thread.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            assert!(!matches!(served, Some(Err(_))), "the model server panicked");
            self.assert_ok();
        }
    }
}

fn serve(listener: std::net::TcpListener, shared: Arc<Shared>, stopped: oneshot::Receiver<()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async move {
        let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
        let accept = async {
            loop {
                let Ok((socket, _)) = listener.accept().await else { continue };
                let shared = shared.clone();
                tokio::spawn(async move {
                    let service = service_fn(move |request| answer_one(request, shared.clone()));
                    // A client that goes away is part of many stories.
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(socket), service)
                        .await;
                });
            }
        };
        tokio::select! {
            () = accept => {}
            _ = stopped => {}
        }
    });
    // Open connections end with the runtime.
    runtime.shutdown_background();
}

type Body = BoxBody<Bytes, std::io::Error>;

async fn answer_one(request: Request<Incoming>, shared: Arc<Shared>) -> Result<Response<Body>, Infallible> {
    let (head, body) = request.into_parts();
    let bytes = body.collect().await.map(|b| b.to_bytes()).unwrap_or_default();
    let headers = head.headers.iter();
    let headers: BTreeMap<_, _> = headers
        .map(|(name, value)| {
            (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        })
        .collect();
    let path = head.uri.path().to_owned();
    let format = match path.trim_start_matches("/v1") {
        "/chat/completions" => Some(Format::OpenAi),
        "/messages" => Some(Format::Anthropic),
        "/responses" => Some(Format::Responses),
        other if other.starts_with("beta/models/") && other.ends_with(":streamGenerateContent") => {
            Some(Format::Google)
        }
        _ => None,
    };
    let parsed: Result<Value, _> = serde_json::from_slice(&bytes);
    let body = parsed.as_ref().cloned().unwrap_or(Value::Null);
    let recorded = Recorded { path: path.clone(), headers, body, format };
    let verdict = match (format, parsed, head.method == hyper::Method::POST) {
        (_, _, false) => Err(format!("{} {path}: only POST is spoken here", head.method)),
        (None, ..) => Err(format!("{path}: no such path")),
        (Some(_), Err(error), _) => Err(format!("the body is not JSON: {error}")),
        (Some(format), Ok(_), _) => judge::judge(format, &recorded),
    };

    let next = {
        let mut state = shared.lock();
        let number = state.requests.len() + 1;
        state.requests.push(recorded);
        shared.arrived.notify_all();
        match verdict {
            Err(why) => {
                state.failures.push(format!("request {number}: {why}"));
                Err((400, why))
            }
            Ok(()) => match state.answers.pop_front() {
                Some(answer) => {
                    state.served += 1;
                    Ok((answer, state.served))
                }
                None => {
                    let why = "no answer is left in the script".to_owned();
                    state.failures.push(format!("request {number}: {why}"));
                    Err((500, why))
                }
            },
        }
    };
    let format = format.unwrap_or(Format::OpenAi);
    Ok(match next {
        Err((status, why)) => whole(status, "application/json", wire::error_body(format, &why)),
        Ok((answer, turn)) => play(format, answer, turn).await,
    })
}

async fn play(format: Format, mut answer: Answer, turn: usize) -> Response<Body> {
    if let Some(gate) = answer.gate.take() {
        gate.opened().await;
    }
    if let Some((status, body)) = answer.refusal {
        return whole(
            status,
            "application/json",
            body.unwrap_or_else(|| wire::error_body(format, "scripted error")),
        );
    }
    let frames = wire::frames(format, &answer, turn);
    let (out, body) = mpsc::channel::<Result<Frame<Bytes>, std::io::Error>>(1);
    tokio::spawn(async move {
        for frame in frames {
            if out.send(Ok(Frame::data(Bytes::from(frame)))).await.is_err() {
                return;
            }
        }
        if let Some(gate) = answer.gate_after {
            gate.opened().await;
        }
        if answer.hang {
            // Until the client closes.
            out.closed().await;
        }
        if answer.cut {
            let _ = out.send(Err(std::io::Error::other("cut"))).await;
        }
    });
    let stream =
        futures_util::stream::unfold(body, |mut body| async move { Some((body.recv().await?, body)) });
    Response::builder()
        .header("content-type", "text/event-stream")
        .header("x-request-id", format!("req_{turn}"))
        .body(StreamBody::new(stream).boxed())
        .expect("a response")
}

fn whole(status: u16, kind: &str, body: String) -> Response<Body> {
    let body = http_body_util::Full::new(Bytes::from(body)).map_err(|never| match never {});
    Response::builder().status(status).header("content-type", kind).body(body.boxed()).expect("a response")
}

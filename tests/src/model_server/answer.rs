//! One scripted answer.

use serde_json::Value;
use tokio::sync::watch;

/// Built by chaining: `Answer::text("a").call("bash", json!({..}))`.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    pub(super) parts: Vec<Part>,
    /// The format's own word; absent: what fits the parts.
    pub(super) stop: Option<String>,
    pub(super) refusal: Option<(u16, Option<String>)>,
    pub(super) garbage: Option<Vec<u8>>,
    pub(super) gate: Option<Waiter>,
    pub(super) gate_after: Option<Waiter>,
    pub(super) cut: bool,
    pub(super) hang: bool,
    /// Tokens of the whole request, as the provider counts them.
    pub(super) prompt_tokens: Option<u64>,
}

#[derive(Clone, Debug)]
pub(super) enum Part {
    Text(String),
    Thinking(String),
    /// Arguments as text, so that they can be broken.
    Call {
        id: Option<String>,
        name: String,
        arguments: String,
    },
}

impl Answer {
    pub fn text(text: &str) -> Self {
        Answer::default().and_text(text)
    }
    /// Only tool calls.
    pub fn calls<'a>(calls: impl IntoIterator<Item = (&'a str, Value)>) -> Self {
        calls.into_iter().fold(Answer::default(), |answer, (name, arguments)| answer.call(name, arguments))
    }
    /// A status with an error body of the format asked in.
    pub fn status(status: u16) -> Self {
        Answer { refusal: Some((status, None)), ..Answer::default() }
    }
    pub fn status_with(status: u16, body: &str) -> Self {
        Answer { refusal: Some((status, Some(body.to_owned()))), ..Answer::default() }
    }
    /// These bytes as the body of a 200 event stream.
    pub fn garbage(bytes: &[u8]) -> Self {
        Answer { garbage: Some(bytes.to_vec()), ..Answer::default() }
    }
    pub fn and_text(mut self, text: &str) -> Self {
        self.parts.push(Part::Text(text.to_owned()));
        self
    }
    pub fn thinking(mut self, text: &str) -> Self {
        self.parts.push(Part::Thinking(text.to_owned()));
        self
    }
    pub fn call(self, name: &str, arguments: Value) -> Self {
        self.call_raw(name, &arguments.to_string())
    }
    /// Arguments as text, valid or not.
    pub fn call_raw(mut self, name: &str, arguments: &str) -> Self {
        let (name, arguments) = (name.to_owned(), arguments.to_owned());
        self.parts.push(Part::Call { id: None, name, arguments });
        self
    }
    /// The last call gets this id.
    pub fn with_id(mut self, id: &str) -> Self {
        if let Some(Part::Call { id: slot, .. }) = self.parts.last_mut() {
            *slot = Some(id.to_owned());
        }
        self
    }
    /// The format's own stop reason, for example `length` or `max_tokens`.
    pub fn stop(mut self, reason: &str) -> Self {
        self.stop = Some(reason.to_owned());
        self
    }
    /// The request counts so many tokens.
    pub fn counted(mut self, tokens: u64) -> Self {
        self.prompt_tokens = Some(tokens);
        self
    }
    /// The connection breaks after the parts, before the end of the answer.
    pub fn cut(mut self) -> Self {
        self.cut = true;
        self
    }
    /// After the parts nothing comes any more; the connection stays open.
    pub fn hang(mut self) -> Self {
        self.hang = true;
        self
    }
    /// Nothing is answered before the gate opens: a delay that ends by an event, not by time.
    pub fn behind(mut self, gate: &Gate) -> Self {
        self.gate = Some(gate.waiter());
        self
    }
    /// The parts are sent, then the end waits for the gate.
    pub fn end_behind(mut self, gate: &Gate) -> Self {
        self.gate_after = Some(gate.waiter());
        self
    }
}

/// Holds answers back until it is opened, or dropped.
#[derive(Debug)]
pub struct Gate(watch::Sender<bool>);

impl Default for Gate {
    fn default() -> Self {
        Gate(watch::Sender::new(false))
    }
}

impl Gate {
    pub fn new() -> Self {
        Self::default()
    }
    pub fn open(&self) {
        self.0.send_replace(true);
    }
    fn waiter(&self) -> Waiter {
        Waiter(self.0.subscribe())
    }
}

#[derive(Clone, Debug)]
pub(super) struct Waiter(watch::Receiver<bool>);

impl Waiter {
    pub async fn opened(mut self) {
        let _ = self.0.wait_for(|open| *open).await;
    }
}

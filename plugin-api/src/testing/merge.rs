//! What becomes of the answers of several handlers, event by event (events.md A), as far
//! as one extension alone can tell.

use crate::error::{Error, Result};
use serde_json::{Map, Value};

/// What an event came to.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct FireResult {
    /// `tool_call`, `user_bash`: why it does not run.
    pub blocked: Option<String>,
    /// `tool_call`: blocked, and the batch may end the run.
    pub terminate: bool,
    /// `session_before_*`: a handler cancelled it.
    pub cancelled: bool,
    /// `input`: a handler took it.
    pub handled: bool,
    /// The event as the handlers left it: `input`, `messages`, `headers`, `text`,
    /// `content`, `message`, `payload`, `systemPrompt`, …
    pub event: Value,
    /// What the handlers answered, in their order; those without an opinion are not in here.
    pub results: Vec<Value>,
    /// Handlers that failed or panicked.
    pub errors: Vec<Error>,
}

impl FireResult {
    /// A field of the event as the handlers left it; null when it is absent.
    pub fn field(&self, name: &str) -> &Value {
        self.event.get(name).unwrap_or(&Value::Null)
    }
    /// `tool_call`: the arguments that would run.
    pub fn input(&self) -> &Value {
        self.field("input")
    }
    /// Fails the test unless every handler succeeded.
    ///
    /// # Panics
    /// With the first error.
    #[track_caller]
    pub fn ok(self) -> Self {
        if let Some(e) = self.errors.first() {
            panic!("a handler failed: {} ({})", e.message, e.code);
        }
        self
    }

    /// One handler has answered; false ends the chain.
    pub(super) fn merge(&mut self, name: &str, outcome: Result<Vec<u8>>) -> bool {
        let gate = matches!(name, "tool_call" | "user_bash");
        let out: Map<String, Value> = match outcome {
            Ok(bytes) if bytes.is_empty() => return true,
            Ok(bytes) => match serde_json::from_slice(&bytes) {
                Ok(out) => out,
                Err(e) => return self.failed(gate, Error::new("malformed", e)),
            },
            Err(e) => return self.failed(gate, e),
        };
        if let Some(patch) = out.get("patch").and_then(Value::as_object) {
            for (key, value) in patch {
                self.set(key, value.clone());
            }
        }
        let Some(result) = out.get("result").filter(|r| !r.is_null()).cloned() else { return true };
        let go_on = self.answer(name, &result);
        self.results.push(result);
        go_on
    }

    fn failed(&mut self, gate: bool, error: Error) -> bool {
        if gate {
            self.blocked = Some(error.message.clone());
        }
        self.errors.push(error);
        !gate
    }

    fn set(&mut self, key: &str, value: Value) {
        if let Some(event) = self.event.as_object_mut() {
            event.insert(key.to_owned(), value);
        }
    }

    fn answer(&mut self, name: &str, result: &Value) -> bool {
        let given = |key: &str| result.get(key).filter(|v| !v.is_null()).cloned();
        match name {
            "tool_call" if result["block"] == Value::Bool(true) => {
                let reason = result["reason"].as_str().unwrap_or("Tool execution was blocked");
                self.blocked = Some(reason.to_owned());
                self.terminate = result["terminate"] == Value::Bool(true);
                return false;
            }
            "input" => match result["action"].as_str() {
                Some("handled") => {
                    self.handled = true;
                    return false;
                }
                Some("transform") => self.set_all(result, &["text", "images"]),
                _ => {}
            },
            "tool_result" => self.set_all(result, &["content", "details", "isError"]),
            "before_agent_start" => self.set_all(result, &["systemPrompt"]),
            "context" | "context_with_system" => self.set_all(result, &["messages"]),
            "turn_end" | "agent_before_settle" => self.set_all(result, &["entries", "continue"]),
            "cache_warming_decision" => self.set_all(result, &["action"]),
            "user_bash" => return false,
            _ if name.starts_with("session_before_") && result["cancel"] == Value::Bool(true) => {
                self.cancelled = true;
                return false;
            }
            "message_end" => {
                if let Some(message) = given("message") {
                    if message["role"] == self.event["message"]["role"] {
                        self.set("message", message);
                    } else {
                        self.errors.push(Error::new("role_mismatch", "message_end answered another role"));
                    }
                }
            }
            "before_provider_request" if result["replace"] == Value::Bool(true) => {
                self.set("payload", result["payload"].clone());
            }
            _ => {}
        }
        true
    }

    fn set_all(&mut self, result: &Value, keys: &[&str]) {
        for key in keys {
            if let Some(value) = result.get(*key).filter(|v| !v.is_null()) {
                self.set(key, value.clone());
            }
        }
    }
}

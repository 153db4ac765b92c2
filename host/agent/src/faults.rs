//! What kind of failure an answer ended in: whether asking again may help. Judged by the stable
//! code where there is one, by the provider's words where there is none.

use crate::message::{AssistantMessage, ERROR_CODE, RETRY_AFTER, StopReason};
use serde_json::Value;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The same request may be answered the next time; `after`: the server said when.
    Transient { after: Option<Duration> },
    /// More was asked for than the model takes in.
    Overflow,
    /// The room asked for the answer is more than what the question leaves.
    OutputBudget,
    /// Another model may answer: no credit, no right, no such model here.
    ThisModel,
    /// The request itself.
    Lasting,
}

/// `None`: it did not fail.
pub(crate) fn of(message: &AssistantMessage) -> Option<Fault> {
    if message.stop_reason != Some(StopReason::Error) {
        return None;
    }
    let code = message.extra.get(ERROR_CODE).and_then(Value::as_str).unwrap_or_default();
    let after = message.extra.get(RETRY_AFTER).and_then(Value::as_u64).map(Duration::from_millis);
    let said = message.error_message.as_deref().unwrap_or_default().to_lowercase();
    let has = |words: &[&str]| words.iter().any(|w| said.contains(w));
    // Before the status: providers report both with 400 and with 413.
    if has(OUTPUT_BUDGET) && has(&["exceed", "too large", "too high", "maximum", "at most"]) {
        return Some(Fault::OutputBudget);
    }
    if has(OVERFLOW) {
        return Some(Fault::Overflow);
    }
    let transient = Some(Fault::Transient { after });
    match code {
        // A month's budget does not come back in a minute.
        "models::rate_limited" if has(NO_CREDIT) => Some(Fault::ThisModel),
        "models::rate_limited"
        | "models::server_error"
        | "models::timeout"
        | "models::connection"
        | "models::unreachable"
        | "models::garbled_stream"
        | "models::stalled" => transient,
        "models::key_rejected" | "models::not_found" | "models::no_key" => Some(Fault::ThisModel),
        "" | "models::reported" if has(NO_CREDIT) => Some(Fault::ThisModel),
        "" | "models::reported" if has(TRANSIENT) || status(&said) => transient,
        _ => Some(Fault::Lasting),
    }
}

const OUTPUT_BUDGET: &[&str] =
    &["max_tokens", "max_completion_tokens", "max_output_tokens", "maxoutputtokens", "output tokens"];
const OVERFLOW: &[&str] = &[
    "prompt is too long",
    "context length",
    "context window",
    "context_length_exceeded",
    "maximum context",
    "exceeds the context",
    "input is too long",
    "too many input tokens",
    "input token count",
    "request_too_large",
    "exceeds the available context size",
];
const NO_CREDIT: &[&str] =
    &["insufficient_quota", "billing", "credit balance", "exceeded your current quota", "payment required"];
const TRANSIENT: &[&str] = &[
    "overloaded",
    "rate limit",
    "rate_limit",
    "too many requests",
    "service unavailable",
    "temporarily unavailable",
    "internal server error",
    "bad gateway",
    "gateway timeout",
    "timed out",
    "timeout",
    "connection reset",
    "connection closed",
    "connection error",
    "connection lost",
    "network error",
    "fetch failed",
    "socket hang up",
    "try again",
];

/// A status of the transient kind, standing alone among other words.
fn status(said: &str) -> bool {
    let words = said.split(|c: char| !c.is_ascii_alphanumeric());
    words.into_iter().any(|w| matches!(w, "408" | "429" | "500" | "502" | "503" | "504" | "529"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn failed(code: &str, said: &str, after: Option<u64>) -> AssistantMessage {
        let mut message = json!({"content": [], "stopReason": "error", "errorMessage": said});
        if !code.is_empty() {
            message[ERROR_CODE] = code.into();
        }
        if let Some(after) = after {
            message[RETRY_AFTER] = after.into();
        }
        serde_json::from_value(message).unwrap()
    }

    #[test]
    fn each_failure_is_of_the_kind_its_code_or_its_words_say() {
        let transient = Fault::Transient { after: None };
        for (code, said, kind) in [
            ("models::rate_limited", "p answered 429", transient),
            ("models::rate_limited", "p answered 429: You exceeded your current quota", Fault::ThisModel),
            ("models::server_error", "p answered 529: overloaded", transient),
            ("models::key_rejected", "p answered 401", Fault::ThisModel),
            ("models::request_refused", "p answered 400: prompt is too long: 210000 tokens", Fault::Overflow),
            ("models::request_refused", "p answered 400: unknown field", Fault::Lasting),
            (
                "models::request_refused",
                "input length and `max_tokens` exceed context limit: 190000 + 32000",
                Fault::OutputBudget,
            ),
            ("models::refused", "the answer was refused", Fault::Lasting),
            ("", "Overloaded", transient),
            ("models::reported", "error 503 from upstream", transient),
            ("", "line 1503 is wrong", Fault::Lasting),
            ("", "boom", Fault::Lasting),
        ] {
            assert_eq!(of(&failed(code, said, None)), Some(kind), "{code} {said}");
        }
        let waited = of(&failed("models::rate_limited", "p answered 429", Some(1500)));
        assert_eq!(waited, Some(Fault::Transient { after: Some(Duration::from_millis(1500)) }));
        let mut ended = failed("", "overloaded", None);
        ended.stop_reason = Some(StopReason::Aborted);
        assert_eq!(of(&ended), None);
    }
}

//! Why an answer did not come, as a person is told: a stable code, one sentence, what to do.

use crate::{
    excerpt,
    transport::{causes, root_cause},
};
use atomic_agent::message::{ERROR_CODE, ERROR_HELP, Extra, RETRY_AFTER};
use reqwest::StatusCode;
use serde_json::Value;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fault {
    /// `atomic explain` knows it.
    pub code: &'static str,
    pub what: String,
    pub help: String,
    /// The server said when to come back.
    pub after: Option<Duration>,
}

impl Fault {
    pub fn new(code: &'static str, what: impl Into<String>, help: impl Into<String>) -> Self {
        Fault { code, what: what.into(), help: help.into(), after: None }
    }

    /// Code and help travel beside the message's text.
    pub fn mark(&self, extra: &mut Extra) {
        extra.insert(ERROR_CODE.to_owned(), self.code.into());
        extra.insert(ERROR_HELP.to_owned(), self.help.clone().into());
        if let Some(ms) = self.after.and_then(|d| u64::try_from(d.as_millis()).ok()) {
            extra.insert(RETRY_AFTER.to_owned(), ms.into());
        }
    }

    pub fn address(provider: &str) -> Self {
        Fault::new(
            "models::bad_address",
            format!("the baseUrl of provider \"{provider}\" is no http or https address"),
            format!("write \"baseUrl\": \"https://…\" for \"{provider}\" in models.json"),
        )
    }

    /// No answer came. The error holds no URL any more.
    pub fn of_request(provider: &str, place: &str, error: &reqwest::Error) -> Self {
        let root = root_cause(error);
        if error.is_timeout() {
            return Fault::new(
                "models::timeout",
                format!("no answer from {provider} at {place}: it took too long ({root})"),
                "ask again; if it stays so, look at the network and the proxy",
            );
        }
        if has_tls_cause(error) {
            return Fault::new(
                "models::tls",
                format!("no safe connection to {provider} at {place}: {root}"),
                "the server's certificate is not accepted, or it speaks no TLS: look at the baseUrl, the clock and the proxy",
            );
        }
        if error.is_connect() {
            return Fault::new(
                "models::unreachable",
                format!("cannot reach {provider} at {place}: {root}"),
                format!(
                    "is the server running? its address is the \"baseUrl\" of \"{provider}\" in models.json"
                ),
            );
        }
        Fault::new(
            "models::connection",
            format!("no answer from {provider} at {place}: {}", causes(error)),
            "ask again",
        )
    }

    pub fn of_status(provider: &str, status: StatusCode, said: &str) -> Self {
        let colon = if said.is_empty() { "" } else { ": " };
        let (code, help) = match status.as_u16() {
            401 | 403 => (
                "models::key_rejected",
                format!(
                    "the server does not accept the key of \"{provider}\": look at its variable, or at \"apiKey\" in models.json"
                ),
            ),
            404 => (
                "models::not_found",
                format!("look at the \"baseUrl\" of \"{provider}\" and the id of the model in models.json"),
            ),
            408 | 504 => ("models::timeout", "ask again".to_owned()),
            429 => (
                "models::rate_limited",
                "wait a little and ask again, or choose another model with --model".to_owned(),
            ),
            300..=399 => (
                "models::redirected",
                format!(
                    "a redirect is not followed, it could lead the key elsewhere: write the final address as \"baseUrl\" of \"{provider}\" in models.json"
                ),
            ),
            500..=599 => (
                "models::server_error",
                "the fault is the server's: ask again, or choose another model with --model".to_owned(),
            ),
            _ => (
                "models::request_refused",
                "the server does not take this request; its own words say why".to_owned(),
            ),
        };
        Fault::new(code, format!("{provider} answered {status}{colon}{said}"), help)
    }
}

/// What a provider said went wrong inside a stream that had begun well.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reported {
    /// `atomic explain` knows it.
    pub code: &'static str,
    /// The provider's words.
    pub why: String,
}

impl Reported {
    /// Of an event that holds `error`, or is one.
    pub fn of(event: &Value) -> Self {
        let error = event.get("error").filter(|e| !e.is_null()).unwrap_or(event);
        let why = excerpt::message_of(event).or_else(|| excerpt::message_of(error));
        let why = why.unwrap_or_else(|| error.to_string());
        // A type, a status word, or a number: each provider has another of them.
        let said = ["type", "code", "status"].map(|key| match error.get(key) {
            Some(Value::String(word)) => word.to_ascii_lowercase(),
            Some(Value::Number(n)) => n.to_string(),
            _ => String::new(),
        });
        let has = |words: &[&str]| said.iter().any(|s| words.iter().any(|w| s.contains(w)));
        let code = if has(&["rate_limit", "429", "resource_exhausted", "too_many"]) {
            "models::rate_limited"
        } else if has(&["overloaded", "server_error", "api_error", "internal", "unavailable"])
            || said.iter().any(|s| s.len() == 3 && s.starts_with('5'))
        {
            "models::server_error"
        } else if has(&["timeout", "deadline_exceeded"]) {
            "models::timeout"
        } else if has(&["authentication", "permission", "unauthenticated"]) {
            "models::key_rejected"
        } else {
            "models::reported"
        };
        Reported { code, why }
    }
}

fn has_tls_cause(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(cause) = next {
        let inner = cause.downcast_ref::<std::io::Error>().and_then(|e| e.get_ref());
        if cause.is::<rustls::Error>() || inner.is_some_and(|e| e.is::<rustls::Error>() || has_tls_cause(e)) {
            return true;
        }
        next = cause.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_stream_reports_has_the_code_of_the_same_status() {
        use serde_json::json;
        for (event, code) in [
            (
                json!({"type": "error", "error": {"type": "overloaded_error", "message": "m"}}),
                "models::server_error",
            ),
            (
                json!({"type": "error", "error": {"type": "rate_limit_error", "message": "m"}}),
                "models::rate_limited",
            ),
            (
                json!({"error": {"code": 503, "message": "m", "status": "UNAVAILABLE"}}),
                "models::server_error",
            ),
            (
                json!({"error": {"code": 429, "message": "m", "status": "RESOURCE_EXHAUSTED"}}),
                "models::rate_limited",
            ),
            (json!({"type": "error", "code": "server_error", "message": "m"}), "models::server_error"),
            (json!({"error": {"code": "rate_limit_exceeded", "message": "m"}}), "models::rate_limited"),
            (json!({"error": {"type": "invalid_request_error", "message": "m"}}), "models::reported"),
            (json!({"error": "m"}), "models::reported"),
        ] {
            let reported = Reported::of(&event);
            assert_eq!((reported.code, reported.why.starts_with('m')), (code, true), "{event}: {reported:?}");
        }
    }

    #[test]
    fn every_status_has_a_code_of_its_kind_and_something_to_do() {
        for (status, code) in [
            (400, "models::request_refused"),
            (401, "models::key_rejected"),
            (404, "models::not_found"),
            (307, "models::redirected"),
            (429, "models::rate_limited"),
            (500, "models::server_error"),
            (529, "models::server_error"),
        ] {
            let fault = Fault::of_status("p", StatusCode::from_u16(status).unwrap(), "words");
            assert_eq!(fault.code, code, "{status}");
            assert!(fault.what.contains(&status.to_string()) && fault.what.ends_with(": words"));
            assert!(!fault.help.is_empty());
        }
    }
}

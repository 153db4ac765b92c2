//! The one error type of the author's side: a stable code and a sentence.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What went wrong. Any `std::error::Error` becomes one through `?`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Error {
    /// Stable: `stale_context`, `unsupported`, `panic`, `bad_request`, `error`, …
    pub code: String,
    /// For a person.
    pub message: String,
}

/// `std::result::Result` with this crate's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// With a code of your own.
    pub fn new(code: impl Into<String>, message: impl fmt::Display) -> Self {
        Error { code: code.into(), message: message.to_string() }
    }
    /// With the code `error`.
    pub fn msg(message: impl fmt::Display) -> Self {
        Error::new("error", message)
    }
    /// The handle belongs to a generation that has been replaced (events.md C.2).
    pub fn is_stale(&self) -> bool {
        self.code == "stale_context"
    }
    #[cfg_attr(not(feature = "tokio"), allow(dead_code))]
    pub(crate) fn stale() -> Self {
        Error::new("stale_context", "extension ctx is stale: its generation has been replaced")
    }
    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        serde_json::from_slice(bytes)
            .unwrap_or_else(|_| Error::new("malformed", "the other side answered a malformed error"))
    }
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_else(|_| br#"{"code":"error","message":"unprintable"}"#.to_vec())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

// `Error` itself is no `std::error::Error`, so that this does not overlap `From<Error>`.
impl<E: std::error::Error> From<E> for Error {
    fn from(e: E) -> Self {
        Error::msg(e)
    }
}

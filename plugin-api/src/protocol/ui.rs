//! Dialogs and notices (events.md E.7).

use serde::{Deserialize, Serialize};

wire_enum! {
    /// How a notice looks.
    Level { Info = "info", Warning = "warning", Error = "error" }
}

/// Body of `ui.notify`.
#[derive(Serialize, Deserialize)]
pub(crate) struct Notify<'a> {
    pub message: &'a str,
    pub level: Level,
}

/// Body of `ui.setStatus`.
#[derive(Serialize)]
pub(crate) struct SetStatus<'a> {
    pub key: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<&'a str>,
}

/// Body of `ui.setTitle`.
#[derive(Serialize)]
pub(crate) struct SetTitle<'a> {
    pub title: &'a str,
}

/// Body of the four dialogs; each sends the members it has.
#[cfg(feature = "tokio")]
#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Dialog<'a> {
    pub title: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub options: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placeholder: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefill: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

//! What the model is shown (events.md A.6), and what a handler can ask of its host.

use super::message::AgentMessage;
use serde::{Deserialize, Serialize};

/// Answer of `context`: the messages of this one request, replaced. `event.set_messages`
/// does the same without an answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ContextAnswer {
    /// All of them, without system messages.
    pub messages: Vec<AgentMessage>,
}

impl ContextAnswer {
    /// Replaces the messages.
    pub fn new(messages: Vec<AgentMessage>) -> Self {
        ContextAnswer { messages }
    }
}

wire_enum! {
    /// How the program runs.
    Mode { Print = "print", Tui = "tui", Rpc = "rpc", Json = "json" }
}

/// Body of `ctx.get`.
#[derive(Serialize, Deserialize)]
pub(crate) struct CtxGet<'a> {
    pub member: &'a str,
}

/// Body of `session.get`.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionGet<'a> {
    pub member: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_id: Option<&'a str>,
}

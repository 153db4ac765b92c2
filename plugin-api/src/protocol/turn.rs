//! One request to the model and the tools it called (events.md A.4).

use serde::Deserialize;

/// `turn_start`.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct TurnStartPayload {
    /// 0 at each `agent_start`.
    pub turn_index: usize,
    /// Milliseconds since 1970.
    pub timestamp: i64,
}

wire_enum! {
    /// How a turn ended.
    Outcome { Completed = "completed", Aborted = "aborted", Error = "error" }
}

/// `turn_end`: after the messages of the turn were written. `event.message()` is the
/// assistant's, `event.tool_results()` what its tools answered, `event.entries()` the drafts
/// proposed so far, `event.context()` what the model would be shown. (events.md A.4, A.5)
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct TurnEndPayload {
    /// As in `turn_start`.
    pub turn_index: usize,
    /// Entry of the assistant message; absent when the session is not written.
    pub message_entry_id: Option<String>,
    /// Entries of the results, in their order.
    pub tool_result_entry_ids: Vec<String>,
    /// How it ended.
    pub outcome: Outcome,
    /// An earlier handler asked to go on.
    #[serde(rename = "continue")]
    pub continues: bool,
}

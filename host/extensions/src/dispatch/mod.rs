//! From an event of the core to the handlers of extensions and back. The table of events names
//! each one's class; each class has one merge rule in one file.
//!
//! Order: phase, load order (CLI, user, global, bundled, project; path), registration; one
//! handler at a time; the list is fixed when the dispatch starts (events.md U1-U3).

mod boundary;
mod chain;
mod contexts;
mod decision;
mod first_wins;
mod gate;
mod hooks;
mod invoke;
mod notify;
mod outcome;
mod prompts;
mod recovery;
mod veto;

pub(crate) use invoke::{Asked, ask_entry, event_name, start_detached};
pub(crate) use prompts::{Prompts, Reason};

/// The table and its classes; the file of the table is the author crate's, where the types are.
pub use atomic_plugin_api::protocol::{Class, EVENTS, EventRow, Fired};

macro_rules! numbers {
    ($($konst:ident = $name:literal;)*) => {
        $(pub(crate) const $konst: usize = number($name);)*
        /// Every event is dispatched by somebody.
        #[cfg(test)]
        const DISPATCHED: &[usize] = &[$($konst),*];
    };
}

numbers! {
    PROJECT_TRUST = "project_trust";
    SESSION_START = "session_start";
    RESOURCES_DISCOVER = "resources_discover";
    SESSION_RECOVERY_RESTORE = "session_recovery_restore";
    SESSION_RECOVERY_REPLAY = "session_recovery_replay";
    SESSION_INFO_CHANGED = "session_info_changed";
    SESSION_BEFORE_SWITCH = "session_before_switch";
    SESSION_BEFORE_FORK = "session_before_fork";
    SESSION_BEFORE_COMPACT = "session_before_compact";
    SESSION_COMPACT = "session_compact";
    SESSION_COMPACT_FAILED = "session_compact_failed";
    COMPACTION_START = "compaction_start";
    COMPACTION_END = "compaction_end";
    SESSION_BEFORE_TREE = "session_before_tree";
    SESSION_TREE = "session_tree";
    SESSION_SHUTDOWN = "session_shutdown";
    INPUT = "input";
    BEFORE_AGENT_START = "before_agent_start";
    AGENT_START = "agent_start";
    AGENT_END = "agent_end";
    AGENT_BEFORE_SETTLE = "agent_before_settle";
    AGENT_SETTLED = "agent_settled";
    UI_PROMPT_START = "ui_prompt_start";
    UI_PROMPT_END = "ui_prompt_end";
    TURN_START = "turn_start";
    TURN_END = "turn_end";
    MESSAGE_START = "message_start";
    MESSAGE_UPDATE = "message_update";
    MESSAGE_END = "message_end";
    TOOL_EXECUTION_START = "tool_execution_start";
    TOOL_EXECUTION_UPDATE = "tool_execution_update";
    TOOL_EXECUTION_END = "tool_execution_end";
    CONTEXT = "context";
    CONTEXT_WITH_SYSTEM = "context_with_system";
    BEFORE_PROVIDER_HEADERS = "before_provider_headers";
    BEFORE_PROVIDER_REQUEST = "before_provider_request";
    AFTER_PROVIDER_RESPONSE = "after_provider_response";
    PROVIDER_STREAM_EVENT = "provider_stream_event";
    MODEL_SELECT = "model_select";
    THINKING_LEVEL_SELECT = "thinking_level_select";
    CACHE_WARMING_DECISION = "cache_warming_decision";
    TOOL_CALL = "tool_call";
    TOOL_RESULT = "tool_result";
    USER_BASH = "user_bash";
    ENTRY_APPENDED = "entry_appended";
    WORKFLOW_LIFECYCLE = "workflow_lifecycle";
    WORKFLOW_ACTIVITY_CHANGED = "workflow_activity_changed";
    WORKFLOW_STAGE_COMPLETED = "workflow_stage_completed";
    WORKFLOW_HEARTBEAT = "workflow_heartbeat";
}

/// Of a row of the table; a name without one does not compile.
const fn number(name: &str) -> usize {
    let mut i = 0;
    while i < EVENTS.len() {
        let (a, b) = (EVENTS[i].name.as_bytes(), name.as_bytes());
        let mut at = 0;
        while at < a.len() && at < b.len() && a[at] == b[at] {
            at += 1;
        }
        if at == a.len() && at == b.len() {
            return i;
        }
        i += 1;
    }
    panic!("no row of that name")
}

// The subscription bits are one word.
const _: () = assert!(EVENTS.len() <= 64);

pub(crate) fn event_index(name: &str) -> Option<usize> {
    EVENTS.iter().position(|e| e.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_table_is_dispatched_by_somebody() {
        let missing: Vec<&str> =
            (0..EVENTS.len()).filter(|i| !DISPATCHED.contains(i)).map(|i| EVENTS[i].name).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}

//! From an event of the core to the handlers of extensions and back. The table below names
//! each event's class; each class has one merge rule in one file.
//!
//! Order: phase, load order (CLI, user, global, bundled, project; path), registration; one
//! handler at a time; the list is fixed when the dispatch starts (events.md U1-U3).

mod chain;
mod decision;
mod gate;
mod hooks;
mod invoke;
mod notify;
mod outcome;
mod prompts;

pub(crate) use invoke::{Asked, ask_entry, start_detached};
pub(crate) use prompts::{Prompts, Reason};

/// How results of handlers are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Informs; results are ignored.
    Notify,
    /// Results are concatenated.
    Collect,
    /// Each handler sees what the one before made of it.
    Chain,
    /// Fails closed; the first block ends it.
    Gate,
    /// The first yes or no ends it; a fault is neither.
    Decision,
    /// Informs all at once, beside what it is about.
    Concurrent,
}

/// One row: everything that differs between events and is not in their payload.
pub struct EventRow {
    pub name: &'static str,
    pub class: Class,
    /// Comes many times a second: skipped for an instance that overran.
    pub high_rate: bool,
}

macro_rules! event_table {
    ($($konst:ident = $name:literal $class:ident $(($rate:ident))?;)*) => {
        /// All events, by index. Adding one is adding a row.
        pub const EVENTS: &[EventRow] = &[$(
            EventRow { name: $name, class: Class::$class, high_rate: event_table!(@rate $($rate)?) },
        )*];
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        enum Index { $($konst,)* }
        $(pub(crate) const $konst: usize = Index::$konst as usize;)*
    };
    (@rate high_rate) => { true };
    (@rate) => { false };
}

event_table! {
    PROJECT_TRUST = "project_trust" Decision;
    SESSION_START = "session_start" Notify;
    RESOURCES_DISCOVER = "resources_discover" Collect;
    INPUT = "input" Chain;
    BEFORE_AGENT_START = "before_agent_start" Chain;
    AGENT_START = "agent_start" Notify;
    TURN_START = "turn_start" Notify;
    MESSAGE_START = "message_start" Notify;
    MESSAGE_UPDATE = "message_update" Notify (high_rate);
    MESSAGE_END = "message_end" Chain;
    CONTEXT = "context" Chain;
    BEFORE_PROVIDER_HEADERS = "before_provider_headers" Chain;
    BEFORE_PROVIDER_REQUEST = "before_provider_request" Chain;
    AFTER_PROVIDER_RESPONSE = "after_provider_response" Notify;
    TOOL_EXECUTION_START = "tool_execution_start" Notify;
    TOOL_EXECUTION_UPDATE = "tool_execution_update" Notify (high_rate);
    TOOL_EXECUTION_END = "tool_execution_end" Notify;
    TOOL_CALL = "tool_call" Gate;
    TOOL_RESULT = "tool_result" Chain;
    TURN_END = "turn_end" Notify;
    AGENT_END = "agent_end" Notify;
    AGENT_SETTLED = "agent_settled" Notify;
    SESSION_SHUTDOWN = "session_shutdown" Notify;
    UI_PROMPT_START = "ui_prompt_start" Concurrent;
    UI_PROMPT_END = "ui_prompt_end" Concurrent;
}

// The subscription bits are one word.
const _: () = assert!(EVENTS.len() <= 64);

pub(crate) fn event_index(name: &str) -> Option<usize> {
    EVENTS.iter().position(|e| e.name == name)
}

//! The big fields of events, and what may be changed in them, event by event.

use super::{Edit, Event};
use crate::{
    error::Result,
    protocol::{
        AgentBeforeSettle, AgentEnd, BeforeAgentStart, BeforeProviderHeaders, BeforeProviderRequest,
        ContextEvent, ContextWithSystem, EventKind, MessageEnd, MessageStart, MessageUpdate,
        ProviderStreamEvent, SessionBeforeCompact, ToolCall, ToolExecutionEnd, ToolExecutionStart,
        ToolExecutionUpdate, ToolResultEvent, TurnEnd,
        agent::SystemPromptOptions,
        boundary::{BoundaryAnswer, BoundaryContext, EntryDraft},
        compaction::CompactionPreparation,
        message::{AgentMessage, AssistantMessage, AssistantMessageEvent, Content, ToolResultMessage},
        session::SessionEntry,
        tool::{self, ToolDetails, ToolInput},
    },
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, value::RawValue};
use std::collections::BTreeMap;

impl<E: EventKind> Event<E> {
    fn value<T: DeserializeOwned + Default>(&self, name: &str) -> Result<T> {
        Ok(self.field(name)?.unwrap_or_default())
    }
    fn details_of<T: ToolDetails>(&self, tool: &str, details: Result<Value>) -> Option<T> {
        if tool != T::TOOL {
            return None;
        }
        serde_json::from_value(details.ok()?).ok()
    }
}

macro_rules! names {
    ($($kind:ty),*) => {$(
        impl Event<$kind> {
            /// The tool.
            pub fn tool_name(&self) -> &str {
                &self.payload().tool_name
            }
            /// The model's id for the call.
            pub fn tool_call_id(&self) -> &str {
                &self.payload().tool_call_id
            }
        }
    )*};
}
names!(ToolCall, ToolResultEvent, ToolExecutionStart, ToolExecutionUpdate, ToolExecutionEnd);

impl Event<ToolCall> {
    /// The arguments, as this handler has left them.
    ///
    /// # Errors
    /// `malformed`: the event has none.
    pub fn input(&self) -> Result<Value> {
        Ok(self.current()?.unwrap_or_default())
    }

    /// The arguments of one tool as its type: to be read, and to be changed. `None` when
    /// the call is of another tool.
    ///
    /// Arguments that are not of the type, and a second guard while the first one lives,
    /// give `None` too, and the handler's answer becomes an error, which blocks the call:
    /// a gate that could not read what it guards must not let it pass.
    pub fn input_as<T: ToolInput>(&self) -> Option<Edit<T>> {
        if self.tool_name() != T::TOOL {
            return None;
        }
        self.edit_or_fault(T::TOOL)
    }

    /// Replaces the arguments. They are not checked again: what the tool cannot use
    /// becomes its error result.
    ///
    /// # Errors
    /// `busy` while a guard of `input_as` lives.
    pub fn set_input(&self, input: &impl Serialize) -> Result<()> {
        self.patch(input)
    }
}

impl Event<ToolExecutionStart> {
    /// The arguments as the model wrote them.
    ///
    /// # Errors
    /// `malformed`.
    pub fn args(&self) -> Result<Value> {
        self.value("args")
    }
}

impl Event<ToolExecutionUpdate> {
    /// The arguments as the model wrote them.
    ///
    /// # Errors
    /// `malformed`.
    pub fn args(&self) -> Result<Value> {
        self.value("args")
    }
    /// What there is so far: all of it, not what is new.
    ///
    /// # Errors
    /// `malformed`.
    pub fn partial_result(&self) -> Result<tool::ToolResult> {
        self.value("partialResult")
    }
}

impl Event<ToolExecutionEnd> {
    /// The result.
    ///
    /// # Errors
    /// `malformed`.
    pub fn result(&self) -> Result<tool::ToolResult> {
        self.value("result")
    }
    /// The arguments that ran, when a gate changed them.
    ///
    /// # Errors
    /// `malformed`.
    pub fn effective_args(&self) -> Result<Option<Value>> {
        self.field("effectiveArgs")
    }
    /// The details of one tool's result; `None` for another tool, or another shape.
    pub fn details_as<T: ToolDetails>(&self) -> Option<T> {
        self.details_of(self.tool_name(), self.result().map(|r| r.details.unwrap_or_default()))
    }
}

impl Event<ToolResultEvent> {
    /// The arguments that ran.
    ///
    /// # Errors
    /// `malformed`.
    pub fn input(&self) -> Result<Value> {
        self.value("input")
    }
    /// The arguments that ran, as the type of one tool; `None` for another tool or shape.
    pub fn input_as<T: ToolInput>(&self) -> Option<T> {
        if self.tool_name() != T::TOOL {
            return None;
        }
        self.field("input").ok()?
    }
    /// What the model will read.
    ///
    /// # Errors
    /// `malformed`.
    pub fn content(&self) -> Result<Vec<Content>> {
        self.value("content")
    }
    /// Its details.
    ///
    /// # Errors
    /// `malformed`.
    pub fn details(&self) -> Result<Value> {
        self.value("details")
    }
    /// The details of one tool's result; `None` for another tool, or another shape.
    pub fn details_as<T: ToolDetails>(&self) -> Option<T> {
        self.details_of(self.tool_name(), self.details())
    }
}

macro_rules! message {
    ($($kind:ty),*) => {$(
        impl Event<$kind> {
            /// The message.
            ///
            /// # Errors
            /// `malformed`.
            pub fn message(&self) -> Result<AgentMessage> {
                self.value("message")
            }
        }
    )*};
}
message!(MessageStart, MessageEnd);

impl Event<MessageUpdate> {
    /// The new text, when the step is one of text.
    pub fn text_delta(&self) -> Option<&str> {
        match &self.payload().assistant_message_event {
            AssistantMessageEvent::TextDelta { delta, .. } => Some(delta),
            _ => None,
        }
    }
}

impl Event<TurnEnd> {
    /// What the model said.
    ///
    /// # Errors
    /// `malformed`.
    pub fn message(&self) -> Result<AssistantMessage> {
        self.value("message")
    }
    /// What its tools answered, in the order of the calls.
    ///
    /// # Errors
    /// `malformed`.
    pub fn tool_results(&self) -> Result<Vec<ToolResultMessage>> {
        self.value("toolResults")
    }
}

impl Event<AgentEnd> {
    /// What the run added to the transcript.
    ///
    /// # Errors
    /// `malformed`.
    pub fn messages(&self) -> Result<Vec<AgentMessage>> {
        self.value("messages")
    }
}

macro_rules! messages {
    ($($kind:ty, $what:literal;)*) => {$(
        impl Event<$kind> {
            #[doc = concat!("What the model will be shown, ", $what, "; may be megabytes.")]
            ///
            /// # Errors
            /// `malformed`.
            pub fn messages(&self) -> Result<Vec<AgentMessage>> {
                Ok(self.current()?.unwrap_or_default())
            }
            /// The same, to be changed for this one request.
            ///
            /// # Errors
            /// `busy` while another guard lives, `malformed`.
            pub fn messages_mut(&self) -> Result<Edit<Vec<AgentMessage>>> {
                self.edit()
            }
            /// The same, each message undecoded: for handlers that only count, drop or append.
            ///
            /// # Errors
            /// `malformed`.
            pub fn raw_messages(&self) -> Result<Vec<Box<RawValue>>> {
                Ok(self.current()?.unwrap_or_default())
            }
            /// Replaces them for this request. Takes messages of either kind.
            ///
            /// # Errors
            /// When they are no JSON.
            pub fn set_messages<M: Serialize>(&self, messages: &[M]) -> Result<()> {
                self.patch(&messages)
            }
        }
    )*};
}
messages! {
    ContextEvent, "without system messages";
    ContextWithSystem, "with the system messages";
}

macro_rules! boundary {
    ($($kind:ty),*) => {$(
        impl Event<$kind> {
            /// The drafts that earlier handlers propose.
            ///
            /// # Errors
            /// `malformed`.
            pub fn entries(&self) -> Result<Vec<EntryDraft>> {
                self.value("entries")
            }
            /// What the model would be shown with them; may be megabytes.
            ///
            /// # Errors
            /// `malformed`.
            pub fn context(&self) -> Result<BoundaryContext> {
                self.value("context")
            }
            /// An answer that begins with what earlier handlers propose, to be added to.
            ///
            /// # Errors
            /// `malformed`.
            pub fn propose(&self) -> Result<BoundaryAnswer> {
                Ok(BoundaryAnswer { entries: Some(self.entries()?), go_on: None })
            }
        }
    )*};
}
boundary!(TurnEnd, AgentBeforeSettle);

impl Event<ProviderStreamEvent> {
    /// What the provider sent, in its own shape.
    ///
    /// # Errors
    /// `malformed`.
    pub fn data(&self) -> Result<Value> {
        self.value("data")
    }
}

impl Event<SessionBeforeCompact> {
    /// What would be condensed; may be megabytes.
    ///
    /// # Errors
    /// `malformed`.
    pub fn preparation(&self) -> Result<CompactionPreparation> {
        self.value("preparation")
    }
    /// Entries of the active branch.
    ///
    /// # Errors
    /// `malformed`.
    pub fn branch_entries(&self) -> Result<Vec<SessionEntry>> {
        self.value("branchEntries")
    }
}

impl Event<BeforeAgentStart> {
    /// What the system prompt is made of, to be read and to be changed.
    ///
    /// # Errors
    /// `busy` while another guard lives, `malformed`.
    pub fn system_prompt_options(&self) -> Result<Edit<SystemPromptOptions>> {
        self.edit()
    }
}

impl Event<BeforeProviderHeaders> {
    /// The headers as this handler has left them; `None` as a value suppresses a default.
    ///
    /// # Errors
    /// `malformed`.
    pub fn headers(&self) -> Result<BTreeMap<String, Option<String>>> {
        Ok(self.current()?.unwrap_or_default())
    }
    /// The same, to be changed as they are.
    ///
    /// # Errors
    /// `busy` while another guard lives, `malformed`.
    pub fn headers_mut(&self) -> Result<Edit<BTreeMap<String, Option<String>>>> {
        self.edit()
    }
    /// Sets one; names do not mind case.
    ///
    /// # Errors
    /// `malformed`.
    pub fn set(&self, name: &str, value: impl Into<String>) -> Result<()> {
        self.change(name, Some(Some(value.into())))
    }
    /// Removes one that is there; a default of the transport comes back.
    ///
    /// # Errors
    /// `malformed`.
    pub fn remove(&self, name: &str) -> Result<()> {
        self.change(name, None)
    }
    /// Keeps one from being sent, a default too.
    ///
    /// # Errors
    /// `malformed`.
    pub fn suppress(&self, name: &str) -> Result<()> {
        self.change(name, Some(None))
    }
    fn change(&self, name: &str, value: Option<Option<String>>) -> Result<()> {
        let mut headers = self.headers()?;
        headers.retain(|n, _| !n.eq_ignore_ascii_case(name));
        if let Some(value) = value {
            headers.insert(name.to_owned(), value);
        }
        self.patch(&headers)
    }
}

impl Event<BeforeProviderRequest> {
    /// The body that will be sent, in the provider's own shape.
    ///
    /// # Errors
    /// `malformed`.
    pub fn body(&self) -> Result<Value> {
        self.value("payload")
    }
}

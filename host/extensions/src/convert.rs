//! Between the core's values and the JSON that crosses: the only file that names both.
//! Payload keys are those of events.md A; `type` is in every payload (U12).

use crate::{dispatch, load::EventState};
use atomic_agent::{
    hooks::{
        BeforeAgentStart, Input, Notice, SessionRef, ShutdownReason, StartReason, ToolCallRequest,
        ToolResultRequest,
    },
    message::{Content, ImageContent, Message},
    model::ModelInfo,
};
use serde::{Serializer as _, ser::SerializeMap as _};
use serde_json::{Map, Value};
use std::{collections::BTreeMap, path::Path, sync::Arc};

/// The event of a type, written straight into its bytes when somebody reads it: a tree of values
/// in between would cost four times as much. `?` marks a key that is absent when its value is.
macro_rules! event {
    ($kind:literal $(, $key:literal: $value:expr)* $(; $(? $maybe:literal: $option:expr),*)?) => {
        EventState::lazy(move || {
            let write = || -> Result<Vec<u8>, serde_json::Error> {
                let mut json = Vec::with_capacity(512);
                let mut to = serde_json::Serializer::new(&mut json);
                let mut map = to.serialize_map(None)?;
                map.serialize_entry("type", $kind)?;
                $(map.serialize_entry($key, &$value)?;)*
                $($(if let Some(value) = &$option {
                    // Absent means undefined: a key is never sent as null where the contract has
                    // it optional (N2).
                    map.serialize_entry($maybe, value)?;
                })*)?
                map.end()?;
                Ok(json)
            };
            write().unwrap_or_default()
        })
    };
}

/// Which row of the table a notice belongs to.
pub(crate) fn index(notice: &Notice<'_>) -> usize {
    match notice {
        Notice::SessionStart { .. } => dispatch::SESSION_START,
        Notice::AgentStart => dispatch::AGENT_START,
        Notice::AgentEnd { .. } => dispatch::AGENT_END,
        Notice::AgentSettled { .. } => dispatch::AGENT_SETTLED,
        Notice::TurnStart { .. } => dispatch::TURN_START,
        Notice::TurnEnd(_) => dispatch::TURN_END,
        Notice::MessageStart { .. } => dispatch::MESSAGE_START,
        Notice::MessageUpdate { .. } => dispatch::MESSAGE_UPDATE,
        Notice::ToolExecutionStart { .. } => dispatch::TOOL_EXECUTION_START,
        Notice::ToolExecutionUpdate { .. } => dispatch::TOOL_EXECUTION_UPDATE,
        Notice::ToolExecutionEnd(_) => dispatch::TOOL_EXECUTION_END,
        Notice::AfterProviderResponse { .. } => dispatch::AFTER_PROVIDER_RESPONSE,
    }
}

/// The event of a notice. Copies what it needs; asked only when somebody subscribed.
pub(crate) fn notice(notice: &Notice<'_>) -> Arc<EventState> {
    match notice {
        Notice::SessionStart { reason, previous } => session_start(*reason, *previous),
        Notice::AgentStart => EventState::ready(br#"{"type":"agent_start"}"#.to_vec()),
        Notice::AgentEnd { messages, will_retry } => {
            let (messages, retry) = (messages.to_vec(), *will_retry);
            event!("agent_end", "messages": messages, "willRetry": retry)
        }
        Notice::AgentSettled { aborted } => {
            let aborted = *aborted;
            event!("agent_settled", "aborted": aborted)
        }
        Notice::TurnStart { turn_index, timestamp } => {
            let (index, at) = (*turn_index, *timestamp);
            event!("turn_start", "turnIndex": index, "timestamp": at)
        }
        Notice::TurnEnd(t) => {
            let (message, results) = (Message::Assistant(t.message.clone()), t.tool_results.to_vec());
            let results: Vec<Message> = results.into_iter().map(Message::ToolResult).collect();
            let (index, outcome) = (t.turn_index, t.outcome.to_owned());
            let (entry, entries) = (t.message_entry_id.map(str::to_owned), t.tool_result_entry_ids.to_vec());
            event!(
                "turn_end", "turnIndex": index, "message": message, "toolResults": results,
                "messageEntryId": entry, "toolResultEntryIds": entries, "outcome": outcome
            )
        }
        Notice::MessageStart { message } => {
            let message = (*message).clone();
            event!("message_start", "message": message)
        }
        Notice::MessageUpdate { event } => {
            let event = (*event).clone();
            event!("message_update", "assistantMessageEvent": event)
        }
        Notice::ToolExecutionStart { tool_call_id, tool_name, args } => {
            let (id, name, args) = ((*tool_call_id).to_owned(), (*tool_name).to_owned(), (*args).clone());
            event!("tool_execution_start", "toolCallId": id, "toolName": name, "args": args)
        }
        Notice::ToolExecutionUpdate { tool_call_id, tool_name, args, partial } => {
            let (id, name) = ((*tool_call_id).to_owned(), (*tool_name).to_owned());
            let (args, partial) = ((*args).clone(), (*partial).clone());
            event!(
                "tool_execution_update", "toolCallId": id, "toolName": name, "args": args,
                "partialResult": partial
            )
        }
        Notice::ToolExecutionEnd(e) => {
            let (id, name, result) = (e.tool_call_id.to_owned(), e.tool_name.to_owned(), e.result.clone());
            let (error, ms, effective) = (e.is_error, e.duration_ms, e.effective_args.cloned());
            event!(
                "tool_execution_end", "toolCallId": id, "toolName": name, "result": result,
                "isError": error, "durationMs": ms; ?"effectiveArgs": effective
            )
        }
        Notice::AfterProviderResponse { status, headers } => {
            let (status, headers) = (*status, (*headers).clone());
            event!("after_provider_response", "status": status, "headers": headers)
        }
    }
}

/// As text that crosses: a path need not be UTF-8, and JSON has nothing else.
pub(crate) fn path(p: &Path) -> String {
    p.to_string_lossy().into_owned()
}

/// Id and file of another session.
fn reference(session: Option<&SessionRef>) -> (Option<String>, Option<String>) {
    (session.map(|s| s.id.clone()), session.and_then(|s| s.file.as_deref().map(path)))
}

pub(crate) fn session_start(reason: StartReason, previous: Option<&SessionRef>) -> Arc<EventState> {
    let (id, file) = reference(previous);
    event!("session_start", "reason": reason; ?"previousSessionId": id, ?"previousSessionFile": file)
}

pub(crate) fn session_shutdown(
    reason: ShutdownReason,
    target: Option<&SessionRef>,
    from_signal: bool,
) -> Arc<EventState> {
    let (id, file) = reference(target);
    let from_signal = from_signal.then_some(true);
    event!(
        "session_shutdown", "reason": reason;
        ?"targetSessionId": id, ?"targetSessionFile": file, ?"fromSignal": from_signal
    )
}

pub(crate) fn resources_discover(cwd: &Path, reason: StartReason) -> Arc<EventState> {
    // Only two reasons exist here: every start that is no reload counts as startup.
    let reason = if reason == StartReason::Reload { "reload" } else { "startup" };
    let cwd = path(cwd);
    event!("resources_discover", "cwd": cwd, "reason": reason)
}

/// As content blocks.
fn images(images: &[ImageContent]) -> Option<Vec<Content>> {
    let blocks: Vec<Content> = images.iter().cloned().map(Content::Image).collect();
    Some(blocks).filter(|b| !b.is_empty())
}

pub(crate) fn input(i: &Input) -> Arc<EventState> {
    let (i, images) = (i.clone(), images(&i.images));
    event!(
        "input", "text": i.text, "source": i.source;
        ?"images": images, ?"streamingBehavior": i.streaming_behavior
    )
}

pub(crate) fn before_agent_start(e: &BeforeAgentStart) -> Arc<EventState> {
    let (e, images) = (e.clone(), images(&e.images));
    let kind = if e.prompt.is_some() { "user" } else { "custom" };
    let message = e.message.map(Message::Custom);
    event!(
        "before_agent_start", "messageType": kind, "systemPrompt": e.system_prompt,
        "systemPromptOptions": e.options; ?"prompt": e.prompt, ?"message": message, ?"images": images
    )
}

pub(crate) fn message_end(message: &Message) -> Arc<EventState> {
    let message = message.clone();
    event!("message_end", "message": message)
}

pub(crate) fn context(messages: &[Message]) -> Arc<EventState> {
    let messages = messages.to_vec();
    event!("context", "messages": messages)
}

pub(crate) fn headers(headers: &BTreeMap<String, Option<String>>, model: &ModelInfo) -> Arc<EventState> {
    let (headers, model) = (headers.clone(), model.clone());
    event!("before_provider_headers", "headers": headers, "provider": model.provider, "model": model)
}

pub(crate) fn provider_request(payload: &Value) -> Arc<EventState> {
    let payload = payload.clone();
    event!("before_provider_request", "payload": payload)
}

pub(crate) fn tool_call(call: &ToolCallRequest, input: &Value) -> Arc<EventState> {
    let (name, id, input) = (call.tool_name.clone(), call.tool_call_id.clone(), input.clone());
    event!("tool_call", "toolName": name, "toolCallId": id, "input": input)
}

pub(crate) fn tool_result(r: &ToolResultRequest) -> Arc<EventState> {
    let r = r.clone();
    event!(
        "tool_result", "toolName": r.tool_name, "toolCallId": r.tool_call_id, "input": r.input,
        "content": r.content, "isError": r.is_error; ?"details": r.details
    )
}

/// Content of a message, as blocks.
pub(crate) fn blocks(message: &Message) -> Vec<Content> {
    match message {
        Message::User(m) => m.content.blocks(),
        Message::Assistant(m) => m.content.clone(),
        Message::ToolResult(m) => m.content.clone(),
        Message::Custom(m) => m.content.blocks(),
        Message::System(m) => m.content.as_ref().map(|c| c.blocks()).unwrap_or_default(),
        Message::BashExecution(_) | Message::BranchSummary(_) | Message::Other(_) => Vec::new(),
    }
}

/// A block that nobody knows would be read as nothing: an answer may pass on those it was given,
/// and make none of its own.
pub(crate) fn no_unknown_block(answered: &[Content], given: &[Content]) -> Result<(), String> {
    let unknown = answered.iter().find(|c| matches!(c, Content::Other(_)) && !given.contains(c));
    match unknown {
        Some(Content::Other(block)) => Err(format!(
            "malformed result: content of an unknown type, {}: the answer is ignored",
            block.get("type").unwrap_or(block)
        )),
        _ => Ok(()),
    }
}

/// A value of the core out of an answer; `Err` names the key.
pub(crate) fn read<T: serde::de::DeserializeOwned>(
    object: &Map<String, Value>,
    key: &str,
) -> Result<Option<T>, String> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(v) => T::deserialize(v).map(Some).map_err(|e| format!("malformed result: {key}: {e}")),
    }
}

//! Between the core's values and the JSON that crosses: the only file that names both.
//! Payload keys are those of events.md A; `type` is in every payload (U12).

use crate::{dispatch, load::EventState};
use atomic_agent::{
    hooks::{
        BeforeAgentStart, Input, Notice, SessionRef, ShutdownReason, StartReason, ToolCallRequest,
        ToolResultRequest,
    },
    message::Message,
    model::ModelInfo,
};
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, path::Path, sync::Arc};

fn lazy(make: impl Fn() -> Value + Send + Sync + 'static) -> Arc<EventState> {
    EventState::lazy(move || serde_json::to_vec(&make()).unwrap_or_default())
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
            lazy(move || json!({"type": "agent_end", "messages": messages, "willRetry": retry}))
        }
        Notice::AgentSettled { aborted } => {
            let aborted = *aborted;
            lazy(move || json!({"type": "agent_settled", "aborted": aborted}))
        }
        Notice::TurnStart { turn_index, timestamp } => {
            let (index, at) = (*turn_index, *timestamp);
            lazy(move || json!({"type": "turn_start", "turnIndex": index, "timestamp": at}))
        }
        Notice::TurnEnd(t) => {
            let (message, results) = (Message::Assistant(t.message.clone()), t.tool_results.to_vec());
            let results: Vec<Message> = results.into_iter().map(Message::ToolResult).collect();
            let (index, outcome) = (t.turn_index, t.outcome.to_owned());
            let (entry, entries) = (t.message_entry_id.map(str::to_owned), t.tool_result_entry_ids.to_vec());
            lazy(move || {
                json!({
                    "type": "turn_end", "turnIndex": index, "message": message, "toolResults": results,
                    "messageEntryId": entry, "toolResultEntryIds": entries, "outcome": outcome,
                })
            })
        }
        Notice::MessageStart { message } => {
            let message = (*message).clone();
            lazy(move || json!({"type": "message_start", "message": message}))
        }
        Notice::MessageUpdate { event } => {
            let event = (*event).clone();
            lazy(move || json!({"type": "message_update", "assistantMessageEvent": event}))
        }
        Notice::ToolExecutionStart { tool_call_id, tool_name, args } => {
            let (id, name, args) = ((*tool_call_id).to_owned(), (*tool_name).to_owned(), (*args).clone());
            lazy(
                move || json!({"type": "tool_execution_start", "toolCallId": id, "toolName": name, "args": args}),
            )
        }
        Notice::ToolExecutionUpdate { tool_call_id, tool_name, args, partial } => {
            let (id, name) = ((*tool_call_id).to_owned(), (*tool_name).to_owned());
            let (args, partial) = ((*args).clone(), (*partial).clone());
            lazy(move || {
                json!({
                    "type": "tool_execution_update", "toolCallId": id, "toolName": name, "args": args,
                    "partialResult": partial,
                })
            })
        }
        Notice::ToolExecutionEnd(e) => {
            let (id, name, result) = (e.tool_call_id.to_owned(), e.tool_name.to_owned(), e.result.clone());
            let (error, ms, effective) = (e.is_error, e.duration_ms, e.effective_args.cloned());
            lazy(move || {
                let mut v = json!({
                    "type": "tool_execution_end", "toolCallId": id, "toolName": name, "result": result,
                    "isError": error, "durationMs": ms,
                });
                put(&mut v, "effectiveArgs", effective.clone());
                v
            })
        }
        Notice::AfterProviderResponse { status, headers } => {
            let (status, headers) = (*status, (*headers).clone());
            lazy(move || json!({"type": "after_provider_response", "status": status, "headers": headers}))
        }
    }
}

/// Absent means undefined: a key is never sent as null where the contract has it optional (N2).
fn put(object: &mut Value, key: &str, value: Option<Value>) {
    if let (Some(o), Some(v)) = (object.as_object_mut(), value) {
        o.insert(key.to_owned(), v);
    }
}

fn path(p: &Path) -> Value {
    Value::String(p.to_string_lossy().into_owned())
}

pub(crate) fn session_start(reason: StartReason, previous: Option<&SessionRef>) -> Arc<EventState> {
    let previous = previous.cloned();
    lazy(move || {
        let mut v = json!({"type": "session_start", "reason": reason});
        if let Some(p) = &previous {
            put(&mut v, "previousSessionId", Some(p.id.clone().into()));
            put(&mut v, "previousSessionFile", p.file.as_deref().map(path));
        }
        v
    })
}

pub(crate) fn session_shutdown(
    reason: ShutdownReason,
    target: Option<&SessionRef>,
    from_signal: bool,
) -> Arc<EventState> {
    let target = target.cloned();
    lazy(move || {
        let mut v = json!({"type": "session_shutdown", "reason": reason});
        if let Some(t) = &target {
            put(&mut v, "targetSessionId", Some(t.id.clone().into()));
            put(&mut v, "targetSessionFile", t.file.as_deref().map(path));
        }
        if from_signal {
            put(&mut v, "fromSignal", Some(true.into()));
        }
        v
    })
}

pub(crate) fn resources_discover(cwd: &Path, reason: StartReason) -> Arc<EventState> {
    // Only two reasons exist here: every start that is no reload counts as startup.
    let reason = if reason == StartReason::Reload { "reload" } else { "startup" };
    let cwd = path(cwd);
    lazy(move || json!({"type": "resources_discover", "cwd": cwd, "reason": reason}))
}

pub(crate) fn input(i: &Input) -> Arc<EventState> {
    let i = i.clone();
    lazy(move || {
        let mut v = json!({"type": "input", "text": i.text, "source": i.source});
        if !i.images.is_empty() {
            let images: Vec<Value> = i.images.iter().map(image).collect();
            put(&mut v, "images", Some(images.into()));
        }
        put(&mut v, "streamingBehavior", i.streaming_behavior.map(|b| json!(b)));
        v
    })
}

pub(crate) fn image(image: &atomic_agent::message::ImageContent) -> Value {
    json!(atomic_agent::message::Content::Image(image.clone()))
}

pub(crate) fn before_agent_start(e: &BeforeAgentStart) -> Arc<EventState> {
    let e = e.clone();
    lazy(move || {
        let kind = if e.prompt.is_some() { "user" } else { "custom" };
        let mut v = json!({
            "type": "before_agent_start", "messageType": kind, "systemPrompt": e.system_prompt,
            "systemPromptOptions": e.options,
        });
        put(&mut v, "prompt", e.prompt.clone().map(Value::String));
        put(&mut v, "message", e.message.clone().map(|m| json!(Message::Custom(m))));
        if !e.images.is_empty() {
            put(&mut v, "images", Some(e.images.iter().map(image).collect::<Vec<_>>().into()));
        }
        v
    })
}

pub(crate) fn message_end(message: &Message) -> Arc<EventState> {
    let message = message.clone();
    lazy(move || json!({"type": "message_end", "message": message}))
}

pub(crate) fn context(messages: &[Message]) -> Arc<EventState> {
    let messages = messages.to_vec();
    lazy(move || json!({"type": "context", "messages": messages}))
}

pub(crate) fn headers(headers: &BTreeMap<String, Option<String>>, model: &ModelInfo) -> Arc<EventState> {
    let (headers, model) = (headers.clone(), model.clone());
    lazy(
        move || json!({"type": "before_provider_headers", "headers": headers, "provider": model.provider, "model": model}),
    )
}

pub(crate) fn provider_request(payload: &Value) -> Arc<EventState> {
    let payload = payload.clone();
    lazy(move || json!({"type": "before_provider_request", "payload": payload}))
}

pub(crate) fn tool_call(call: &ToolCallRequest, input: &Value) -> Arc<EventState> {
    let (name, id, input) = (call.tool_name.clone(), call.tool_call_id.clone(), input.clone());
    lazy(move || json!({"type": "tool_call", "toolName": name, "toolCallId": id, "input": input}))
}

pub(crate) fn tool_result(r: &ToolResultRequest) -> Arc<EventState> {
    let r = r.clone();
    lazy(move || {
        let mut v = json!({
            "type": "tool_result", "toolName": r.tool_name, "toolCallId": r.tool_call_id, "input": r.input,
            "content": r.content, "isError": r.is_error,
        });
        put(&mut v, "details", r.details.clone());
        v
    })
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

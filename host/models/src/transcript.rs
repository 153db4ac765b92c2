//! What of a request's messages goes out, the same for every wire format.

use atomic_agent::{
    message::{AssistantMessage, Content, Message},
    model::ModelInfo,
};
use std::{borrow::Cow, collections::HashSet};

/// The messages without the tool calls of failed answers, which never ran, and without
/// results made up for those. Everything else is the core's pairing, sent as it is.
pub(crate) fn sendable(messages: &[Message]) -> impl Iterator<Item = Cow<'_, Message>> {
    let mut dropped: HashSet<&str> = HashSet::new();
    messages.iter().filter_map(move |message| match message {
        Message::Assistant(m) if m.failed() => {
            dropped.extend(m.tool_calls().map(|c| c.id.as_str()));
            let mut kept = m.clone();
            kept.content.retain(|c| !matches!(c, Content::ToolCall(_)));
            Some(Cow::Owned(Message::Assistant(kept)))
        }
        Message::Assistant(m) => {
            // A later answer may use the same id for a call that did run.
            for call in m.tool_calls() {
                dropped.remove(call.id.as_str());
            }
            Some(Cow::Borrowed(message))
        }
        Message::ToolResult(m) if dropped.contains(m.tool_call_id.as_str()) => None,
        _ => Some(Cow::Borrowed(message)),
    })
}

/// Thinking is good only where it was thought: signatures of another model are refused.
pub(crate) fn thought_here(info: &ModelInfo, message: &AssistantMessage) -> bool {
    !message.failed()
        && (&message.api, &message.provider, &message.model) == (&info.api, &info.provider, &info.id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_failed_answers_calls_and_their_results_are_left_out() {
        let call = |id: &str, stop: &str| json!({"role": "assistant", "stopReason": stop, "content": [{"type": "toolCall", "id": id, "name": "ls", "arguments": {}}]});
        let result =
            |id: &str| json!({"role": "toolResult", "toolCallId": id, "toolName": "ls", "content": []});
        let messages: Vec<Message> = serde_json::from_value(json!([
            call("a", "error"),
            result("a"),
            call("a", "toolUse"),
            result("a"),
            result("orphan")
        ]))
        .unwrap();
        let sent: Vec<String> = sendable(&messages)
            .map(|m| match m.as_ref() {
                Message::Assistant(m) => format!("{} calls", m.tool_calls().count()),
                Message::ToolResult(m) => m.tool_call_id.clone(),
                _ => String::new(),
            })
            .collect();
        assert_eq!(sent, ["0 calls", "1 calls", "a", "orphan"]);
    }
}

//! From a transcript to what a model may be sent: only `user`, `assistant` and
//! `toolResult`, and every tool call answered exactly once, in order, right after
//! the message that made it. Works on a derived copy; the session is never changed.

use crate::message::{
    AssistantMessage, Content, Extra, Message, MessageContent, ToolCall, ToolResultMessage, UserMessage,
};
use std::collections::HashSet;

/// What the model reads for a call that nobody answered.
pub const UNANSWERED: &str =
    "No result was recorded for this call: the run ended before it did. It may or may not have taken effect.";

/// The messages of a request, without those of the system.
pub fn for_model(messages: Vec<Message>) -> Vec<Message> {
    pair(messages.into_iter().filter_map(as_sent).collect())
}

/// The same; system messages stay where they are.
pub fn for_model_with_systems(messages: Vec<Message>) -> Vec<Message> {
    let sent = |message| match message {
        Message::System(_) => Some(message),
        _ => as_sent(message),
    };
    pair(messages.into_iter().filter_map(sent).collect())
}

/// How each kind of message is told to a model.
pub(crate) fn as_sent(message: Message) -> Option<Message> {
    let user =
        |content, timestamp| Some(Message::User(UserMessage { content, timestamp, extra: Extra::new() }));
    match message {
        Message::User(_) | Message::ToolResult(_) => Some(message),
        Message::Assistant(m) => without_unfinished(m).map(Message::Assistant),
        Message::Custom(m) => user(m.content, m.timestamp),
        Message::BranchSummary(m) => user(
            MessageContent::Text(format!("Summary of a branch that was left:\n\n{}", m.summary)),
            m.timestamp,
        ),
        Message::BashExecution(m) if m.exclude_from_context => None,
        Message::BashExecution(m) => {
            let mut text = format!("I ran `{}`", m.command);
            match m.exit_code {
                _ if m.cancelled => text.push_str(" and stopped it"),
                Some(code) if code != 0 => text.push_str(&format!(", it ended with exit code {code}")),
                _ => {}
            }
            text.push_str(&format!(". Its output:\n\n{}", m.output));
            if let Some(path) = &m.full_output_path {
                text.push_str(&format!("\n\n(cut; all of it is in {path})"));
            }
            user(MessageContent::Text(text), m.timestamp)
        }
        Message::System(_) | Message::Other(_) => None,
    }
}

/// Of a failed message only the text counts: its calls never ran, and thinking that was
/// cut off has no valid signature.
fn without_unfinished(mut message: AssistantMessage) -> Option<AssistantMessage> {
    if message.failed() {
        message.content.retain(|c| c.as_text().is_some_and(|t| !t.trim().is_empty()));
    }
    (!message.content.is_empty()).then_some(message)
}

/// Every call of every assistant message answered once, in the order of the calls. A result
/// belongs to the last assistant message before it; one that belongs to no call is dropped,
/// so is a second one for the same call.
pub fn pair(messages: Vec<Message>) -> Vec<Message> {
    let mut out = Vec::with_capacity(messages.len());
    let mut rest = messages.into_iter().peekable();
    while let Some(message) = rest.next() {
        match message {
            // Before any assistant message, or after its window: an orphan.
            Message::ToolResult(_) => {}
            Message::Assistant(mut assistant) => {
                let original: Vec<ToolCall> = assistant.tool_calls().cloned().collect();
                make_ids_unique(&mut assistant);
                let (mut results, mut others) = (Vec::new(), Vec::new());
                while let Some(next) = rest.next_if(|m| !matches!(m, Message::Assistant(_))) {
                    match next {
                        Message::ToolResult(r) => results.push(r),
                        other => others.push(other),
                    }
                }
                let answers: Vec<Message> = assistant
                    .tool_calls()
                    .zip(original)
                    .map(|(call, original)| Message::ToolResult(answer(call, &original, &mut results)))
                    .collect();
                out.push(Message::Assistant(assistant));
                out.extend(answers);
                out.extend(others);
            }
            other => out.push(other),
        }
    }
    out
}

fn answer(call: &ToolCall, original: &ToolCall, results: &mut Vec<ToolResultMessage>) -> ToolResultMessage {
    // A renamed duplicate may have been answered by its own new id, or by the shared one.
    let at = results
        .iter()
        .position(|r| r.tool_call_id == call.id)
        .or_else(|| results.iter().position(|r| r.tool_call_id == original.id));
    match at {
        Some(at) => {
            let mut result = results.remove(at);
            result.tool_call_id = call.id.clone();
            result
        }
        None => ToolResultMessage {
            tool_call_id: call.id.clone(),
            tool_name: call.name.clone(),
            content: vec![Content::text(UNANSWERED)],
            details: None,
            is_error: true,
            timestamp: 0,
            extra: Extra::new(),
        },
    }
}

/// Models do reuse ids within one message, or leave them empty; a provider refuses both.
pub fn make_ids_unique(message: &mut AssistantMessage) {
    let mut seen: HashSet<String> = HashSet::new();
    let taken: HashSet<String> = message.tool_calls().map(|c| c.id.clone()).collect();
    for block in &mut message.content {
        let Content::ToolCall(call) = block else { continue };
        if call.id.is_empty() || !seen.insert(call.id.clone()) {
            let stem = if call.id.is_empty() { "call" } else { &call.id };
            let fresh =
                (2..).map(|n| format!("{stem}_{n}")).find(|id| !taken.contains(id) && !seen.contains(id));
            call.id = fresh.unwrap_or_default();
            seen.insert(call.id.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn assistant(ids: &[&str]) -> Message {
        let calls: Vec<_> = ids
            .iter()
            .map(|id| json!({"type": "toolCall", "id": id, "name": "t", "arguments": {}}))
            .collect();
        let mut content = vec![json!({"type": "text", "text": "t"})];
        content.extend(calls);
        serde_json::from_value(json!({"role": "assistant", "content": content, "stopReason": "toolUse"}))
            .unwrap()
    }

    fn result(id: &str, text: &str) -> Message {
        let content = json!([{"type": "text", "text": text}]);
        serde_json::from_value(
            json!({"role": "toolResult", "toolCallId": id, "toolName": "t", "content": content}),
        )
        .unwrap()
    }

    fn shape(messages: &[Message]) -> Vec<String> {
        let shown = |m: &Message| match m {
            Message::ToolResult(r) => format!("{}={}", r.tool_call_id, r.content[0].as_text().unwrap()),
            other => other.role().to_owned(),
        };
        messages.iter().map(shown).collect()
    }

    #[test]
    fn results_come_in_the_order_of_the_calls_right_behind_them() {
        let user = Message::user("by the way", 0);
        let got = pair(vec![assistant(&["a", "b"]), result("b", "2"), user, result("a", "1")]);
        assert_eq!(shape(&got), ["assistant", "a=1", "b=2", "user"]);
    }

    #[test]
    fn missing_results_are_made_up_and_orphans_and_second_answers_dropped() {
        let got = pair(vec![
            result("z", "before anything"),
            assistant(&["a", "b"]),
            result("a", "1"),
            result("a", "again"),
            result("x", "of nobody"),
            assistant(&[]),
            result("b", "too late"),
        ]);
        assert_eq!(shape(&got), ["assistant", "a=1", &format!("b={UNANSWERED}"), "assistant"]);
    }

    #[test]
    fn one_id_for_two_calls_is_two_calls() {
        let got = pair(vec![assistant(&["a", "a", ""]), result("a", "1"), result("a", "2"), result("", "3")]);
        assert_eq!(shape(&got), ["assistant", "a=1", "a_2=2", "call_2=3"]);
    }

    #[test]
    fn of_a_failed_message_only_its_text_is_sent() {
        let Message::Assistant(mut failed) = assistant(&["a"]) else { unreachable!() };
        failed.stop_reason = Some(crate::message::StopReason::Aborted);
        let mut empty = failed.clone();
        empty.content.remove(0);
        let got = for_model(vec![Message::Assistant(empty), Message::Assistant(failed), result("a", "x")]);
        assert_eq!(shape(&got), ["assistant"]);
        assert_eq!(got[0].as_assistant().unwrap().tool_calls().count(), 0);
    }

    fn any_message() -> impl Strategy<Value = Message> {
        let id = prop_oneof![Just(""), Just("a"), Just("b"), Just("a_2"), Just("call_2")];
        prop_oneof![
            proptest::collection::vec(id.clone(), 0..4).prop_map(|ids| assistant(&ids)),
            id.prop_map(|id| result(id, "r")),
            Just(Message::user("u", 0)),
        ]
    }

    proptest! {
        #[test]
        fn whatever_the_transcript_every_call_is_answered_once_in_order(
            messages in proptest::collection::vec(any_message(), 0..12)
        ) {
            let calls = |m: &[Message]| m.iter().filter_map(Message::as_assistant).flat_map(AssistantMessage::tool_calls).count();
            let paired = pair(messages.clone());
            prop_assert_eq!(calls(&messages), calls(&paired), "a call was lost");
            let others = |m: &[Message]| m.iter().filter(|m| m.role() != "toolResult").count();
            prop_assert_eq!(others(&messages), others(&paired), "a message was lost");

            let mut rest = paired.iter();
            while let Some(message) = rest.next() {
                prop_assert_ne!(message.role(), "toolResult", "an orphan");
                let Some(assistant) = message.as_assistant() else { continue };
                let mut seen = HashSet::new();
                for call in assistant.tool_calls() {
                    prop_assert!(!call.id.is_empty() && seen.insert(call.id.clone()), "ids are not unique");
                    let answer = rest.next();
                    let answers = matches!(answer, Some(Message::ToolResult(r)) if r.tool_call_id == call.id);
                    prop_assert!(answers, "{:?} is not the answer to {}", answer, call.id);
                }
            }
            prop_assert_eq!(pair(paired.clone()), paired, "not stable");
        }
    }
}

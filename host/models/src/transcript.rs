//! What of a request's messages goes out, the same for every wire format.

use atomic_agent::{
    message::{AssistantMessage, Content, ImageContent, Message, MessageContent, ToolResultMessage},
    model::ModelInfo,
};
use std::{borrow::Cow, collections::HashSet};

/// Stands for an image that a model cannot see.
pub(crate) const UNSEEN: &str = "(an image was left out: this model does not take images)";

pub(crate) fn sees(info: &ModelInfo) -> bool {
    info.input.iter().any(|kind| kind == "image")
}

/// The text of a tool's result where a format takes nothing else. Each image that the model can see
/// is given to `show`, which puts it behind the results of the turn.
pub(crate) fn result_text(
    message: &ToolResultMessage,
    sees: bool,
    mut show: impl FnMut(String, &ImageContent),
) -> String {
    let mut text = MessageContent::Blocks(message.content.clone()).plain_text();
    for content in &message.content {
        let Content::Image(image) = content else { continue };
        let note = if sees {
            show(format!("Image from {}:", message.tool_name), image);
            "(see the image below)"
        } else {
            UNSEEN
        };
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(note);
    }
    if text.is_empty() {
        text.push_str("(no output)");
    }
    text
}

/// An id that every server takes: letters, digits, `-` and `_`, at most `limit` of them. Ids of
/// other providers may be longer; call and result are changed alike.
pub(crate) fn wire_id(id: &str, limit: usize) -> String {
    let legal = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' };
    let plain: String = id.chars().map(legal).collect();
    if plain.len() <= limit {
        return plain;
    }
    let hash = format!("{:016x}", fnv(id));
    let room = limit.saturating_sub(hash.len() + 1).min(20);
    let start: String = plain.chars().filter(char::is_ascii_alphanumeric).take(room).collect();
    format!("{start}_{hash}").chars().take(limit).collect()
}

/// Exactly so many letters and digits, the same for the same id.
pub(crate) fn short_id(id: &str, length: usize) -> String {
    if id.len() == length && id.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return id.to_owned();
    }
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut rest = fnv(id);
    let mut digit = || {
        let at = usize::try_from(rest % 36).unwrap_or_default();
        rest /= 36;
        char::from(DIGITS[at])
    };
    (0..length).map(|_| digit()).collect()
}

/// FNV-1a: the same in every build, so that a resumed session sends the same ids.
fn fnv(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

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
    fn ids_of_other_providers_are_made_legal_and_stay_apart() {
        let long = |c: &str| format!("call_{}", c.repeat(80));
        assert_eq!(wire_id("call|fc.1", 64), "call_fc_1");
        assert_eq!(wire_id(&long("a"), 40).len(), 37);
        assert_ne!(wire_id(&long("a"), 40), wire_id(&long("b"), 40));
        assert_eq!(short_id("abc123XYZ", 9), "abc123XYZ");
        assert_eq!(short_id("call_1", 9).len(), 9);
        assert_ne!(short_id("call_1", 9), short_id("call_2", 9));
    }

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

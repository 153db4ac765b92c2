//! How many tokens a context is taken for (events.md D.1): what the model itself counted last,
//! and four characters a token for what came since.

use crate::message::{AssistantMessage, Content, Message, MessageContent, Usage};

/// Characters an image is taken for.
const IMAGE: usize = 4_800;
const PER_TOKEN: usize = 4;

pub fn tokens_of_chars(chars: usize) -> u64 {
    chars.div_ceil(PER_TOKEN) as u64
}

pub fn tokens_of_text(text: &str) -> u64 {
    tokens_of_chars(text.chars().count())
}

pub fn tokens_of(message: &Message) -> u64 {
    tokens_of_chars(chars(message))
}

fn chars(message: &Message) -> usize {
    match message {
        Message::User(m) => of_content(&m.content),
        Message::Custom(m) => of_content(&m.content),
        Message::ToolResult(m) => m.content.iter().map(of_block).sum(),
        Message::Assistant(m) => m.content.iter().map(of_block).sum(),
        Message::BranchSummary(m) => m.summary.chars().count(),
        Message::BashExecution(m) => m.command.chars().count() + m.output.chars().count(),
        Message::System(_) | Message::Other(_) => 0,
    }
}

fn of_content(content: &MessageContent) -> usize {
    match content {
        MessageContent::Text(text) => text.chars().count(),
        MessageContent::Blocks(blocks) => blocks.iter().map(of_block).sum(),
    }
}

fn of_block(block: &Content) -> usize {
    match block {
        Content::Text(t) => t.text.chars().count(),
        Content::Thinking(t) => t.thinking.chars().count(),
        Content::Image(_) => IMAGE,
        Content::ToolCall(c) => c.name.chars().count() + c.arguments.to_string().chars().count(),
        Content::Other(_) => 0,
    }
}

/// All that was sent and answered.
pub fn total(usage: &Usage) -> u64 {
    let parts = [usage.input, usage.output, usage.cache_read, usage.cache_write];
    usage.total_tokens.max(parts.into_iter().fold(0, u64::saturating_add))
}

/// What a model counted when it gave this answer; a failed one counts nothing.
pub fn counted(answer: &AssistantMessage) -> Option<u64> {
    (!answer.failed()).then(|| total(&answer.usage)).filter(|n| *n > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn answer(total: u64, reason: &str) -> Message {
        serde_json::from_value(json!({"role": "assistant", "content": [{"type": "text", "text": "12345678"}],
            "usage": {"totalTokens": total}, "stopReason": reason}))
        .unwrap()
    }

    #[test]
    fn a_quarter_of_the_characters_and_an_image_is_1200() {
        let image: Message = serde_json::from_value(
            json!({"role": "user", "content": [{"type": "image", "data": "", "mimeType": "image/png"}]}),
        )
        .unwrap();
        assert_eq!(tokens_of(&Message::user("日本語456789", 0)), 3);
        assert_eq!(tokens_of(&image), 1200);
        let counted_of = |m: &Message| m.as_assistant().and_then(counted);
        assert_eq!(counted_of(&answer(1000, "stop")), Some(1000));
        assert_eq!(counted_of(&answer(9000, "error")), None);
        assert_eq!(counted_of(&answer(0, "stop")), None);
    }
}

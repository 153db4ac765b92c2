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

/// Of a context in its order. `counts` says of which answers the count still holds: one from
/// before a compaction counted what is gone.
pub fn context(messages: &[(&Message, bool)]) -> u64 {
    let counted = |m: &AssistantMessage| (!m.failed()).then(|| total(&m.usage)).filter(|n| *n > 0);
    let known = messages.iter().enumerate().rev().find_map(|(at, (message, counts))| {
        let answer = message.as_assistant().filter(|_| *counts)?;
        Some((at, counted(answer)?))
    });
    let (from, known) = known.map_or((0, 0), |(at, n)| (at + 1, n));
    messages[from..].iter().fold(known, |sum, (m, _)| sum.saturating_add(tokens_of(m)))
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
    fn what_the_model_counted_and_a_quarter_of_the_characters_since() {
        let user = Message::user("123456789", 0);
        let image: Message = serde_json::from_value(
            json!({"role": "user", "content": [{"type": "image", "data": "", "mimeType": "image/png"}]}),
        )
        .unwrap();
        let (old, failed) = (answer(1000, "stop"), answer(9000, "error"));
        let all = [(&user, true), (&old, true), (&user, true), (&failed, true), (&image, true)];
        assert_eq!(context(&all), 1000 + 3 + 2 + 1200);
        let stale = [(&old, false), (&user, true)];
        assert_eq!(context(&stale), 2 + 3, "what it counted is gone");
        assert_eq!(context(&[]), 0);
    }
}

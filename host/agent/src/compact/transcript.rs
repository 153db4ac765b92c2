//! The transcript as text (events.md D.4): a header for each kind of section, a blank line
//! between two, and which lines the user wants kept whatever a planner says.

use crate::{
    message::{Content, ImageContent, Message},
    pairing,
};

/// Characters of one tool's result.
const RESULT: usize = 16_000;

const USER: &str = "[User]: ";
const THINKING: &str = "[Assistant thinking]: ";
const ASSISTANT: &str = "[Assistant]: ";
const CALLS: &str = "[Assistant tool calls]: ";
const TOOL_RESULT: &str = "[Tool result]: ";
const HEADERS: [&str; 5] = [USER, THINKING, ASSISTANT, CALLS, TOOL_RESULT];
const IMAGE: &str = "[image]";

const OPEN: &str = "<keepContext>";
const CLOSE: &str = "</keepContext>";

/// Lines, without their ends, and what is known of them. Numbers are 1-based.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transcript {
    pub lines: Vec<String>,
    /// Where sections begin.
    pub headers: Vec<usize>,
    /// Lines of `<keepContext>` blocks, tags among them, ascending.
    pub protected: Vec<usize>,
    /// What is pushed next begins a section behind another one.
    sections: bool,
}

impl Transcript {
    /// What stands for an earlier part; comes first. The message behind it begins on the next line.
    pub fn push_summary(&mut self, summary: &str) {
        let from = self.lines.len();
        self.lines.extend(summary.split('\n').map(str::to_owned));
        let summary = &self.lines[from..];
        self.headers
            .extend((0..summary.len()).filter(|at| header(&summary[*at]).is_some()).map(|at| from + at + 1));
        self.protected.extend(kept_of_summary(summary).into_iter().map(|at| from + at + 1));
    }

    /// False: there is nothing to tell of it.
    pub fn push(&mut self, message: &Message) -> bool {
        let sections = sections(message);
        let from = self.lines.len();
        for (header, body) in &sections {
            if std::mem::replace(&mut self.sections, true) {
                self.lines.push(String::new());
            }
            let mut body = body.split('\n');
            self.lines.push(format!("{header}{}", body.next().unwrap_or_default()));
            self.headers.push(self.lines.len());
            self.lines.extend(body.map(str::to_owned));
        }
        if may_keep(message) {
            let lines = &self.lines[from..];
            self.protected.extend(kept(lines).into_iter().map(|at| from + at + 1));
        }
        !sections.is_empty()
    }

    pub fn text(&self) -> String {
        self.lines.join("\n")
    }
}

/// Messages as text, with the images that the text only names.
pub fn serialize<'m>(messages: impl Iterator<Item = &'m Message>) -> (String, Vec<ImageContent>) {
    let mut transcript = Transcript::default();
    let mut images = Vec::new();
    for message in messages {
        transcript.push(message);
        let blocks = match message {
            Message::User(m) => m.content.blocks(),
            Message::Custom(m) => m.content.blocks(),
            Message::ToolResult(m) => m.content.clone(),
            _ => Vec::new(),
        };
        images.extend(blocks.into_iter().filter_map(|b| match b {
            Content::Image(image) => Some(image),
            _ => None,
        }));
    }
    (transcript.text(), images)
}

/// Something of it would be told.
pub fn tells(message: &Message) -> bool {
    !sections(message).is_empty()
}

fn sections(message: &Message) -> Vec<(&'static str, String)> {
    let Some(sent) = pairing::as_sent(message.clone()) else { return Vec::new() };
    let mut out = Vec::new();
    match &sent {
        Message::User(m) => out.push((USER, told(&m.content.blocks()))),
        Message::ToolResult(m) => out.push((TOOL_RESULT, capped(told(&m.content)))),
        Message::Assistant(m) => {
            let thought = m.content.iter().filter_map(|c| match c {
                Content::Thinking(t) => Some(t.thinking.as_str()),
                _ => None,
            });
            out.push((THINKING, thought.collect::<Vec<_>>().join("\n")));
            out.push((ASSISTANT, told(&m.content)));
            let calls = m.tool_calls().map(|c| format!("{}({})", one_line(&c.name), arguments(&c.arguments)));
            out.push((CALLS, calls.collect::<Vec<_>>().join("; ")));
        }
        _ => {}
    }
    out.retain(|(_, body)| !body.trim().is_empty());
    out
}

fn told(blocks: &[Content]) -> String {
    let parts = blocks.iter().filter_map(|b| match b {
        Content::Text(t) => Some(t.text.as_str()),
        Content::Image(_) => Some(IMAGE),
        _ => None,
    });
    parts.collect::<Vec<_>>().join("\n")
}

/// JSON has no line breaks of its own; a name that a model made up may.
fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

fn arguments(arguments: &serde_json::Value) -> String {
    match arguments {
        serde_json::Value::Object(map) => {
            map.iter().map(|(k, v)| format!("{}={v}", one_line(k))).collect::<Vec<_>>().join(", ")
        }
        serde_json::Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn capped(text: String) -> String {
    // Bytes bound characters from above.
    if text.len() <= RESULT {
        return text;
    }
    let chars = text.chars().count();
    if chars <= RESULT {
        return text;
    }
    let note = |cut: usize| format!("\n[cut: {cut} characters more]");
    let kept = RESULT - note(chars).chars().count();
    let at = text.char_indices().nth(kept).map_or(text.len(), |(at, _)| at);
    format!("{}{}", &text[..at], note(chars - kept))
}

/// What a tool or a command printed is nobody's wish.
fn may_keep(message: &Message) -> bool {
    matches!(
        message,
        Message::User(_) | Message::Assistant(_) | Message::Custom(_) | Message::BranchSummary(_)
    )
}

fn header(line: &str) -> Option<&'static str> {
    HEADERS.into_iter().find(|h| line.starts_with(h))
}

/// A tag alone on its line; behind a header it is the first line of its section.
fn is_tag(line: &str, tag: &str) -> bool {
    let rest = header(line).map_or(line, |h| &line[h.len()..]);
    rest.trim() == tag
}

/// Lines of one message from an opening tag to its closing one, or to the end.
fn kept(lines: &[String]) -> Vec<usize> {
    let mut out = Vec::new();
    let mut open = false;
    for (at, line) in lines.iter().enumerate() {
        open |= is_tag(line, OPEN);
        if open {
            out.push(at);
        }
        open &= !is_tag(line, CLOSE);
    }
    out
}

/// A summary holds parts of many messages. A block that was never closed ended with its message,
/// which is where the next header stands; tags in results of tools are text.
fn kept_of_summary(lines: &[String]) -> Vec<usize> {
    // A quick look first: most summaries have none.
    if !lines.iter().any(|l| is_tag(l, OPEN)) {
        return Vec::new();
    }
    let mut out = Vec::new();
    let mut in_result = false;
    let mut at = 0;
    while at < lines.len() {
        if let Some(header) = header(&lines[at]) {
            in_result = header == TOOL_RESULT;
        }
        if in_result || !is_tag(&lines[at], OPEN) {
            at += 1;
            continue;
        }
        let rest = &lines[at + 1..];
        let reopened = rest.iter().position(|l| is_tag(l, OPEN)).unwrap_or(rest.len());
        let closed = rest[..reopened].iter().position(|l| is_tag(l, CLOSE)).map(|n| n + 1);
        let ended = || rest[..reopened].iter().position(|l| header(l).is_some()).unwrap_or(reopened);
        let end = at + 1 + closed.unwrap_or_else(ended);
        out.extend(at..end);
        at = end;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn message(json: serde_json::Value) -> Message {
        serde_json::from_value(json).unwrap()
    }

    fn pushed(messages: &[Message]) -> Transcript {
        let mut transcript = Transcript::default();
        for m in messages {
            transcript.push(m);
        }
        transcript
    }

    #[test]
    fn each_kind_of_message_has_its_header_and_empty_sections_are_left_out() {
        let image = json!({"type": "image", "data": "AA==", "mimeType": "image/png"});
        let got = pushed(&[
            message(json!({"role": "user", "content": [{"type": "text", "text": "look\nhere"}, image]})),
            message(json!({"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm"}, {"type": "text", "text": " "},
                {"type": "toolCall", "id": "1", "name": "read", "arguments": {"path": "a\nb", "limit": 3}},
                {"type": "toolCall", "id": "2", "name": "ls", "arguments": {}}], "stopReason": "toolUse"})),
            message(json!({"role": "toolResult", "toolCallId": "1", "toolName": "read", "content": [image]})),
            message(json!({"role": "toolResult", "toolCallId": "2", "toolName": "ls", "content": []})),
            message(json!({"role": "custom", "customType": "x", "content": "note"})),
            message(json!({"role": "branchSummary", "summary": "went wrong", "fromId": "r"})),
            message(json!({"role": "bashExecution", "command": "pwd", "output": "/", "exitCode": 0})),
            message(
                json!({"role": "bashExecution", "command": "pwd", "output": "/", "excludeFromContext": true}),
            ),
            message(
                json!({"role": "assistant", "content": [{"type": "toolCall", "id": "3", "name": "x", "arguments": {}}], "stopReason": "aborted"}),
            ),
        ]);
        let text = got.text();
        let expected = "[User]: look\nhere\n[image]\n\n[Assistant thinking]: hm\n\n\
            [Assistant tool calls]: read(path=\"a\\nb\", limit=3); ls()\n\n[Tool result]: [image]\n\n[User]: note\n\n";
        assert!(text.starts_with(expected), "{text}");
        assert_eq!(
            got.headers.iter().map(|n| &got.lines[n - 1][..2]).collect::<Vec<_>>(),
            ["[U", "[A", "[A", "[T", "[U", "[U", "[U"]
        );
        assert!(text.contains("went wrong") && text.ends_with("I ran `pwd`. Its output:\n\n/"), "{text}");
    }

    #[test]
    fn a_long_result_is_cut_between_characters_and_says_so() {
        let long = message(json!({"role": "toolResult", "toolCallId": "1", "toolName": "t",
            "content": [{"type": "text", "text": "日".repeat(20_000)}]}));
        let text = pushed(&[long]).text();
        let body = text.strip_prefix(TOOL_RESULT).unwrap();
        assert!(
            (RESULT - 8..=RESULT).contains(&body.chars().count()),
            "the cap, less what a shorter number leaves"
        );
        let kept = body.chars().take_while(|c| *c == '日').count();
        assert!(
            body.ends_with(&format!("\n[cut: {} characters more]", 20_000 - kept)),
            "{}",
            &body[body.len() - 60..]
        );
    }

    #[test]
    fn what_is_between_tags_is_protected_within_its_message_and_not_in_results() {
        let got = pushed(&[
            message(
                json!({"role": "user", "content": "<keepContext>\nrule\n</keepContext>\nfree\n <keepContext> \nto the end"}),
            ),
            message(
                json!({"role": "assistant", "content": [{"type": "text", "text": "say <keepContext> inline\nx"}]}),
            ),
            message(json!({"role": "toolResult", "toolCallId": "1", "toolName": "t",
                "content": [{"type": "text", "text": "<keepContext>\nnot this\n</keepContext>"}]})),
        ]);
        let protected: Vec<&str> = got.protected.iter().map(|n| got.lines[n - 1].as_str()).collect();
        assert_eq!(
            protected,
            ["[User]: <keepContext>", "rule", "</keepContext>", " <keepContext> ", "to the end"]
        );
    }

    #[test]
    fn in_a_summary_a_block_ends_with_its_message_and_results_are_text() {
        let mut got = Transcript::default();
        got.push_summary(
            "[User]: <keepContext>\nopen\n\n[Assistant]: gone on\n[Tool result]: a\n<keepContext>\nno\n</keepContext>\n\n\
             [User]: x\n<keepContext>\n[User]: quoted\n</keepContext>\ny",
        );
        got.push(&Message::user("new", 0));
        let protected: Vec<&str> = got.protected.iter().map(|n| got.lines[n - 1].as_str()).collect();
        assert_eq!(
            protected,
            ["[User]: <keepContext>", "open", "", "<keepContext>", "[User]: quoted", "</keepContext>"]
        );
        assert_eq!(got.lines[got.lines.len() - 2..], ["y", "[User]: new"], "one line break between the two");
    }

    proptest::proptest! {
        #[test]
        fn whatever_is_said_numbers_are_of_lines_that_exist(
            texts in proptest::collection::vec("(<keepContext>|</keepContext>|\\[User\\]: |\\[Tool result\\]: |[a-z\n\r日]){0,12}", 0..6),
            summary in "(<keepContext>|</keepContext>|\\[User\\]: |\\[Tool result\\]: |[a-z]|\n){0,12}",
        ) {
            let mut got = Transcript::default();
            got.push_summary(&summary);
            for text in &texts {
                got.push(&Message::user(text.clone(), 0));
            }
            let n = got.lines.len();
            proptest::prop_assert!(got.protected.iter().chain(&got.headers).all(|at| (1..=n).contains(at)));
            proptest::prop_assert!(got.protected.windows(2).all(|w| w[0] < w[1]));
            proptest::prop_assert!(got.lines.iter().all(|l| !l.contains('\n')));
        }
    }
}

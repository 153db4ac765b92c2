//! What is seen at the prompt, event by event.

use super::*;
use atomic_agent::{
    message::Usage,
    tool::{PartialResult, ToolOutput},
};
use serde_json::json;

fn shown(events: &[Event]) -> String {
    let mut out = Vec::new();
    let mut view = View::new(&mut out, false);
    for e in events {
        view.event(e);
    }
    String::from_utf8(out).unwrap()
}

fn delta(text: &str) -> Event {
    Event::MessageUpdate {
        usage: Usage::default(),
        assistant_message_event: AssistantEvent::TextDelta { content_index: 0, delta: text.into() },
    }
}

#[test]
fn nothing_an_extension_or_a_model_says_reaches_the_screen_raw() {
    let evil = "a\u{1b}[2J\u{1b}]0;t\u{7}\u{202e}b";
    let text = shown(&[
        delta(evil),
        Event::Notify { message: evil.into(), level: "info".into(), extension: Some(evil.into()) },
        Event::ExtensionError { extension_path: evil.into(), event: evil.into(), error: evil.into() },
        Event::ToolExecutionStart {
            tool_call_id: "1".into(),
            tool_name: evil.into(),
            args: serde_json::json!({"command": evil}),
        },
        Event::ToolExecutionEnd {
            tool_call_id: "1".into(),
            tool_name: evil.into(),
            result: ToolOutput::error(evil),
            is_error: true,
            duration_ms: 0,
            effective_args: None,
        },
    ]);
    let raw = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
    assert!(!text.chars().any(raw), "{text:?}");
    assert!(text.contains("● ab ab"), "{text:?}");
}

#[test]
fn streamed_text_stands_as_it_came_and_a_tool_is_two_lines() {
    let text = shown(&[
        delta("Hel"),
        delta("lo"),
        Event::ToolExecutionStart {
            tool_call_id: "1".into(),
            tool_name: "bash".into(),
            args: serde_json::json!({"command": "ls"}),
        },
        Event::ToolExecutionEnd {
            tool_call_id: "1".into(),
            tool_name: "bash".into(),
            result: ToolOutput::text("a\nb\nc"),
            is_error: false,
            duration_ms: 4,
            effective_args: None,
        },
    ]);
    assert_eq!(text, "Hello\n● bash ls\n  ✓ bash: a (+2 lines) · 4 ms\n");
}

fn ended(output: &str) -> Event {
    let message = serde_json::json!({"role": "bashExecution", "command": "x", "output": output,
        "cancelled": false, "truncated": false, "timestamp": 0});
    Event::BashExecuted { message: serde_json::from_value(message).unwrap() }
}

#[test]
fn the_output_of_a_command_is_shown_once_and_its_end_told() {
    let update = |delta: &str| Event::BashExecutionUpdate { channel: "stdout".into(), delta: delta.into() };
    for (streamed, output, seen) in [
        (&["hi\n"][..], "hi", "hi\n"),
        (&["a\n", "b"], "a\nb", "a\nb\n"),
        (&["a\n"], "a\nlate", "a\nlate\n"),
        (&[], "(no output)", "(no output)\n"),
        (&["y\ny\n"], "y\ny\n\nThe command exited with code 1", "y\ny\nThe command exited with code 1\n"),
        (&["1\n2\n", "3\n"], "2\n3\n\n[The last 2 of 3 lines]", "1\n2\n3\n[The last 2 of 3 lines]\n"),
    ] {
        let mut events: Vec<Event> = streamed.iter().map(|d| update(d)).collect();
        events.push(ended(output));
        assert_eq!(shown(&events), seen, "{streamed:?} {output:?}");
    }
}

/// On a terminal of so many columns.
fn on_screen(columns: fn() -> Option<usize>, show: impl FnOnce(&mut View<&mut Vec<u8>>)) -> String {
    let mut out = Vec::new();
    let mut view = View::new(&mut out, true);
    view.columns = columns;
    show(&mut view);
    String::from_utf8(out).unwrap()
}

fn update(text: &str) -> Event {
    Event::ToolExecutionUpdate {
        tool_call_id: "1".into(),
        tool_name: "count".into(),
        args: json!({}),
        partial_result: PartialResult { content: vec![Content::text(text)], details: None },
    }
}

fn end(effective_args: Option<Value>) -> Event {
    Event::ToolExecutionEnd {
        tool_call_id: "1".into(),
        tool_name: "count".into(),
        result: ToolOutput::text("4"),
        is_error: false,
        duration_ms: 9,
        effective_args,
    }
}

#[test]
fn streamed_text_breaks_between_words_on_a_terminal() {
    let text = on_screen(
        || Some(20),
        |view| {
            for piece in ["The quick br", "own fox jum", "ps over"] {
                view.event(&delta(piece));
            }
            view.close();
        },
    );
    assert_eq!(text, "The quick brown fox\njumps over\n");
}

#[test]
fn what_a_running_tool_says_is_shown_dim_and_replaced_by_what_comes_next() {
    let text = on_screen(
        || Some(40),
        |view| {
            for event in [update("one"), update("one"), update("one\ntwo"), end(None)] {
                view.event(&event);
            }
        },
    );
    let first = "\u{1b}[2m    one\u{1b}[22m\n";
    let second = "\u{1b}[1A\r\u{1b}[J\u{1b}[2m    one\u{1b}[22m\n\u{1b}[2m    two\u{1b}[22m\n";
    assert_eq!(text, format!("{first}{second}\u{1b}[2A\r\u{1b}[J  ✓ count: 4 · 9 ms\n"));
    assert_eq!(shown(&[update("one"), end(None)]), "  ✓ count: 4 · 9 ms\n", "not into a pipe");
}

#[test]
fn arguments_that_an_extension_changed_are_shown() {
    let text = shown(&[end(Some(json!({"command": "nice -n 5 ls"})))]);
    assert_eq!(text, "  · an extension changed it to: nice -n 5 ls\n  ✓ count: 4 · 9 ms\n");
}

#[test]
fn a_session_that_goes_on_says_which_how_long_and_where_it_stopped() {
    let told = |name: Option<&str>, messages, last: &str| {
        let mut out = Vec::new();
        let session = Resumed { name: name.map(str::to_owned), messages, last: Some(last.to_owned()) };
        View::new(&mut out, false).goes_on(&session);
        String::from_utf8(out).unwrap()
    };
    assert_eq!(told(Some("fixes"), 3, "mend\nit"), "· session \"fixes\" goes on · 3 messages\n» mend it\n");
    assert_eq!(told(None, 1, "first"), "· session goes on · 1 message\n» first\n");
}

#[test]
fn a_note_of_the_start_is_not_repeated_at_each_reload() {
    let report = |notes: &[&str]| Event::Reloaded {
        report: atomic_agent::hooks::ReplaceReport {
            extensions: Vec::new(),
            notes: notes.iter().map(|n| (*n).to_owned()).collect(),
        },
    };
    let mut out = Vec::new();
    let mut view = View::new(&mut out, false);
    view.already_told(&[Card::told("extension::note", "this project is not trusted\nuse --approve")]);
    view.event(&report(&["this project is not trusted\nuse --approve", "greet is there twice"]));
    let text = String::from_utf8(out).unwrap();
    assert!(text.contains("greet is there twice") && !text.contains("not trusted"), "{text}");
}

#[test]
fn a_failed_answer_is_a_card_with_its_code_and_help() {
    let message = json!({"role": "assistant", "content": [], "stopReason": "error",
        "errorMessage": "cannot reach local", "errorCode": "models::unreachable", "errorHelp": "start it"});
    let text = shown(&[Event::MessageEnd { message: serde_json::from_value(message).unwrap() }]);
    for part in ["models::unreachable", "cannot reach local", "help: start it"] {
        assert!(text.contains(part), "{text}");
    }
}

use super::*;
use crate::testing::texts;
use serde_json::json;

fn transcript() -> Transcript {
    Transcript::new(Theme::dark(), 60)
}

fn answer(text: &str) -> Message {
    serde_json::from_value(json!({"role": "assistant", "content": [{"type": "text", "text": text}],
        "api": "offline", "provider": "offline", "model": "scripted", "stopReason": "stop", "timestamp": 0,
        "usage": {}}))
    .unwrap()
}

fn stream(t: &mut Transcript, pieces: &[&str]) {
    t.message_start(&answer(""));
    t.delta(&AssistantEvent::TextStart { content_index: 0 });
    for p in pieces {
        t.delta(&AssistantEvent::TextDelta { content_index: 0, delta: (*p).into() });
    }
}

#[test]
fn an_answer_is_live_until_its_end_and_then_stays() {
    let mut t = transcript();
    stream(&mut t, &["Hello ", "**you**"]);
    assert!(t.take_finished().is_empty());
    assert_eq!(texts(&t.live("*")), ["Hello you"]);
    t.message_end(&answer("Hello **you**"));
    assert!(t.live("*").is_empty());
    assert_eq!(texts(&t.take_finished()), ["Hello you", ""]);
    assert_eq!(t.last_answer(), Some("Hello **you**"));
}

#[test]
fn what_an_extension_made_of_an_answer_is_what_is_shown() {
    let mut t = transcript();
    stream(&mut t, &["secret"]);
    t.message_end(&answer("[redacted]"));
    assert_eq!(texts(&t.take_finished()), ["[redacted]", ""]);
}

#[test]
fn a_tool_shows_its_last_lines_and_then_its_beginning() {
    let mut t = transcript();
    t.tool_started("1", "bash", &json!({"command": "seq 20"}));
    let text: String = (1..=20).map(|n| format!("{n}\n")).collect();
    t.tool_updated("1", &[Content::text(text.clone())]);
    assert_eq!(texts(&t.live("*"))[1..], ["  16", "  17", "  18", "  19", "  20"]);
    let output = ToolOutput { content: vec![Content::text(text)], ..ToolOutput::default() };
    t.tool_ended("1", &output, false, Some(5), None);
    let rows = texts(&t.take_finished());
    assert_eq!(rows[..2], ["● bash seq 20  5 ms", "  1"]);
    assert_eq!(rows[9], "  … 12 more lines (Ctrl+O shows them)");
    t.show_last_result();
    assert!(texts(&t.take_finished()).contains(&"  20".to_owned()));
}

#[test]
fn a_failure_shows_its_end_and_who_blocked_it() {
    let mut t = transcript();
    t.tool_started("1", "bash", &json!({"command": "rm -rf x"}));
    let output =
        ToolOutput { details: Some(json!({"blockedBy": "gate"})), ..ToolOutput::error("not allowed") };
    t.tool_ended("1", &output, true, Some(0), None);
    assert_eq!(
        texts(&t.take_finished()),
        ["✗ bash rm -rf x  0 ms", "  blocked by gate", "  not allowed", ""]
    );
}

#[test]
fn an_edit_shows_its_diff() {
    let mut t = transcript();
    t.tool_started("1", "edit", &json!({"path": "a.rs"}));
    let details = json!({"diff": "--- a/a.rs\n+++ b/a.rs\n@@ -1 +1 @@\n-old\n+new\n"});
    let output = ToolOutput { details: Some(details), ..ToolOutput::default() };
    t.tool_ended("1", &output, false, Some(1), None);
    assert_eq!(texts(&t.take_finished()), ["● edit a.rs  1 ms", "  @@ -1 +1 @@", "  -old", "  +new", ""]);
}

#[test]
fn nothing_foreign_steers_the_terminal() {
    let mut t = transcript();
    t.tool_started("1", "ba\u{1b}[2Jsh", &json!({"command": "a\n\u{1b}]0;x\u{7}b"}));
    t.tool_ended("1", &ToolOutput::error("x\u{1b}[31m\u{202e}y"), true, None, None);
    t.user("hi\u{1b}[5m", 0);
    stream(&mut t, &["t\u{1b}", "[1mt"]);
    let mut all = texts(&t.take_finished());
    all.extend(texts(&t.live("*")));
    assert!(all.iter().all(|r| !r.contains('\u{1b}') && !r.contains('\u{202e}')), "{all:?}");
}

#[test]
fn calls_without_a_result_are_told_when_the_engine_is_lost() {
    let mut t = transcript();
    t.tool_started("1", "bash", &json!({"command": "sleep 9"}));
    t.cut_off();
    assert_eq!(texts(&t.take_finished()), ["● bash sleep 9 (no result)"]);
}

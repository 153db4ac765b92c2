//! A session before and after compactions, whatever was in it.

use super::{planner, prepare, ranges, settings::*, transcript};
use crate::{
    message::{Content, Message, MessageContent},
    pairing,
    session::{Session, VERBATIM},
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::path::Path;

#[derive(Clone, Debug)]
enum Step {
    Say(Value),
    /// With these records, and so many messages kept.
    Compact(Vec<(u64, u64)>, u64),
    /// Takes away, or changes, the entry that far back.
    Edit(usize, bool),
}

fn any_text() -> impl Strategy<Value = String> {
    "(<keepContext>|</keepContext>|\\(filtered 3 lines\\)|\\[Tool result\\]: |[a-zé日]{1,9}|\n|\r\n| ){0,10}"
}

fn any_message() -> impl Strategy<Value = Value> {
    let ids = proptest::collection::vec(prop_oneof![Just("a"), Just("b"), Just("")], 0..3);
    let stop = prop_oneof![Just("stop"), Just("toolUse"), Just("error"), Just("aborted"), Just("length")];
    let image = json!({"type": "image", "data": "AA==", "mimeType": "image/png"});
    prop_oneof![
        any_text().prop_map(|t| json!({"role": "user", "content": t})),
        any_text().prop_map(move |t| json!({"role": "user", "content": [{"type": "text", "text": t}, image]})),
        (any_text(), ids, stop).prop_map(|(text, ids, stop)| {
            let mut content = vec![json!({"type": "thinking", "thinking": "hm"}), json!({"type": "text", "text": text})];
            content.extend(
                ids.iter().map(|id| json!({"type": "toolCall", "id": id, "name": "t", "arguments": {"x": text}})),
            );
            json!({"role": "assistant", "content": content, "stopReason": stop})
        }),
        (any_text(), prop_oneof![Just("a"), Just("b")]).prop_map(|(text, id)| {
            json!({"role": "toolResult", "toolCallId": id, "toolName": "t", "content": [{"type": "text", "text": text}]})
        }),
        any_text().prop_map(|t| json!({"role": "custom", "customType": "x", "content": t, "display": false})),
        any_text().prop_map(|t| json!({"role": "bashExecution", "command": "c", "output": t})),
    ]
}

fn any_step() -> impl Strategy<Value = Step> {
    let records = proptest::collection::vec((0u64..60, 0u64..60), 0..6);
    prop_oneof![
        8 => any_message().prop_map(Step::Say),
        2 => (records, 0u64..4).prop_map(|(records, kept)| Step::Compact(records, kept)),
        1 => (0usize..6, any::<bool>()).prop_map(|(back, gone)| Step::Edit(back, gone)),
    ]
}

fn weight(lines: &[String]) -> u64 {
    lines.iter().map(|l| ranges::marker(l).unwrap_or(1)).sum()
}

fn split(text: &str) -> Vec<String> {
    text.split('\n').map(str::to_owned).collect()
}

/// Answers what was written, if there was anything to compact.
fn compact(session: &mut Session, records: &[(u64, u64)], kept: u64) -> Option<(Vec<String>, String)> {
    let options = CompactOptions { preserve_recent: Some(kept as f64), ..Default::default() };
    let settings = CompactionSettings::default();
    let parameters = settings.parameters(&options, None, None);
    let of = prepare::prepare(session, parameters, settings)?;
    let region = &of.region;
    let deleted = ranges::usable(records, region.lines.len(), &region.protected_line_numbers);
    let done =
        ranges::reconstruct(&region.lines, &deleted, &region.prior_marker_ns, &region.protected_line_numbers);
    let mut fields = Map::new();
    fields.insert("summary".into(), done.text.clone().into());
    fields.insert("firstKeptEntryId".into(), of.first_kept_entry_id.clone().map_or(Value::Null, Value::from));
    fields.insert("details".into(), json!({"strategy": VERBATIM}));
    session.append("compaction", fields).unwrap();
    Some((region.lines.clone(), done.text))
}

fn assert_paired(messages: &[Message]) -> Result<(), TestCaseError> {
    let mut rest = messages.iter();
    while let Some(message) = rest.next() {
        prop_assert!(matches!(message.role(), "user" | "assistant"), "{} in a request", message.role());
        for call in message.as_assistant().into_iter().flat_map(|m| m.tool_calls()) {
            let answers = matches!(rest.next(), Some(Message::ToolResult(r)) if r.tool_call_id == call.id);
            prop_assert!(answers, "{} is not answered", call.id);
        }
    }
    Ok(())
}

fn text_of(messages: &[Message]) -> String {
    let text = |m: &Message| match m {
        Message::Custom(m) => m.content.plain_text(),
        _ => String::new(),
    };
    messages.first().map(text).unwrap_or_default()
}

fn images(messages: &[Message]) -> usize {
    let of = |m: &Message| match m {
        Message::User(m) => m.content.blocks(),
        Message::Custom(m) => m.content.blocks(),
        _ => Vec::new(),
    };
    messages.iter().flat_map(of).filter(|b| matches!(b, Content::Image(_))).count()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
    #[test]
    fn whatever_was_said_compacted_and_edited_the_next_request_is_one_that_a_provider_takes(
        steps in proptest::collection::vec(any_step(), 1..24)
    ) {
        let mut session = Session::in_memory(Path::new("/"), Path::new("/"));
        for step in steps {
            match step {
                Step::Say(message) => {
                    let message: Message = serde_json::from_value(message).unwrap();
                    session.append_message(&message, false).unwrap();
                }
                Step::Edit(back, gone) => {
                    let ids: Vec<String> = session.path().iter().filter(|e| e.message().is_some()).map(|e| e.id().to_owned()).collect();
                    let Some(id) = ids.iter().rev().nth(back) else { continue };
                    let mut fields = Map::new();
                    fields.insert("targetId".into(), id.clone().into());
                    let other = if gone { Value::Null } else { json!({"content": "edited"}) };
                    fields.insert("replacement".into(), other);
                    session.append("context_edit", fields).unwrap();
                }
                Step::Compact(records, kept) => {
                    let before = session.condensable();
                    let tail_images = images(&before.shown.iter().rev().take(kept as usize).map(|s| s.message.clone()).collect::<Vec<_>>());
                    let Some((region, text)) = compact(&mut session, &records, kept) else { continue };
                    // Every line of the region is there or counted.
                    prop_assert_eq!(weight(&region), weight(&split(&text)));
                    let after = session.messages();
                    prop_assert!(matches!(&after[0], Message::Custom(m) if m.custom_type == "compaction"));
                    prop_assert!(text_of(&after).contains(&text));
                    prop_assert_eq!(after.len(), 1, "the tail is text too");
                    prop_assert!(images(&after) >= tail_images.min(1) * usize::from(kept == 1 && before.shown.last().is_some_and(|s| transcript::tells(&s.message))));
                    // What is read again is what was written.
                    prop_assert_eq!(session.condensable().summary, Some(text));
                }
            }
            assert_paired(&pairing::for_model(session.messages()))?;
            assert_paired(&pairing::for_model(pairing::pair(session.transcript()).into_iter().filter(|m| m.role() != "system").collect()))?;
        }
    }
}

#[test]
fn a_tail_that_begins_with_a_result_is_text_and_orphans_nothing() {
    let mut session = Session::in_memory(Path::new("/"), Path::new("/"));
    for message in [
        json!({"role": "user", "content": "go"}),
        json!({"role": "assistant", "content": [{"type": "toolCall", "id": "a", "name": "read", "arguments": {}}], "stopReason": "toolUse"}),
        json!({"role": "toolResult", "toolCallId": "a", "toolName": "read", "content": [
            {"type": "text", "text": "seen"}, {"type": "image", "data": "AA==", "mimeType": "image/png"}]}),
    ] {
        session.append_message(&serde_json::from_value(message).unwrap(), false).unwrap();
    }
    compact(&mut session, &[(1, 1)], 1).unwrap();
    let messages = pairing::for_model(session.messages());
    let [Message::User(m)] = &messages[..] else { panic!("{messages:?}") };
    let MessageContent::Blocks(blocks) = &m.content else { panic!("{m:?}") };
    assert_eq!(blocks.len(), 2, "the image is carried along");
    assert!(
        blocks[0].as_text().unwrap().ends_with(
            "(filtered 1 lines)\n\n[Assistant tool calls]: read()\n\n[Tool result]: seen\n[image]"
        )
    );
}

#[test]
fn what_a_model_counted_before_a_compaction_does_not_count_after_it() {
    let mut session = Session::in_memory(Path::new("/"), Path::new("/"));
    let answer = json!({"role": "assistant", "content": [{"type": "text", "text": "x\ny"}], "stopReason": "stop",
        "usage": {"totalTokens": 90_000}});
    session.append_message(&Message::user("hi", 0), false).unwrap();
    session.append_message(&serde_json::from_value(answer.clone()).unwrap(), false).unwrap();
    assert_eq!(prepare::tokens(&session), 90_000);
    compact(&mut session, &[(1, 1)], 1).unwrap();
    assert!(prepare::tokens(&session) < 100, "{}", prepare::tokens(&session));
    session.append_message(&serde_json::from_value(answer).unwrap(), false).unwrap();
    assert_eq!(prepare::tokens(&session), 90_000, "the summary is in what was counted since");
}

#[test]
fn one_line_is_a_region_and_none_is_not() {
    let mut session = Session::in_memory(Path::new("/"), Path::new("/"));
    assert!(compact(&mut session, &[(1, 1)], 0).is_none());
    session.append_message(&Message::user("  \n ", 0), false).unwrap();
    assert!(compact(&mut session, &[(1, 1)], 0).is_none(), "nothing is told of blanks");
    session.append_message(&Message::user("x", 0), false).unwrap();
    assert!(compact(&mut session, &[(1, 1)], 9).is_none(), "all of it is tail");
    assert_eq!(compact(&mut session, &[(1, 1)], 0).unwrap().1, "(filtered 1 lines)");
    // Again, and again: a marker is a line like others, and counts for what it stood for.
    assert_eq!(compact(&mut session, &[(1, 1)], 0).unwrap().1, "(filtered 1 lines)");
    assert_eq!(planner::keep_target(1, 0.5, 0), 1);
}

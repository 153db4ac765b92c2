//! Files of other programs' shapes, and random trees: what is read is what was written, and a
//! request made of any branch of it is one a provider takes.

use crate::doubles::assert_paired;
use atomic_agent::{
    message::{Content, Message},
    pairing,
    session::Session,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::{fs, path::PathBuf};

fn file(dir: &tempfile::TempDir, lines: &[String]) -> PathBuf {
    let path = dir.path().join("s.jsonl");
    fs::write(&path, lines.join("\n") + "\n").unwrap();
    path
}

fn header() -> String {
    json!({"type": "session", "version": 3, "id": "sample", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/x"})
        .to_string()
}

#[test]
fn lines_of_other_programs_are_read_and_stay_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let long = "y".repeat(3_000_000);
    let lines = [
        header(),
        json!({"type": "message", "id": "00000001", "parentId": null, "timestamp": "t",
            "message": {"role": "user", "content": "line\u{2028}separator", "timestamp": 1}})
        .to_string(),
        json!({"type": "message", "id": "00000002", "parentId": "00000001", "timestamp": "t",
            "message": {"role": "bashExecution", "command": "ls", "output": "a\nb", "exitCode": 0,
                "cancelled": false, "truncated": false, "timestamp": 2}})
        .to_string(),
        json!({"type": "context_compaction", "id": "00000003", "parentId": "00000002", "timestamp": "t",
            "payload": {"old": true}})
        .to_string(),
        json!({"type": "message", "id": "00000004", "parentId": "00000003", "timestamp": "t",
            "message": {"role": "assistant", "content": [{"type": "text", "text": long}],
                "api": "a", "provider": "p", "model": "m", "stopReason": "stop", "timestamp": 3,
                "usage": {"input": 1, "output": 2, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 3,
                    "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0.5}}}})
        .to_string(),
        json!({"type": "usage", "id": "00000005", "parentId": "00000004", "timestamp": "t",
            "kind": "summary", "provider": "p", "model": "m", "usage": {"input": 7, "cost": {"total": 0.25}}})
        .to_string(),
        json!({"type": "session_summary", "id": "00000006", "parentId": "00000005", "timestamp": "t",
            "summary": "about lines", "summarizedThroughId": "00000005"})
        .to_string(),
        json!({"type": "tomorrow", "id": "00000007", "parentId": "00000006", "timestamp": "t", "x": [1.5]})
            .to_string(),
    ];
    // With a byte order mark and the other line ends.
    let path = dir.path().join("s.jsonl");
    let text = format!("\u{feff}{}\r\n", lines.join("\r\n"));
    fs::write(&path, &text).unwrap();
    let mut session = Session::open(&path, dir.path()).unwrap();
    assert!(session.notices().is_empty(), "{:?}", session.notices());
    assert_eq!(session.entries().len(), 7);
    let sent = pairing::for_model(session.messages());
    assert_eq!(sent.len(), 3);
    let Message::User(first) = &sent[0] else { panic!() };
    assert_eq!(first.content.plain_text(), "line\u{2028}separator");
    let stats = atomic_agent::session::stats(&session);
    assert_eq!((&stats["cost"], &stats["tokens"]["input"]), (&json!(0.75), &json!(8)));
    session.append_message(&Message::user("on", 4), false).unwrap();
    drop(session);
    assert!(fs::read_to_string(&path).unwrap().starts_with(&text), "a line was rewritten");
}

#[test]
fn b62_a_call_saved_with_null_arguments_is_loaded_forked_and_sent_as_none() {
    let dir = tempfile::tempdir().unwrap();
    let lines = [
        header(),
        json!({"type": "message", "id": "a", "parentId": null, "timestamp": "t",
            "message": {"role": "user", "content": "go", "timestamp": 1}})
        .to_string(),
        json!({"type": "message", "id": "b", "parentId": "a", "timestamp": "t",
            "message": {"role": "assistant", "stopReason": "length", "provider": "p", "model": "m", "api": "x",
                "timestamp": 2, "content": [
                    {"type": "toolCall", "id": "c1", "name": "bash", "arguments": null, "partialJson": "{\"co"},
                    {"type": "toolCall", "id": "c2", "name": "bash"}]}})
        .to_string(),
    ];
    let path = file(&dir, &lines);
    let mut session = Session::open(&path, dir.path()).unwrap();
    assert_paired(&pairing::for_model(session.messages()));
    session.nodes();
    session.move_leaf(Some("a")).unwrap();
    session.move_leaf(Some("b")).unwrap();
    let copy = session.copy_to(dir.path(), &dir.path().join("copies")).unwrap();
    assert_eq!(copy.entries().len(), 2);
}

#[test]
fn b58_what_is_on_a_branch_that_was_left_is_not_on_the_branch() {
    let dir = tempfile::tempdir().unwrap();
    let mut session = Session::create(dir.path(), &dir.path().join("s"), None);
    session.append_message(&Message::user("go", 1), false).unwrap();
    let counter = |n: i64| {
        Map::from_iter([("customType".to_owned(), "n".into()), ("data".to_owned(), json!({"n": n}))])
    };
    let first = session.append("custom", counter(1)).unwrap();
    session.append("custom", counter(2)).unwrap();
    session.move_leaf(first["id"].as_str()).unwrap();
    session.append_message(&Message::user("another way", 2), false).unwrap();
    let path = session.file().unwrap().to_owned();
    session.close();
    let session = Session::open(&path, dir.path()).unwrap();
    let last = session.path().into_iter().rfind(|e| e.kind() == "custom").unwrap().raw();
    assert_eq!(last["data"]["n"], 1);
}

/// What a tree is made of.
#[derive(Clone, Debug)]
enum Step {
    User(String),
    Calls(usize),
    Result(usize),
    Custom(bool),
    Edit(usize, bool),
    Label(usize, bool),
    Back(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        ".{0,20}".prop_map(Step::User),
        (0usize..4).prop_map(Step::Calls),
        (0usize..4).prop_map(Step::Result),
        any::<bool>().prop_map(Step::Custom),
        (any::<usize>(), any::<bool>()).prop_map(|(n, b)| Step::Edit(n, b)),
        (any::<usize>(), any::<bool>()).prop_map(|(n, b)| Step::Label(n, b)),
        any::<usize>().prop_map(Step::Back),
    ]
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

fn take(session: &mut Session, step: &Step) {
    let some = |session: &Session, n: usize| {
        let all = session.entries();
        (!all.is_empty()).then(|| all[n % all.len()].id().to_owned())
    };
    match step {
        Step::User(text) => drop(session.append_message(&Message::user(text.clone(), 1), false).unwrap()),
        Step::Calls(n) => {
            let calls: Vec<Value> = (0..*n)
                .map(|i| json!({"type": "toolCall", "id": format!("c{i}"), "name": "bash", "arguments": {"command": "x"}}))
                .collect();
            let mut content = vec![json!({"type": "text", "text": "so"})];
            content.extend(calls);
            let message = json!({"role": "assistant", "content": content, "api": "a", "provider": "p",
                "model": "m", "stopReason": "toolUse", "timestamp": 2});
            session.append_message(&serde_json::from_value(message).unwrap(), false).unwrap();
        }
        Step::Result(n) => {
            let message = json!({"role": "toolResult", "toolCallId": format!("c{n}"), "toolName": "bash",
                "content": [{"type": "text", "text": "done"}], "isError": false, "timestamp": 3});
            session.append_message(&serde_json::from_value(message).unwrap(), false).unwrap();
        }
        Step::Custom(hidden) => {
            let fields = object(
                json!({"customType": "c", "content": "note", "display": true, "excludeFromContext": hidden}),
            );
            session.append("custom_message", fields).unwrap();
        }
        Step::Edit(n, removes) => {
            let Some(target) = some(session, *n) else { return };
            let replacement = if *removes { Value::Null } else { json!({"content": "edited"}) };
            session
                .append("context_edit", object(json!({"targetId": target, "replacement": replacement})))
                .unwrap();
        }
        Step::Label(n, clears) => {
            let Some(target) = some(session, *n) else { return };
            let fields =
                if *clears { json!({"targetId": target}) } else { json!({"targetId": target, "label": "l"}) };
            session.append("label", object(fields)).unwrap();
        }
        Step::Back(n) => {
            let to = some(session, *n);
            session.move_leaf(to.as_deref()).unwrap();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn random_trees_come_back_as_they_were_and_every_branch_makes_a_request(
        steps in prop::collection::vec(step(), 1..40),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut session = Session::create(dir.path(), &dir.path().join("s"), None);
        take(&mut session, &Step::User("begin".into()));
        for step in &steps {
            take(&mut session, step);
        }
        let nodes = session.nodes();
        let all: Vec<String> = session.entries().iter().map(|e| e.text().to_owned()).collect();
        prop_assert_eq!(nodes.len(), session.entries().iter().filter(|e| e.kind() != "label").count());
        let path = session.file().unwrap().to_owned();
        session.close();
        let mut again = Session::open(&path, dir.path()).unwrap();
        prop_assert!(again.notices().is_empty());
        let read: Vec<String> = again.entries().iter().map(|e| e.text().to_owned()).collect();
        prop_assert_eq!(read, all);
        let ids: Vec<String> = again.entries().iter().map(|e| e.id().to_owned()).collect();
        for id in &ids {
            again.move_leaf(Some(id)).unwrap();
            assert_paired(&pairing::for_model(again.messages()));
            for message in again.messages() {
                if let Message::Assistant(m) = &message {
                    prop_assert!(m.content.iter().all(|c| !matches!(c, Content::Text(t) if t.text.is_empty())));
                }
            }
        }
        // A fork of any place is a session of its own, with the same branch.
        let at = ids[steps.len() % ids.len()].clone();
        let fork = again.fork(dir.path(), Some(&at)).unwrap();
        again.move_leaf(Some(&at)).unwrap();
        let branch = |s: &Session| -> Vec<String> {
            s.path().iter().filter(|e| e.kind() != "label").map(|e| e.id().to_owned()).collect()
        };
        prop_assert_eq!(branch(&fork), branch(&again));
    }

    #[test]
    fn no_bytes_make_opening_panic_or_change_what_is_foreign(bytes in prop::collection::vec(any::<u8>(), 0..400), ours in any::<bool>()) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.jsonl");
        let mut content = if ours { (header() + "\n").into_bytes() } else { Vec::new() };
        content.extend_from_slice(&bytes);
        fs::write(&path, &content).unwrap();
        match Session::open(&path, dir.path()) {
            Ok(mut session) => { session.append_message(&Message::user("hi", 1), false).unwrap(); }
            Err(_) => prop_assert_eq!(fs::read(&path).unwrap(), content),
        }
    }
}

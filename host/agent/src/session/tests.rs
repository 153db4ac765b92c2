//! The store on disk: what it writes, what it refuses, what it mends.

use super::*;
use crate::model::ThinkingLevel;
use std::fs;

fn place() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let sessions = dir.path().join("sessions");
    (dir, sessions)
}

fn text_entry(text: &str) -> Message {
    Message::user(text, 1)
}

/// A written session of two messages, and its path.
fn written(cwd: &Path, dir: &Path) -> PathBuf {
    let mut session = Session::create(cwd, dir, None);
    session.append_message(&text_entry("one"), false).unwrap();
    session.append_message(&text_entry("two"), false).unwrap();
    session.file().unwrap().to_owned()
}

fn texts(session: &Session) -> Vec<String> {
    let text = |m: &Message| match m {
        Message::User(m) => m.content.plain_text(),
        Message::Custom(m) => m.content.plain_text(),
        other => other.role().to_owned(),
    };
    session.context().messages.iter().map(text).collect()
}

#[test]
fn the_file_appears_with_the_first_user_message_and_holds_what_came_before() {
    let (dir, sessions) = place();
    let mut session = Session::create(dir.path(), &sessions, None);
    session.append("custom", Map::new()).unwrap();
    assert!(session.file().is_none() && !sessions.exists(), "written before anything was said");

    session.append_message(&text_entry("hi"), false).unwrap();
    let file = session.file().unwrap();
    let lines: Vec<Value> =
        fs::read_to_string(file).unwrap().lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(
        lines.iter().map(|l| l["type"].as_str().unwrap()).collect::<Vec<_>>(),
        ["session", "custom", "message"]
    );
    assert_eq!(lines[0]["version"], 3);
    assert_eq!(lines[0]["id"], session.id());
    assert_eq!(lines[1]["parentId"], Value::Null);
    assert_eq!(lines[2]["parentId"], lines[1]["id"]);
    let name = file.file_name().unwrap().to_string_lossy();
    let stamp = lines[0]["timestamp"].as_str().unwrap().replace([':', '.'], "-");
    assert_eq!(name, format!("{stamp}_{}.jsonl", session.id()));
}

#[test]
fn directories_are_named_after_the_place_of_work() {
    let dir = default_dir(Path::new("/home/u/.atomic/agent"), Path::new("/src/my:app"));
    assert_eq!(dir, Path::new("/home/u/.atomic/agent/sessions/--src-my-app--"));
}

#[test]
fn a_place_of_work_that_is_too_long_for_a_name_has_a_folder_all_the_same() {
    let (dir, _) = place();
    let long = |end: &str| PathBuf::from(format!("/{}/{}/{end}", "d".repeat(150), "é".repeat(75)));
    let at = |cwd: &Path| default_dir(dir.path(), cwd);
    let (one, two) = (long("one"), long("two"));
    assert_ne!(at(&one), at(&two));
    for cwd in [&one, &two] {
        let mut session = Session::create(cwd, &at(cwd), None);
        session.append_message(&text_entry("hi"), false).unwrap();
    }
    let again = Session::continue_latest(&one, &at(&one)).unwrap();
    assert_eq!(again.cwd(), one.to_str());
    // The longest that fits stays as it is.
    let fits = format!("/{}", "d".repeat(251));
    assert!(at(Path::new(&fits)).ends_with(format!("--{}--", "d".repeat(251))));
}

#[test]
fn unknown_kinds_and_keys_survive_and_no_line_is_rewritten() {
    let (dir, sessions) = place();
    let path = written(dir.path(), &sessions);
    let strange =
        r#"{"type":"hologram","id":"0000beef","parentId":null,"timestamp":"t","deep":{"x":[1.50,null]}}"#;
    let mut before = fs::read_to_string(&path).unwrap();
    before.push_str(strange);
    before.push('\n');
    fs::write(&path, &before).unwrap();

    let mut session = Session::open(&path, dir.path()).unwrap();
    assert_eq!(session.entries().last().unwrap().raw()["deep"]["x"], json!([1.50, null]));
    assert_eq!(session.leaf_id(), Some("0000beef"), "the leaf is the last entry in file order");
    session.append_message(&text_entry("three"), false).unwrap();
    assert!(fs::read_to_string(&path).unwrap().starts_with(&before));
}

#[test]
fn a_torn_last_line_is_set_aside_and_the_next_entry_starts_on_its_own_line() {
    let (dir, sessions) = place();
    let path = written(dir.path(), &sessions);
    let whole = fs::read_to_string(&path).unwrap();
    let torn = "{\"type\":\"message\",\"id\":\"00000001\",\"mess\u{0}";
    fs::write(&path, format!("{whole}{torn}")).unwrap();

    let mut session = Session::open(&path, dir.path()).unwrap();
    assert_eq!(texts(&session), ["one", "two"]);
    assert!(session.notices()[0].contains(".torn-"), "{:?}", session.notices());
    let aside = fs::read_dir(&sessions).unwrap().flatten().map(|e| e.path());
    let aside = aside.into_iter().find(|p| p.to_string_lossy().contains(".jsonl.torn-")).unwrap();
    assert_eq!(fs::read_to_string(aside).unwrap(), torn);

    session.append_message(&text_entry("three"), false).unwrap();
    drop(session);
    let now = fs::read_to_string(&path).unwrap();
    assert!(now.starts_with(&whole));
    assert_eq!(now.lines().count(), whole.lines().count() + 1);
    assert_eq!(texts(&Session::open(&path, dir.path()).unwrap()), ["one", "two", "three"]);
}

#[test]
fn a_whole_last_line_without_its_end_is_an_entry() {
    let (dir, sessions) = place();
    let path = written(dir.path(), &sessions);
    let whole = fs::read_to_string(&path).unwrap();
    fs::write(&path, whole.trim_end()).unwrap();
    let mut session = Session::open(&path, dir.path()).unwrap();
    session.append_message(&text_entry("three"), false).unwrap();
    drop(session);
    assert_eq!(texts(&Session::open(&path, dir.path()).unwrap()), ["one", "two", "three"]);
}

#[test]
fn malformed_lines_are_skipped_and_stay() {
    let (dir, sessions) = place();
    let path = written(dir.path(), &sessions);
    let mut bytes = fs::read(&path).unwrap();
    bytes.extend_from_slice(b"\xff\xfe not json\n[1,2]\n{\"type\":\"message\"}\n\n");
    fs::write(&path, &bytes).unwrap();
    let mut session = Session::open(&path, dir.path()).unwrap();
    assert_eq!(texts(&session), ["one", "two"]);
    assert!(session.notices()[0].starts_with("3 unreadable"), "{:?}", session.notices());
    session.append_message(&text_entry("three"), false).unwrap();
    assert!(fs::read(&path).unwrap().starts_with(&bytes));
}

#[test]
fn b76_foreign_and_newer_files_are_refused_with_their_bytes_untouched() {
    let (dir, _) = place();
    let path = dir.path().join("x.jsonl");
    for (content, code) in [
        ("hello\n", "session_foreign"),
        ("{\"type\":\"message\"}\n", "session_foreign"),
        ("{\"type\":\"session\",\"version\":3}\n", "session_foreign"),
        ("{\"type\":\"session\",\"version\":4,\"id\":\"a\"}\nx", "session_too_new"),
        ("version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 9\n", "session_foreign"),
        ("{\n  \"type\": \"session\",\n  \"id\": \"a\"\n}\n", "session_foreign"),
        ("{\"type\":\"session\",\"version\":\"three\",\"id\":\"a\"}\n", "session_foreign"),
        ("{\"type\":\"session\",\"version\":3,\"id\":\"../a\"}\n", "session_foreign"),
        ("{\"type\":\"user\",\"sessionId\":\"a\",\"message\":{\"role\":\"user\"}}\n", "session_foreign"),
    ] {
        fs::write(&path, content).unwrap();
        let Err(e) = Session::open(&path, dir.path()) else { panic!("{content} was opened") };
        assert_eq!(e.code(), code, "{content}");
        assert!(e.to_string().contains("x.jsonl"), "{e}");
        assert_eq!(fs::read_to_string(&path).unwrap(), content);
    }
}

#[test]
fn an_empty_file_becomes_a_session_in_its_place() {
    let (dir, _) = place();
    let path = dir.path().join("empty.jsonl");
    fs::write(&path, "").unwrap();
    let mut session = Session::open(&path, dir.path()).unwrap();
    session.append_message(&text_entry("hi"), false).unwrap();
    drop(session);
    assert_eq!(texts(&Session::open(&path, dir.path()).unwrap()), ["hi"]);
}

#[test]
fn a_second_opener_is_told_that_the_file_is_in_use() {
    let (dir, sessions) = place();
    let path = written(dir.path(), &sessions);
    let first = Session::open(&path, dir.path()).unwrap();
    let Err(e) = Session::open(&path, dir.path()) else { panic!("opened twice") };
    assert_eq!(e.code(), "session_locked");
    assert!(e.to_string().contains("in use"), "{e}");
    drop(first);
    Session::open(&path, dir.path()).unwrap();
}

#[test]
fn a_write_that_fails_leaves_neither_an_entry_nor_half_a_line() {
    let (dir, _) = place();
    // No directory can be made below a file.
    let blocked = dir.path().join("a-file");
    fs::write(&blocked, "").unwrap();
    let mut session = Session::create(dir.path(), &blocked.join("sessions"), None);
    let e = session.append_message(&text_entry("hi"), false).unwrap_err();
    assert_eq!(e.code(), "session_io");
    assert!(session.entries().is_empty() && session.leaf_id().is_none());
}

#[test]
fn the_latest_session_of_this_place_is_continued_and_hidden_ones_are_not() {
    let (dir, sessions) = place();
    let old = written(dir.path(), &sessions);
    let elsewhere = written(Path::new("/elsewhere"), &sessions);
    let hidden = sessions.join("z.jsonl");
    let header = json!({"type": "session", "version": 3, "id": "a", "cwd": dir.path(), "internal": true});
    fs::write(&hidden, format!("{header}\n")).unwrap();
    fs::write(sessions.join("zz.jsonl"), "not a session").unwrap();
    assert_ne!(old, elsewhere);

    let session = Session::continue_latest(dir.path(), &sessions).unwrap();
    assert_eq!(session.file(), Some(old.as_path()));
    drop(session);
    let nothing = Session::continue_latest(Path::new("/nowhere"), &sessions).unwrap();
    assert!(nothing.file().is_none());
}

#[test]
fn in_memory_nothing_is_written() {
    let (dir, sessions) = place();
    let mut session = Session::in_memory(dir.path(), &sessions);
    session.append_message(&text_entry("hi"), false).unwrap();
    assert_eq!(texts(&session), ["hi"]);
    assert!(!sessions.exists());
}

#[test]
fn a_summary_stands_for_what_is_older_than_its_kept_tail() {
    let (dir, sessions) = place();
    let mut session = Session::in_memory(dir.path(), &sessions);
    session.append_message(&text_entry("old"), false).unwrap();
    let kept = session.append_message(&text_entry("kept"), false).unwrap();
    let inert = json!({"details": {"x": 1}, "firstKeptEntryId": null}).as_object().unwrap().clone();
    session.append("compaction", inert).unwrap();
    assert_eq!(texts(&session), ["old", "kept"], "an entry without a summary is history");

    let fields = json!({"summary": "they met", "firstKeptEntryId": kept["id"], "tokensBefore": 1});
    session.append("compaction", fields.as_object().unwrap().clone()).unwrap();
    session.append_message(&text_entry("new"), false).unwrap();
    let got = texts(&session);
    assert!(got[0].ends_with("they met"), "{got:?}");
    assert_eq!(got[1..], ["kept", "new"]);
}

#[test]
fn edits_and_exclusions_change_the_context_and_not_the_entries() {
    let (dir, sessions) = place();
    let mut session = Session::in_memory(dir.path(), &sessions);
    let first = session.append_message(&text_entry("first"), false).unwrap();
    let second = session.append_message(&text_entry("second"), false).unwrap();
    for (target, replacement) in [(&first, Value::Null), (&second, json!({"content": "edited"}))] {
        let fields = json!({"targetId": target["id"], "replacement": replacement});
        session.append("context_edit", fields.as_object().unwrap().clone()).unwrap();
    }
    let custom: Message =
        serde_json::from_value(json!({"role": "custom", "customType": "n", "content": "aside"})).unwrap();
    session.append_message(&custom, true).unwrap();
    session.append_message(&custom, false).unwrap();
    let bash = json!({"role": "bashExecution", "command": "ls", "output": "", "excludeFromContext": true});
    session.append_message(&serde_json::from_value(bash).unwrap(), false).unwrap();
    assert_eq!(texts(&session), ["edited", "aside"]);
    assert_eq!(session.entries().len(), 7);
}

#[test]
fn model_and_thinking_are_the_last_ones_on_the_path() {
    let (dir, sessions) = place();
    let mut session = Session::in_memory(dir.path(), &sessions);
    let fields = |v: Value| v.as_object().unwrap().clone();
    session.append("model_change", fields(json!({"provider": "a", "modelId": "1"}))).unwrap();
    session.append("thinking_level_change", fields(json!({"thinkingLevel": "high"}))).unwrap();
    let answer = json!({"role": "assistant", "content": [], "provider": "b", "model": "2"});
    session.append_message(&serde_json::from_value(answer).unwrap(), false).unwrap();
    let context = session.context();
    assert_eq!(context.model, Some(("b".into(), "2".into())));
    assert_eq!(context.thinking, Some(ThinkingLevel::High));
}

#[test]
fn a_loop_of_parents_ends_the_path_and_not_the_program() {
    let (dir, _) = place();
    let path = dir.path().join("loop.jsonl");
    let text = [
        r#"{"type":"session","version":3,"id":"s","timestamp":"t","cwd":"/"}"#,
        r#"{"type":"message","id":"a","parentId":"b","message":{"role":"user","content":"a"}}"#,
        r#"{"type":"message","id":"b","parentId":"a","message":{"role":"user","content":"b"}}"#,
    ];
    fs::write(&path, text.join("\n") + "\n").unwrap();
    assert_eq!(texts(&Session::open(&path, dir.path()).unwrap()), ["a", "b"]);
}

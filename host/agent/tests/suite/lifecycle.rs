//! Another session in the place of this one: what is asked, what is told, what is written.

use crate::doubles::*;
use atomic_agent::{
    event::Event,
    hooks::StartReason,
    message::{Content, Message},
    op::{ForkPosition, Op, SetupEntry},
    session::Session,
};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

fn sha(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap()
}

fn switch(path: &Path) -> Op {
    Op::SwitchSession { path: path.to_owned(), origin: None }
}

/// A session of this rig's folder with one message, closed again.
fn other(rig: &Rig, text: &str) -> PathBuf {
    let mut session = Session::create(rig.dir.path(), &rig.dir.path().join("sessions"), None);
    session.append_message(&Message::user(text, 1), false).unwrap();
    session.file().unwrap().to_owned()
}

fn users(lines: &[Value]) -> Vec<&Value> {
    lines.iter().filter(|l| l["message"]["role"] == "user").collect()
}

fn lifecycle(rig: &Rig) -> Vec<String> {
    let of_it = |l: &String| ["session_", "resources_"].iter().any(|p| l.starts_with(p));
    rig.log.lines().into_iter().filter(of_it).collect()
}

#[tokio::test]
async fn a_session_is_gone_on_with_and_each_side_is_told_of_the_other() {
    let mut rig = build([Step::Text("hello"), Step::Text("again")]).start().await;
    rig.run("in the first").await;
    let first = rig.handle.view(|v| (v.session_id.clone(), v.session_file.clone().unwrap()));
    let path = other(&rig, "said before");
    rig.log.lines.lock().unwrap().clear();

    let answer = rig.handle.request(switch(&path)).await.unwrap();
    assert_eq!(answer, json!({"cancelled": false}));
    rig.until(|e| matches!(e, Event::SessionReady { reason: StartReason::Resume, .. })).await;
    rig.until(|e| matches!(e, Event::Notify { message, .. } if message == "restored")).await;
    assert_eq!(
        lifecycle(&rig),
        [
            "session_before_switch reason=resume",
            "session_shutdown reason=resume",
            "session_start reason=resume",
            "resources_discover reason=startup",
        ]
    );
    assert_eq!(*rig.log.recovered.lock().unwrap(), ["restore startup", "restore resume"]);
    let (target, previous) = rig.log.replaced.lock().unwrap()[0].clone();
    assert_eq!((previous.id, previous.file), (first.0, Some(first.1.clone())));
    assert_eq!(target.file.as_deref(), Some(path.as_path()));
    let asked = rig.log.before.lock().unwrap()[0].clone();
    assert_eq!(asked["targetSessionId"], target.id.as_str());
    assert_eq!(asked["targetSessionFile"], path.to_str().unwrap());

    rig.run("more").await;
    let sent = rig.model.request(1).messages;
    assert_eq!(sent.len(), 2, "what was said there is sent: {sent:?}");
    // The one that was left can be opened by anybody.
    Session::open(&first.1, rig.dir.path()).unwrap();
}

#[tokio::test]
async fn what_cannot_be_opened_leaves_the_session_active_and_nobody_is_asked() {
    let rig = build([Step::Text("hello"), Step::Text("still here")]).start().await;
    rig.run("one").await;
    let foreign = rig.dir.path().join("foreign.jsonl");
    std::fs::write(&foreign, "{\"some\": \"json\"}\n").unwrap();
    let newer = rig.dir.path().join("newer.jsonl");
    std::fs::write(&newer, r#"{"type":"session","version":99,"id":"x","cwd":"/"}"#).unwrap();
    let locked = other(&rig, "held elsewhere");
    let _held = Session::open(&locked, rig.dir.path()).unwrap();
    let id = rig.handle.view(|v| v.session_id.clone());
    for (path, code) in [
        (foreign.clone(), "session_foreign"),
        (newer, "session_too_new"),
        (locked, "session_locked"),
        (rig.dir.path().join("absent.jsonl"), "session_io"),
    ] {
        let before = std::fs::read(&path).ok();
        assert_eq!(rig.handle.request(switch(&path)).await.unwrap_err().code, code);
        assert_eq!(std::fs::read(&path).ok(), before, "{code}");
    }
    assert_eq!(rig.handle.view(|v| v.session_id.clone()), id);
    assert_eq!(rig.log.count("session_shutdown"), 0);
    rig.run("two").await;
    assert_eq!(rig.model.request(1).messages.len(), 3);
}

#[tokio::test]
async fn a_handler_keeps_the_session_and_a_run_goes_on() {
    let mut rig = build([Step::UntilAborted("…")]).log(|l| l.stays = true).start().await;
    rig.prompt("go").await.unwrap();
    rig.model.speaking.notified().await;
    let path = other(&rig, "elsewhere");
    let user = rig.handle.view(|v| v.entries.iter().find(|e| e.role() == Some("user")).cloned());
    let id = user.unwrap().id().to_owned();
    let fork = Op::Fork { entry_id: id, position: ForkPosition::Before, origin: None };
    for op in [switch(&path), fork, Op::Clone { origin: None }] {
        assert_eq!(rig.handle.request(op).await.unwrap(), json!({"cancelled": true}));
    }
    assert!(!rig.handle.view(|v| v.idle), "the run was ended");
    assert_eq!(rig.log.count("session_shutdown"), 0);
    rig.handle.request(Op::Abort).await.unwrap();
    rig.idle().await;
    // Nothing was left behind by what did not happen.
    let files = std::fs::read_dir(rig.dir.path().join("sessions")).unwrap().count();
    assert_eq!(files, 2);
    rig.quit().await;
}

#[tokio::test]
async fn b56_a_fork_before_a_message_is_a_file_of_its_own_and_the_parent_is_untouched() {
    let mut rig = build([Step::Text("1"), Step::Text("2"), Step::Text("3"), Step::Text("4")]).start().await;
    for text in ["first", "second", "third"] {
        rig.run(text).await;
    }
    let parent = rig.handle.view(|v| v.session_file.clone()).unwrap();
    let (bytes, lines) = (sha(&parent), rig.file());
    let second = users(&lines)[1]["id"].as_str().unwrap().to_owned();
    rig.log.lines.lock().unwrap().clear();

    let op = Op::Fork { entry_id: second, position: ForkPosition::Before, origin: None };
    let answer = rig.handle.request(op).await.unwrap();
    assert_eq!(answer, json!({"cancelled": false, "text": "second"}));
    rig.until(|e| matches!(e, Event::SessionReady { reason: StartReason::Fork, .. })).await;
    assert_eq!(
        lifecycle(&rig),
        [
            "session_before_fork position=before",
            "session_shutdown reason=fork",
            "session_start reason=fork",
            "resources_discover reason=startup",
        ]
    );
    let (target, previous) = rig.log.replaced.lock().unwrap()[0].clone();
    assert_eq!(previous.file.as_ref(), Some(&parent));
    assert_eq!(target.file, rig.handle.view(|v| v.session_file.clone()));

    let child = rig.file();
    assert_eq!(child.iter().filter(|l| l["type"] == "session").count(), 1);
    assert_eq!(child[0]["parentSession"], parent.to_str().unwrap());
    assert_eq!(users(&child).len(), 1);
    assert_eq!(child[1..], lines[1..child.len()], "the entries are the parent's");
    rig.run("another second").await;
    assert_eq!(sha(&parent), bytes, "the parent was written");
    let child = rig.file();
    let said: Vec<&str> =
        users(&child).iter().map(|l| l["message"]["content"][0]["text"].as_str().unwrap()).collect();
    assert_eq!(said, ["first", "another second"]);
}

#[tokio::test]
async fn b56_a_clone_before_any_answer_has_the_first_message_and_a_fork_of_it_waits_for_one() {
    let mut rig = build([Step::UntilAborted("…"), Step::Text("hello")]).start().await;
    let refused = rig.handle.request(Op::Clone { origin: None }).await.unwrap_err();
    assert_eq!(refused.code, "session_unsaved");
    rig.prompt("go").await.unwrap();
    rig.model.speaking.notified().await;
    let parent = rig.handle.view(|v| v.session_file.clone()).unwrap();
    let first = users(&rig.file())[0]["id"].as_str().unwrap().to_owned();

    assert_eq!(rig.handle.request(Op::Clone { origin: None }).await.unwrap(), json!({"cancelled": false}));
    rig.until(|e| matches!(e, Event::SessionReady { reason: StartReason::Fork, .. })).await;
    assert_eq!(rig.log.count("agent_settled"), 1, "the run was ended first");
    let child = rig.file();
    assert_eq!(child.iter().filter(|l| l["type"] == "session").count(), 1);
    assert_eq!((users(&child).len(), &child[0]["parentSession"]), (1, &json!(parent.to_str().unwrap())));

    // Before the very first message there is nothing to write yet.
    let op = Op::Fork { entry_id: first, position: ForkPosition::Before, origin: None };
    assert_eq!(rig.handle.request(op).await.unwrap()["text"], "go");
    assert_eq!(rig.handle.view(|v| v.session_file.clone()), None);
    rig.run("go, then").await;
    assert_eq!(users(&rig.file()).len(), 1);
}

#[tokio::test]
async fn only_a_message_of_the_user_can_be_forked_before() {
    let rig = build([Step::Text("hello")]).start().await;
    rig.run("hi").await;
    let lines = rig.file();
    let answer = lines.iter().find(|l| l["message"]["role"] == "assistant").unwrap();
    for id in ["nothing", answer["id"].as_str().unwrap()] {
        let op = Op::Fork { entry_id: id.into(), position: ForkPosition::Before, origin: None };
        let refused = rig.handle.request(op).await.unwrap_err();
        assert_eq!(refused.code, "invalid_fork_entry");
        assert!(refused.message.starts_with("Invalid entry ID for forking"), "{}", refused.message);
    }
    assert_eq!(rig.log.count("session_before_fork"), 0);
}

#[tokio::test]
async fn labels_of_what_is_copied_come_along_and_what_hung_under_them_hangs_together() {
    let mut rig = build([Step::Text("1"), Step::Text("2")]).start().await;
    rig.run("first").await;
    let id = users(&rig.file())[0]["id"].as_str().unwrap().to_owned();
    for label in ["old", "new"] {
        let op = Op::SetLabel { entry_id: id.clone(), label: Some(label.into()) };
        rig.handle.request(op).await.unwrap();
    }
    rig.run("second").await;
    rig.handle.request(Op::Clone { origin: None }).await.unwrap();
    rig.until(|e| matches!(e, Event::SessionReady { reason: StartReason::Fork, .. })).await;
    let child = rig.file();
    let labels: Vec<_> = child.iter().filter(|l| l["type"] == "label").collect();
    assert_eq!(labels.len(), 1);
    assert_eq!((&labels[0]["targetId"], &labels[0]["label"]), (&json!(id), &json!("new")));
    let mut above = Value::Null;
    for entry in &child[1..] {
        assert_eq!(entry["parentId"], above, "{entry}");
        above = entry["id"].clone();
    }
}

#[tokio::test]
async fn a_new_session_holds_what_was_set_up_before_it_starts() {
    let rig = build([Step::Text("hello")]).start().await;
    let setup = vec![
        SetupEntry::SessionInfo { name: "planned".into() },
        SetupEntry::Custom { custom_type: "state".into(), data: Some(json!({"n": 1})) },
        serde_json::from_value(json!({
            "type": "custom_message", "customType": "note", "content": "remember this", "display": true,
        }))
        .unwrap(),
    ];
    rig.handle.request(Op::NewSession { parent_session: None, origin: None, setup }).await.unwrap();
    assert_eq!(rig.handle.view(|v| v.session_name.clone()).as_deref(), Some("planned"));
    assert_eq!(rig.handle.view(|v| v.session_file.clone()), None, "nothing was said yet");
    rig.run("hi").await;
    let Message::User(first) = &rig.model.request(0).messages[0] else { panic!() };
    assert_eq!(first.content.plain_text(), "remember this");
    assert!(rig.file().iter().any(|l| l["customType"] == "state" && l["data"] == json!({"n": 1})));
}

#[tokio::test]
async fn an_imported_file_is_a_session_of_this_folder_and_stays_where_it_was() {
    let mut rig = build([Step::Text("hello")]).start().await;
    let away = tempfile::tempdir().unwrap();
    let mut theirs = Session::create(Path::new("/somewhere/else"), away.path(), None);
    theirs.append_message(&Message::user("theirs", 1), false).unwrap();
    let path = theirs.file().unwrap().to_owned();
    drop(theirs);
    let bytes = sha(&path);

    let import = Op::ImportSession { path: path.clone(), origin: None };
    assert_eq!(rig.handle.request(import.clone()).await.unwrap(), json!({"cancelled": false}));
    rig.until(|e| matches!(e, Event::SessionReady { reason: StartReason::Resume, .. })).await;
    let lines = rig.file();
    assert_eq!(lines[0]["cwd"], rig.dir.path().to_str().unwrap());
    assert!(rig.handle.view(|v| v.session_file.clone()).unwrap().starts_with(rig.dir.path()));
    assert_eq!(users(&lines).len(), 1);
    // Once more is another session, not the same file twice.
    let id = lines[0]["id"].clone();
    rig.handle.request(import).await.unwrap();
    assert_ne!(rig.file()[0]["id"], id);
    assert_eq!(sha(&path), bytes);

    let nothing = rig.dir.path().join("transcript.json");
    std::fs::write(&nothing, "[]").unwrap();
    let refused = rig.handle.request(Op::ImportSession { path: nothing, origin: None }).await.unwrap_err();
    assert_eq!(refused.code, "session_foreign");
}

#[tokio::test]
async fn a_session_goes_on_with_the_model_and_the_thinking_it_says() {
    let rig = build([Step::Text("hello")]).start().await;
    rig.run("hi").await;
    let path = other(&rig, "with another model");
    {
        let mut session = Session::open(&path, rig.dir.path()).unwrap();
        let fields = |v: Value| v.as_object().unwrap().clone();
        session.append("model_change", fields(json!({"provider": "p", "modelId": "m"}))).unwrap();
        session.append("thinking_level_change", fields(json!({"thinkingLevel": "high"}))).unwrap();
    }
    let before = std::fs::read_to_string(&path).unwrap();
    rig.handle.request(switch(&path)).await.unwrap();
    assert_eq!(rig.handle.view(|v| v.thinking.name()), "high");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), before, "it says so already");
}

#[tokio::test]
async fn lists_numbers_and_what_can_be_forked_are_answers() {
    let rig = build([Step::Calls(vec![call("a", "echo x")]), Step::Text("hello")]).start().await;
    rig.run("first words").await;
    other(&rig, "another");
    let list = |search: Option<&str>| Op::ListSessions {
        all: false,
        search: search.map(str::to_owned),
        offset: 0,
        limit: 10,
    };
    let page = rig.handle.request(list(None)).await.unwrap();
    assert_eq!(page["total"], 2);
    let current: Vec<&Value> =
        page["sessions"].as_array().unwrap().iter().filter(|s| s["current"] == true).collect();
    assert_eq!(current.len(), 1);
    assert_eq!(current[0]["firstMessage"], "first words");
    let found = rig.handle.request(list(Some("ANOTHER"))).await.unwrap();
    assert_eq!(found["total"], 1);

    let stats = rig.handle.request(Op::SessionStats).await.unwrap();
    for (key, n) in
        [("userMessages", 1), ("assistantMessages", 2), ("toolCalls", 1), ("toolResults", 1), ("branches", 1)]
    {
        assert_eq!(stats[key], n, "{key} of {stats}");
    }
    let forks = rig.handle.request(Op::ForkMessages).await.unwrap();
    assert_eq!(forks["messages"][0]["text"], "first words");
    let entries = rig.handle.request(Op::SessionEntries { since: None }).await.unwrap();
    let all = entries["entries"].as_array().unwrap();
    let since = Op::SessionEntries { since: all[0]["id"].as_str().map(str::to_owned) };
    let later = rig.handle.request(since).await.unwrap();
    assert_eq!(later["entries"].as_array().unwrap()[..], all[1..]);
    let shown = rig.handle.request(Op::SessionMessages).await.unwrap();
    let roles: Vec<&str> =
        shown["messages"].as_array().unwrap().iter().map(|m| m["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "toolResult", "assistant"]);
    let last: Content = serde_json::from_value(shown["messages"][3]["content"][0].clone()).unwrap();
    assert_eq!(last, Content::text("hello"));
}

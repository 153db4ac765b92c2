//! `/tree`: going back in a session, what is asked, what is kept of the branch that is left.

use crate::doubles::*;
use atomic_agent::{event::Event, message::Message, op::Op, recovery::RecoverySettings, session::Session};
use serde_json::{Map, Value, json};

fn to(id: &str) -> Op {
    Op::NavigateTree {
        target_id: id.into(),
        summarize: false,
        custom_instructions: None,
        replace_instructions: false,
        label: None,
    }
}

fn with_summary(id: &str) -> Op {
    match to(id) {
        Op::NavigateTree { target_id, custom_instructions, replace_instructions, label, .. } => {
            Op::NavigateTree { target_id, summarize: true, custom_instructions, replace_instructions, label }
        }
        other => other,
    }
}

fn id(line: &Value) -> String {
    line["id"].as_str().unwrap().to_owned()
}

fn of_role(lines: &[Value], role: &str, n: usize) -> String {
    id(lines.iter().filter(|l| l["message"]["role"] == role).nth(n).unwrap())
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

/// Two turns.
async fn rig(more: impl IntoIterator<Item = Step>) -> Rig {
    let steps = [Step::Text("one"), Step::Text("two")].into_iter().chain(more);
    let soon = RecoverySettings { base_delay: std::time::Duration::from_millis(1), ..Default::default() };
    let rig = Build { recovery: soon, ..build(steps) }.start().await;
    rig.run("first").await;
    rig.run("second").await;
    // What was said until here is not what a test waits for.
    rig.model.speaking.notified().await;
    rig
}

#[tokio::test]
async fn going_back_to_a_message_gives_its_text_back_and_the_next_one_is_a_branch() {
    let mut rig = rig([Step::Text("three")]).await;
    let lines = rig.file();
    let second = of_role(&lines, "user", 1);
    let answer = rig.handle.request(to(&second)).await.unwrap();
    assert_eq!(answer, json!({"cancelled": false, "editorText": "second"}));
    rig.until(|e| matches!(e, Event::TreeMoved { editor_text: Some(t), .. } if t == "second")).await;
    assert_eq!(rig.handle.view(|v| v.leaf_id.clone()), Some(of_role(&lines, "assistant", 0)));
    assert_eq!(rig.file(), lines, "moving writes nothing");
    let before = rig.log.before.lock().unwrap().last().cloned().unwrap();
    let preparation = &before["preparation"];
    assert_eq!(preparation["targetId"], second.as_str());
    assert_eq!(preparation["userWantsSummary"], false);
    assert_eq!(preparation["entriesToSummarize"].as_array().unwrap().len(), 1);
    assert_eq!(rig.log.count("SessionTree"), 1);

    rig.run("another second").await;
    let sent = rig.model.request(2).messages;
    assert_eq!(said_by_user(&sent), ["first", "another second"]);
    let stats = rig.handle.request(Op::SessionStats).await.unwrap();
    assert_eq!((&stats["branches"], &stats["userMessages"]), (&json!(2), &json!(3)));
    let tree = rig.handle.request(Op::SessionTree).await.unwrap();
    let node =
        |text: &str| tree["nodes"].as_array().unwrap().iter().find(|n| n["text"] == text).cloned().unwrap();
    assert_eq!((&node("second")["onPath"], &node("second")["depth"]), (&json!(false), &json!(1)));
    assert_eq!((&node("another second")["onPath"], &node("first")["depth"]), (&json!(true), &json!(0)));
    // The file says it all: whoever opens it is on the new branch.
    let path = rig.handle.view(|v| v.session_file.clone()).unwrap();
    rig.quit().await;
    let opened = Session::open(&path, rig.dir.path()).unwrap();
    assert_eq!(opened.fork_messages().len(), 2);
}

#[tokio::test]
async fn the_place_where_the_session_is_is_no_move_and_nobody_is_asked() {
    let rig = rig([]).await;
    let leaf = rig.handle.view(|v| v.leaf_id.clone()).unwrap();
    assert_eq!(rig.handle.request(to(&leaf)).await.unwrap(), json!({"cancelled": false}));
    assert_eq!(rig.log.count("session_before_tree"), 0);
    assert_eq!(rig.handle.request(to("nowhere")).await.unwrap_err().code, "unknown_entry");
}

#[tokio::test]
async fn the_root_can_be_gone_back_before() {
    let dir = tempfile::tempdir().unwrap();
    let mut session = Session::create(dir.path(), &dir.path().join("sessions"), None);
    session.append_message(&Message::user("the very first", 1), false).unwrap();
    let root = session.leaf_id().unwrap().to_owned();
    let rig = build([Step::Text("hello")]).start_with(session, dir).await;
    let answer = rig.handle.request(to(&root)).await.unwrap();
    assert_eq!(answer["editorText"], "the very first");
    assert_eq!(rig.handle.view(|v| v.leaf_id.clone()), None);
    rig.run("anew").await;
    let lines = rig.file();
    assert_eq!(lines.iter().filter(|l| l["parentId"].is_null() && l["type"] != "session").count(), 2);
}

#[tokio::test]
async fn b57_a_handler_that_cancels_leaves_all_as_it_was_and_what_was_typed_is_sent() {
    let mut rig = build([Step::Text("one"), Step::Text("two")]).log(|l| l.stays = true).start().await;
    rig.run("first").await;
    let first = of_role(&rig.file(), "user", 0);
    let leaf = rig.handle.view(|v| v.leaf_id.clone());
    // A message comes while the handler is asked.
    let prompt = Op::Prompt {
        text: "typed meanwhile".into(),
        images: vec![],
        streaming_behavior: None,
        source: atomic_agent::hooks::InputSource::Interactive,
    };
    let handle = rig.handle.clone();
    let navigated = handle.ask(with_summary(&first));
    let said = handle.ask(prompt);
    assert_eq!(navigated.await.unwrap(), json!({"cancelled": true}));
    assert_eq!(said.await.unwrap()["disposition"], "started");
    rig.idle().await;
    assert_eq!(rig.model.request(1).messages.len(), 3, "the branch is the one that was there");
    assert_ne!(rig.handle.view(|v| v.leaf_id.clone()), leaf);
    assert!(!rig.told().iter().any(|e| matches!(**e, Event::TreeMoved { .. })));
    // And it is no longer on its way anywhere.
    assert_eq!(rig.handle.request(to(&first)).await.unwrap(), json!({"cancelled": true}));
}

#[tokio::test]
async fn while_a_run_goes_on_nothing_is_gone_back_in() {
    let mut rig = build([Step::Text("one"), Step::UntilAborted("…")]).start().await;
    rig.run("first").await;
    let first = of_role(&rig.file(), "user", 0);
    rig.prompt("go").await.unwrap();
    rig.model.speaking.notified().await;
    assert_eq!(rig.handle.request(to(&first)).await.unwrap_err().code, "busy");
    rig.quit().await;
}

#[tokio::test]
async fn a_summary_of_the_model_is_an_entry_of_the_new_branch_and_is_sent() {
    let summary = "## Goal\nNothing yet.";
    let rig = rig([Step::Text(summary), Step::Text("three")]).await;
    let lines = rig.file();
    let first_answer = of_role(&lines, "assistant", 0);
    let op = Op::NavigateTree {
        target_id: first_answer.clone(),
        summarize: true,
        custom_instructions: Some("Mind the tests.".into()),
        replace_instructions: false,
        label: Some("dead end".into()),
    };
    let answer = rig.handle.request(op).await.unwrap();
    let asked = rig.model.request(2);
    assert!(asked.tools.is_empty());
    let Message::User(prompt) = &asked.messages[0] else { panic!() };
    let prompt = prompt.content.plain_text();
    assert!(prompt.contains("[User]: second") && prompt.contains("[Assistant]: two"), "{prompt}");
    assert!(!prompt.contains("[User]: first"), "what stays is not summarised: {prompt}");
    assert!(prompt.contains("## Next Steps") && prompt.ends_with("Also: Mind the tests."), "{prompt}");

    let file = rig.file();
    let entry = file.iter().find(|l| l["type"] == "branch_summary").unwrap();
    assert_eq!(answer["summaryEntry"], *entry);
    assert_eq!((&entry["parentId"], &entry["fromId"]), (&json!(first_answer), &json!(first_answer)));
    assert_eq!(entry["summary"], summary);
    assert_eq!(entry["details"], json!({"readFiles": [], "modifiedFiles": []}));
    let label = file.last().unwrap();
    assert_eq!((&label["targetId"], &label["label"]), (&entry["id"], &json!("dead end")));
    rig.run("on").await;
    let sent = rig.model.request(3).messages;
    let Message::User(told) = &sent[2] else { panic!("{sent:?}") };
    assert!(told.content.plain_text().contains("Nothing yet."));
}

#[tokio::test]
async fn a_summary_of_an_extension_costs_no_request_and_is_told_as_such() {
    let rig = rig([]).await;
    let first_answer = of_role(&rig.file(), "assistant", 0);
    *rig.log.veto.lock().unwrap() =
        Some(object(json!({"summary": {"summary": "in short", "details": {"k": 1}}, "label": "theirs"})));
    rig.handle.request(with_summary(&first_answer)).await.unwrap();
    let file = rig.file();
    let entry = file.iter().find(|l| l["type"] == "branch_summary").unwrap();
    assert_eq!((&entry["summary"], &entry["fromHook"]), (&json!("in short"), &json!(true)));
    assert_eq!(entry["details"], json!({"k": 1}));
    assert_eq!(file.last().unwrap()["label"], "theirs");
    assert_eq!(rig.model.requests.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn a_summary_that_fails_by_chance_is_asked_for_again_and_that_is_told() {
    let mut rig = rig([Step::Failed("models::server_error", "", None), Step::Text("in short")]).await;
    let first_answer = of_role(&rig.file(), "assistant", 0);
    rig.told();
    let answer = rig.handle.request(with_summary(&first_answer)).await.unwrap();
    assert_eq!(answer["summaryEntry"]["summary"], "in short");
    let told: Vec<Value> = rig.told().iter().map(|e| serde_json::to_value(&**e).unwrap()).collect();
    let again = told.iter().find(|e| e["type"] == "summarization_retry_attempt_start").unwrap();
    assert_eq!(*again, json!({"type": "summarization_retry_attempt_start", "source": "branchSummary"}));
    assert!(told.iter().any(|e| e["type"] == "summarization_retry_finished"));
}

#[tokio::test]
async fn a_summary_that_is_stopped_or_fails_moves_nothing() {
    let rig = rig([Step::UntilAborted("…"), Step::Error("refused")]).await;
    let lines = rig.file();
    let first_answer = of_role(&lines, "assistant", 0);
    let leaf = rig.handle.view(|v| v.leaf_id.clone());
    let navigated = rig.handle.ask(with_summary(&first_answer));
    rig.model.speaking.notified().await;
    assert_eq!(rig.handle.request(to(&first_answer)).await.unwrap_err().code, "busy", "one at a time");
    rig.handle.request(Op::Abort).await.unwrap();
    assert_eq!(navigated.await.unwrap(), json!({"cancelled": true, "aborted": true}));

    let refused = rig.handle.request(with_summary(&first_answer)).await.unwrap_err();
    assert_eq!(refused.code, "summary_failed");
    assert!(refused.message.contains("refused"));
    assert_eq!((rig.handle.view(|v| v.leaf_id.clone()), rig.file()), (leaf, lines));
    assert_eq!(rig.log.count("SessionTree"), 0);
}

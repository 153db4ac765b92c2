//! Requests from handlers, commands, and replacements: accepted at once, never waiting for
//! the events they cause.

use crate::doubles::*;
use atomic_agent::{
    event::Event,
    hooks::{InputSource, StartReason},
    message::Message,
    model::ThinkingLevel,
    op::Op,
};
use serde_json::{Value, json};

fn entry(name: &str) -> Op {
    Op::AppendEntry { custom_type: name.into(), data: Some(json!({"n": 1})) }
}

#[tokio::test]
async fn a_request_can_be_awaited_from_any_handler() {
    // Given a request in the handler of every event of a run with a tool call.
    let places = [
        "session_start",
        "resources_discover",
        "input",
        "before_agent_start",
        "agent_start",
        "turn_start",
        "message_start role=user",
        "message_end role=user",
        "context",
        "before_provider_headers",
        "before_provider_request",
        "after_provider_response",
        "message_start role=assistant",
        "message_update",
        "message_end role=assistant",
        "tool_execution_start",
        "tool_call",
        "tool_execution_update",
        "tool_result",
        "tool_execution_end",
        "turn_end",
        "agent_end",
        "agent_settled",
    ];
    let rig = build([Step::Calls(vec![call("a", "echo 1")]), Step::Text("done")])
        .log(|log| *log.during.lock().unwrap() = places.iter().map(|p| (*p, entry(p))).collect())
        .start()
        .await;
    rig.run("go").await;
    assert_eq!(*rig.log.during.lock().unwrap(), []);

    // Then every one was kept, and the calls are still answered (the model double checks it).
    let file = rig.file();
    for place in places {
        assert!(file.iter().any(|l| l["customType"] == place), "{place} is missing");
    }
}

#[tokio::test]
async fn events_of_a_request_come_after_the_dispatch_that_made_it() {
    let mut rig = build([Step::Text("hello")])
        .log(|log| log.during.lock().unwrap().push(("message_end role=user", entry("x"))))
        .start()
        .await;
    rig.run("go").await;
    let told = rig.told();
    let at = |fits: &dyn Fn(&Event) -> bool| told.iter().position(|e| fits(e)).unwrap();
    let appended = at(&|e| matches!(e, Event::EntryAppended { entry } if entry["customType"] == "x"));
    let started = at(&|e| matches!(e, Event::MessageStart { message } if message.role() == "user"));
    assert!(started < appended);
}

#[tokio::test]
async fn message_end_may_change_a_message_but_not_its_role() {
    let replace = |log: &mut Log| {
        log.end = Some(Box::new(|message| match message {
            Message::Assistant(mut m) => {
                m.content = vec![atomic_agent::message::Content::text("replaced")];
                Message::Assistant(m)
            }
            Message::User(_) => Message::user("shall be ignored", 0).tap_into_custom(),
            other => other,
        }));
    };
    let mut rig = build([Step::Text("hello"), Step::Text("bye")]).log(replace).start().await;
    rig.run("go").await;
    let file = rig.file();
    let of = |role: &str| file.iter().find(|l| l["message"]["role"] == role).map(|l| l["message"].clone());
    assert_eq!(of("assistant").unwrap()["content"][0]["text"], "replaced");
    assert_eq!(of("user").unwrap()["content"][0]["text"], "go");
    let told = rig.until(|e| matches!(e, Event::TurnEnd { .. })).await;
    let Event::TurnEnd { message, .. } = &*told else { unreachable!() };
    assert_eq!(message.content[0].as_text(), Some("replaced"));
    rig.run("more").await;
    let sent = rig.model.request(1).messages;
    assert_eq!(sent[1].as_assistant().unwrap().content[0].as_text(), Some("replaced"));
}

trait Tap {
    fn tap_into_custom(self) -> Message;
}
impl Tap for Message {
    fn tap_into_custom(self) -> Message {
        serde_json::from_value(json!({"role": "custom", "customType": "x", "content": "x"})).unwrap()
    }
}

#[tokio::test]
async fn a_command_runs_beside_a_run_and_never_reaches_the_input_hooks() {
    let rig = build([Step::UntilAborted("…")]).log(|log| log.command = Some(|| Ok(()))).start().await;
    rig.prompt("go").await.unwrap();
    rig.model.speaking.notified().await;
    assert_eq!(rig.prompt("/cmd a b").await.unwrap(), "handled");
    assert_eq!(rig.log.count("COMMAND args=a b"), 1);
    assert_eq!(rig.log.count("input"), 1);
    rig.handle.request(Op::Abort).await.unwrap();
    rig.idle().await;
}

#[tokio::test]
async fn a_command_that_fails_is_still_handled_and_another_name_is_text() {
    let fails = |log: &mut Log| log.command = Some(|| Err("no luck".into()));
    let rig = build([Step::Text("not a command")]).log(fails).start().await;
    let prompt = Op::Prompt {
        text: "/cmd".into(),
        images: vec![],
        streaming_behavior: None,
        source: InputSource::Rpc,
    };
    let answer = rig.handle.request(prompt).await.unwrap();
    assert_eq!(answer, json!({"disposition": "handled", "error": "no luck"}));
    assert_eq!(rig.log.count("agent_start"), 0);
    assert_eq!(rig.prompt("/cmdx").await.unwrap(), "started");
    rig.idle().await;
}

#[tokio::test]
async fn a_reload_waits_for_the_run_and_says_so() {
    let mut rig = build([Step::UntilAborted("…")]).start().await;
    rig.prompt("go").await.unwrap();
    rig.model.speaking.notified().await;
    rig.handle.send(Op::Reload { names: vec![], now: false, origin: None });
    rig.until(|e| matches!(e, Event::Notify { message, .. } if message.contains("waits"))).await;
    rig.handle.request(Op::Abort).await.unwrap();
    rig.until(|e| matches!(e, Event::Reloaded { .. })).await;
    let lines = rig.log.lines();
    let at = |start: &str| lines.iter().position(|l| l.starts_with(start)).unwrap();
    assert!(at("agent_settled") < at("session_shutdown reason=reload"));
    assert!(at("session_start reason=reload") < at("resources_discover reason=reload"));
    rig.until(|e| matches!(e, Event::SessionReady { reason: StartReason::Reload, .. })).await;
}

#[tokio::test]
async fn a_reload_now_ends_the_run_and_answers_its_report() {
    let rig = build([Step::UntilAborted("…")]).start().await;
    rig.prompt("go").await.unwrap();
    rig.model.speaking.notified().await;
    let report = rig.handle.request(Op::Reload { names: vec![], now: true, origin: None }).await.unwrap();
    assert_eq!(report["extensions"], json!([]));
    assert_eq!(rig.log.count("agent_settled"), 1);
}

#[tokio::test]
async fn a_new_session_ends_the_run_and_begins_a_file_of_its_own() {
    let mut rig = build([Step::UntilAborted("…"), Step::Text("hello")]).start().await;
    rig.prompt("go").await.unwrap();
    rig.model.speaking.notified().await;
    let (old, id) = (rig.file(), rig.handle.view(|v| v.session_id.clone()));
    let answer = rig
        .handle
        .request(Op::NewSession { parent_session: None, origin: None, setup: vec![] })
        .await
        .unwrap();
    assert_eq!(answer, json!({"cancelled": false}));
    rig.until(|e| matches!(e, Event::SessionReady { reason: StartReason::New, .. })).await;
    assert_ne!(rig.handle.view(|v| v.session_id.clone()), id);
    assert_eq!(rig.handle.view(|v| v.session_file.clone()), None);
    rig.run("hi").await;
    assert_eq!(rig.model.request(1).messages.len(), 1, "the new session remembers the old one");
    assert_eq!(rig.written(), ["system", "user", "assistant"]);
    assert_ne!(rig.file()[0]["id"], old[0]["id"]);
}

#[tokio::test]
async fn names_labels_model_and_thinking_are_entries_and_views() {
    let mut rig = build([Step::Text("hello")]).start().await;
    rig.run("hi").await;
    let handle = rig.handle.clone();
    handle.request(Op::SetSessionName { name: Some("  my work ".into()) }).await.unwrap();
    assert_eq!(handle.view(|v| v.session_name.clone()).as_deref(), Some("my work"));
    rig.until(|e| matches!(e, Event::SessionInfoChanged { name: Some(n) } if n == "my work")).await;
    handle.request(Op::SetSessionName { name: Some("  ".into()) }).await.unwrap();
    assert_eq!(handle.view(|v| v.session_name.clone()), None);

    let leaf = handle.view(|v| v.leaf_id.clone()).unwrap();
    handle.request(Op::SetLabel { entry_id: leaf.clone(), label: Some("here".into()) }).await.unwrap();
    let unknown = Op::SetLabel { entry_id: "nope".into(), label: None };
    assert_eq!(handle.request(unknown).await.unwrap_err().code, "unknown_entry");

    let model = |m: &str| Op::SetModel { provider: "p".into(), model: m.into() };
    assert_eq!(handle.request(model("nope")).await.unwrap(), Value::Bool(false));
    assert_eq!(handle.request(model("m")).await.unwrap(), Value::Bool(true));
    handle.request(Op::SetThinkingLevel { level: ThinkingLevel::High }).await.unwrap();
    assert_eq!(handle.view(|v| v.thinking), ThinkingLevel::High);
    let file = rig.file();
    let last = file.last().unwrap();
    assert_eq!((&last["type"], &last["thinkingLevel"]), (&json!("thinking_level_change"), &json!("high")));
    assert!(file.iter().any(|l| l["type"] == "label" && l["targetId"] == leaf.as_str()));
}

#[tokio::test]
async fn the_users_own_command_runs_without_gates_and_the_model_hears_of_it() {
    let mut rig = build([Step::Text("hello")]).start().await;
    let bash = |hidden| Op::UserBash { command: "echo hey".into(), exclude_from_context: hidden };
    for hidden in [false, true] {
        rig.handle.request(bash(hidden)).await.unwrap();
        let told = rig.until(|e| matches!(e, Event::BashExecuted { .. })).await;
        let Event::BashExecuted { message } = &*told else { unreachable!() };
        let Message::BashExecution(m) = &**message else { unreachable!() };
        assert_eq!((m.output.as_str(), m.exit_code), ("hey\n", Some(0)));
    }
    rig.run("hi").await;
    assert_eq!(rig.log.count("tool_call"), 0);
    let sent = rig.model.request(0).messages;
    assert_eq!(sent.len(), 2, "a hidden command was sent");
    let Message::User(m) = &sent[0] else { panic!("{:?}", sent[0]) };
    assert!(m.content.plain_text().contains("`echo hey`") && m.content.plain_text().contains("hey\n"));
}

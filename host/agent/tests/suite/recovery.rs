//! What a crash interrupted comes back: messages that were promised a run, and how it is decided
//! about them.

use crate::doubles::*;
use atomic_agent::{
    event::Event,
    message::MessageContent,
    op::{Op, OutgoingMessage, SendOptions},
    session::Session,
};
use serde_json::{Value, json};

fn protected(custom_type: &str, text: &str) -> Op {
    Op::SendMessage {
        message: OutgoingMessage {
            custom_type: custom_type.into(),
            content: MessageContent::Text(text.into()),
            display: true,
            details: Some(json!({"of": custom_type})),
        },
        options: SendOptions {
            trigger_turn: Some(true),
            persist_when_streaming: true,
            ..SendOptions::default()
        },
    }
}

fn customs(lines: &[Value]) -> Vec<&Value> {
    lines.iter().filter(|l| l["type"] == "custom_message").collect()
}

#[tokio::test]
async fn what_was_promised_a_run_is_dropped_or_delivered_once_and_never_asked_about_again() {
    // Given an engine that is killed with two protected messages in its queue.
    let mut killed = build([Step::UntilAborted("…")]).start().await;
    killed.prompt("go").await.unwrap();
    killed.model.speaking.notified().await;
    killed.handle.request(protected("keep", "deliver me")).await.unwrap();
    killed.handle.request(protected("drop", "forget me")).await.unwrap();
    let left = killed.file();
    assert_eq!(customs(&left).len(), 2);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sessions").join("left.jsonl");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::copy(killed.handle.view(|v| v.session_file.clone()).unwrap(), &path).unwrap();

    // When another one goes on with what is in the file.
    let session = Session::open(&path, dir.path()).unwrap();
    let mut rig = build([Step::Text("heard")]).start_with(session, dir).await;
    rig.until(|e| matches!(e, Event::AgentSettled)).await;

    // Then one is heard, as what it was, and the other is not.
    assert_eq!(*rig.log.recovered.lock().unwrap(), ["restore startup", "replay of 2"]);
    let sent = rig.model.request(0).messages;
    assert_eq!(said_by_user(&sent), ["go", "deliver me"]);
    let lines = rig.file();
    let taken = *customs(&lines).last().unwrap();
    assert_eq!((&taken["display"], &taken["details"]), (&json!(true), &json!({"of": "keep"})));
    rig.quit().await;

    // And the next start has nothing to ask.
    let dir = tempfile::tempdir().unwrap();
    let session = Session::open(&path, dir.path()).unwrap();
    assert!(session.pending_deliveries().is_empty());
    let mut rig = build([]).start_with(session, dir).await;
    rig.until(|e| matches!(e, Event::Notify { message, .. } if message == "restored")).await;
    rig.quit().await;
    assert_eq!(*rig.log.recovered.lock().unwrap(), ["restore startup"]);
    killed.quit().await;
}

#[tokio::test]
async fn a_new_session_and_a_fork_have_nothing_to_recover() {
    let rig = build([Step::Text("one")]).start().await;
    rig.run("first").await;
    rig.log.recovered.lock().unwrap().clear();
    rig.handle.request(Op::Clone { origin: None }).await.unwrap();
    let setup = vec![];
    rig.handle.request(Op::NewSession { parent_session: None, origin: None, setup }).await.unwrap();
    rig.idle().await;
    assert!(rig.log.recovered.lock().unwrap().is_empty());
}

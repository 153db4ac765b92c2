//! What is on disk while an engine runs, and what one that was killed leaves behind.

use crate::doubles::*;
use atomic_agent::{
    engine::{Engine, EngineConfig, PromptParts, ToolSelection},
    event::Event,
    handle::Mode,
    hooks::NoHooks,
    message::{Content, Message},
    model::ThinkingLevel,
    pairing::UNANSWERED,
    session::Session,
};
use std::sync::Arc;

#[tokio::test]
async fn the_file_begins_with_the_prompt_and_grows_by_whole_messages() {
    let mut rig = build([Step::UntilAborted("…")]).start().await;
    assert_eq!(rig.handle.view(|v| v.session_file.clone()), None);
    rig.prompt("keep this").await.unwrap();
    rig.model.speaking.notified().await;
    // A crash now would leave this much.
    assert_eq!(rig.written(), ["system", "user"]);
    rig.quit().await;
}

#[tokio::test]
async fn a_session_of_a_killed_process_goes_on_with_its_calls_answered() {
    // Given a file that ends in a call without a result and half a line.
    let dir = tempfile::tempdir().unwrap();
    let sessions = dir.path().join("sessions");
    let mut session = Session::create(dir.path(), &sessions, None);
    session.append_message(&Message::user("go", 1), false).unwrap();
    let assistant = serde_json::json!({
        "role": "assistant", "stopReason": "toolUse", "provider": "p", "model": "m",
        "content": [{"type": "toolCall", "id": "a", "name": "bash", "arguments": {"command": "x"}}],
    });
    session.append_message(&serde_json::from_value(assistant).unwrap(), false).unwrap();
    let path = session.file().unwrap().to_owned();
    drop(session);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.extend_from_slice(b"{\"type\":\"mess");
    std::fs::write(&path, &bytes).unwrap();

    // When it is continued.
    let session = Session::continue_latest(dir.path(), &sessions).unwrap();
    let mut rig = build([Step::Text("hello")]).start_with(session, dir).await;
    rig.until(|e| matches!(e, Event::Notify { message, .. } if message.contains(".torn-"))).await;
    rig.run("more").await;

    // Then the model reads that the call was never answered, and the file does not say so.
    let sent = rig.model.request(0).messages;
    let Message::ToolResult(result) = &sent[2] else { panic!("{sent:?}") };
    assert_eq!(result.content, [Content::text(UNANSWERED)]);
    assert_eq!(rig.written(), ["user", "assistant", "system", "user", "assistant"]);
}

#[tokio::test]
async fn a_prompt_that_cannot_be_written_ends_its_run_and_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let blocked = dir.path().join("a-file");
    std::fs::write(&blocked, "").unwrap();
    let session = Session::create(dir.path(), &blocked.join("sessions"), None);
    let mut rig = build([]).start_with(session, dir).await;
    rig.run("go").await;
    let told = rig.until(|e| matches!(e, Event::Notify { level, .. } if level == "error")).await;
    assert!(format!("{told:?}").contains("a-file"), "{told:?}");
    assert_eq!(rig.log.count("agent_settled"), 1);
    assert!(rig.model.requests.lock().unwrap().is_empty(), "the model was asked without a record");
}

#[tokio::test]
async fn a_session_in_memory_runs_the_same_and_writes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let session = Session::in_memory(dir.path(), &dir.path().join("sessions"));
    let rig = build([Step::Text("hello")]).start_with(session, dir).await;
    rig.run("hi").await;
    assert_eq!(rig.handle.view(|v| v.session_file.clone()), None);
    assert_eq!(rig.handle.view(|v| v.entries.len()), 5);
    assert!(!rig.dir.path().join("sessions").exists());
}

#[tokio::test]
async fn without_a_model_a_prompt_is_refused_and_both_ways_out_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let handle = Engine::start(EngineConfig {
        cwd: dir.path().to_owned(),
        mode: Mode::Print,
        has_ui: false,
        project_trusted: false,
        session: Session::in_memory(dir.path(), dir.path()),
        hooks: Arc::new(NoHooks),
        tools: vec![],
        tool_selection: ToolSelection::default(),
        models: Arc::new(Two([Scripted::new("m", []), Scripted::new("second", [])])),
        model: None,
        thinking: ThinkingLevel::Off,
        prompt: PromptParts::default(),
    })
    .unwrap();
    let prompt = atomic_agent::op::Op::Prompt {
        text: "hi".into(),
        images: vec![],
        streaming_behavior: None,
        source: atomic_agent::hooks::InputSource::Interactive,
    };
    let refused = handle.request(prompt).await.unwrap_err();
    assert_eq!(refused.code, "no_model");
    assert!(refused.message.contains("provider") && refused.message.contains("--offline"));
}

#[tokio::test]
async fn a_text_of_megabytes_goes_through_whole() {
    let rig = build([Step::Text("hello"), Step::Text("bye")]).start().await;
    let huge = "é\u{2028}\n".repeat(1_000_000);
    rig.run(&huge).await;
    rig.run("more").await;
    let Message::User(m) = &rig.model.request(1).messages[0] else { panic!() };
    assert_eq!(m.content.plain_text(), huge);
    assert_eq!(rig.written(), ["system", "user", "assistant", "user", "assistant"]);
}

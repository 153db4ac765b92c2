//! Abort and shutdown: answered at once, whatever a model, a tool, or an extension does.

use crate::doubles::*;
use atomic_agent::{event::Event, hooks::StreamingBehavior, message::Message, op::Op, tool::ToolOutput};
use serde_json::json;
use std::{future::pending, sync::Arc};
use tokio::sync::Notify;

async fn abort(rig: &Rig) {
    rig.handle.request(Op::Abort).await.unwrap();
}

#[tokio::test]
async fn an_abort_in_the_stream_keeps_what_was_said_and_settles_once() {
    let rig = build([Step::UntilAborted("half a"), Step::Text("next")]).start().await;
    rig.prompt("go").await.unwrap();
    rig.model.speaking.notified().await;
    abort(&rig).await;
    rig.idle().await;
    assert_eq!(rig.log.count("message_end role=assistant stopReason=aborted content=half a"), 1);
    assert_eq!(rig.log.count("turn_end turnIndex=0 role=assistant stopReason=aborted"), 1);
    assert_eq!(rig.log.count("agent_settled"), 1);
    assert_eq!(rig.written(), ["system", "user", "assistant"]);

    // And the next prompt knows it.
    rig.run("again").await;
    let roles: Vec<String> = rig.model.request(1).messages.iter().map(|m| m.role().to_owned()).collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
}

#[tokio::test]
async fn a_model_that_does_not_hear_the_abort_is_given_up() {
    let rig = build([Step::Deaf("half a")]).start().await;
    rig.prompt("go").await.unwrap();
    rig.model.speaking.notified().await;
    abort(&rig).await;
    rig.idle().await;
    assert_eq!(rig.log.count("message_end role=assistant stopReason=aborted content=half a"), 1);
}

#[tokio::test]
async fn a_gate_that_was_asked_and_abandoned_has_not_allowed_its_call() {
    let steps = [Step::Calls(vec![call("a", "echo 1"), call("b", "echo 2")]), Step::Text("next")];
    let rig = build(steps).log(|log| log.gate_hangs = true).start().await;
    rig.prompt("go").await.unwrap();
    rig.log.asked.notified().await;
    abort(&rig).await;
    rig.idle().await;
    assert_eq!(rig.log.count("tool_execution_end toolName=bash isError=true"), 1);
    assert_eq!(rig.log.count("message_end role=toolResult content=Operation aborted msgIsError=true"), 1);
    assert_eq!(rig.log.count("tool_call "), 1, "the second call was started after the abort");
    assert_eq!(rig.log.count("tool_result "), 0);
    assert_eq!(rig.log.count("agent_settled"), 1);

    // The next request answers both all the same.
    rig.run("again").await;
    let results = rig.model.request(1).messages.iter().filter(|m| m.role() == "toolResult").count();
    assert_eq!(results, 2);
}

#[tokio::test]
async fn a_tool_that_does_not_stop_is_given_up_and_one_that_does_is_heard() {
    let deaf = Fake::new("deaf", "x", |_| pending());
    let runs = Arc::new(Notify::new());
    let running = runs.clone();
    let polite = Fake::new("polite", "x", move |call| {
        running.notify_one();
        async move {
            call.cancel.cancelled().await;
            Ok(ToolOutput::text("stopped in time"))
        }
    });
    let calls = vec![("a", "deaf", json!({"x": ""})), ("b", "polite", json!({"x": ""}))];
    let rig = build([Step::Calls(calls)]).tool(deaf).tool(polite).start().await;
    rig.prompt("go").await.unwrap();
    runs.notified().await;
    abort(&rig).await;
    rig.idle().await;
    assert_eq!(rig.log.count("message_end role=toolResult content=stopped in time"), 1);
    assert_eq!(rig.log.count("message_end role=toolResult content=Operation aborted; the tool did not"), 1);
    assert_eq!(rig.log.count("turn_end"), 1);
    assert_eq!(rig.log.count("turn_start"), 1, "an aborted run asked for another turn");
}

#[tokio::test]
async fn what_was_queued_outlives_an_abort_and_comes_with_the_next_prompt() {
    let rig = build([Step::UntilAborted("…"), Step::Text("both")]).start().await;
    rig.prompt("go").await.unwrap();
    rig.model.speaking.notified().await;
    assert_eq!(rig.prompt_as("later", Some(StreamingBehavior::Steer)).await.unwrap(), "queued");
    abort(&rig).await;
    rig.idle().await;
    assert_eq!(rig.handle.view(|v| v.pending_messages), 1);
    assert!(rig.handle.view(|v| v.idle));
    rig.run("now").await;
    let texts: Vec<String> = rig.model.request(1).messages.iter().filter_map(user_text).collect();
    assert_eq!(texts, ["go", "now", "later"]);
}

fn user_text(m: &Message) -> Option<String> {
    match m {
        Message::User(m) => Some(m.content.plain_text()),
        _ => None,
    }
}

#[tokio::test]
async fn shutdown_aborts_settles_tells_the_hooks_and_lets_go_of_the_file() {
    let mut rig = build([Step::UntilAborted("…")]).start().await;
    rig.prompt("go").await.unwrap();
    rig.model.speaking.notified().await;
    rig.quit().await;
    let lines = rig.log.lines();
    let at = |start: &str| lines.iter().position(|l| l.starts_with(start)).unwrap();
    assert!(at("agent_settled") < at("session_shutdown reason=quit"));
    rig.until(|e| matches!(e, Event::Stopped)).await;
    let path = rig.handle.view(|v| v.session_file.clone()).unwrap();
    atomic_agent::session::Session::open(&path, rig.dir.path()).unwrap();
    let refused = rig.handle.request(Op::Abort).await.unwrap_err();
    assert_eq!(refused.code, "engine_stopped");
}

#[tokio::test]
async fn a_shutdown_handler_that_never_returns_does_not_keep_the_engine() {
    let mut rig = build([]).log(|log| log.shutdown_hangs = true).start().await;
    rig.quit().await;
    rig.until(|e| matches!(e, Event::Stopped)).await;
    assert_eq!(rig.log.count("session_shutdown"), 1);
}

#[tokio::test]
async fn an_abort_ends_a_command_of_an_extension_and_the_abort_of_a_run_does_not() {
    let rig = build([Step::Text("hello")]).log(|log| log.command = Some(|| Ok(()))).start().await;
    let prompt = Op::Prompt {
        text: "/cmd hangs".into(),
        images: vec![],
        streaming_behavior: None,
        source: atomic_agent::hooks::InputSource::Interactive,
    };
    let handle = rig.handle.clone();
    let command = tokio::spawn(async move { handle.request(prompt).await });
    rig.log.asked.notified().await;
    rig.handle.request(Op::AbortRun).await.unwrap();
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    assert!(!command.is_finished());
    abort(&rig).await;
    assert_eq!(command.await.unwrap().unwrap()["error"], "aborted");
    // The next one is not touched by it.
    assert_eq!(rig.prompt("/cmd x").await.unwrap(), "handled");
}

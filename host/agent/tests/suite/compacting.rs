//! Who gives way to whom when compactions meet runs, queues, aborts and each other.

use crate::doubles::*;
use atomic_agent::{
    compact::{CompactOptions, CompactReason},
    event::Event,
    hooks::StreamingBehavior,
    message::Message,
    op::{Op, OpError},
};
use serde_json::{Value, json};

fn lines(tag: &str) -> &'static str {
    let text: String = (1..=31).map(|n| format!("{tag} {n} with some words to fill the line\n")).collect();
    text.leak()
}

fn small(steps: impl IntoIterator<Item = Step>) -> Build {
    // The threshold is 500 tokens; each long answer is about 300.
    Build { window: 1_000, ..build(steps) }
}

fn compact() -> Op {
    Op::Compact { custom_instructions: None, options: CompactOptions::default() }
}

async fn asked(rig: &Rig) -> Result<Value, OpError> {
    rig.handle.request(compact()).await
}

/// So many requests have come to the model.
async fn requests(rig: &Rig, count: usize) {
    while rig.model.requests.lock().unwrap().len() < count {
        tokio::task::yield_now().await;
    }
}

fn ends(rig: &mut Rig) -> Vec<Value> {
    let told = rig.told();
    let end = |e: &Event| matches!(e, Event::CompactionEnd { .. });
    told.iter().filter(|e| end(e)).map(|e| serde_json::to_value(&**e).unwrap()).collect()
}

#[tokio::test]
async fn one_that_began_by_itself_gives_way_to_one_that_is_asked_for() {
    let steps = [
        Step::Text(lines("a")),
        Step::Text(lines("b")),
        // The planner after the second run, and the one that was asked for.
        Step::UntilAborted("1,2\n"),
        Step::Text("3,20\n"),
    ];
    let mut rig = small(steps).start().await;
    rig.run("one").await;
    rig.prompt("two").await.unwrap();
    requests(&rig, 3).await;
    let result = asked(&rig).await.unwrap();
    assert_eq!(result["stats"]["linesDeleted"], 18);
    rig.idle().await;
    let ends = ends(&mut rig);
    assert_eq!(ends.len(), 2, "{ends:?}");
    assert_eq!(
        ends[0],
        json!({"type": "compaction_end", "reason": "threshold", "aborted": true,
        "willRetry": false, "manualTakeoverPending": true})
    );
    assert_eq!((&ends[1]["reason"], &ends[1]["aborted"]), (&json!("manual"), &json!(false)));
    assert_eq!(rig.written().iter().filter(|k| *k == "compaction").count(), 1);
}

#[tokio::test]
async fn b64_abort_compaction_ends_the_waiting_and_the_prompt_goes_on() {
    let steps =
        [Step::Text(lines("a")), Step::Text(lines("b")), Step::UntilAborted("1,2\n"), Step::Text("here")];
    let mut rig = small(steps).start().await;
    rig.run("one").await;
    rig.prompt("two").await.unwrap();
    requests(&rig, 3).await;
    assert_eq!(rig.handle.view(|v| v.compacting), Some(CompactReason::Threshold));
    rig.handle.request(Op::AbortCompaction).await.unwrap();
    rig.idle().await;
    assert_eq!(rig.handle.view(|v| v.compacting), None);
    let ends = ends(&mut rig);
    assert_eq!((ends.len(), &ends[0]["aborted"], &ends[0].get("errorMessage")), (1, &json!(true), &None));
    assert_eq!(rig.log.count("SessionCompactFailed"), 1);
    // A second abort of nothing is harmless.
    rig.handle.request(Op::AbortCompaction).await.unwrap();
    rig.handle.request(Op::SetAutoCompaction { enabled: false }).await.unwrap();
    assert!(!rig.handle.view(|v| v.auto_compaction));
    rig.run("three").await;
    assert_eq!(rig.model.request(3).messages.len(), 5, "nothing was written");
}

#[tokio::test]
async fn the_users_abort_ends_one_between_tools_and_the_run_with_it() {
    let steps = [
        Step::Text(lines("a")),
        Step::Text("b"),
        Step::Calls(vec![call("1", "big")]),
        Step::UntilAborted("1,2\n"),
    ];
    let rig = small(steps);
    let mut rig = Build { tools: vec![std::sync::Arc::new(big())], ..rig }.start().await;
    rig.run("one").await;
    rig.run("two").await;
    rig.prompt("three").await.unwrap();
    let start = rig.until(|e| matches!(e, Event::CompactionStart { .. })).await;
    assert!(matches!(&*start, Event::CompactionStart { mid_turn: true, .. }), "{start:?}");
    rig.handle.request(Op::Abort).await.unwrap();
    rig.idle().await;
    assert_eq!(rig.log.count("agent_settled"), 3);
    let last = rig.log.lines().into_iter().rfind(|l| l.starts_with("agent_before_settle")).unwrap();
    assert!(last.contains("outcome=aborted"), "{last}");
    assert!(!rig.written().contains(&"compaction".to_owned()));
}

#[tokio::test]
async fn what_was_queued_for_the_run_that_a_compaction_ended_gets_a_run_after_it() {
    let steps = [
        Step::Text(lines("a")),
        Step::Text("b"),
        Step::UntilAborted("going"),
        Step::Text("3,20\n"),
        Step::Text("heard"),
    ];
    let rig = build(steps).start().await;
    rig.run("one").await;
    rig.run("two").await;
    rig.prompt("three").await.unwrap();
    requests(&rig, 3).await;
    rig.prompt_as("and this", Some(StreamingBehavior::FollowUp)).await.unwrap();
    asked(&rig).await.unwrap();
    rig.idle().await;
    let sent = rig.model.request(4).messages;
    let Some(Message::User(last)) = sent.last() else { panic!("{sent:?}") };
    assert_eq!((sent.len(), last.content.plain_text().as_str()), (2, "and this"));
}

#[tokio::test]
async fn the_end_of_the_program_ends_a_compaction_and_whoever_waits_is_answered() {
    let steps = [Step::Text(lines("a")), Step::Text("b"), Step::Deaf("1,2\n")];
    let mut rig = build(steps).start().await;
    rig.run("one").await;
    rig.run("two").await;
    let waiting = rig.handle.ask(compact());
    let joined = rig.handle.ask(compact());
    requests(&rig, 3).await;
    rig.quit().await;
    for answer in [waiting.await, joined.await] {
        assert_eq!(answer.unwrap_err().code, "compact_cancelled");
    }
    assert!(!rig.written().contains(&"compaction".to_owned()));
}

#[tokio::test]
async fn a_new_session_ends_a_compaction_of_the_old_one() {
    let steps = [Step::Text(lines("a")), Step::Text("b"), Step::Deaf("1,2\n"), Step::Text("fresh")];
    let rig = build(steps).start().await;
    rig.run("one").await;
    rig.run("two").await;
    let old = rig.file();
    let waiting = rig.handle.ask(compact());
    requests(&rig, 3).await;
    let new = Op::NewSession { parent_session: None, origin: None, setup: vec![] };
    rig.handle.request(new).await.unwrap();
    assert_eq!(waiting.await.unwrap_err().code, "compact_cancelled");
    rig.run("three").await;
    assert_eq!(rig.model.request(3).messages.len(), 1);
    assert!(!old.iter().any(|l| l["type"] == "compaction"));
}

#[tokio::test]
async fn what_is_still_too_much_behind_a_compaction_ends_the_run_and_the_boundary_stays() {
    let steps =
        [Step::Text(lines("a")), Step::Text("b"), Step::Calls(vec![call("1", "big")]), Step::Text("1,2\n")];
    let rig = small(steps);
    let rig = Build { tools: vec![std::sync::Arc::new(huge())], ..rig }.start().await;
    for text in ["one", "two", "three"] {
        rig.run(text).await;
    }
    let lines = rig.log.lines();
    let last = lines.iter().rfind(|l| l.starts_with("message_end")).unwrap();
    assert!(last.contains("role=assistant stopReason=error"), "{last}");
    let said = rig.file().last().unwrap()["message"]["errorMessage"].as_str().unwrap().to_owned();
    assert!(
        said.starts_with("Post-tool context compaction failed before the next provider request: about "),
        "{said}"
    );
    assert!(said.ends_with("tokens are left, and the model takes 1000"), "{said}");
    assert_eq!(rig.written().iter().filter(|k| *k == "compaction").count(), 1);
}

#[tokio::test]
async fn where_no_planner_helps_a_tail_that_is_more_than_the_model_takes_goes_too() {
    let steps = [
        Step::Text(lines("a")),
        Step::Text("b"),
        Step::Calls(vec![call("1", "big")]),
        Step::Text("I would delete the first lines."),
        Step::Text("what was it?"),
    ];
    let rig = small(steps);
    let rig = Build { tools: vec![std::sync::Arc::new(huge())], ..rig }.start().await;
    for text in ["one", "two", "three"] {
        rig.run(text).await;
    }
    let entry = rig.file().into_iter().find(|l| l["type"] == "compaction").unwrap();
    assert_eq!((&entry["details"]["rung"], &entry["firstKeptEntryId"]), (&json!("fresh"), &Value::Null));
    let sent = rig.model.request(4).messages;
    let [Message::User(only)] = &sent[..] else { panic!("{sent:?}") };
    assert!(only.content.plain_text().ends_with("lines)"), "{only:?}");
    assert_eq!(rig.log.count("agent_start"), 3, "the same run");
}

fn huge() -> Fake {
    Fake::new("bash", "command", |_| async { Ok(atomic_agent::tool::ToolOutput::text("x".repeat(9_000))) })
}

fn big() -> Fake {
    Fake::new("bash", "command", |_| async { Ok(atomic_agent::tool::ToolOutput::text("x".repeat(2_000))) })
}

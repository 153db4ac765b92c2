//! Messages of extensions in the session (events.md E.4), and what a context knows (E.3).

use super::{install, noticed, says};
use atomic_agent::{event::Event, op::Op};
use atomic_tests::{
    env::Home,
    live::{Setup, bash, patient, text},
};
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_is_admitted_in_order_and_starts_one_run() {
    let home = Home::new();
    install(&home, "messages");
    let live = Setup::new(&home).turns(json!([text("read them")])).start().await;
    live.say("/batch one two three").await.unwrap();
    live.wait("the run", |e| matches!(e, Event::AgentSettled)).await;
    let entries = live.engine.view(|v| v.entries.iter().map(|e| e.raw()).collect::<Vec<Value>>());
    let texts: Vec<Value> =
        entries.iter().filter(|e| e["customType"] == "batch").map(|e| e["content"].clone()).collect();
    assert_eq!(texts, ["one", "two", "three"]);
    let starts = live.events().iter().filter(|e| matches!(&***e, Event::AgentStart)).count();
    assert_eq!(starts, 1);
    live.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_protected_message_is_written_when_it_is_admitted_and_marked_when_a_run_takes_it() {
    let home = Home::new();
    install(&home, "messages");
    let turns = json!([bash("sleep 600"), text("read it"), text("done")]);
    let live = Setup::new(&home).turns(turns).start().await;
    live.say("begin").await.unwrap();
    live.wait("the tool", |e| matches!(e, Event::ToolExecutionStart { .. })).await;
    live.say("/protect keep me").await.unwrap();
    let kept = |live: &atomic_tests::live::Live| {
        let entries = live.engine.view(|v| v.entries.iter().map(|e| e.raw()).collect::<Vec<Value>>());
        entries.iter().filter(|e| e["customType"] == "kept").cloned().collect::<Vec<Value>>()
    };
    let first = kept(&live);
    assert_eq!(first.len(), 1);
    // Whether it is shown once it is delivered is kept beside how: recovery has only this entry.
    let note = json!({"delivery": "steer", "display": true});
    assert_eq!(first[0]["protectedReconciliation"], note);
    assert_eq!(first[0]["excludeFromContext"], true, "not the model's before a run takes it");
    assert_eq!(first[0]["stageAdmissionKey"], "k");
    let mark = live.mark();
    patient("the abort", live.engine.request(Op::Abort)).await.unwrap();
    live.wait_after(mark, "the end", |e| matches!(e, Event::AgentSettled)).await;
    if kept(&live).len() == 1 {
        live.run("go on").await;
    }
    let both = kept(&live);
    assert_eq!(both.len(), 2, "{both:#?}");
    assert_eq!(both[1]["protectedReconciliation"], json!({"consumes": both[0]["id"]}));
    live.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_ends_the_run_with_its_own_words_and_starts_another() {
    let home = Home::new();
    install(&home, "messages");
    let turns = json!([{"text": "a very long story", "delayMs": 600_000}, text("what came up")]);
    let live = Setup::new(&home).turns(turns).start().await;
    live.say("begin").await.unwrap();
    live.wait("the run", |e| matches!(e, Event::TurnStart)).await;
    noticed(&live, 0, "the task beside the run", |m| m == "beside the run").await;
    live.say("/interrupt look here").await.unwrap();
    noticed(&live, 0, "its end", |m| m == "the run was stopped").await;
    live.wait("both runs", |_| {
        live.events().iter().filter(|e| matches!(&***e, Event::AgentSettled)).count() == 2
    })
    .await;
    let said: Vec<Value> = live
        .events()
        .iter()
        .filter_map(|e| match &**e {
            Event::MessageEnd { message } => serde_json::to_value(message).ok(),
            _ => None,
        })
        .filter(|m| m["role"] == "assistant")
        .collect();
    assert_eq!(said[0]["stopReason"], "aborted");
    assert_eq!(said[0]["errorMessage"], "something came up");
    assert_eq!(said[1]["stopReason"], "stop");
    live.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_queue_keeps_what_it_has_and_a_resumed_one_starts_a_run_with_it() {
    let home = Home::new();
    install(&home, "messages");
    let live = Setup::new(&home).turns(json!([text("read them")])).start().await;
    patient("the pause", live.engine.request(Op::PauseQueue { paused: true })).await.unwrap();
    live.say("/batch one two").await.unwrap();
    live.wait("the queue", |e| matches!(e, Event::QueueUpdate { steering, .. } if steering.len() == 2)).await;
    assert!(live.engine.view(|v| v.idle), "nothing runs");
    patient("the resume", live.engine.request(Op::PauseQueue { paused: false })).await.unwrap();
    live.wait("the run", |e| matches!(e, Event::AgentSettled)).await;
    live.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_context_knows_its_session_its_commands_and_whose_it_is() {
    let home = Home::new();
    install(&home, "messages");
    let live = Setup::new(&home)
        .config(|c| {
            c.orchestration_context = Some(json!({"kind": "workflow-stage", "workflowStageName": "review"}));
            c.subagent_policy = Some(json!({"managementActions": "restricted"}));
        })
        .start()
        .await;
    let known: Value = serde_json::from_str(&says(&live, "/known").await).unwrap();
    assert_eq!(known["name"], json!({"state": "unset"}));
    assert_eq!(known["defaultDir"], true);
    assert_eq!(known["roots"], 1);
    assert_ne!(known["tools"], 0);
    assert_ne!(known["window"], 0);
    assert_eq!(
        (&known["scope"], &known["origin"], &known["source"]),
        (&json!("user"), &json!("top-level"), &json!("extension"))
    );
    assert_eq!((&known["stage"], &known["subagent"]), (&json!("review"), &json!("restricted")));
    let op = |name: &str| Op::SetSessionName { name: Some(name.to_owned()) };
    for (name, state) in
        [("mine", json!({"state": "named", "name": "mine"})), ("", json!({"state": "cleared"}))]
    {
        patient("the name", live.engine.request(op(name))).await.unwrap();
        let known: Value = serde_json::from_str(&says(&live, "/known").await).unwrap();
        assert_eq!(known["name"], state);
    }
    live.close().await;
}

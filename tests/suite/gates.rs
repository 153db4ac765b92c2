//! Gates fail closed, and nothing that waits or hangs holds a reload up (boundary.md 8).

use atomic_agent::{event::Event, hooks::ToolCallOutcome, op::DialogAnswer};
use atomic_tests::{
    env::Home,
    live::{Setup, bash, line, text},
    patch::misbehaving,
};
use serde_json::json;
use std::sync::Arc;

fn blocked(outcome: &ToolCallOutcome) -> (&str, &str) {
    match outcome {
        ToolCallOutcome::Block { reason, by, .. } => (reason, by),
        ToolCallOutcome::Proceed { .. } => panic!("the call was let through"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gate_whose_generation_retires_while_it_is_asked_has_blocked_the_call() {
    let home = Home::new();
    let out = misbehaving(&home, "slow-gate", "gate-waits");
    let live = Arc::new(Setup::new(&home).start().await);
    let asked = tokio::spawn({
        let live = live.clone();
        async move { live.gate("echo hi").await }
    });
    line(&out, "the gate to be asked", |l| l == "waiting").await;
    live.replace().await;
    let outcome = asked.await.unwrap();
    let (reason, by) = blocked(&outcome);
    assert!(reason.contains("reloaded"), "{reason}");
    assert!(by.contains("slow-gate"), "{by}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gate_that_waits_for_the_host_when_its_generation_retires_has_blocked_too() {
    let home = Home::new();
    let out = misbehaving(&home, "slow-gate", "gate-sleeps");
    let live = Arc::new(Setup::new(&home).start().await);
    let asked = tokio::spawn({
        let live = live.clone();
        async move { live.gate("echo hi").await }
    });
    line(&out, "the gate to be asked", |l| l == "waiting").await;
    live.replace().await;
    assert!(blocked(&asked.await.unwrap()).1.contains("slow-gate"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_dialog_does_not_hold_a_reload_up_and_is_a_no() {
    let home = Home::new();
    let out = misbehaving(&home, "asker", "dialog");
    let live = Arc::new(Setup::new(&home).with_user().start().await);
    let asked = tokio::spawn({
        let live = live.clone();
        async move { live.gate("echo hi").await }
    });
    live.wait("the dialog", |e| matches!(e, Event::DialogOpened { .. })).await;
    live.replace().await;
    live.wait("the dialog's end", |e| matches!(e, Event::DialogClosed { .. })).await;
    blocked(&asked.await.unwrap());
    // The retired handler got the default, not an error: its own code decides, in vain.
    let said = line(&out, "the answer", |l| l.starts_with("dialog")).await;
    assert_eq!(said, "dialog Ok(false)");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blocked_worker_does_not_hold_a_reload_up() {
    let home = Home::new();
    let out = misbehaving(&home, "blocker", "block-worker");
    let live = Arc::new(Setup::new(&home).start().await);
    let asked = tokio::spawn({
        let live = live.clone();
        async move { live.gate("echo hi").await }
    });
    line(&out, "the block", |l| l == "blocking").await;
    let report = live.replace().await;
    assert_eq!(report.extensions.len(), 1, "{report:#?}");
    blocked(&asked.await.unwrap());
    // The new generation is there although the old one never ended.
    line(&out, "the second life", |l| l == "session_start reload").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_an_explicit_yes_lets_a_call_through() {
    let home = Home::new();
    misbehaving(&home, "asker", "dialog");
    let live = Arc::new(Setup::new(&home).with_user().start().await);
    for (answer, passes) in [
        (DialogAnswer::Confirmed(true), true),
        (DialogAnswer::Confirmed(false), false),
        (DialogAnswer::Cancelled, false),
        (DialogAnswer::Value("yes".into()), false),
    ] {
        let mark = live.mark();
        let asked = tokio::spawn({
            let live = live.clone();
            async move { live.gate("echo hi").await }
        });
        live.answer_dialog(mark, answer.clone()).await;
        let outcome = asked.await.unwrap();
        assert_eq!(matches!(outcome, ToolCallOutcome::Proceed { .. }), passes, "{answer:?}: {outcome:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_user_a_question_is_a_no() {
    let home = Home::new();
    misbehaving(&home, "asker", "dialog");
    let live = Setup::new(&home).start().await;
    let outcome = live.gate("echo hi").await;
    assert_eq!(blocked(&outcome).0, "not allowed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blocked_call_never_runs_and_the_model_reads_why() {
    let home = Home::new();
    misbehaving(&home, "gate", "block:not-today");
    let live = Setup::new(&home).turns(json!([bash("touch ran"), text("I see")])).start().await;
    live.run("do it").await;
    assert_eq!(live.tool_results(), [("bash".to_owned(), "not-today".to_owned(), true)]);
    assert!(!home.cwd().join("ran").exists());
    live.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gate_that_fails_blocks_and_its_error_is_the_result() {
    let home = Home::new();
    misbehaving(&home, "gate", "gate-error");
    let live = Setup::new(&home).turns(json!([bash("touch ran"), text("I see")])).start().await;
    live.run("do it").await;
    let results = live.tool_results();
    assert!(results[0].1.contains("gate broke") && results[0].2, "{results:?}");
    assert!(!home.cwd().join("ran").exists());
    live.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_gate_changes_is_what_runs() {
    let home = Home::new();
    misbehaving(&home, "gate", "mutate");
    let live = Setup::new(&home).turns(json!([bash("echo original"), text("ok")])).start().await;
    live.run("do it").await;
    assert_eq!(live.tool_results(), [("bash".to_owned(), "mutated".to_owned(), false)]);
    let file = live.engine.view(|v| v.session_file.clone()).unwrap();
    live.close().await;
    // The session keeps what the model asked for.
    let session = atomic_tests::session::read(&file);
    assert!(session.of_role("assistant")[0].to_string().contains("echo original"));
    session.assert_paired();
}

//! A panic of an extension ends at its own library, wherever it happens; the session goes on,
//! the fault is named once, and the others are not disturbed (boundary.md 7).

use atomic_agent::hooks::ToolCallOutcome;
use atomic_tests::{
    env::Home,
    live::{Live, Setup, bash, line, lines, text},
    patch::misbehaving,
};
use serde_json::json;

/// The session still works: a run with a tool call, heard by an honest neighbour.
async fn still_works(live: &Live, neighbour: &std::path::Path) {
    let before = lines(neighbour).len();
    live.run("go on").await;
    assert!(lines(neighbour)[before..].contains(&"agent_settled".to_owned()), "{:#?}", lines(neighbour));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_in_a_gate_blocks_its_call_wherever_it_happens() {
    for mode in ["panic:tool_call", "panic:sync-tool_call", "poll-panic", "payload-panic"] {
        let home = Home::new();
        let neighbour = misbehaving(&home, "neighbour", "none");
        misbehaving(&home, "panics", mode);
        let live = Setup::new(&home).turns(json!([text("hello")])).start().await;
        let outcome = live.gate("echo hi").await;
        let ToolCallOutcome::Block { reason, by, .. } = outcome else { panic!("{mode}: let through") };
        assert!(by.contains("panics"), "{mode}: {by}");
        assert!(!reason.is_empty(), "{mode}");
        still_works(&live, &neighbour).await;
        live.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn three_panics_in_a_row_are_three_diagnostics_and_nothing_else() {
    let home = Home::new();
    let neighbour = misbehaving(&home, "neighbour", "none");
    misbehaving(&home, "panics", "panic:turn_end");
    let live = Setup::new(&home)
        .turns(json!([bash("echo 1"), bash("echo 2"), text("three"), text("four")]))
        .start()
        .await;
    live.run("go").await;
    let faults = live.faults();
    assert_eq!(faults.len(), 3, "{faults:?}");
    assert!(
        faults.iter().all(|(event, error)| event == "turn_end" && error.contains("went wrong")),
        "{faults:?}"
    );
    assert_eq!(live.tool_results().len(), 2);
    still_works(&live, &neighbour).await;
    live.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_event_survives_a_panic_in_its_handler() {
    for event in [
        "session_start",
        "resources_discover",
        "input",
        "before_agent_start",
        "agent_start",
        "turn_start",
        "message_start",
        "message_update",
        "message_end",
        "context",
        "before_provider_headers",
        "before_provider_request",
        "after_provider_response",
        "tool_execution_start",
        "tool_result",
        "tool_execution_end",
        "turn_end",
        "agent_end",
        "agent_settled",
    ] {
        let home = Home::new();
        let neighbour = misbehaving(&home, "neighbour", "none");
        misbehaving(&home, "panics", &format!("panic:{event}"));
        let live = Setup::new(&home).turns(json!([bash("echo 1"), text("done")])).start().await;
        live.run("go").await;
        assert!(live.faults().iter().any(|(e, _)| e == event), "{event}: no diagnostic, {:?}", live.faults());
        assert_eq!(live.tool_results(), [("bash".to_owned(), "1".to_owned(), false)], "{event}");
        assert!(lines(&neighbour).contains(&"agent_settled".to_owned()), "{event}");
        live.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_while_a_generation_is_dropped_does_not_stop_the_reload() {
    for mode in ["closure-drop-panic", "local-drop-panic"] {
        let home = Home::new();
        let out = misbehaving(&home, "bomb", mode);
        let live = std::sync::Arc::new(Setup::new(&home).start().await);
        let gate = tokio::spawn({
            let live = live.clone();
            async move { live.gate("echo hi").await }
        });
        if mode == "closure-drop-panic" {
            assert!(matches!(gate.await.unwrap(), ToolCallOutcome::Proceed { .. }));
            live.replace().await;
        } else {
            live.replace().await;
            gate.await.unwrap();
        }
        line(&out, "the second life", |l| l == "session_start reload").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_from_a_drop_get_stale_context_and_nothing_hangs() {
    let home = Home::new();
    let out = misbehaving(&home, "caller", "drop-calls");
    let live = Setup::new(&home).start().await;
    live.reload().await;
    let said = line(&out, "a call from a drop", |l| l.starts_with("drop emit")).await;
    assert_eq!(said, "drop emit: error stale_context");
    assert!(
        lines(&out).contains(&"drop getActiveTools: error stale_context".to_owned()),
        "{:#?}",
        lines(&out)
    );
    live.close().await;
}

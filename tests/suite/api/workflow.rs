//! The workflow activity hub over real libraries (events.md F).

use super::{install, noticed};
use atomic_extensions::WorkflowDiagnosticKind as Kind;
use atomic_tests::{
    env::Home,
    live::{Live, Setup},
};

async fn publish(live: &Live, what: &str, heard: &str) {
    let mark = live.mark();
    live.say(&format!("/publish {what}")).await.unwrap();
    noticed(live, mark, heard, |m| m == heard).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_observer_sees_a_snapshot_and_every_change_and_handlers_hear_of_it() {
    let home = Home::new();
    install(&home, "workflow");
    let live = Setup::new(&home).start().await;
    live.say("/watch-workflows").await.unwrap();
    noticed(&live, 0, "what is known", |m| m == "snapshot unavailable None").await;
    publish(&live, "ready", "snapshot ready Some(0)").await;
    publish(&live, "changed", "changed run-1 working executing").await;
    publish(&live, "removed", "removed run-1").await;
    let mark = live.mark();
    publish(&live, "replace", "snapshot unavailable None").await;
    let kinds: Vec<Kind> = live.extensions.workflow_diagnostics().into_iter().map(|d| d.kind).collect();
    assert_eq!(kinds, [Kind::SourceUnavailable, Kind::SourceUnavailable, Kind::SourceUnavailable]);
    let _ = mark;
    publish(&live, "dispose", "snapshot unavailable None").await;
    live.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn handlers_hear_what_was_published_in_its_order() {
    let home = Home::new();
    install(&home, "workflow");
    let live = Setup::new(&home).start().await;
    for what in ["changed", "lifecycle", "heartbeat"] {
        live.say(&format!("/publish {what}")).await.unwrap();
    }
    noticed(&live, 0, "the last of them", |m| m == "heard workflow_heartbeat").await;
    let heard: Vec<String> = live
        .notices()
        .into_iter()
        .filter_map(|n| n.strip_prefix("workflow: heard ").map(str::to_owned))
        .collect();
    assert_eq!(
        heard,
        ["workflow_activity_changed", "workflow_lifecycle", "workflow_stage_completed", "workflow_heartbeat"]
    );
    live.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_registers_while_it_activates_takes_over_at_its_commit() {
    let home = Home::new();
    install(&home, "workflow");
    let live = Setup::new(&home).start().await;
    live.say("/watch-workflows").await.unwrap();
    publish(&live, "ready", "snapshot ready Some(0)").await;
    live.reload().await;
    live.say("/watch-workflows").await.unwrap();
    publish(&live, "changed", "changed run-1 working executing").await;
    let kinds: Vec<Kind> = live.extensions.workflow_diagnostics().into_iter().map(|d| d.kind).collect();
    assert!(kinds.contains(&Kind::ObserverDisposed), "the old observer went with its generation: {kinds:?}");
    assert!(!kinds.contains(&Kind::PublisherFenced), "{kinds:?}");
    live.close().await;
}

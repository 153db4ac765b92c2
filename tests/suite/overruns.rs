//! Handlers that do not answer in their time: each costs the session its limit once, and is named
//! (decisions.md "Observer hooks", "tool_call gate").

use atomic_agent::hooks::ToolCallOutcome;
use atomic_tests::{
    env::Home,
    live::{Setup, bash, line, lines, patient, text},
    patch::misbehaving,
};
use serde_json::json;
use std::{fs, process::Command, time::Duration};

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_that_overran_is_not_asked_again_until_it_answers() {
    let home = Home::new();
    let out = misbehaving(&home, "late", "late:message_end");
    let neighbour = misbehaving(&home, "neighbour", "late:message_end");
    let hold = out.with_extension("hold");
    fs::write(&hold, "").unwrap();
    let turns = json!([bash("echo one"), text("two"), text("three")]);
    let live =
        Setup::new(&home).turns(turns).config(|c| c.handler_timeout = Duration::from_millis(300)).start();
    let live = live.await;
    let asked = || lines(&out).iter().filter(|l| *l == "asked").count();

    live.run("go").await;
    assert_eq!(asked(), 1, "of four messages: {:?}", lines(&out));
    let faults: Vec<_> = live.faults().into_iter().filter(|(event, _)| event == "message_end").collect();
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(faults[0].1.contains("0.3 s"), "{faults:?}");
    let heard = lines(&neighbour).iter().filter(|l| *l == "answered").count();
    assert!(heard >= 4, "the others are asked as ever: {heard}");

    // Its gate cannot be asked either: fail closed, at once, by name.
    let results = live.tool_results();
    assert!(results[0].2 && results[0].1.contains("extension late could not decide"), "{results:?}");
    let ToolCallOutcome::Block { by, .. } = live.gate("echo hi").await else { panic!("let through") };
    assert_eq!(by, "late");

    fs::remove_file(&hold).unwrap();
    line(&out, "its answer", |l| l == "answered").await;
    let opened = async { while !matches!(live.gate("echo hi").await, ToolCallOutcome::Proceed { .. }) {} };
    patient("the gate to open", opened).await;
    live.run("again").await;
    assert!(asked() > 1, "it is asked again: {:?}", lines(&out));
    live.close().await;
}

/// Run by the next test, as a process that ends.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "run by another test, as a process that ends"]
async fn the_child() {
    let Ok(mode) = std::env::var("OVERRUN_TEST_MODE") else { return };
    let home = Home::new();
    misbehaving(&home, "blocker", &mode);
    let live = Setup::new(&home).turns(json!([text("hello")])).config(|c| {
        c.crash_line = true;
        c.handler_timeout = Duration::from_secs(1);
        c.gate_timeout = Some(Duration::from_secs(1));
    });
    live.start().await.run("go").await;
}

/// In print and json mode nobody can act on a session that stands still.
#[test]
fn a_handler_that_blocks_the_session_for_good_is_named_and_ends_a_print_run() {
    for (mode, event) in [
        ("sync-hang:sync-input", "input"),
        ("sync-hang:turn_start", "turn_start"),
        ("sync-hang:sync-message_end", "message_end"),
    ] {
        let scratch = Home::new();
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "overruns::the_child", "--nocapture", "--include-ignored"])
            .env("OVERRUN_TEST_MODE", mode)
            .env("TMPDIR", scratch.path("tmp"))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&child.stderr);
        assert_eq!(child.status.code(), Some(70), "{mode}: {said}");
        let told: Vec<&str> = said.lines().filter(|l| l.starts_with("atomic: extension")).collect();
        assert_eq!(told.len(), 1, "{mode}: {said}");
        assert!(told[0].contains("blocker") && told[0].contains(event), "{mode}: {}", told[0]);
    }
}

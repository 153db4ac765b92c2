//! The api grows at its ends: a library built for api 1.0 and one newer than this host both
//! load, and what they do is what their source says (boundary.md 2, 3).

use atomic_agent::hooks::ToolCallOutcome;
use atomic_tests::{
    env::Home,
    libs,
    live::{Live, Setup, text},
    patch::manifest,
    tree::repo,
};
use serde_json::json;
use std::path::PathBuf;

/// The build that is kept in the repository.
fn golden() -> PathBuf {
    repo().join("tests/golden/1.0/libgolden.so")
}

async fn answers(live: &Live, age: &str) {
    assert!(live.report.refused.is_empty(), "{age}: {:?}", live.report.refused);
    assert!(
        live.notices().iter().any(|n| n.ends_with(&format!("golden {age} session_start startup"))),
        "{age}"
    );
    // A gate that blocks, and one that asks the host before it changes the arguments.
    match live.gate("echo forbidden").await {
        ToolCallOutcome::Block { reason, .. } => assert_eq!(reason, format!("golden {age} forbids it")),
        ToolCallOutcome::Proceed { .. } => panic!("{age}: let through"),
    }
    match live.gate("echo hi").await {
        ToolCallOutcome::Proceed { input } => assert_eq!(input["command"], "echo golden hosted", "{age}"),
        ToolCallOutcome::Block { reason, .. } => panic!("{age}: {reason}"),
    }
    live.run("use the tool").await;
    let (tool, said, error) = live.tool_results().pop().unwrap();
    assert_eq!((tool.as_str(), said, error), ("golden_tool", format!("golden {age} answers"), false));
    live.say("/golden me").await.unwrap();
    let heard = format!("golden {age} hears me");
    live.wait(
        "the command",
        |e| matches!(e, atomic_agent::event::Event::Notify { message, .. } if *message == heard),
    )
    .await;
    // And over a reload, in its own mapping.
    let report = live.reload().await;
    assert_eq!(report.extensions.len(), 1, "{age}: {report:#?}");
    assert!(live.faults().is_empty(), "{age}: {:?}", live.faults());
}

fn turns() -> serde_json::Value {
    json!([{ "toolCalls": [{ "name": "golden_tool", "arguments": {} }] }, text("ok")])
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_golden_extension_and_a_newer_one_load() {
    let newer = libs::fixture_as("golden-newer", "golden_newer");
    let mut builds = vec![(newer, "newer")];
    if cfg!(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu")) {
        builds.push((golden(), "1.0"));
    } else {
        eprintln!("skipped: the golden is a build for x86-64 Linux");
    }
    for (library, age) in builds {
        let home = Home::new();
        home.install(&library);
        let live = Setup::new(&home).turns(turns()).start().await;
        answers(&live, age).await;
        live.close().await;
    }
}

#[test]
fn the_golden_is_what_its_page_says() {
    let golden = golden();
    assert!(std::fs::metadata(&golden).unwrap().len() <= 700_000);
    let m = manifest(&golden);
    assert_eq!((&m["name"], &m["apiVersion"]), (&json!("golden"), &json!("1.0.0")));
    assert_eq!((&m["panic"], &m["profile"]), (&json!("unwind"), &json!("release")));
}

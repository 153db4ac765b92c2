//! What an `activate` may do wrong: nothing of it stays, the others start, and a reload keeps
//! what worked (boundary.md 2, 9).

use atomic_agent::{event::Event, hooks::ExtensionChange};
use atomic_tests::{
    env::Home,
    live::{Setup, bash, line, lines, text},
    patch::misbehaving,
};
use serde_json::json;
use std::time::Duration;

/// Field case B23: one bad extension silently takes the rest with it.
#[tokio::test(flavor = "multi_thread")]
async fn b23_of_four_extensions_the_two_bad_ones_are_named_and_the_others_hear_everything() {
    let home = Home::new();
    let a = misbehaving(&home, "a", "none");
    misbehaving(&home, "b", "init-err");
    let c = misbehaving(&home, "c", "none");
    misbehaving(&home, "d", "init-hang");
    let setup = Setup::new(&home).turns(json!([text("hello")]));
    let live = setup.config(|c| c.init_timeout = Duration::from_millis(300)).start().await;
    let refused: Vec<(Option<&str>, &str)> =
        live.report.refused.iter().map(|r| (r.name.as_deref(), r.code())).collect();
    assert_eq!(refused, [(Some("b"), "extension::init_failed"), (Some("d"), "extension::init_timeout")]);
    assert!(live.report.refused[0].to_string().contains("no token"), "{}", live.report.refused[0]);
    live.run("hi").await;
    for out in [a, c] {
        assert_eq!(
            lines(&out),
            ["activate 1", "session_start startup", "input hi", "agent_start", "agent_settled"]
        );
    }
    live.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_in_activate_is_a_refusal_with_its_message() {
    let home = Home::new();
    misbehaving(&home, "bad", "init-panic");
    let good = misbehaving(&home, "good", "none");
    let live = Setup::new(&home).start().await;
    let refusal = &live.report.refused[0];
    assert_eq!(refusal.code(), "extension::init_failed");
    assert!(refusal.to_string().contains("init went wrong"), "{refusal}");
    assert!(lines(&good).contains(&"session_start startup".to_owned()));
    live.close().await;
}

/// Field case B16: refused, but still half loaded.
#[tokio::test(flavor = "multi_thread")]
async fn b16_nothing_that_a_failed_activation_registered_ever_acts() {
    let home = Home::new();
    let out = misbehaving(&home, "half", "init-half");
    let live = Setup::new(&home).turns(json!([bash("echo 1"), text("a"), text("b")])).start().await;
    assert_eq!(live.report.refused.len(), 1);
    live.run("first").await;
    live.reload().await;
    live.run("second").await;
    let acted: Vec<String> = lines(&out).into_iter().filter(|l| !l.starts_with("activate")).collect();
    assert!(acted.is_empty(), "{acted:?}");
    let names = live.engine.view(|v| v.tools.iter().map(|t| t.name.clone()).collect::<Vec<_>>());
    assert!(!names.contains(&"fixture_tool".to_owned()), "{names:?}");
    let mark = live.mark();
    let _ = live.say("/notify half").await;
    // No such command: the text goes to the model instead, or is refused; nobody notifies.
    live.reload().await;
    let told = live.events().into_iter().skip(mark).any(|e| match &*e {
        Event::Notify { extension, .. } => extension.as_deref() == Some("half"),
        _ => false,
    });
    assert!(!told);
    live.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_made_while_activating_answer_a_value_or_a_code() {
    let home = Home::new();
    let out = misbehaving(&home, "caller", "init-calls");
    let live = Setup::new(&home).start().await;
    assert!(live.report.refused.is_empty(), "{:?}", live.report.refused);
    let said = lines(&out);
    for member in ["getActiveTools", "getCommands", "getSessionName", "getFlag", "emit"] {
        assert!(said.iter().any(|l| l.starts_with(&format!("init {member}: "))), "{member}: {said:#?}");
    }
    assert!(said.contains(&"init getSessionName: error not_available".to_owned()), "{said:#?}");
    live.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_candidate_that_fails_leaves_the_old_generation_untouched() {
    let home = Home::new();
    let out = misbehaving(&home, "once", "init-once");
    let live = Setup::new(&home).start().await;
    let report = live.reload().await;
    let row = &report.extensions[0];
    assert_eq!((row.name.as_str(), row.change), ("once", ExtensionChange::Kept));
    assert!(row.reason.as_deref().unwrap_or("").contains("only the first activation works"), "{row:?}");
    // Neither shutdown nor start, and its command still answers.
    assert_eq!(lines(&out), ["activate 1", "session_start startup", "activate 2"]);
    live.say("/notify still here").await.unwrap();
    assert!(live.notices().contains(&"once: still here".to_owned()), "{:?}", live.notices());
    live.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_file_in_place_of_a_working_one_keeps_the_working_one() {
    let home = Home::new();
    let out = misbehaving(&home, "steady", "none");
    let live = Setup::new(&home).start().await;
    let file = home.extensions().join(atomic_tests::libs::file_name("steady"));
    std::fs::remove_file(&file).unwrap();
    std::fs::write(&file, "not a library").unwrap();
    let report = live.reload().await;
    assert_eq!(report.extensions[0].change, ExtensionChange::Kept, "{report:#?}");
    live.say("/notify still here").await.unwrap();
    assert!(live.notices().contains(&"steady: still here".to_owned()), "{:?}", live.notices());
    assert_eq!(lines(&out), ["activate 1", "session_start startup"]);
    live.close().await;
}

/// Field case B29: reload from an empty start.
#[tokio::test(flavor = "multi_thread")]
async fn b29_an_extension_dropped_in_later_works_after_a_reload() {
    let home = Home::new();
    let live = Setup::new(&home).turns(json!([
        { "toolCalls": [{ "name": "fixture_tool", "arguments": {} }] },
        text("done")
    ]));
    let live = live.start().await;
    assert!(live.extensions.list().is_empty());
    let out = misbehaving(&home, "late", "none:late");
    let report = live.reload().await;
    assert_eq!(report.extensions[0].change, ExtensionChange::Added, "{report:#?}");
    line(&out, "its start", |l| l == "session_start reload").await;
    live.say("/notify hello").await.unwrap();
    assert!(live.notices().contains(&"late: hello".to_owned()), "{:?}", live.notices());
    live.run("use it").await;
    assert_eq!(live.tool_results(), [("fixture_tool".to_owned(), "fixture_tool of late".to_owned(), false)]);
    live.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_that_belongs_to_the_session_is_free_again_for_the_next_generation() {
    let home = Home::new();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let out = misbehaving(&home, "server", &format!("port:{free}"));
    let live = Setup::new(&home).start().await;
    live.reload().await;
    live.reload().await;
    let bound: Vec<String> = lines(&out).into_iter().filter(|l| l.starts_with("bound")).collect();
    assert_eq!(bound, ["bound true", "bound true", "bound true"]);
    live.close().await;
}

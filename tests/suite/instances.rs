//! One mapping of a library may hold several live instances, and an instance may replace
//! itself (boundary.md 2, 8).

use crate::small_server::SmallServer;
use atomic_agent::hooks::StartReason;
use atomic_tests::{
    env::Home,
    live::{Live, Setup, line, lines, text},
    patch::misbehaving,
};
use serde_json::json;

async fn answers(live: &Live, server: &SmallServer, out: &std::path::Path, n: usize) {
    let before = lines(out).len();
    live.say(&format!("/answers {}", server.port())).await.unwrap();
    let said = line(out, "the answers", |l| l.starts_with("answers") && lines(out).len() > before).await;
    assert_eq!(said, format!("answers true 42 ran of {n}"));
}

async fn outlive(first_goes: bool) {
    let home = Home::new();
    let out = misbehaving(&home, "twin", "twin");
    let server = SmallServer::start();
    // Two sessions of one home open the same private copy: one mapping.
    let a = Setup::new(&home).start().await;
    let b = Setup::new(&home).start().await;
    assert_eq!(
        lines(&out).iter().filter(|l| l.starts_with("activate")).collect::<Vec<_>>(),
        ["activate 1", "activate 2"],
        "one mapping, two instances"
    );
    let (gone, stays) = if first_goes { (a, b) } else { (b, a) };
    answers(&gone, &server, &out, 2).await;
    gone.close().await;
    std::fs::remove_file(&out).unwrap();
    answers(&stays, &server, &out, 2).await;
    stays.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_live_instances_outlive_each_other_in_either_order() {
    outlive(true).await;
    outlive(false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_reloads_itself_returns_and_its_context_is_stale() {
    let home = Home::new();
    let out = misbehaving(&home, "self-reloader", "none");
    let live = Setup::new(&home).start().await;
    live.say("/reload-me").await.unwrap();
    let said = line(&out, "its return", |l| l.starts_with("reload-me returned")).await;
    assert_eq!(said, "reload-me returned 1 stale Some(\"stale_context\")");
    assert_eq!(
        lines(&out).into_iter().filter(|l| !l.starts_with("reload-me")).collect::<Vec<_>>(),
        [
            "activate 1",
            "session_start startup",
            "activate 2",
            "session_shutdown reload",
            "session_start reload"
        ],
        "the new generation was there before the old one was told to go"
    );
    // And it goes on working.
    let server = SmallServer::start();
    answers(&live, &server, &out, 2).await;
    live.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_opens_a_session_and_sends_through_it() {
    let home = Home::new();
    let out = misbehaving(&home, "opener", "none");
    let live = Setup::new(&home).turns([text("hello back")].to_vec().into()).start().await;
    let first = live.engine.view(|v| v.session_id.clone());
    live.say("/new-session 0.1").await.unwrap();
    let said = line(&out, "its return", |l| l.starts_with("new-session returned")).await;
    assert_eq!(said, "new-session returned false stale Some(\"stale_context\")");
    assert!(lines(&out).contains(&"with_session slept 0".to_owned()), "{:#?}", lines(&out));
    assert!(lines(&out).contains(&"input hello from with_session".to_owned()), "{:#?}", lines(&out));
    assert_ne!(live.engine.view(|v| v.session_id.clone()), first);
    assert_eq!(live.starts(), [StartReason::Startup, StartReason::New]);
    let file = live.engine.view(|v| v.session_file.clone()).expect("the new session was written");
    live.close().await;
    let session = atomic_tests::session::read(&file);
    let said: Vec<String> = session.messages().iter().map(|m| atomic_tests::session::text(m)).collect();
    assert!(said.contains(&"hello from with_session".to_owned()), "{said:?}");
    assert!(said.contains(&"hello back".to_owned()), "{said:?}");
}

/// The five seconds of a carrier run only while it waits for nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_closure_with_the_new_session_may_take_longer_than_a_carrier_is_given() {
    if std::env::var_os("ATOMIC_SOAK").is_none() {
        eprintln!("skipped: takes 6 s of real time; ATOMIC_SOAK=1 runs it");
        return;
    }
    let home = Home::new();
    let out = misbehaving(&home, "patient-opener", "none");
    let live = Setup::new(&home).turns([text("hello back")].to_vec().into()).start().await;
    live.say("/new-session 6").await.unwrap();
    line(&out, "its return", |l| l == "with_session slept 0").await;
    line(&out, "its return", |l| l.starts_with("new-session returned false")).await;
    live.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_in_a_static_answers_before_and_after_a_reload_of_unchanged_code() {
    let home = Home::new();
    let out = misbehaving(&home, "static-client", "none");
    let server = SmallServer::start();
    let live = Setup::new(&home).start().await;
    for round in 0..3 {
        live.say(&format!("/static-client {}", server.port())).await.unwrap();
        line(&out, "an answer", |l| {
            l == "static-client 200 OK small"
                && lines(&out).iter().filter(|l| l.starts_with("static")).count() > round
        })
        .await;
        let report = live.reload().await;
        assert_eq!(report.extensions.len(), 1, "{report:#?}");
    }
    assert!(lines(&out).contains(&"activate 4".to_owned()), "one mapping all along: {:#?}", lines(&out));
    live.close().await;
}

/// Field case B18: "there is no reactor running", or a spawn that never runs.
#[tokio::test(flavor = "multi_thread")]
async fn b18_twenty_calls_at_once_of_two_libraries_use_network_timer_and_file() {
    let home = Home::new();
    // Two mappings, each with a runtime of its own.
    misbehaving(&home, "one", "none:one");
    misbehaving(&home, "two", "none:two");
    let server = SmallServer::start();
    let file = home.write("read.me", "file");
    let call = |n: usize| {
        let name = ["async_one", "async_two"][n % 2];
        json!({ "name": name, "arguments": { "port": server.port(), "file": file } })
    };
    let batch = json!({ "toolCalls": (0..20).map(call).collect::<Vec<_>>() });
    let turns = json!([batch, text("a"), batch, text("b")]);
    let live = Setup::new(&home).turns(turns).start().await;
    live.run("all at once").await;
    live.reload().await;
    live.run("and again").await;
    let results = live.tool_results();
    assert_eq!(results.len(), 40);
    assert!(results.iter().all(|(_, said, error)| said == "small file" && !error), "{results:#?}");
    live.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_that_left_a_thread_behind_is_not_reused() {
    let home = Home::new();
    let out = misbehaving(&home, "leaker", "leak-thread");
    let live = Setup::new(&home).start().await;
    live.reload().await;
    let activations: Vec<String> = lines(&out).into_iter().filter(|l| l.starts_with("activate")).collect();
    // The candidate is activated before the old generation is retired, so the first reload
    // shares the mapping; the second one must not.
    live.reload().await;
    let after: Vec<String> = lines(&out).into_iter().filter(|l| l.starts_with("activate")).collect();
    assert_eq!(activations, ["activate 1", "activate 2"]);
    assert_eq!(after, ["activate 1", "activate 2", "activate 1"], "a second mapping has statics of its own");
    live.close().await;
}

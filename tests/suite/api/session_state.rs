//! State that outlives a generation, reasons to keep the engine, and timers.

use super::{install, noticed, says};
use atomic_agent::op::Op;
use atomic_tests::{
    env::Home,
    live::{Setup, patient},
    patch::misbehaving,
};

#[tokio::test(flavor = "multi_thread")]
async fn state_of_the_session_survives_a_reload_and_ends_with_the_session() {
    let home = Home::new();
    install(&home, "session_state");
    let live = Setup::new(&home).start().await;
    noticed(&live, 0, "the first life", |m| m == "life 1").await;
    let mark = live.mark();
    live.reload().await;
    noticed(&live, mark, "the second life", |m| m == "life 2").await;
    let mark = live.mark();
    let op = Op::NewSession { parent_session: None, origin: None, setup: vec![] };
    patient("the new session", live.engine.request(op)).await.unwrap();
    noticed(&live, mark, "another session's first life", |m| m == "life 1").await;
    live.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_step_of_an_update_is_lost_between_threads() {
    let home = Home::new();
    install(&home, "session_state");
    let live = Setup::new(&home).start().await;
    assert_eq!(says(&live, "/count").await, "counted 400");
    live.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_keeps_the_engine_is_named_until_it_is_dropped_or_its_generation_ends() {
    let home = Home::new();
    install(&home, "session_state");
    misbehaving(&home, "leaky", "leak-thread");
    let live = Setup::new(&home).start().await;
    // A thread that would not stop: the engine is tired, and something may stand in the way.
    live.say("/hold old work").await.unwrap();
    let mut reasons = Vec::new();
    live.reload().await;
    for command in ["", "/hold new work", "/hold"] {
        if !command.is_empty() {
            live.say(command).await.unwrap();
        }
        let tired = patient("the graveyard", async {
            loop {
                if let Some(tired) = live.extensions.tired() {
                    return tired;
                }
                tokio::task::yield_now().await;
            }
        })
        .await;
        reasons.push(tired.postponed.into_iter().filter(|p| p.contains("work")).collect::<Vec<_>>());
    }
    assert_eq!(reasons[1], ["session_state: new work"]);
    assert_eq!(reasons[2], [""; 0]);
    assert!(!reasons[1].iter().any(|r| r.contains("old")), "the old one went with its generation");
    live.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn timers_go_off_once_and_again_and_again() {
    let home = Home::new();
    install(&home, "session_state");
    let live = Setup::new(&home).start().await;
    live.say("/timers").await.unwrap();
    for said in ["timeout", "interval 1", "interval 2"] {
        noticed(&live, 0, said, |m| m == said).await;
    }
    live.close().await;
}

//! The event bus (events.md E.6, decisions.md).

use super::{install, install_as, noticed, says};
use atomic_agent::event::Event;
use atomic_tests::{
    env::Home,
    live::{Live, Setup},
};

fn said(live: &Live) -> Vec<String> {
    live.notices().into_iter().filter(|n| n.contains(": said ")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn values_come_in_emit_order_to_subscribers_in_their_order_whoever_fails() {
    let home = Home::new();
    install_as(&home, "bus", "a-bus");
    install_as(&home, "bus", "b-bus");
    let live = Setup::new(&home).start().await;
    live.say("/say:1 100").await.unwrap();
    noticed(&live, 0, "the last value", |m| m == "said 100").await;
    live.wait("the other's", |_| said(&live).len() >= 8).await;
    let wanted: Vec<String> = [25, 50, 75, 100]
        .into_iter()
        .flat_map(|n| ["a-bus", "b-bus"].map(|who| format!("{who}: said {n}")))
        .collect();
    assert_eq!(said(&live), wanted);
    let faults = live.faults();
    assert!(
        faults.iter().any(|(e, f)| e == "events:example:said" && f.contains("the first one fails")),
        "{faults:?}"
    );
    assert!(faults.iter().any(|(_, f)| f.contains("the second one panics")));
    live.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_answered_on_its_own_reply_channel_or_not_waited_for() {
    let home = Home::new();
    install(&home, "bus");
    let live = Setup::new(&home).start().await;
    assert_eq!(says(&live, "/double 21").await, "double 42");
    let refused = says(&live, "/double x").await;
    assert!(refused.contains("bad_request"), "{refused}");
    assert_eq!(says(&live, "/nobody").await, "nobody timeout");
    live.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn subscriptions_die_with_their_generation_and_the_bus_goes_on() {
    let home = Home::new();
    install(&home, "bus");
    let live = Setup::new(&home).start().await;
    for _ in 0..2 {
        live.reload().await;
    }
    let mark = live.mark();
    live.say("/say 25").await.unwrap();
    noticed(&live, mark, "the value", |m| m == "said 25").await;
    assert_eq!(says(&live, "/double 1").await, "double 2");
    let heard = live
        .events()
        .iter()
        .skip(mark)
        .filter(|e| matches!(&***e, Event::Notify { message, .. } if message == "said 25"))
        .count();
    assert_eq!(heard, 1, "only the living generation hears");
    live.close().await;
}

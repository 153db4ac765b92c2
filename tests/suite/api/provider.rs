//! Providers of extensions, and asking models beside the session (events.md E.5).

use super::{install, says};
use atomic_agent::{event::Event, message::Message, op::Op};
use atomic_tests::{
    env::Home,
    live::{Live, Setup, patient},
};

fn last_said(live: &Live) -> String {
    let said = |e: &std::sync::Arc<Event>| match &**e {
        Event::MessageEnd { message } => match &**message {
            Message::Assistant(m) => Some(format!("{:?} {}", m.stop_reason.unwrap(), message_text(message))),
            _ => None,
        },
        _ => None,
    };
    live.events().iter().filter_map(said).next_back().unwrap()
}

fn message_text(message: &Message) -> String {
    atomic_tests::session::text(&serde_json::to_value(message).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_extension_makes_the_answers_of_its_own_provider() {
    let home = Home::new();
    install(&home, "provider");
    let live = Setup::new(&home).start().await;
    let models = says(&live, "/models").await;
    assert!(models.contains("echo/parrot") && models.contains("local/tiny"), "{models}");
    let wrong = live.faults().into_iter().find(|(event, _)| event == "register_provider").unwrap();
    assert!(wrong.1.contains("provider wrong") && wrong.1.contains("smoke-signals"), "{wrong:?}");

    assert_eq!(says(&live, "/use").await, "set true");
    live.run("hello you there").await;
    assert_eq!(last_said(&live), "Stop hello you there");
    let deltas = live.events().iter().filter(|e| matches!(&***e, Event::MessageUpdate { .. })).count();
    assert!(deltas >= 3, "it streams: {deltas}");
    live.run("fail").await;
    assert!(last_said(&live).starts_with("Error"), "{}", last_said(&live));

    live.say("wait").await.unwrap();
    live.wait("the first words", |e| {
        matches!(e, Event::MessageUpdate { assistant_message_event: atomic_agent::message::AssistantEvent::TextDelta { delta, .. }, .. } if delta == "waiting")
    })
    .await;
    let mark = live.mark();
    patient("the abort", live.engine.request(Op::Abort)).await.unwrap();
    live.wait_after(mark, "the end", |e| matches!(e, Event::AgentSettled)).await;
    assert!(last_said(&live).starts_with("Aborted"), "{}", last_said(&live));

    live.reload().await;
    live.run("and again").await;
    assert_eq!(last_said(&live), "Stop and again", "the session goes on with the provider's new life");
    live.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_is_asked_beside_the_session_step_by_step() {
    let home = Home::new();
    install(&home, "provider");
    let live = Setup::new(&home).start().await;
    assert_eq!(says(&live, "/ask one two").await, "one two [one |two] ");
    assert_eq!(says(&live, "/ask fail").await, " [] the parrot is asleep");
    let entries = live.engine.view(|v| v.entries.len());
    let messages = live.events().iter().filter(|e| matches!(&***e, Event::MessageEnd { .. })).count();
    assert_eq!(messages, 0, "nothing of it is in the session ({entries} entries)");
    live.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_goes_when_it_is_taken_back_and_comes_again_with_a_reload() {
    let home = Home::new();
    install(&home, "provider");
    let live = Setup::new(&home).start().await;
    live.say("/forget echo").await.unwrap();
    assert!(!says(&live, "/models").await.contains("echo/"));
    live.reload().await;
    assert!(says(&live, "/models").await.contains("echo/parrot"));
    live.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_is_asked_for_its_models_has_others_when_the_list_is_looked_at() {
    let home = Home::new();
    install(&home, "provider");
    let live = Setup::new(&home).start().await;
    // Asked once when it was registered, beside the start.
    while !says(&live, "/models").await.contains("shelf/book-0") {
        tokio::task::yield_now().await;
    }
    let list = patient("the list", live.engine.request(Op::ListModels)).await.unwrap();
    let ids: Vec<&str> = list["models"].as_array().unwrap().iter().filter_map(|m| m["id"].as_str()).collect();
    assert!(ids.contains(&"book-1") && !ids.contains(&"book-2"), "{ids:?}");
    live.reload().await;
    // Its new life counts from the beginning, and is asked anew.
    let list = patient("the list", live.engine.request(Op::ListModels)).await.unwrap();
    let count = list["models"].as_array().unwrap().iter().filter(|m| m["provider"] == "shelf").count();
    assert!((1..=2).contains(&count), "{list}");
    live.close().await;
}

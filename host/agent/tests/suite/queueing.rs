//! Steering, follow-ups, and messages of extensions (events.md E.4).

use crate::doubles::*;
use atomic_agent::{
    event::Event,
    hooks::StreamingBehavior,
    message::{Message, MessageContent},
    op::{DeliverAs, Op, OutgoingMessage, SendOptions},
    tool::ToolOutput,
};
use serde_json::json;
use std::sync::Arc;
use tokio::sync::Notify;

fn note(text: &str, options: SendOptions) -> Op {
    let content = MessageContent::Text(text.into());
    let message = OutgoingMessage { custom_type: "n".into(), content, display: true, details: None };
    Op::SendMessage { message, options }
}

fn trigger(yes: bool, deliver_as: Option<DeliverAs>) -> SendOptions {
    SendOptions { trigger_turn: Some(yes), deliver_as, ..SendOptions::default() }
}

fn texts(rig: &Rig, request: usize) -> Vec<String> {
    let text = |m: &Message| match m {
        Message::User(m) => m.content.plain_text(),
        other => other.role().to_owned(),
    };
    rig.model.request(request).messages.iter().map(text).collect()
}

/// A run whose first turn makes a call, with these ops requested while the call is announced.
async fn during_a_call(ops: Vec<Op>, answers: &[&'static str]) -> Rig {
    let mut steps = vec![Step::Calls(vec![call("a", "echo 1")])];
    steps.extend(answers.iter().map(|t| Step::Text(t)));
    let rig = build(steps)
        .log(|log| {
            *log.during.lock().unwrap() = ops.into_iter().map(|op| ("tool_execution_start", op)).collect();
        })
        .start()
        .await;
    rig.run("go").await;
    rig
}

#[tokio::test]
async fn one_poll_takes_one_message_or_all_as_its_mode_says() {
    use atomic_agent::queue::QueueMode;
    let place = |to| trigger(true, Some(to));
    for (to, follow_up) in [(DeliverAs::Steer, false), (DeliverAs::FollowUp, true)] {
        for (mode, requests) in [(QueueMode::OneAtATime, 3), (QueueMode::All, 2)] {
            let set = if follow_up { Op::SetFollowUpMode { mode } } else { Op::SetSteeringMode { mode } };
            let ops = vec![
                ("agent_start", set),
                ("tool_execution_start", note("one", place(to))),
                ("tool_call", note("two", place(to))),
            ];
            let calls = Step::Calls(vec![call("a", "echo 1")]);
            let rig = build([calls, Step::Text("a"), Step::Text("b"), Step::Text("c")])
                .log(|log| *log.during.lock().unwrap() = ops)
                .start()
                .await;
            rig.run("go").await;
            // A follow-up waits for the answer that would have been the last.
            let asked = requests + usize::from(follow_up);
            assert_eq!(rig.model.requests.lock().unwrap().len(), asked, "{to:?} {mode:?}");
            let shown = rig.handle.view(|v| if follow_up { v.follow_up_mode } else { v.steering_mode });
            assert_eq!(shown, mode);
        }
    }
}

#[tokio::test]
async fn a_prompt_during_a_run_needs_to_say_where_it_goes() {
    let rig = build([Step::UntilAborted("…")]).start().await;
    rig.prompt("go").await.unwrap();
    rig.model.speaking.notified().await;
    let refused = rig.prompt("more").await.unwrap_err();
    assert_eq!(refused.code, "streaming_behavior_required");
    rig.handle.request(Op::Abort).await.unwrap();
    rig.idle().await;
}

#[tokio::test]
async fn a_follow_up_comes_when_the_run_would_stop_one_at_a_time() {
    let go = Arc::new(Notify::new());
    let wait = go.clone();
    let tool = Fake::new("waits", "x", move |_| {
        let wait = wait.clone();
        async move {
            wait.notified().await;
            Ok(ToolOutput::text("ok"))
        }
    });
    let calls = Step::Calls(vec![("a", "waits", json!({"x": ""}))]);
    let steps = [calls, Step::Text("one"), Step::Text("two"), Step::Text("three")];
    let mut rig = build(steps).tool(tool).start().await;
    rig.prompt("go").await.unwrap();
    for text in ["then", "and then"] {
        let place = Some(StreamingBehavior::FollowUp);
        assert_eq!(rig.prompt_as(text, place).await.unwrap(), "queued");
    }
    go.notify_one();
    rig.idle().await;
    assert_eq!(texts(&rig, 2).last().unwrap(), "then");
    assert_eq!(texts(&rig, 3).last().unwrap(), "and then");
    assert_eq!(rig.log.count("agent_settled"), 1);
    let queues: Vec<usize> = rig
        .told()
        .iter()
        .filter_map(|e| match &**e {
            Event::QueueUpdate { follow_up, .. } => Some(follow_up.len()),
            _ => None,
        })
        .collect();
    assert_eq!(queues.last(), Some(&0));
}

#[tokio::test]
async fn a_message_of_an_extension_steers_a_run_and_is_followed_up_if_it_says_so() {
    let rig = during_a_call(vec![note("s", SendOptions::default())], &["done"]).await;
    assert_eq!(texts(&rig, 1), ["go", "assistant", "toolResult", "s"]);

    let follow = trigger(true, Some(DeliverAs::FollowUp));
    let rig = during_a_call(vec![note("f", follow)], &["done", "more"]).await;
    assert_eq!(texts(&rig, 1).last().unwrap(), "toolResult");
    assert_eq!(texts(&rig, 2).last().unwrap(), "f");
    assert_eq!(rig.log.count("agent_settled"), 1);
}

#[tokio::test]
async fn idle_a_message_starts_a_run_only_if_asked_to() {
    let rig = build([Step::Text("hello"), Step::Text("yes")]).start().await;
    rig.handle.request(note("quiet", SendOptions::default())).await.unwrap();
    rig.idle().await;
    assert_eq!(rig.log.count("agent_start"), 0);
    rig.handle.request(note("loud", trigger(true, None))).await.unwrap();
    rig.idle().await;
    assert_eq!(texts(&rig, 0), ["quiet", "loud"]);
    assert_eq!(rig.log.count("message_start role=custom content=loud"), 1);
    assert_eq!(rig.log.count("message_start role=custom content=quiet"), 0, "only listeners are told");
    assert_eq!(rig.log.count("agent_settled"), 1);
}

#[tokio::test]
async fn a_message_for_the_next_turn_waits_for_the_user() {
    let rig = build([Step::Text("hello")]).start().await;
    rig.handle.request(note("held", trigger(true, Some(DeliverAs::NextTurn)))).await.unwrap();
    rig.idle().await;
    assert_eq!(rig.log.count("agent_start"), 0);
    rig.run("go").await;
    assert_eq!(texts(&rig, 0), ["go", "held"]);
}

#[tokio::test]
async fn an_interrupt_aborts_the_run_and_starts_its_own() {
    let rig = build([Step::UntilAborted("…"), Step::Text("yes")]).start().await;
    rig.prompt("go").await.unwrap();
    rig.model.speaking.notified().await;
    rig.handle.request(note("now", trigger(true, Some(DeliverAs::Interrupt)))).await.unwrap();
    rig.idle().await;
    assert_eq!(texts(&rig, 1), ["go", "assistant", "now"]);
    assert_eq!(rig.log.count("agent_settled"), 2);
}

#[tokio::test]
async fn hidden_messages_are_kept_and_not_sent() {
    let hidden = SendOptions { exclude_from_context: true, ..Default::default() };
    let rig = during_a_call(vec![note("secret", hidden)], &["done"]).await;
    assert!(!texts(&rig, 1).contains(&"secret".to_owned()));
    assert!(rig.file().iter().any(|l| l["content"] == "secret" && l["excludeFromContext"] == true));
}

#[tokio::test]
async fn what_a_settled_handler_asks_for_is_a_run_of_its_own() {
    let rig = build([Step::Text("one"), Step::Text("two")])
        .log(|log| log.during.lock().unwrap().push(("agent_settled", note("again", trigger(true, None)))))
        .start()
        .await;
    rig.prompt("go").await.unwrap();
    while rig.log.count("agent_settled") < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(texts(&rig, 1), ["go", "assistant", "again"]);
    let lines = rig.log.lines();
    let settled = lines.iter().position(|l| l == "agent_settled").unwrap();
    assert_eq!(lines[settled + 1], "before_agent_start prompt=");
}

#[tokio::test]
async fn a_failed_run_keeps_its_queue_and_says_error() {
    let rig = build([Step::Error("no such model"), Step::Text("fine")]).start().await;
    rig.run("go").await;
    assert_eq!(rig.log.count("turn_end turnIndex=0 role=assistant stopReason=error"), 1);
    assert_eq!(rig.log.count("agent_settled"), 1);
    rig.run("again").await;
    assert_eq!(texts(&rig, 1), ["go", "again"]);
}

#[tokio::test]
async fn what_waits_can_be_taken_back_and_is_never_sent() {
    let mut rig = build([Step::UntilAborted("…"), Step::Text("fresh")]).start().await;
    rig.prompt("go").await.unwrap();
    rig.model.speaking.notified().await;
    rig.prompt_as("steer", Some(StreamingBehavior::Steer)).await.unwrap();
    rig.prompt_as("later", Some(StreamingBehavior::FollowUp)).await.unwrap();
    rig.handle.request(Op::Abort).await.unwrap();
    let taken = rig.handle.request(Op::ClearQueue).await.unwrap();
    assert_eq!(taken, json!({"steering": ["steer"], "followUp": ["later"]}));
    rig.idle().await;
    let last = rig.told().iter().rev().find_map(|e| match &**e {
        Event::QueueUpdate { steering, follow_up } => Some(steering.len() + follow_up.len()),
        _ => None,
    });
    assert_eq!(last, Some(0));
    rig.run("again").await;
    assert_eq!(texts(&rig, 1), ["go", "assistant", "again"]);
    assert_eq!(rig.handle.view(|v| v.pending_messages), 0);
}

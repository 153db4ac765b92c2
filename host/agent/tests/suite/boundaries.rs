//! What handlers of `turn_end` and `agent_before_settle` propose, and when a run goes on.

use crate::{doubles::*, order::compare};
use atomic_agent::{
    boundary::{Boundary, MAX_CONTINUATIONS},
    event::Event,
    message::Message,
};
use serde_json::{Value, json};

fn say(text: &str) -> Value {
    json!({"type": "custom_message", "customType": "x", "content": text, "display": false})
}

fn roles_of(messages: &[Message]) -> Vec<&str> {
    messages.iter().map(Message::role).collect()
}

#[tokio::test]
async fn a_first_turn_end_goes_on_with_a_message() {
    let log = |log: &mut Log| {
        log.boundary = Some(Box::new(|event, n, _, propose| {
            if (event, n) == ("turn_end", 1) {
                propose(Some(vec![say("go on")]), Some(true));
            }
        }));
    };
    let rig = build([Step::Text("hello there"), Step::Text("went on")]).log(log).start().await;
    compare(rig, &["hi"], include_str!("goldens/turn_continue.txt")).await;
}

#[tokio::test]
async fn a_first_settling_goes_on_with_a_message() {
    let log = |log: &mut Log| {
        log.boundary = Some(Box::new(|event, n, _, propose| {
            if (event, n) == ("agent_before_settle", 1) {
                propose(Some(vec![say("look again")]), Some(true));
            }
        }));
    };
    let rig = build([Step::Text("hello there"), Step::Text("reviewed")]).log(log).start().await;
    compare(rig, &["hi"], include_str!("goldens/settle_continue.txt")).await;
}

#[tokio::test]
async fn an_answer_taken_out_of_the_context_is_asked_for_again_and_stays_in_the_file() {
    let log = |log: &mut Log| {
        log.boundary = Some(Box::new(|_, n, boundary, propose| {
            let Boundary::TurnEnd(turn) = boundary else { return };
            if n == 1 {
                let edit =
                    json!({"type": "context_edit", "targetId": turn.message_entry_id, "replacement": null});
                let context = propose(Some(vec![edit, say("Answer again.")]), Some(true));
                assert!(context.can_continue);
                assert_eq!(roles_of(&context.llm_messages), ["user", "user"]);
                assert_eq!(roles_of(&context.context_messages), ["system", "user", "custom"]);
                let last = context.context_entries.last().unwrap();
                assert_eq!(last["type"], "custom_message");
            }
        }));
    };
    let rig = build([Step::Text("bad"), Step::Text("good")]).log(log).start().await;
    rig.run("hi").await;

    assert_eq!(roles_of(&rig.model.request(1).messages), ["user", "user"]);
    let written = rig.written();
    assert_eq!(written, ["system", "user", "assistant", "context_edit", "custom_message", "assistant"]);
    assert_eq!(rig.log.count("entry_appended"), 2);
}

#[tokio::test]
async fn one_draft_that_cannot_be_written_keeps_all_of_them_out_and_ends_the_run() {
    let log = |log: &mut Log| {
        log.boundary = Some(Box::new(|event, _, _, propose| {
            if event == "turn_end" {
                let lost = json!({"type": "context_edit", "targetId": "nowhere", "replacement": null});
                propose(Some(vec![say("fine"), lost]), Some(true));
            }
        }));
    };
    let rig = build([Step::Text("hello")]).log(log).start().await;
    rig.run("hi").await;
    assert_eq!(rig.written(), ["system", "user", "assistant"]);
    let faults = rig.log.faults.lock().unwrap().clone();
    assert_eq!(faults, ["Invalid boundary entries: entry 1: no entry nowhere on this branch"]);
}

#[tokio::test]
async fn a_later_handler_mends_what_an_earlier_one_proposed() {
    let log = |log: &mut Log| {
        log.boundary = Some(Box::new(|event, _, _, propose| {
            if event == "turn_end" {
                propose(Some(vec![json!({"type": "custom", "customType": ""})]), None);
                propose(Some(vec![json!({"type": "custom", "customType": "mended", "data": 1})]), None);
            }
        }));
    };
    let rig = build([Step::Text("hello")]).log(log).start().await;
    rig.run("hi").await;
    assert_eq!(rig.log.faults.lock().unwrap().len(), 1);
    assert_eq!(rig.written(), ["system", "user", "assistant", "custom"]);
    assert_eq!(rig.file().last().unwrap()["data"], 1);
}

#[tokio::test]
async fn a_field_that_is_not_given_keeps_what_was_proposed_for_it() {
    let log = |log: &mut Log| {
        log.boundary = Some(Box::new(|event, n, _, propose| {
            if (event, n) == ("turn_end", 1) {
                propose(Some(vec![say("one")]), None);
                propose(None, Some(true));
            }
        }));
    };
    let rig = build([Step::Text("hello"), Step::Text("again")]).log(log).start().await;
    rig.run("hi").await;
    assert_eq!(rig.written(), ["system", "user", "assistant", "custom_message", "assistant"]);
}

#[tokio::test]
async fn going_on_after_a_last_word_of_the_model_is_a_fault_and_no_turn() {
    let log = |log: &mut Log| {
        log.boundary = Some(Box::new(|_, _, _, propose| {
            assert!(!propose(None, Some(true)).can_continue);
        }));
    };
    let mut rig = build([Step::Text("hello")]).log(log).start().await;
    rig.run("hi").await;
    let faults: Vec<String> = rig
        .told()
        .iter()
        .filter_map(|e| match &**e {
            Event::ExtensionError { error, extension_path, .. } => Some(format!("{extension_path} {error}")),
            _ => None,
        })
        .collect();
    assert_eq!(
        faults,
        ["turn_end", "agent_before_settle"]
            .map(|e| format!("/x.so {e} requested continuation without runnable model context"))
    );
}

#[tokio::test]
async fn a_prompt_goes_on_so_often_and_no_oftener() {
    let log = |log: &mut Log| {
        log.boundary = Some(Box::new(|_, _, _, propose| {
            propose(Some(vec![say("more")]), Some(true));
        }));
    };
    let steps = (0..=MAX_CONTINUATIONS).map(|_| Step::Text("hello"));
    let mut rig = build(steps).log(log).start().await;
    rig.run("hi").await;
    assert_eq!(rig.model.requests.lock().unwrap().len(), MAX_CONTINUATIONS + 1);
    let told = rig.until(|e| matches!(e, Event::ExtensionError { .. })).await;
    let Event::ExtensionError { error, .. } = &*told else { unreachable!() };
    assert!(error.contains("agent.maxHookContinuations") && error.starts_with("x "), "{error}");
}

#[tokio::test]
async fn an_aborted_or_failed_run_writes_what_is_proposed_and_does_not_go_on() {
    for (step, outcome) in [(Step::Error("no such model"), "error"), (Step::UntilAborted("…"), "aborted")] {
        let log = |log: &mut Log| {
            log.boundary = Some(Box::new(|event, _, _, propose| {
                if event == "agent_before_settle" {
                    propose(Some(vec![say("noted")]), Some(true));
                }
            }));
        };
        let rig = build([step]).log(log).start().await;
        rig.prompt("hi").await.unwrap();
        if outcome == "aborted" {
            rig.model.speaking.notified().await;
            rig.handle.request(atomic_agent::op::Op::Abort).await.unwrap();
        }
        rig.idle().await;
        assert_eq!(rig.log.count(&format!("agent_before_settle outcome={outcome}")), 1);
        assert_eq!(rig.written().last().unwrap(), "custom_message");
        assert_eq!(rig.model.requests.lock().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn what_is_on_the_board_when_the_user_aborts_is_written_and_nothing_goes_on() {
    let log = |log: &mut Log| {
        log.boundary = Some(Box::new(|event, _, _, propose| {
            if event == "agent_before_settle" {
                propose(Some(vec![say("noted")]), Some(true));
            }
        }));
        log.boundary_hangs = true;
    };
    // The first hanging handler is that of turn_end.
    let rig = build([Step::Text("hello")]).log(log).start().await;
    rig.prompt("hi").await.unwrap();
    rig.log.asked.notified().await;
    rig.handle.request(atomic_agent::op::Op::Abort).await.unwrap();
    rig.log.asked.notified().await;
    rig.handle.request(atomic_agent::op::Op::Abort).await.unwrap();
    rig.idle().await;
    assert_eq!(rig.written(), ["system", "user", "assistant", "custom_message"]);
    assert_eq!(rig.model.requests.lock().unwrap().len(), 1);
}

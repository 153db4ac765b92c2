//! What follows an answer that did not come: another attempt, another model, going on.

use crate::doubles::*;
use atomic_agent::{event::Event, message::Message, op::Op, recovery::RecoverySettings};
use serde_json::{Value, json};
use std::time::Duration;

fn soon() -> RecoverySettings {
    RecoverySettings { base_delay: Duration::from_millis(1), ..RecoverySettings::default() }
}

fn patient(settings: RecoverySettings) -> impl Fn(Vec<Step>) -> Build {
    move |steps| Build { recovery: settings.clone(), ..build(steps) }
}

const BUSY: Step = Step::Failed("models::server_error", "", None);

/// The events of a chain of runs, as a protocol tells them, without what is in messages.
fn chain(rig: &mut Rig) -> Vec<Value> {
    let told = rig.told();
    let of_chain = |e: &Event| {
        matches!(
            e,
            Event::AgentStart
                | Event::AgentEnd { .. }
                | Event::AgentSettled
                | Event::AutoRetryStart { .. }
                | Event::AutoRetryEnd { .. }
                | Event::ModelFallbackStart { .. }
                | Event::ModelFallbackEnd { .. }
                | Event::ModelChanged { .. }
        )
    };
    let lines = told.iter().filter(|e| of_chain(e)).map(|e| {
        let mut line = serde_json::to_value(&**e).unwrap();
        let fields = line.as_object_mut().unwrap();
        fields.remove("messages");
        for model in ["model", "previousModel"] {
            if let Some(id) = fields.get(model).map(|m| m["id"].clone()) {
                fields.insert(model.into(), id);
            }
        }
        line
    });
    lines.collect()
}

fn end(will_retry: bool) -> Value {
    json!({"type": "agent_end", "willRetry": will_retry})
}
fn plain(kind: &str) -> Value {
    json!({"type": kind})
}

#[tokio::test]
async fn a_failure_by_chance_is_asked_again_and_the_run_settles_once() {
    let mut rig = patient(soon())(vec![BUSY, BUSY, Step::Text("here")]).start().await;
    rig.run("hi").await;
    let start = |attempt: u32, delay: u64| {
        json!({"type": "auto_retry_start", "attempt": attempt, "maxAttempts": 3, "delayMs": delay,
            "errorMessage": "it was models::server_error"})
    };
    assert_eq!(
        chain(&mut rig),
        [
            plain("agent_start"),
            end(true),
            start(1, 1),
            plain("agent_start"),
            end(true),
            start(2, 2),
            plain("agent_start"),
            json!({"type": "auto_retry_end", "success": true, "attempt": 2}),
            end(false),
            plain("agent_settled"),
        ]
    );
    // The same question each time: nothing of the failures is in the way.
    let asked: Vec<_> = (0..3).map(|n| rig.model.request(n).messages).collect();
    assert!(asked.iter().all(|m| *m == asked[0]), "{asked:?}");
}

#[tokio::test]
async fn what_a_broken_answer_had_said_is_kept_in_the_file_and_not_sent_again() {
    let broken = Step::Failed("models::connection", "half an ans", None);
    let rig = patient(soon())(vec![broken, Step::Text("whole"), Step::Text("more")]).start().await;
    rig.run("hi").await;
    rig.run("and").await;
    let roles: Vec<String> = rig.model.request(2).messages.iter().map(|m| m.role().to_owned()).collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
    assert!(!format!("{:?}", rig.model.request(1).messages).contains("half an ans"));
    let file = format!("{:?}", rig.file());
    assert!(file.contains("half an ans") && rig.written().contains(&"context_edit".to_owned()), "{file}");
}

#[tokio::test]
async fn after_the_last_attempt_the_failure_stands_and_says_how_often_it_was_tried() {
    let mut rig = patient(RecoverySettings { max_retries: 1, ..soon() })(vec![BUSY, BUSY]).start().await;
    rig.run("hi").await;
    let chain = chain(&mut rig);
    let tail: Vec<_> = chain[chain.len() - 3..].to_vec();
    assert_eq!(
        tail,
        [
            end(false),
            json!({"type": "auto_retry_end", "success": false, "attempt": 1, "finalError": "it was models::server_error"}),
            plain("agent_settled"),
        ]
    );
}

#[tokio::test]
async fn a_server_is_left_alone_for_as_long_as_it_asks_but_not_for_ever() {
    let asks = |ms| Step::Failed("models::rate_limited", "", Some(ms));
    let mut rig = patient(soon())(vec![asks(40), Step::Text("here")]).start().await;
    rig.run("hi").await;
    assert!(chain(&mut rig).iter().any(|e| e["delayMs"] == 40));

    let mut rig = patient(soon())(vec![asks(600_000)]).start().await;
    rig.run("hi").await;
    assert_eq!(chain(&mut rig), [plain("agent_start"), end(false), plain("agent_settled")]);
}

#[tokio::test]
async fn what_asking_again_cannot_mend_is_not_asked_again() {
    for step in [Step::Error("boom"), Step::Failed("models::request_refused", "", None)] {
        let mut rig = patient(soon())(vec![step]).start().await;
        rig.run("hi").await;
        assert_eq!(chain(&mut rig), [plain("agent_start"), end(false), plain("agent_settled")]);
    }
}

#[tokio::test]
async fn the_waiting_ends_by_abort_by_abort_retry_and_is_not_begun_when_switched_off() {
    let hour = RecoverySettings {
        base_delay: Duration::from_secs(3600),
        max_delay: Duration::from_secs(3600),
        ..RecoverySettings::default()
    };
    for (op, aborted) in [(Op::Abort, true), (Op::AbortRetry, false)] {
        let mut rig = patient(hour.clone())(vec![BUSY, Step::Text("next")]).start().await;
        rig.prompt("hi").await.unwrap();
        rig.until(|e| matches!(e, Event::AutoRetryStart { .. })).await;
        assert!(!rig.handle.view(|v| v.idle), "waiting is not idle");
        rig.handle.request(op).await.unwrap();
        rig.idle().await;
        assert_eq!(
            chain(&mut rig),
            [
                json!({"type": "auto_retry_end", "success": false, "attempt": 1, "finalError": "Retry cancelled"}),
                plain("agent_settled"),
            ]
        );
        let settled = if aborted { "aborted" } else { "error" };
        let lines = rig.log.lines();
        assert!(
            lines.iter().any(|l| l.starts_with("agent_before_settle") && l.contains(settled)),
            "{lines:?}"
        );
        rig.run("again").await;
        assert_eq!(rig.model.requests.lock().unwrap().len(), 2);
    }

    let mut rig = patient(hour)(vec![BUSY]).start().await;
    rig.handle.request(Op::SetAutoRetry { enabled: false }).await.unwrap();
    assert!(!rig.handle.view(|v| v.auto_retry));
    rig.run("hi").await;
    assert_eq!(chain(&mut rig), [plain("agent_start"), end(false), plain("agent_settled")]);
}

#[tokio::test]
async fn another_model_stands_in_and_the_first_is_back_for_the_next_prompt() {
    let settings = RecoverySettings {
        max_retries: 0,
        fallbacks: vec![("p".into(), "none".into()), ("p".into(), "second".into())],
        ..soon()
    };
    let mut build = patient(settings)(vec![BUSY, Step::Text("back")]);
    build.second = vec![Step::Text("for you")];
    let mut rig = build.start().await;
    rig.run("hi").await;
    let changed = |to: &str, from: &str, source: &str| json!({"type": "model_changed", "model": to, "previousModel": from, "source": source});
    assert_eq!(
        chain(&mut rig),
        [
            plain("agent_start"),
            end(true),
            json!({"type": "model_fallback_start", "from": "p/m", "to": "p/second",
                "reason": "it was models::server_error", "attempt": 2}),
            changed("second", "m", "fallback"),
            plain("agent_start"),
            json!({"type": "model_fallback_end", "success": true, "from": "p/m", "to": "p/second"}),
            end(false),
            plain("agent_settled"),
        ]
    );
    rig.run("and now").await;
    assert_eq!(chain(&mut rig)[0], changed("m", "second", "restore"));
    assert_eq!((rig.model.requests.lock().unwrap().len(), rig.second.requests.lock().unwrap().len()), (2, 1));
}

#[tokio::test]
async fn an_answer_that_was_cut_off_is_gone_on_with_three_times_at_most() {
    let cut = || Step::Cut("and so on");
    let rig = build(vec![cut(), cut(), Step::Text("the end"), cut(), cut(), cut(), cut()]).start().await;
    rig.run("tell").await;
    assert_eq!(rig.model.requests.lock().unwrap().len(), 3);
    let Some(Message::User(last)) = rig.model.request(2).messages.pop() else { panic!() };
    assert!(last.content.plain_text().contains("Go on exactly where it stopped"));
    rig.run("tell more").await;
    assert_eq!(rig.model.requests.lock().unwrap().len(), 7);
}

#[tokio::test]
async fn calls_that_are_cut_off_for_ever_do_not_keep_a_run_alive() {
    let cut = |id| Step::Truncated(vec![call(id, "echo")]);
    let rig = build(vec![cut("a"), cut("b"), cut("c"), cut("d")]).start().await;
    rig.run("write").await;
    assert_eq!(rig.model.requests.lock().unwrap().len(), 4);
}

#[tokio::test]
async fn too_much_room_for_the_answer_is_asked_for_less_once() {
    let refuse = || Step::Error("input length and max_tokens exceed context limit: 9000 + 8192 > 10000");
    let rig = build(vec![refuse(), Step::Text("short")]).start().await;
    rig.run("hi").await;
    assert_eq!((rig.model.request(0).max_tokens, rig.model.request(1).max_tokens), (None, Some(2048)));
    let rig = build(vec![refuse(), refuse()]).start().await;
    rig.run("hi").await;
    assert_eq!(rig.model.requests.lock().unwrap().len(), 2);
}

//! The order of events against the goldens of a real peer.

use crate::doubles::*;
use atomic_agent::{
    hooks::{BeforeAgentStartOutcome, StreamingBehavior, ToolCallOutcome},
    message::{CustomMessage, Extra, MessageContent},
    op::Op,
};
use serde_json::json;

/// Runs of updates count once. An `entry_appended` may be where the contract puts one.
fn fold(lines: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut lines: Vec<String> = lines.into_iter().filter(|l| !l.starts_with("entry_appended")).collect();
    lines.dedup_by(|a, b| a == b && (a.contains("_update ")));
    lines
}

pub async fn compare(mut rig: Rig, prompts: &[&str], golden: &str) {
    for prompt in prompts {
        rig.run(prompt).await;
    }
    rig.quit().await;
    let (got, expected) = (fold(rig.log.lines()), fold(golden.lines().map(str::to_owned)));
    assert_eq!(got, expected, "\n{}\n---- expected\n{}", got.join("\n"), expected.join("\n"));
}

fn one_tool(then: &'static str) -> [Step; 2] {
    [Step::Calls(vec![call("c1", "echo one")]), Step::Text(then)]
}

#[tokio::test]
async fn plain() {
    let rig = build([Step::Text("hello there")]).start().await;
    compare(rig, &["hi"], include_str!("goldens/plain.txt")).await;
}

#[tokio::test]
async fn two_prompts_record_the_prompt_once() {
    let rig = build([Step::Text("hello there"), Step::Text("hello there")]).start().await;
    compare(rig, &["hi", "hi"], include_str!("goldens/two_prompts.txt")).await;
}

#[tokio::test]
async fn tool() {
    let rig = build(one_tool("tool done")).start().await;
    compare(rig, &["one tool"], include_str!("goldens/tool.txt")).await;
}

#[tokio::test]
async fn badargs() {
    let steps = [Step::Calls(vec![("c1", "read", json!({"nope": true}))]), Step::Text("bad done")];
    compare(build(steps).start().await, &["bad args"], include_str!("goldens/badargs.txt")).await;
}

fn block(reason: &'static str, terminate: bool) -> impl Fn(&mut Log) {
    move |log| {
        log.gate = Some(Box::new(move |_| ToolCallOutcome::Block {
            reason: reason.into(),
            terminate,
            by: "x".into(),
        }));
    }
}

#[tokio::test]
async fn blocked() {
    let rig = build(one_tool("tool done")).log(block("not today", false)).start().await;
    compare(rig, &["one tool"], include_str!("goldens/block.txt")).await;
}

#[tokio::test]
async fn blocked_and_terminated() {
    let rig = build(one_tool("never")).log(block("stop", true)).start().await;
    compare(rig, &["one tool"], include_str!("goldens/block_terminate.txt")).await;
}

#[tokio::test]
async fn a_gate_that_throws_has_blocked() {
    let rig = build(one_tool("tool done")).log(block("gate broke", false)).start().await;
    compare(rig, &["one tool"], include_str!("goldens/gate_throws.txt")).await;
}

#[tokio::test]
async fn mutated() {
    let gate = |log: &mut Log| {
        log.gate = Some(Box::new(|_| ToolCallOutcome::Proceed { input: json!({"command": "echo mutated"}) }));
    };
    let rig = build(one_tool("tool done")).log(gate).start().await;
    compare(rig, &["one tool"], include_str!("goldens/mutate.txt")).await;
}

#[tokio::test]
async fn injected() {
    let custom = CustomMessage {
        custom_type: "x".into(),
        content: MessageContent::Text("injected".into()),
        display: true,
        details: None,
        timestamp: 0,
        extra: Extra::new(),
    };
    let outcome = BeforeAgentStartOutcome {
        messages: vec![custom],
        system_prompt: Some("You are someone else.".into()),
        options: None,
    };
    let rig = build([Step::Text("fallback")]).log(|log| log.inject = Some(outcome)).start().await;
    let model = rig.model.clone();
    compare(rig, &["hi"], include_str!("goldens/inject.txt")).await;
    assert_eq!(model.request(0).system_prompt, "You are someone else.");
}

#[tokio::test]
async fn steered_by_a_handler() {
    let op = Op::SendUserMessage {
        content: MessageContent::Text("hi steer".into()),
        deliver_as: Some(StreamingBehavior::Steer),
        expand: false,
    };
    let rig = build(one_tool("hello there"))
        .log(|log| log.during.lock().unwrap().push(("tool_execution_start", op)))
        .start()
        .await;
    compare(rig, &["one tool"], include_str!("goldens/steer.txt")).await;
}

#[tokio::test]
async fn handled_input_starts_no_run_and_settles_nothing() {
    let rig = build([]).log(|log| log.handles_input = true).start().await;
    compare(rig, &["hi"], include_str!("goldens/handled.txt")).await;
}

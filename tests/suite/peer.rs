//! The events of the real program, logged by an extension of ours, against the recorded logs
//! of the TypeScript peer (`tests/golden/pi-1.6.0`).

use atomic_tests::{
    env::Home,
    events,
    libs::first_party,
    model_server::{Answer, ModelServer},
    patch::misbehaving,
};
use serde_json::json;

/// Events that have an issue of their own.
const LATER: [&str; 3] = ["context_with_system", "provider_stream_event", "agent_before_settle"];

/// What the peer wrote, less what differs on purpose:
/// - `turn_end` is a plain notification here until the boundary hooks come: no drafts;
/// - how often a running tool tells its output depends on time;
/// - our `bash` gives its output without the last line break;
/// - the user of the program is the source of its prompts, not a client over rpc.
fn expected(golden: &str) -> Vec<String> {
    golden
        .lines()
        .filter(|l| !LATER.iter().any(|e| l.starts_with(e)))
        .filter(|l| !l.starts_with("tool_execution_update"))
        .map(|l| l.replace(" entries=[] continue=false", "").replace("source=rpc", "source=interactive"))
        .map(|l| l.replace("content=one\\n", "content=one").replace("content=mutated\\n", "content=mutated"))
        .collect()
}

fn compare(
    golden: &str,
    mode: &str,
    prompts: &[&str],
    answers: Vec<Answer>,
    adjust: impl Fn(String) -> String,
) {
    for model in ["fake-openai/fake", "fake-anthropic/fake"] {
        let home = Home::new();
        home.install(&first_party("event-log"));
        misbehaving(&home, "x", mode);
        let server = ModelServer::start(answers.clone());
        home.models_json(&serde_json::from_str(&server.models_json()).unwrap());
        let log = home.path("events.log");
        let run = home.atomic(["--mode", "lines", "--model", model, "--event-log"]).arg(&log);
        run.run_with(&format!("{}\n", prompts.join("\n"))).ok();
        server.assert_finished();
        let got: Vec<String> = events::peer_lines(&events::read(&log))
            .into_iter()
            .filter(|l| !l.starts_with("tool_execution_update"))
            .map(&adjust)
            .collect();
        let expected: Vec<String> = expected(golden).into_iter().map(&adjust).collect();
        assert_eq!(got, expected, "{model}\n{}\n---- the peer\n{}", got.join("\n"), expected.join("\n"));
    }
}

fn same(line: String) -> String {
    line
}

fn one_tool(then: &str) -> Vec<Answer> {
    vec![Answer::calls([("bash", json!({"command": "echo one"}))]), Answer::text(then)]
}

macro_rules! golden {
    ($name:literal) => {
        include_str!(concat!("../golden/pi-1.6.0/", $name, ".txt"))
    };
}

#[test]
fn plain() {
    compare(golden!("plain"), "none", &["hi"], vec![Answer::text("hello there")], same);
}

#[test]
fn two_prompts() {
    let answers = vec![Answer::text("hello there"), Answer::text("hello there")];
    compare(golden!("two_prompts"), "none", &["hi", "hi"], answers, same);
}

#[test]
fn a_tool_call() {
    compare(golden!("tool"), "none", &["one tool"], one_tool("tool done"), same);
}

#[test]
fn arguments_that_do_not_fit_the_schema() {
    let answers = vec![Answer::calls([("read", json!({"nope": true}))]), Answer::text("bad done")];
    // The wording is our own; that it is about validation is not.
    let wording = |l: String| match l.split_once("content=") {
        Some((before, text)) if l.contains("role=toolResult") => {
            assert!(text.contains("read"), "{l}");
            format!("{before}content=(our words)")
        }
        _ => l,
    };
    compare(golden!("badargs"), "none", &["bad args"], answers, wording);
}

#[test]
fn a_blocked_call() {
    compare(golden!("block"), "block:not_today", &["one tool"], one_tool("tool done"), same);
}

#[test]
fn a_blocked_call_that_ends_the_run() {
    compare(
        golden!("block_terminate"),
        "block-terminate:stop",
        &["one tool"],
        one_tool("-")[..1].to_vec(),
        same,
    );
}

#[test]
fn changed_arguments() {
    compare(golden!("mutate"), "mutate", &["one tool"], one_tool("tool done"), same);
}

#[test]
fn a_gate_that_throws() {
    // Ours names the extension whose gate it was.
    let named = |l: String| match l.split_once("content=") {
        Some((before, text)) if l.contains("role=toolResult") => {
            assert!(text.contains("gate broke") || text.contains("could not decide"), "{l}");
            format!("{before}content=(names the gate)")
        }
        _ => l,
    };
    compare(golden!("gate_throws"), "gate-error", &["one tool"], one_tool("tool done"), named);
}

#[test]
fn a_transformed_input() {
    compare(golden!("transform"), "transform", &["?q hi"], vec![Answer::text("hello there")], same);
}

#[test]
fn a_handled_input() {
    compare(golden!("handled"), "handled", &["hi"], vec![], same);
}

#[test]
fn a_replaced_message() {
    compare(golden!("replace_message"), "replace", &["hi"], vec![Answer::text("hello there")], same);
}

#[test]
fn an_injected_message() {
    compare(golden!("inject"), "inject", &["hi"], vec![Answer::text("fallback")], same);
}

#[test]
fn a_steering_message() {
    compare(golden!("steer"), "steer", &["one tool"], one_tool("hello there"), same);
}

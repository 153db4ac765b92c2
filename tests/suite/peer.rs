//! The events of the real program, logged by an extension of ours, against the recorded logs
//! of the TypeScript peer (`tests/golden/pi-1.6.0`).

use atomic_tests::{
    env::{Home, rounds},
    events,
    libs::first_party,
    model_server::{Answer, ModelServer},
    patch::misbehaving,
};
use serde_json::{Value, json};

/// What the peer wrote, less what differs on purpose:
/// - how often a running tool tells its output depends on time;
/// - our `bash` gives its output without the last line break;
/// - the user of the program is the source of its prompts, not a client over rpc;
/// - what a command does is in the fixture's own file, not in the log of events.
fn expected(golden: &str) -> Vec<String> {
    golden
        .lines()
        .filter(|l| !l.starts_with("tool_execution_update") && !l.starts_with("COMMAND"))
        .map(|l| l.replace("source=rpc", "source=interactive"))
        .map(|l| l.replace("content=one\\n", "content=one").replace("content=mutated\\n", "content=mutated"))
        .collect()
}

/// Keys that the peer's payloads always have and ours have not, with the reason.
const OTHER_KEYS: [(&str, &str, &str); 8] = [
    ("input", "images", ABSENT),
    ("input", "streamingBehavior", ABSENT),
    ("session_before_switch", "targetSessionFile", ABSENT),
    ("tool_result", "details", ABSENT),
    ("tool_result", "structuredContent", ABSENT),
    ("tool_result", "usage", ABSENT),
    ("model_select", "previousModel", ABSENT),
    ("message_update", "message", "a step is one delta, never the message so far"),
];
const ABSENT: &str = "undefined there; JSON has no undefined, and an absent key is one";

fn payloads_carry_the_keys(log: &[events::Logged]) {
    let keys: Value = serde_json::from_str(include_str!("../golden/pi-1.6.0/payload-keys.json")).unwrap();
    for logged in log {
        for key in keys[&logged.event]["always"].as_array().into_iter().flatten() {
            let key = key.as_str().unwrap();
            let other = OTHER_KEYS.iter().any(|(event, k, _)| *event == logged.event && *k == key);
            assert!(
                other || logged.payload.get(key).is_some(),
                "{} has no {key}: {}",
                logged.event,
                logged.payload
            );
        }
    }
}

/// Answers the file of what the extension did.
fn compare(
    golden: &str,
    mode: &str,
    prompts: &[&str],
    answers: Vec<Answer>,
    adjust: impl Fn(String) -> String,
) -> String {
    let mut did = String::new();
    for [model, other] in
        [["fake-openai/fake", "fake-anthropic/fake"], ["fake-anthropic/fake", "fake-openai/fake"]]
    {
        let home = Home::new();
        home.install(&first_party("event-log"));
        let out = misbehaving(&home, "x", mode);
        let server = ModelServer::start(answers.clone());
        home.models_json(&serde_json::from_str(&server.models_json()).unwrap());
        let log = home.path("events.log");
        let run = home.atomic(["--mode", "lines", "--model", model, "--event-log"]).arg(&log);
        run.run_with(&format!("{}\n", prompts.join("\n").replace("OTHER", other))).ok();
        server.assert_finished();
        let read = events::read(&log);
        payloads_carry_the_keys(&read);
        let got: Vec<String> = events::peer_lines(&read)
            .into_iter()
            .filter(|l| !l.starts_with("tool_execution_update") && l != "entry_appended")
            // The peer tells its clients of the first, not its extensions; the second it has not.
            .filter(|l| !l.starts_with("compaction_") && l != "session_recovery_restore")
            .map(&adjust)
            .collect();
        let expected: Vec<String> = expected(golden).into_iter().map(&adjust).collect();
        assert_eq!(got, expected, "{model}\n{}\n---- the peer\n{}", got.join("\n"), expected.join("\n"));
        did = std::fs::read_to_string(out).unwrap_or_default();
        if mode.starts_with("dawdles") {
            let saw: Vec<&str> = did.lines().filter_map(|l| l.strip_prefix("saw ")).collect();
            assert_eq!(saw, events::names(&read), "the other extension saw them in the same order");
        }
    }
    did
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
fn the_order_is_the_same_however_long_handlers_take() {
    for round in 0..rounds(50) {
        let mode = format!("dawdles:{round}");
        compare(golden!("tool"), &mode, &["one tool"], one_tool("tool done"), same);
    }
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

fn hello(then: &[&'static str]) -> Vec<Answer> {
    std::iter::once(&"hello there").chain(then).map(|t| Answer::text(t)).collect()
}

#[test]
fn a_turn_end_that_goes_on() {
    compare(golden!("turn_continue"), "turn-continue", &["hi"], hello(&["went on"]), same);
}

#[test]
fn a_settling_that_goes_on() {
    compare(golden!("settle_continue"), "settle-continue", &["hi"], hello(&["reviewed"]), same);
}

#[test]
fn a_command_of_an_extension() {
    let did = compare(golden!("command"), "cmd", &["/cmd a b"], vec![], same);
    assert!(did.lines().any(|l| l == "COMMAND args=a b"), "{did}");
}

#[test]
fn a_new_session() {
    compare(golden!("new_session"), "none", &["hi", "/new", "hi"], hello(&["hello there"]), same);
}

#[test]
fn a_new_session_that_a_handler_refuses() {
    compare(golden!("new_cancelled"), "keeps", &["hi", "/new"], hello(&[]), same);
}

#[test]
fn a_name() {
    // `act` says what a client of the peer says over rpc.
    compare(golden!("name"), "act", &["hi", "/act name  my name ", "/act name x"], hello(&[]), same);
}

#[test]
fn another_model() {
    let did = compare(golden!("model"), "act", &["/act model OTHER"], vec![], same);
    assert!(did.lines().any(|l| l == "set true"), "{did}");
}

#[test]
fn a_command_of_the_user() {
    compare(golden!("user_bash"), "none", &["!echo hey"], vec![], same);
}

#[test]
fn a_compaction_that_is_refused() {
    // The session is too small there and here, so that nobody is asked.
    let mode = r#"replies:session_before_compact={"cancel":true}"#;
    compare(golden!("compact_cancel"), mode, &["hi", "/compact"], hello(&[]), same);
}

#[test]
fn every_scenario_of_the_peer_is_compared() {
    let here = include_str!("peer.rs");
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/pi-1.6.0");
    let mut left: Vec<String> = std::fs::read_dir(dir)
        .unwrap()
        .filter_map(|e| Some(e.unwrap().path().file_name()?.to_str()?.strip_suffix(".txt")?.to_owned()))
        .filter(|name| !here.contains(&format!("golden!(\"{name}\")")))
        .collect();
    left.sort();
    assert!(left.is_empty(), "{left:?}");
}

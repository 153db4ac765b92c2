//! The code samples of the pages about events, as extensions of the real program: what the model
//! is sent, and what the session keeps.

use atomic_tests::{
    env::{Finished, Home},
    model_server::{Answer, ModelServer, Recorded},
    patch::misbehaving,
    session,
};
use serde_json::{Value, json};

struct Ran {
    requests: Vec<Recorded>,
    entries: Vec<Value>,
    finished: Finished,
}

impl Ran {
    /// Roles of one request, the system prompt aside.
    fn roles(&self, request: usize) -> Vec<String> {
        let messages = self.requests[request].body["messages"].as_array().unwrap();
        let role = |m: &Value| m["role"].as_str().unwrap().to_owned();
        messages.iter().map(role).filter(|r| r != "system" && r != "developer").collect()
    }
    fn kinds(&self) -> Vec<&str> {
        self.entries.iter().map(|e| e["type"].as_str().unwrap()).filter(|k| !k.ends_with("_change")).collect()
    }
    fn of_kind(&self, kind: &str) -> &Value {
        self.entries.iter().find(|e| e["type"] == kind).unwrap_or_else(|| panic!("no {kind}"))
    }
}

fn run(mode: &str, prompts: &[&str], answers: &[&str]) -> Ran {
    let home = Home::new();
    misbehaving(&home, "x", mode);
    let server = ModelServer::start(answers.iter().map(|a| Answer::text(a)));
    home.models_json(&serde_json::from_str(&server.models_json()).unwrap());
    let invoked = home.atomic(["--mode", "lines", "--model", "fake-openai/fake"]);
    let finished = invoked.run_with(&format!("{}\n", prompts.join("\n"))).ok();
    server.assert_finished();
    let entries = home.sessions().first().map(|f| session::read(f).entries).unwrap_or_default();
    Ran { requests: server.requests(), entries, finished }
}

#[test]
fn a_response_that_turn_end_replaces_is_out_of_the_context_and_in_the_file() {
    let ran = run("replaced-response", &["hi"], &["bad", "good"]);
    assert_eq!(ran.roles(1), ["user", "user"]);
    assert_eq!(ran.requests[1].last_user_text(), "Answer again using the persisted user request.");
    assert_eq!(ran.kinds(), ["message", "message", "message", "context_edit", "custom_message", "message"]);
    assert_eq!(ran.of_kind("context_edit")["replacement"], Value::Null);
    assert_eq!(
        ran.of_kind("context_edit")["targetId"],
        ran.entries.iter().filter(|e| e["type"] == "message").nth(2).unwrap()["id"]
    );
}

#[test]
fn a_review_before_settling_is_asked_for_once() {
    let ran = run("settle-continue", &["hi"], &["done", "reviewed"]);
    assert_eq!(ran.requests[1].last_user_text(), "Review the final diff before replying.");
    assert_eq!(ran.of_kind("custom_message")["customType"], "review-reminder");
}

#[test]
fn drafts_that_cannot_be_written_are_a_diagnostic_and_nothing_goes_on() {
    let ran = run("bad-draft", &["hi"], &["hello"]);
    assert_eq!(ran.kinds(), ["message", "message", "message"]);
    let said = format!("{}{}", ran.finished.stdout, ran.finished.stderr);
    assert!(said.contains("Invalid boundary entries: entry 0: no entry nowhere on this branch"), "{said}");
}

#[test]
fn messages_that_context_drops_are_kept_from_the_model_and_in_the_session() {
    let ran = run("filter", &["hi", "again"], &["a secret", "two"]);
    assert_eq!(ran.roles(1), ["user", "user"]);
    assert_eq!(
        ran.requests[1].body["messages"][0], ran.requests[0].body["messages"][0],
        "the prompt is the same"
    );
    assert!(ran.entries.iter().any(|e| e.to_string().contains("a secret")));
}

#[test]
fn a_transcript_cut_by_context_with_system_keeps_its_prompt() {
    let ran = run("cut", &["one", "two"], &["1", "2"]);
    assert_eq!(ran.roles(1), ["user"]);
    assert_eq!(ran.requests[1].last_user_text(), "two");
    assert_eq!(
        ran.requests[1].body["messages"][0], ran.requests[0].body["messages"][0],
        "the folded head says the same"
    );
}

#[test]
fn tools_that_before_agent_start_leaves_out_are_neither_offered_nor_in_the_prompt() {
    let ran = run("narrow", &["hi"], &["hello"]);
    assert_eq!(ran.requests[0].tools(), ["read"]);
    let prompt = ran.requests[0].body["messages"][0].to_string();
    assert!(prompt.contains("Only look.") && !prompt.contains("- bash:"), "{prompt}");
}

#[test]
fn a_header_that_is_set_is_sent_and_a_body_that_is_replaced_is_the_body() {
    let ran = run("headers", &["hi"], &["hello"]);
    let id = ran.requests[0].headers["x-session-id"].clone();
    assert!(id.len() > 8, "{id}");
    let ran = run("temperature", &["hi"], &["hello"]);
    assert_eq!(ran.requests[0].body["temperature"], json!(0));
}

#[test]
fn a_user_command_that_an_extension_runs_never_reaches_the_shell() {
    let ran = run("shell", &["!echo hey > made-by-the-shell", "hi"], &["hello"]);
    assert!(ran.finished.stdout.contains("elsewhere: echo hey"), "{}", ran.finished.stdout);
    let sent = ran.requests[0].body["messages"].to_string();
    assert!(sent.contains("elsewhere: echo hey"), "{sent}");
}

#[test]
fn a_user_command_whose_guard_failed_does_not_run() {
    let ran = run("fails:user_bash", &["!echo ran-all-the-same", "hi"], &["hello"]);
    let sent = ran.requests[0].body["messages"].to_string();
    assert!(sent.contains("extension x could not decide: handler broke"), "{sent}");
    assert!(!ran.finished.stdout.contains("\nran-all-the-same"), "{}", ran.finished.stdout);
}

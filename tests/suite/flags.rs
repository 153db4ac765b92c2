//! What the flags of a run do: to the request that the model gets, to the session's file.

use atomic_tests::{
    env::Home,
    libs::first_party,
    live::text,
    model_server::{Answer, ModelServer, Recorded},
    session,
};
use serde_json::{Value, json};
use std::{fs, path::Path};

/// A home whose models answer `ok` that often.
fn served(times: usize) -> (Home, ModelServer) {
    let home = Home::new();
    let server = ModelServer::start(vec![Answer::text("ok"); times]);
    home.models_json(&serde_json::from_str(&server.models_json()).unwrap());
    (home, server)
}

/// The request that this command line leads to.
fn request(model: &str, prepare: impl Fn(&Home), args: &[&str]) -> Recorded {
    let (home, server) = served(1);
    prepare(&home);
    home.atomic(["-p", "hi", "--model", model]).args(args).run().ok();
    server.assert_finished();
    server.requests().remove(0)
}

fn plain(model: &str, args: &[&str]) -> Recorded {
    request(model, |_| {}, args)
}

fn users(file: &Path) -> Vec<String> {
    session::read(file).of_role("user").iter().map(|m| session::text(m)).collect()
}

#[test]
fn session_goes_on_in_that_file_and_the_model_gets_what_was_said_in_it() {
    let (home, server) = served(3);
    let say = |args: &[&str]| home.atomic(["-p", "--model", "fake-openai/fake"]).args(args).run();
    say(&["one"]).ok();
    let first = home.sessions().pop().unwrap();
    say(&["two"]).ok();
    assert_eq!(home.sessions().len(), 2);
    let path = first.to_str().unwrap();
    say(&["--session", path, "three"]).ok();
    assert_eq!(users(&first), ["one", "three"]);
    let sent = server.requests().pop().unwrap().body["messages"].to_string();
    assert!(sent.contains("one") && sent.contains("three") && !sent.contains("two"), "{sent}");
    let missing = say(&["--session", "nowhere.jsonl", "four"]).exit(1);
    assert!(missing.stderr.contains("nowhere.jsonl"), "{}", missing.stderr);
    assert!(!home.cwd().join("nowhere.jsonl").exists());
}

#[test]
fn session_dir_is_where_sessions_are_written_and_looked_for() {
    let home = Home::new();
    let say = |args: &[&str]| home.atomic(["-p", "--offline", "--session-dir", "kept"]).args(args).run().ok();
    say(&["one"]);
    say(&["-c", "two"]);
    assert!(home.sessions().is_empty(), "{:?}", home.sessions());
    let files: Vec<_> = fs::read_dir(home.cwd().join("kept")).unwrap().map(|e| e.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    assert_eq!(users(&files[0]), ["one", "two"]);
    // Elsewhere nobody knows of it.
    home.atomic(["-p", "--offline", "-c", "three"]).run().ok();
    assert_eq!(users(&home.sessions()[0]), ["three"]);
}

#[test]
fn tools_are_those_that_are_named_whoever_registered_them() {
    let with_hello = |home: &Home| drop(home.install(&first_party("hello")));
    let all = request("fake-openai/fake", with_hello, &[]).tools();
    for name in ["bash", "read", "greet"] {
        assert!(all.contains(&name.to_owned()), "{all:?}");
    }
    assert_eq!(
        request("fake-openai/fake", with_hello, &["--tools", "read,greet"]).tools(),
        ["read", "greet"]
    );
    assert_eq!(request("fake-anthropic/fake", with_hello, &["-t", "ls"]).tools(), ["ls"]);
}

#[test]
fn a_tool_that_is_not_named_cannot_be_called() {
    let home = Home::new();
    let call = json!({"toolCalls": [{"name": "bash", "arguments": {"command": "touch made"}}]});
    let script = home.script(&json!([call, text("end")]));
    home.atomic(["-p", "hi", "--tools", "read", "--script"]).arg(script).run().ok();
    assert!(!home.cwd().join("made").exists());
    let session = session::read(&home.sessions()[0]);
    assert_eq!(session.of_role("toolResult")[0]["isError"], true);
}

#[test]
fn thinking_is_asked_for_in_the_words_of_each_format() {
    let effort = |args: &[&str]| plain("fake-openai/fake", args).body["reasoning_effort"].clone();
    assert_eq!(effort(&["--thinking", "high"]), "high");
    assert_eq!(effort(&["--thinking", "low"]), "low");
    let budget =
        |args: &[&str]| plain("fake-anthropic/fake", args).body["thinking"]["budget_tokens"].as_u64();
    let (low, high) = (budget(&["--thinking", "low"]), budget(&["--thinking", "high"]));
    assert!(low.is_some() && low < high, "{low:?} {high:?}");
    assert_eq!(budget(&["--thinking", "off"]), None);
    // Beside the model's name, and outdone by the flag.
    assert_eq!(plain("fake-openai/fake:low", &[]).body["reasoning_effort"], "low");
    assert_eq!(plain("fake-openai/fake:low", &["--thinking", "high"]).body["reasoning_effort"], "high");
}

#[test]
fn the_thinking_level_is_kept_with_the_session() {
    let (home, server) = served(2);
    home.atomic(["-p", "one", "--model", "fake-openai/fake", "--thinking", "high"]).run().ok();
    home.atomic(["-p", "two", "-c"]).run().ok();
    let efforts: Vec<Value> = server.requests().iter().map(|r| r.body["reasoning_effort"].clone()).collect();
    assert_eq!(efforts, ["high", "high"]);
    let wrong = home.atomic(["-p", "three", "-c", "--thinking", "deep"]).run().exit(1);
    assert!(wrong.stderr.contains("'deep'") && wrong.stderr.contains("medium"), "{}", wrong.stderr);
}

/// What the model is told beside the conversation.
fn prompt(request: &Recorded) -> String {
    match &request.body["system"] {
        Value::Null => request.body["messages"][0]["content"].to_string(),
        system => system.to_string(),
    }
}

fn context_files(home: &Home) {
    fs::write(home.atomic_home().join("agent/AGENTS.md"), "the user wants tabs").unwrap();
    home.write("CLAUDE.md", "the project wants spaces");
    fs::write(home.path("AGENTS.md"), "the folder above wants both").unwrap();
}

#[test]
fn context_files_of_a_project_reach_the_model_once_it_is_trusted() {
    for model in ["fake-openai/fake", "fake-anthropic/fake"] {
        let approved = prompt(&request(model, context_files, &["--approve"]));
        let places = ["wants tabs", "wants both", "wants spaces"].map(|t| approved.find(t).expect(&approved));
        assert!(places.is_sorted(), "the nearest has the last word: {places:?}");
        let untrusted = prompt(&request(model, context_files, &[]));
        assert!(untrusted.contains("wants tabs") && !untrusted.contains("wants spaces"), "{untrusted}");
        assert!(!untrusted.contains("wants both"), "{untrusted}");
    }
}

#[test]
fn context_files_that_are_not_read_are_named_once() {
    let home = Home::new();
    fs::create_dir_all(home.atomic_home().join("agent")).unwrap();
    context_files(&home);
    let undecided = home.atomic(["-p", "hi", "--offline"]).run().ok().stderr;
    assert!(undecided.contains("CLAUDE.md") && undecided.contains("--approve"), "{undecided}");
    assert_eq!(undecided.matches("cli::not_trusted").count(), 1, "{undecided}");
    for flag in ["--approve", "--no-approve"] {
        assert_eq!(home.atomic(["-p", "hi", "--offline", flag]).run().ok().stderr, "");
    }
}

#[test]
fn the_system_prompt_can_be_replaced_and_added_to() {
    let told = prompt(&plain("fake-openai/fake", &["--system-prompt", "You are a parrot."]));
    assert!(told.contains("You are a parrot.") && !told.contains("coding agent"), "{told}");
    let told = prompt(&plain("fake-anthropic/fake", &["--append-system-prompt", "Speak slowly."]));
    assert!(told.contains("coding agent") && told.contains("Speak slowly."), "{told}");
}

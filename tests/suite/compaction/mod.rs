//! Compaction as a user meets it: what is written, what the model is asked next, what is told,
//! and what happens when a planner does not do what it should. Every planner is the fake
//! provider; every request is judged by it.

mod asked_for;
mod by_itself;
mod hostile;

use atomic_tests::{
    env::{Finished, Home},
    model_server::{Answer, ModelServer, Recorded},
    session::{self, SessionFile},
};
use serde_json::{Value, json};

/// So many lines, each told apart.
fn many(tag: &str, lines: usize) -> String {
    (1..=lines).map(|n| format!("{tag} {n}")).collect::<Vec<_>>().join("\n")
}

fn settings(home: &Home, settings: Value) {
    let dir = home.atomic_home().join("agent");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("settings.json"), settings.to_string()).unwrap();
}

/// A home whose models are the server's, with so large a context window.
fn home(server: &ModelServer, window: u64) -> Home {
    let home = Home::new();
    let mut models: Value = serde_json::from_str(&server.models_json()).unwrap();
    for provider in ["fake-openai", "fake-anthropic"] {
        models["providers"][provider]["models"][0]["contextWindow"] = window.into();
    }
    home.models_json(&models);
    home
}

const WINDOW: u64 = 200_000;

/// Typed at the prompt, one line after another.
fn typed(home: &Home, lines: &[&str]) -> Finished {
    let run = home.atomic(["--mode", "lines", "--model", "fake-openai/fake"]);
    run.run_with(&format!("{}\n", lines.join("\n"))).ok()
}

/// Said in one process, one message after another; its events.
fn said(home: &Home, messages: &[&str]) -> (Finished, Vec<Value>) {
    let run = home.atomic(["--mode", "json", "--model", "fake-openai/fake"]).args(messages).run();
    let events = run.json_lines();
    (run, events)
}

fn the_session(home: &Home) -> SessionFile {
    let files = home.sessions();
    assert_eq!(files.len(), 1, "{files:?}");
    session::read(&files[0])
}

fn compactions(file: &SessionFile) -> Vec<&Value> {
    file.entries.iter().filter(|e| e["type"] == "compaction").collect()
}

fn of<'e>(events: &'e [Value], kind: &str) -> Vec<&'e Value> {
    events.iter().filter(|e| e["type"] == kind).collect()
}

/// The one request that was a planner's, by what it is asked.
fn is_planner(request: &Recorded) -> bool {
    request.last_user_text().contains("The transcript, each line behind its number:")
}

/// The numbered lines of a planner's request.
fn numbered(request: &Recorded) -> Vec<String> {
    let text = request.last_user_text();
    let (_, lines) = text.split_once("behind its number:\n").unwrap();
    let (lines, _) = lines.split_once("\n\nNow the ranges").unwrap();
    lines.split('\n').map(str::to_owned).collect()
}

/// What lines stand for: a marker for its N, any other for itself.
fn weight(text: &str) -> u64 {
    text.split('\n')
        .map(|l| {
            let n = l.strip_prefix("(filtered ").and_then(|l| l.strip_suffix(" lines)"));
            n.map_or(1, |n| n.parse::<u64>().unwrap())
        })
        .sum()
}

/// Two prompts with long answers: 33 lines before the last two messages.
fn two_long(then: impl IntoIterator<Item = Answer>) -> ModelServer {
    let long = [Answer::text(&many("first", 31)), Answer::text(&many("second", 31))];
    ModelServer::start(long.into_iter().chain(then))
}

fn plan(ranges: &str) -> Answer {
    Answer::text(ranges)
}

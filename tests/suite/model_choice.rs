//! Which model answers: the list, the scope, the commands of the prompt, and keys.

use atomic_tests::{
    env::Home,
    live::text,
    model_server::{Answer, ModelServer},
    pty::Terminal,
};
use serde_json::{Value, json};
use std::{fs, os::unix::fs::PermissionsExt as _};

fn two_models(home: &Home, server: &ModelServer) {
    let mut file: Value = serde_json::from_str(&server.models_json()).unwrap();
    let fake = file["providers"]["fake-openai"]["models"][0].clone();
    let mut other = fake.clone();
    other["id"] = json!("other");
    other["name"] = json!("Another One");
    other["thinkingLevels"] = json!(["off", "low", "high"]);
    file["providers"]["fake-openai"]["models"] = json!([fake, other]);
    home.models_json(&file);
}

#[test]
fn the_list_shows_every_model_marks_those_without_a_key_and_is_searched_by_words() {
    let home = Home::new();
    let all = home.atomic(["--list-models"]).env("ANTHROPIC_API_KEY", "k").run().ok();
    let line = |id: &str| all.stdout.lines().find(|l| l.contains(id)).unwrap_or_default().to_owned();
    assert!(!line("anthropic/claude-opus-5-5").starts_with('-'), "{}", all.stdout);
    assert!(line("openai/gpt-6.1-sol").starts_with('-') && line("offline/scripted").contains("200k"));
    assert!(line("google/gemini-3.7-flash").contains("minimal…high"));
    let some = home.atomic(["--list-models", "Opus anthropic"]).run().ok();
    let rows = some.stdout.lines().filter(|l| l.contains('/')).skip(1).count();
    assert!(rows >= 3 && some.stdout.lines().skip(1).all(|l| !l.contains("sonnet")), "{}", some.stdout);
    let none = home.atomic(["--list-models", "telepathy"]).run().exit(1);
    assert!(none.stderr.contains("no model fits 'telepathy'"), "{}", none.stderr);
}

#[test]
fn the_first_of_a_scope_answers_and_thinks_as_its_pattern_says() {
    let server = ModelServer::start([Answer::text("one"), Answer::text("two")]);
    let home = Home::new();
    two_models(&home, &server);
    home.atomic(["-p", "hi", "--models", "fake-openai/oth*:high,fake-openai/fake"]).run().ok();
    let sent = server.requests()[0].body.clone();
    assert_eq!((&sent["model"], &sent["reasoning_effort"]), (&json!("other"), &json!("high")));
    // Settings say it when the command line does not; a pattern nothing fits is told and left out.
    let settings = home.atomic_home().join("agent/settings.json");
    fs::write(
        settings,
        r#"{"enabledModels": ["nobody/*", "fake-openai/other"], "defaultThinkingLevel": "max"}"#,
    )
    .unwrap();
    let run = home.atomic(["-p", "hi"]).run().ok();
    assert!(run.stderr.contains("models::scope") && run.stderr.contains("nobody/*"), "{}", run.stderr);
    let sent = server.requests()[1].body.clone();
    assert_eq!(
        (&sent["model"], &sent["reasoning_effort"]),
        (&json!("other"), &json!("high")),
        "max is clamped"
    );
    server.assert_finished();
}

#[test]
fn the_prompt_lists_chooses_and_sets_how_much_is_thought() {
    let server = ModelServer::start([Answer::text("I am the other")]);
    let home = Home::new();
    two_models(&home, &server);
    let run = home
        .atomic(["--mode", "lines", "--model", "fake-openai/fake"])
        .run_with("/model\n/model nonsense\n/model another:high\n/thinking\n/thinking max\n/thinking nonsense\nhi\n")
        .ok();
    for words in [
        "now fake-openai/fake, thinking off",
        "fake-openai/other  Another One",
        "no provider has a model \"nonsense\"",
        "fake-openai/other, thinking high; this model has off, low, high",
        "\"nonsense\" is no thinking level",
        "I am the other",
    ] {
        assert!(
            run.stdout.contains(words) || run.stderr.contains(words),
            "{words}:\n{}\n{}",
            run.stdout,
            run.stderr
        );
    }
    let sent = server.requests()[0].body.clone();
    assert_eq!((&sent["model"], &sent["reasoning_effort"]), (&json!("other"), &json!("high")));
}

#[test]
fn a_key_over_a_pipe_is_stored_for_its_owner_and_used() {
    let server = ModelServer::start([Answer::text("hello")]);
    let home = Home::new();
    let mut file: Value = serde_json::from_str(&server.models_json()).unwrap();
    file["providers"]["fake-openai"].as_object_mut().unwrap().remove("apiKey");
    file["providers"].as_object_mut().unwrap().retain(|name, _| name == "fake-openai");
    home.models_json(&file);
    let refused = home.atomic(["-p", "hi"]).run().exit(1);
    assert!(refused.stderr.contains("provider \"fake-openai\" has no key"), "{}", refused.stderr);
    let check = home.atomic(["auth", "check", "fake-openai"]).run().exit(1);
    assert!(check.stderr.contains("atomic auth login fake-openai"), "{}", check.stderr);

    let login = home.atomic(["auth", "login", "fake-openai"]).run_with("sk-piped\n").ok();
    assert!(
        login.stderr.contains("OAuth") && login.stdout.contains("auth.json"),
        "{}{}",
        login.stdout,
        login.stderr
    );
    assert!(!login.stdout.contains("sk-piped") && !login.stderr.contains("sk-piped"));
    let path = home.atomic_home().join("agent/auth.json");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    home.atomic(["auth", "check", "fake-openai"]).run().ok();
    assert!(home.atomic(["auth", "list"]).run().ok().stdout.contains("key from auth.json"));
    home.atomic(["-p", "hi"]).run().ok();
    assert_eq!(server.requests()[0].headers["authorization"], "Bearer sk-piped");

    home.atomic(["auth", "logout", "fake-openai"]).run().ok();
    assert!(!fs::read_to_string(&path).unwrap().contains("sk-piped"));
    let twice = home.atomic(["auth", "logout", "fake-openai"]).run().exit(1);
    assert!(twice.stderr.contains("cli::no_stored_key"), "{}", twice.stderr);
    let typo = home.atomic(["auth", "login", "antropic"]).run_with("x\n").exit(1);
    assert!(typo.stderr.contains("did you mean anthropic?"), "{}", typo.stderr);
}

#[test]
fn b14_an_auth_file_with_a_mark_is_honoured_and_a_broken_one_is_never_written() {
    let home = Home::new();
    let path = home.atomic_home().join("agent/auth.json");
    home.write("atomic/agent/keep", "");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "\u{feff}{\"anthropic\":{\"type\":\"api_key\",\"key\":\"k\"}}").unwrap();
    home.atomic(["auth", "check", "anthropic"]).run().ok();
    for broken in ["{\"anthropic\": {},}", "[]"] {
        fs::write(&path, broken).unwrap();
        let login = home.atomic(["auth", "login", "openai"]).run_with("sk\n").exit(1);
        assert!(
            login.stderr.contains("models::auth_syntax") && login.stderr.contains("auth.json:1:"),
            "{}",
            login.stderr
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), broken);
    }
}

#[test]
fn a_key_typed_at_the_prompt_is_not_shown_and_counts_at_once() {
    let server = ModelServer::start([Answer::text("I have a key now")]);
    let home = Home::new();
    let mut file: Value = serde_json::from_str(&server.models_json()).unwrap();
    file["providers"]["fake-openai"].as_object_mut().unwrap().remove("apiKey");
    home.models_json(&file);
    let script = home.script(&json!([text("unused")])).display().to_string();
    let mut terminal = Terminal::start(&home.atomic(["--script", &script]), 40, 100);
    terminal.wait_for("the prompt", |s| s.ends_with("> ") || s.ends_with('>'));
    terminal.line("/login fake-openai");
    terminal.wait_for("the question", |s| s.contains("key for fake-openai (it is not shown"));
    terminal.line("sk-typed-unseen");
    terminal.wait_for("the end of it", |s| s.contains("which only you"));
    terminal.line("/model fake-openai/fake");
    terminal.wait_for("the model", |s| s.contains("fake-openai/fake, thinking"));
    terminal.line("hi");
    terminal.wait_for("an answer", |s| s.contains("I have a key now"));
    assert!(
        !terminal.screen().contains("sk-typed")
            && !String::from_utf8_lossy(&terminal.raw()).contains("sk-typed")
    );
    terminal.line("/quit");
    assert_eq!(terminal.finish(), 0);
    assert_eq!(server.requests()[0].headers["authorization"], "Bearer sk-typed-unseen");
}

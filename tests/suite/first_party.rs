//! The extensions of `plugins/` in the real program.

use atomic_tests::{
    env::{Home, Program},
    events,
    libs::first_party,
    live::{bash, text},
    pty::Terminal,
    session,
};
use serde_json::{Value, json};

fn with(names: &[&str], turns: Value) -> (Home, String) {
    let home = Home::new();
    for name in names {
        home.install(&first_party(name));
    }
    let script = home.script(&turns).display().to_string();
    (home, script)
}

#[test]
fn without_a_user_the_permission_gate_blocks_and_the_model_reads_why() {
    let (home, script) = with(&["permission-gate"], json!([bash("rm -rf keep"), text("understood")]));
    home.write("keep/file", "precious");
    let done = home.atomic(["-p", "clean up", "--script", &script]).run().ok();
    assert_eq!(done.stdout, "understood\n");
    assert!(home.cwd().join("keep/file").exists());
    let file = session::read(&home.sessions()[0]);
    let result = file.of_role("toolResult")[0].clone();
    assert_eq!(result["isError"], true);
    assert!(session::text(&result).contains("permission-gate"), "{result}");
}

#[test]
fn a_user_who_says_yes_lets_the_command_run_and_one_who_says_no_does_not() {
    for (answer, left) in [("y", false), ("n", true)] {
        let (home, script) = with(&["permission-gate"], json!([bash("rm -rf keep"), text("understood")]));
        home.write("keep/file", "precious");
        let mut terminal = Terminal::start(&home.atomic(["--script", &script]), 40, 100);
        terminal.wait_for("the prompt", |s| s.contains("> "));
        terminal.line("clean up");
        terminal.wait_for("the question", |s| s.contains("Run this command?") && s.contains("rm -rf keep"));
        terminal.line(answer);
        terminal.wait_for("the answer", |s| s.contains("understood"));
        assert_eq!(home.cwd().join("keep/file").exists(), left, "{answer}");
        terminal.line("/quit");
        assert_eq!(terminal.finish(), 0);
    }
}

#[test]
fn protected_paths_are_kept_from_every_tool_that_writes() {
    let turn =
        |name: &str, arguments: Value| json!({ "toolCalls": [{ "name": name, "arguments": arguments }] });
    let (home, script) = with(
        &["protected-paths"],
        json!([
            turn("write", json!({"path": ".env", "content": "TOKEN=stolen"})),
            turn("edit", json!({"path": "sub/../.env", "edits": [{"oldText": "A", "newText": "B"}]})),
            bash("echo stolen > .env"),
            turn("write", json!({"path": "link", "content": "stolen"})),
            turn("write", json!({"path": "secret.txt", "content": "stolen"})),
            turn("write", json!({"path": "notes.txt", "content": "mine"})),
            text("done")
        ]),
    );
    home.write(".env", "A=1");
    home.write("secret.txt", "A=1");
    std::os::unix::fs::symlink(home.cwd().join(".env"), home.cwd().join("link")).unwrap();
    home.atomic(["-p", "go", "--script", &script, "--protect", "secret.txt"]).run().ok();
    assert_eq!(std::fs::read_to_string(home.cwd().join(".env")).unwrap(), "A=1");
    assert_eq!(std::fs::read_to_string(home.cwd().join("secret.txt")).unwrap(), "A=1");
    assert_eq!(std::fs::read_to_string(home.cwd().join("notes.txt")).unwrap(), "mine");
    let file = session::read(&home.sessions()[0]);
    let errors: Vec<bool> = file.of_role("toolResult").iter().map(|m| m["isError"] == true).collect();
    assert_eq!(errors, [true, true, true, true, true, false]);
}

#[test]
fn the_todo_list_lives_in_the_session_and_survives_another_process() {
    let turn = |arguments: Value| json!({ "toolCalls": [{ "name": "todo", "arguments": arguments }] });
    let (home, script) = with(
        &["todo"],
        json!([
            turn(json!({"action": "add", "text": "write the test"})),
            turn(json!({"action": "add", "text": "run it"})),
            turn(json!({"action": "toggle", "id": 1})),
            text("noted")
        ]),
    );
    home.atomic(["-p", "plan", "--script", &script]).run().ok();
    let script = home.script(&json!([turn(json!({"action": "list"})), text("listed")]));
    home.atomic(["-c", "-p", "list", "--script", script.to_str().unwrap()]).run().ok();
    let file = session::read(&home.sessions()[0]);
    let last = session::text(file.of_role("toolResult").last().unwrap());
    assert_eq!(last, "[x] #1 write the test\n[ ] #2 run it");
    // Another session has a list of its own.
    let script = home.script(&json!([turn(json!({"action": "list"})), text("listed")]));
    home.atomic(["-p", "list", "--script", script.to_str().unwrap()]).run().ok();
    let other = session::read(home.sessions().last().unwrap());
    assert_eq!(session::text(other.of_role("toolResult")[0]), "Nothing to do.");
}

fn lines_mode(home: &Home, script: &str) -> Program {
    home.atomic(["--mode", "lines", "--script", script]).start()
}

#[test]
fn commands_of_extensions_answer_in_the_plain_prompt_before_and_after_a_reload() {
    let (home, script) = with(&["hello", "todo"], json!([]));
    let mut program = lines_mode(&home, &script);
    program.say("/hello Bo");
    let (at, _) = program.wait_after(0, "the greeting", |l| l.contains("Hello, Bo!"));
    program.say("/reload");
    let (at, report) = program.wait_after(at, "the report", |l| l.starts_with("reload:"));
    assert!(report.contains("hello"), "{report}");
    program.say("/hello again");
    let (at, _) = program.wait_after(at, "the greeting", |l| l.contains("Hello, again!"));
    program.say("/todos");
    program.wait_after(at, "the list", |l| l.contains("Nothing to do."));
    program.say("/quit");
    program.finish().ok();
}

#[test]
fn the_event_log_goes_on_over_a_reload_in_a_new_generation() {
    let (home, script) = with(&["event-log"], json!([text("one"), text("two")]));
    let log = home.path("events.log");
    let invocation = home.atomic(["--mode", "lines", "--script", &script]).env("ATOMIC_EVENT_LOG", &log);
    invocation.run_with("first\n/reload\nsecond\n").ok();
    let all = events::read(&log);
    let of = |generation: u64| {
        all.iter().filter(|l| l.generation == generation).map(|l| l.event.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(of(1)[..2], ["session_start", "resources_discover"]);
    assert_eq!(of(1).last(), Some(&"session_shutdown"));
    assert_eq!(of(2)[..2], ["session_start", "resources_discover"]);
    let lives = ["session_start", "session_shutdown"];
    let reasons: Vec<&Value> =
        all.iter().filter(|l| lives.contains(&l.event.as_str())).map(|l| &l.payload["reason"]).collect();
    assert_eq!(reasons, ["startup", "reload", "reload", "quit"]);
    for generation in [1, 2] {
        assert_eq!(of(generation).iter().filter(|e| **e == "agent_settled").count(), 1);
    }
}

#[test]
fn help_all_lists_the_flags_of_trusted_extensions_and_never_those_of_the_project() {
    let (home, _) = with(&["event-log"], json!([]));
    let project = home.write(
        &format!(
            "{}/.atomic/extensions/{}",
            home.cwd().display(),
            atomic_tests::libs::file_name("protected-paths")
        ),
        std::fs::read(first_party("protected-paths")).unwrap(),
    );
    assert!(project.exists());
    let all = home.atomic(["--help-all", "--approve"]).run().ok();
    assert!(all.stdout.contains("Extension options:\n      --event-log <VALUE>"), "{}", all.stdout);
    assert!(!all.stdout.contains("--protect"), "{}", all.stdout);
    for args in [&["--help-all", "--no-extensions"][..], &["--help"], &["-h"]] {
        let none = home.atomic(args).run().ok();
        assert!(!none.stdout.contains("event-log"), "{args:?}");
    }
}

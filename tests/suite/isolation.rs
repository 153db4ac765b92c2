//! What an extension does to its process, seen from outside: its prints, its exits, its crashes.

use atomic_tests::{
    env::{Home, rounds},
    live::{bash, lines, text},
    patch::misbehaving,
    session,
};
use serde_json::json;

/// A home with a script of one tool call and an answer.
fn home() -> (Home, String) {
    let home = Home::new();
    let script = home.script(&json!([bash("echo 1"), text("hello")]));
    (home, script.display().to_string())
}

#[test]
fn what_an_extension_prints_never_reaches_stdout() {
    for mode in ["init-print", "print:tool_call", "print:sync-message_update", "print:session_shutdown"] {
        let (home, script) = home();
        misbehaving(&home, "printer", mode);
        let done = home.atomic(["-p", "hi", "--script", &script]).run().ok();
        assert_eq!(done.stdout, "hello\n", "{mode}");
        let done = home.atomic(["--mode", "json", "-p", "hi", "--script", &script]).run().ok();
        let rows = done.json_lines();
        assert_eq!(rows[0]["type"], "session", "{mode}");
        assert!(!done.stdout.contains("STRAY"), "{mode}");
    }
}

#[test]
fn a_crash_is_one_line_that_names_the_extension_and_the_session_opens_again() {
    for (mode, what) in [
        ("segv:tool_call", "SIGSEGV in tool_call"),
        ("segv:sync-context", "SIGSEGV in context"),
        ("abort:tool_call", "SIGABRT in tool_call"),
        ("segv:message_update", "SIGSEGV in message_update"),
    ] {
        let (home, script) = home();
        misbehaving(&home, "neighbour", "none");
        misbehaving(&home, "crasher", mode);
        let done = home.atomic(["-p", "hi", "--script", &script]).run().exit(70);
        let told: Vec<&str> = done.stderr.lines().filter(|l| l.starts_with("atomic: ")).collect();
        assert_eq!(told.len(), 1, "{mode}:\n{}", done.stderr);
        assert!(told[0].contains("crasher") && told[0].contains(what), "{mode}: {}", told[0]);
        assert!(!told[0].contains("neighbour"), "{mode}: blames only one\n{}", done.stderr);
        // What was said before the crash is there, and goes on without the extension.
        let file = home.sessions().pop().expect("the session was written");
        let again = home.script(&json!([text("still here")]));
        std::fs::remove_file(home.extensions().join(atomic_tests::libs::file_name("crasher"))).unwrap();
        let done = home.atomic(["-c", "-p", "again", "--script", again.to_str().unwrap()]).run().ok();
        assert_eq!(done.stdout, "still here\n", "{mode}");
        assert_eq!(home.sessions(), std::slice::from_ref(&file), "{mode}: the same file");
        let session = session::read(&file);
        let users: Vec<String> = session.of_role("user").iter().map(|m| session::text(m)).collect();
        assert_eq!(users, ["hi", "again"], "{mode}");
    }
}

#[test]
fn a_crash_while_loading_names_the_library() {
    let (home, script) = home();
    misbehaving(&home, "crasher", "init-segv");
    let done = home.atomic(["-p", "hi", "--script", &script]).run().exit(70);
    assert!(done.stderr.contains("crasher"), "{}", done.stderr);
}

#[test]
fn an_extension_that_ends_the_process_leaves_a_session_that_opens_again() {
    let (home, script) = home();
    for (mode, what) in [
        ("init-exit", "exit called in activate"),
        ("exit:sync-agent_end", "exit called in agent_end"),
        ("exit:tool_call", "exit called in tool_call"),
    ] {
        misbehaving(&home, "leaver", mode);
        let kept = (mode != "exit:tool_call").then_some("--no-session");
        let done = home.atomic(["-p", "hi", "--script", &script]).args(kept).run().exit(70);
        assert_eq!(done.stdout, "", "{mode}: an unfinished run has no answer");
        let told: Vec<&str> = done.stderr.lines().filter(|l| l.contains("leaver")).collect();
        assert_eq!(told.len(), 1, "{mode}:\n{}", done.stderr);
        assert!(told[0].contains(what), "{mode}: {}", told[0]);
    }
    std::fs::remove_file(home.extensions().join(atomic_tests::libs::file_name("leaver"))).unwrap();
    let again = home.script(&json!([text("still here")]));
    home.atomic(["-c", "-p", "again", "--script", again.to_str().unwrap()]).run().ok();
    let session = session::read(&home.sessions().pop().unwrap());
    let users: Vec<String> = session.of_role("user").iter().map(|m| session::text(m)).collect();
    assert_eq!(users, ["hi", "again"]);
}

#[test]
fn a_run_killed_in_a_tool_goes_on_in_the_next_process() {
    for _ in 0..rounds(50) {
        killed_and_continued();
    }
}

fn killed_and_continued() {
    let home = Home::new();
    let script = home.script(&json!([bash("touch started; sleep 600"), text("never")]));
    let run =
        home.atomic(["--mode", "json", "-p", "first", "--script", script.to_str().unwrap()]).start_alone();
    run.wait_for("the tool to start", |l| l.contains("tool_execution_start"));
    run.kill();
    let file = home.sessions().pop().expect("the prompt survives a first turn that never ended");
    let script = home.script(&json!([text("second answer")]));
    let done = home.atomic(["-c", "-p", "second", "--script", script.to_str().unwrap()]).run().ok();
    assert_eq!(done.stdout, "second answer\n");
    assert_eq!(home.sessions(), std::slice::from_ref(&file));
    let session = session::read(&file);
    let users: Vec<String> = session.of_role("user").iter().map(|m| session::text(m)).collect();
    assert_eq!(users, ["first", "second"]);
}

/// What a killed process left is repaired on the way to the model: the server refuses a
/// request with a call that has no result.
#[test]
fn the_model_is_never_shown_the_torn_end_of_a_killed_run() {
    use atomic_tests::model_server::{Answer, ModelServer};
    for model in ["fake-openai/fake", "fake-anthropic/fake"] {
        let home = Home::new();
        let server = ModelServer::start([
            Answer::calls([("bash", json!({"command": "touch started; sleep 600"}))]),
            Answer::text("second answer"),
        ]);
        home.models_json(&serde_json::from_str(&server.models_json()).unwrap());
        let run = home.atomic(["--mode", "json", "-p", "first", "--model", model]).start_alone();
        run.wait_for("the tool to start", |l| l.contains("tool_execution_start"));
        run.kill();
        // The last line torn in the middle, as a power cut leaves it.
        let file = home.sessions().pop().unwrap();
        let bytes = std::fs::read(&file).unwrap();
        std::fs::write(&file, [&bytes[..], br#"{"type":"message","id":"torn"#].concat()).unwrap();
        let done = home.atomic(["-c", "-p", "second", "--model", model]).run().ok();
        assert_eq!(done.stdout, "second answer\n", "{model}");
        server.assert_finished();
        assert!(server.requests()[1].last_user_text().contains("second"), "{model}");
        let torn = std::fs::read_dir(file.parent().unwrap())
            .unwrap()
            .any(|e| e.unwrap().file_name().to_string_lossy().contains(".torn-"));
        assert!(torn, "{model}: the torn bytes were set aside");
    }
}

#[test]
fn an_extension_hears_the_end_of_a_run_that_a_signal_ended() {
    let home = Home::new();
    let out = misbehaving(&home, "listener", "none");
    let script = home.script(&json!([bash("sleep 600")]));
    let run =
        home.atomic(["--mode", "json", "-p", "first", "--script", script.to_str().unwrap()]).start_alone();
    run.wait_for("the tool to start", |l| l.contains("tool_execution_start"));
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(run.id().cast_signed()).unwrap(),
        rustix::process::Signal::TERM,
    )
    .unwrap();
    let done = run.finish();
    assert_ne!(done.code, Some(0));
    assert!(lines(&out).contains(&"session_shutdown quit".to_owned()), "{:#?}", lines(&out));
}

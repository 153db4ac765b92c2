//! The plain prompt on a real terminal: what Ctrl+C ends and what it gives back.

use atomic_tests::{
    env::Home,
    live::{bash, lines, text},
    patch::misbehaving,
    pty::Terminal,
};
use serde_json::json;

const CTRL_C: &str = "\u{3}";

fn start(home: &Home, script: &serde_json::Value) -> Terminal {
    let script = home.script(script).display().to_string();
    let terminal = Terminal::start(&home.atomic(["--script", &script]), 40, 100);
    terminal.wait_for("the prompt", |s| s.ends_with("> ") || s.ends_with('>'));
    terminal
}

#[test]
fn what_was_queued_when_a_run_is_aborted_comes_back_and_is_not_sent() {
    let home = Home::new();
    let mut terminal = start(&home, &json!([bash("sleep 600"), text("I heard the new one")]));
    terminal.line("go");
    terminal.wait_for("the tool", |s| s.contains("● bash sleep 600"));
    terminal.line("the old one");
    terminal.wait_for("the queue", |s| s.contains("1 queued"));
    terminal.keys(CTRL_C);
    terminal
        .wait_for("the message back", |s| s.contains("1 queued message was taken back:\n    the old one"));
    terminal.line("the new one");
    terminal.wait_for("the answer", |s| s.contains("I heard the new one"));
    terminal.line("/quit");
    assert_eq!(terminal.finish(), 0);
    let session = std::fs::read_to_string(&home.sessions()[0]).unwrap();
    assert!(session.contains("the new one") && !session.contains("the old one"), "{session}");
}

#[test]
fn ctrl_c_ends_a_command_of_an_extension_and_what_it_started() {
    let home = Home::new();
    let reports = misbehaving(&home, "waiter", "none");
    let mut terminal = start(&home, &json!([text("hello")]));
    let file = home.path("pid");
    terminal.line(&format!("/waits {}", file.display()));
    // The child is there when its number is.
    let pid = loop {
        match std::fs::read_to_string(&file).unwrap_or_default().trim().parse::<i32>() {
            Ok(pid) => break pid,
            Err(_) => std::thread::yield_now(),
        }
    };
    terminal.keys(CTRL_C);
    terminal.wait_for("the prompt again", |s| s.contains("(aborting)") && s.trim_end().ends_with('>'));
    while !lines(&reports).contains(&"waits was dropped".to_owned()) {
        std::thread::yield_now();
    }
    let alive = || rustix::process::test_kill_process(rustix::process::Pid::from_raw(pid).unwrap()).is_ok();
    while alive() {
        std::thread::yield_now();
    }
    terminal.line("hi");
    terminal.wait_for("an answer", |s| s.contains("hello"));
    terminal.line("/quit");
    assert_eq!(terminal.finish(), 0);
}

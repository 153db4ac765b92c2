//! The plain prompt over a pipe: a line is taken when the agent is idle or asks something.

use crate::program::Program;
use serde_json::json;

#[test]
fn lines_are_answered_one_after_another_until_the_input_ends() {
    let program = Program::new();
    let ended = program.run_with(&["--mode", "lines", "--offline"], "first\nsecond\n").ok();
    let first = ended.out.find("You said: first").expect(&ended.out);
    let second = ended.out.find("You said: second").expect(&ended.out);
    assert!(first < second);
    assert_eq!(ended.err, "");
}

#[test]
fn quit_leaves_what_follows_unread() {
    let ended = Program::new().run_with(&["--mode", "lines", "--offline"], "/quit\nnever\n").ok();
    assert!(!ended.out.contains("never"), "{}", ended.out);
}

#[test]
fn a_shell_command_shows_its_output_and_its_failure() {
    let program = Program::new();
    let ended = program.run_with(&["--mode", "lines", "--offline"], "!echo to you; exit 3\n").ok();
    assert!(ended.out.contains("to you"), "{}", ended.out);
    assert!(ended.out.contains("code 3"), "{}", ended.out);
}

#[test]
fn a_command_nobody_has_is_not_sent_to_the_model() {
    let ended = Program::new().run_with(&["--mode", "lines", "--offline"], "/reloda\n").ok();
    assert!(ended.out.contains("did you mean /reload"), "{}", ended.out);
    assert!(!ended.out.contains("You said"), "{}", ended.out);
}

#[test]
fn b29_a_reload_without_extensions_is_no_error() {
    let ended =
        Program::new().run_with(&["--mode", "lines", "--offline"], "/extensions\n/reload\nhello\n").ok();
    assert!(ended.out.contains("No extensions are loaded."), "{}", ended.out);
    assert!(ended.out.contains("reload: there are no extensions"), "{}", ended.out);
    assert!(ended.out.contains("You said: hello"), "{}", ended.out);
}

#[test]
fn new_begins_another_session() {
    let program = Program::new();
    program.run_with(&["--mode", "lines", "--offline"], "one\n/new\ntwo\n").ok();
    assert_eq!(program.sessions().len(), 2);
}

#[test]
fn a_message_of_the_command_line_is_said_first() {
    let ended = Program::new().run_with(&["--mode", "lines", "--offline", "from the shell"], "typed\n").ok();
    let shell = ended.out.find("You said: from the shell").expect(&ended.out);
    assert!(shell < ended.out.find("You said: typed").expect(&ended.out));
}

#[test]
fn neither_model_nor_tool_can_send_escape_sequences_to_the_screen() {
    let program = Program::new();
    let evil = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}5n\u{202e}";
    let script = program.script(json!([
        {"text": format!("a{evil}"), "toolCalls": [{"name": format!("x{evil}"), "arguments": {"command": evil}},
            {"name": "bash", "arguments": {"command": format!("printf '%s' '{evil}'")}}]},
        {"text": "end", "error": evil},
    ]));
    let ended = program.run_with(&["--mode", "lines", "--script", &script], "go\n").ok();
    let raw = |c: char| (c.is_control() && c != '\n' && c != '\t') || c == '\u{202e}';
    assert!(!ended.out.chars().any(raw), "{:?}", ended.out);
    assert!(ended.out.contains("● bash"), "{}", ended.out);
}

#[cfg(unix)]
mod unix {
    use super::*;
    use crate::program::signal;
    use rustix::process::Signal;
    use std::io::{BufRead, BufReader, Write};

    #[test]
    fn ctrl_c_aborts_the_run_and_the_prompt_goes_on() {
        let program = Program::new();
        let script = program.script(json!([
            {"toolCalls": [{"name": "bash", "arguments": {"command": "sleep 600"}}]},
            {"text": "I am back"},
        ]));
        let mut child = program.spawn(&["--mode", "lines", "--script", &script]);
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(b"sleep\nagain\n").unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        while !lines.next().unwrap().unwrap().contains("● bash") {}
        signal(&child, Signal::INT);
        while !lines.next().unwrap().unwrap().contains("I am back") {}
        drop(stdin);
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }

    #[test]
    fn sigterm_is_an_orderly_end_for_a_prompt() {
        let program = Program::new();
        let mut child = program.spawn(&["--mode", "lines", "--offline"]);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.next().unwrap().unwrap().contains("atomic"));
        signal(&child, Signal::TERM);
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
}

//! Print and json mode.

use crate::program::{Ended, Program};
use serde_json::{Value, json};
use std::fs;

#[test]
fn the_answer_is_alone_on_stdout() {
    let ended = Program::new().run(&["--offline", "-p", "hello there"]).ok();
    assert!(ended.out.contains("hello there"), "{}", ended.out);
    assert_eq!(ended.err, "");
}

#[test]
fn only_the_last_answer_is_printed_and_each_message_is_settled_before_the_next() {
    let program = Program::new();
    let script = program.script(json!([
        {"text": "first", "toolCalls": [{"name": "bash", "arguments": {"command": "echo x > made"}}]},
        {"text": "between"},
        {"text": "last"},
    ]));
    let ended = program.run(&["-p", "--script", &script, "one", "two"]).ok();
    assert_eq!(ended.out, "last\n");
    assert!(program.project().join("made").exists());
}

#[test]
fn piped_input_comes_before_the_message_and_implies_print() {
    let ended = Program::new().run_with(&["--offline", "and this"], "piped text\n").ok();
    assert!(ended.out.contains("piped text\nand this"), "{}", ended.out);
}

#[test]
fn a_failed_answer_is_told_on_stderr_and_exits_1() {
    let program = Program::new();
    let script = program.script(json!([{"text": "half an ans", "error": "the provider is on fire"}]));
    let ended = program.run(&["-p", "--script", &script, "hello"]).refused();
    assert_eq!(ended.out, "");
    assert!(ended.err.contains("the provider is on fire"), "{}", ended.err);
}

fn rows(ended: &Ended) -> Vec<Value> {
    ended.out.lines().map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}"))).collect()
}

#[test]
fn json_mode_is_the_header_and_then_one_event_a_line() {
    let program = Program::new();
    let script = program.script(json!([
        {"toolCalls": [{"name": "bash", "arguments": {"command": "echo '\u{2028}two\nlines'"}}]},
        {"text": "done \u{1b}[31m"},
    ]));
    let ended = program.run(&["--mode", "json", "--script", &script, "hello"]).ok();
    let rows = rows(&ended);
    assert_eq!(rows[0]["type"], "session");
    assert_eq!(rows[0]["version"], 3);
    let types: Vec<&str> = rows.iter().filter_map(|r| r["type"].as_str()).collect();
    for wanted in
        ["agent_start", "turn_start", "tool_execution_end", "turn_end", "agent_end", "agent_settled"]
    {
        assert!(types.contains(&wanted), "{wanted} is not in {types:?}");
    }
    for own in ["session_ready", "notify", "status", "stopped", "reloaded"] {
        assert!(!types.contains(&own), "{own} is the program's own");
    }
    let end = rows.iter().rev().find(|r| r["type"] == "turn_end").unwrap();
    assert_eq!(end["message"]["role"], "assistant");
    assert_eq!(end["message"]["content"][0]["text"], "done \u{1b}[31m", "data is kept as it is");
    assert!(!ended.out.contains('\u{1b}'), "data is escaped");
}

#[test]
fn continue_goes_on_with_the_session_of_this_folder() {
    let program = Program::new();
    program.run(&["--offline", "-p", "one"]).ok();
    program.run(&["--offline", "-p", "-c", "two"]).ok();
    let sessions = program.sessions();
    assert_eq!(sessions.len(), 1, "{sessions:?}");
    let text = fs::read_to_string(&sessions[0]).unwrap();
    assert!(text.contains("\"one\"") && text.contains("\"two\""));
}

#[test]
fn no_session_writes_none() {
    let program = Program::new();
    program.run(&["--offline", "--no-session", "-p", "one"]).ok();
    assert!(program.sessions().is_empty());
}

#[cfg(unix)]
mod unix {
    use super::*;
    use crate::program::signal;
    use rustix::process::Signal;
    use std::{
        io::{BufRead, BufReader, Read},
        process::Stdio,
    };

    #[test]
    fn a_reader_that_goes_away_is_no_error_message() {
        let program = Program::new();
        let mut child = program.command(&["--mode", "json", "--offline", "hi"]).spawn().unwrap();
        drop(child.stdout.take());
        let mut err = String::new();
        child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0));
        assert_eq!(err, "");
    }

    fn killed_by(how: Signal) -> (Option<i32>, String) {
        let program = Program::new();
        let script = program.script(json!([{"text": "late", "delayMs": 600_000}]));
        let mut child = program.command(&["--mode", "json", "--script", &script, "hi"]).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        while !lines.next().unwrap().unwrap().contains("\"turn_start\"") {}
        signal(&child, how);
        let code = child.wait().unwrap().code();
        let file = fs::read_to_string(&program.sessions()[0]).unwrap();
        (code, file)
    }

    #[test]
    fn sigterm_and_sighup_end_an_unfinished_run_with_their_codes_and_keep_the_session() {
        for (how, code) in [(Signal::TERM, 143), (Signal::HUP, 129)] {
            let (got, session) = killed_by(how);
            assert_eq!(got, Some(code));
            assert!(session.contains("\"hi\""), "{session}");
        }
    }

    #[test]
    fn a_stdin_that_is_closed_is_an_empty_one() {
        let program = Program::new();
        let ended =
            Ended::of(program.command(&["--offline", "hi"]).stdin(Stdio::null()).output().unwrap()).ok();
        assert!(ended.out.contains("You said: hi\n"), "{}", ended.out);
    }
}

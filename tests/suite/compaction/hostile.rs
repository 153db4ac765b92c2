//! What may go wrong on the way: aborts at each phase, handlers that break, a program that is
//! killed, text of every shape.

use super::*;
use atomic_tests::{model_server::Gate, patch::misbehaving, pty::Terminal};

const CTRL_C: &str = "\u{3}";

fn terminal(home: &Home) -> Terminal {
    let args = ["--mode", "lines", "--model", "fake-openai/fake"];
    let terminal = Terminal::start(&home.atomic(args), 60, 120);
    terminal.wait_for("the prompt", |s| s.trim_end().ends_with('>'));
    terminal
}

/// A prompt with the two long answers of [`two_long`] behind it.
fn two_were_answered(home: &Home) -> Terminal {
    let mut terminal = terminal(home);
    for (said, answered) in [("one", "first 31"), ("two", "second 31")] {
        terminal.line(said);
        terminal.wait_for("the answer", |s| s.contains(answered) && s.trim_end().ends_with('>'));
    }
    terminal
}

fn ctrl_c_cancels_it_and_the_next_message_is_answered(mut terminal: Terminal) {
    terminal.keys(CTRL_C);
    terminal.wait_for("its end", |s| {
        s.contains("not compacted: it was cancelled") && s.trim_end().ends_with('>')
    });
    terminal.line("three");
    terminal.wait_for("the answer", |s| s.contains("still here"));
    terminal.line("/quit");
    assert_eq!(terminal.finish(), 0);
}

#[test]
fn ctrl_c_while_the_planner_thinks_ends_the_compaction_and_nothing_is_written() {
    let gate = Gate::new();
    let server = two_long([plan("1,9\n").behind(&gate), Answer::text("still here")]);
    let home = home(&server, WINDOW);
    let mut terminal = two_were_answered(&home);
    terminal.line("/compact");
    server.wait_for_requests(3);
    ctrl_c_cancels_it_and_the_next_message_is_answered(terminal);
    let file = the_session(&home);
    assert!(compactions(&file).is_empty());
    assert_eq!(server.requests()[3].body["messages"].as_array().unwrap().len(), 6);
    assert_eq!(std::fs::read_dir(home.sessions()[0].parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn ctrl_c_while_a_handler_never_answers_ends_the_compaction_too() {
    let server = two_long([Answer::text("still here")]);
    let home = home(&server, WINDOW);
    let reports = misbehaving(&home, "x", "never:session_before_compact");
    let mut terminal = two_were_answered(&home);
    terminal.line("/compact");
    atomic_tests::live::wait_for_file(&reports, "waits for ever");
    ctrl_c_cancels_it_and_the_next_message_is_answered(terminal);
    assert!(compactions(&the_session(&home)).is_empty());
}

#[test]
fn a_handler_that_never_answers_is_given_up_and_the_compaction_goes_on() {
    let server = two_long([plan("3,20\n")]);
    let home = home(&server, WINDOW);
    settings(&home, json!({"extensions.handlerTimeoutMs": 200}));
    misbehaving(&home, "x", "never:session_before_compact");
    let run = typed(&home, &["one", "two", "/compact"]);
    server.assert_finished();
    assert!(run.stdout.contains("compacted: 18 of 33"), "{}", run.stdout);
}

#[test]
fn what_is_typed_while_a_compaction_goes_on_is_said_after_it() {
    let gate = Gate::new();
    let server = two_long([plan("3,20\n").behind(&gate), Answer::text("after it")]);
    let home = home(&server, WINDOW);
    let mut terminal = two_were_answered(&home);
    terminal.line("/compact");
    server.wait_for_requests(3);
    terminal.line("three");
    gate.open();
    terminal.wait_for("the answer", |s| s.contains("compacted: 18 of 33") && s.contains("after it"));
    terminal.line("/quit");
    assert_eq!(terminal.finish(), 0);
    let sent = server.requests()[3].body["messages"].clone();
    assert_eq!(sent.as_array().unwrap().len(), 3, "{sent}");
}

#[test]
fn a_compaction_that_is_asked_for_ends_the_run_that_goes_on() {
    let server = two_long([Answer::text("It has begun").hang(), plan("3,20\n"), Answer::text("here")]);
    let home = home(&server, WINDOW);
    let mut terminal = two_were_answered(&home);
    terminal.line("three");
    terminal.wait_for("its first words", |s| s.contains("It has"));
    terminal.line("/compact");
    terminal.wait_for("the compaction", |s| s.contains("compacted: 18 of ") && s.trim_end().ends_with('>'));
    terminal.line("four");
    terminal.wait_for("the answer", |s| s.contains("here"));
    terminal.line("/quit");
    assert_eq!(terminal.finish(), 0);
    let sent = session::text(&server.requests()[4].body["messages"][1]);
    assert!(sent.ends_with("[User]: three\n\n[Assistant]: It has begun"), "{sent}");
}

#[test]
fn handlers_that_break_or_answer_nonsense_do_not_stop_a_compaction() {
    for mode in [
        "fails:session_before_compact",
        "panic:session_before_compact",
        "replies:session_before_compact=7",
        "replies:session_before_compact={\"cancel\":\"yes\"}",
        "replies:session_before_compact=[]",
        "fails:session_compact",
        "fails:compaction_start",
        "fails:compaction_end",
    ] {
        let server = two_long([plan("3,20\n"), Answer::text("here")]);
        let home = home(&server, WINDOW);
        misbehaving(&home, "x", mode);
        let run = typed(&home, &["one", "two", "/compact", "three"]);
        server.assert_finished();
        assert!(run.stdout.contains("compacted: 18 of 33"), "{mode}: {}", run.stdout);
        assert_eq!(compactions(&the_session(&home)).len(), 1, "{mode}");
    }
}

#[test]
fn a_program_that_is_killed_while_the_planner_thinks_leaves_the_session_as_it_was() {
    let gate = Gate::new();
    let server = two_long([plan("3,20\n").behind(&gate), Answer::text("here")]);
    let home = home(&server, WINDOW);
    let mut run = home.atomic(["--mode", "lines", "--model", "fake-openai/fake"]).start();
    for line in ["one", "two", "/compact"] {
        run.say(line);
    }
    server.wait_for_requests(3);
    run.kill();
    drop(gate);
    assert!(compactions(&the_session(&home)).is_empty());
    let again =
        home.atomic(["--mode", "lines", "--model", "fake-openai/fake", "-c"]).run_with("three\n").ok();
    assert!(again.stdout.contains("here"), "{}", again.stdout);
    assert_eq!(server.requests()[3].body["messages"].as_array().unwrap().len(), 6);
}

#[test]
fn text_of_every_shape_comes_through_to_the_character() {
    let shapes =
        ["tab\there", "crlf\r", "日本語の行", "👩‍👩‍👧‍👦 \u{202e}rtl", "", "  ", "(filtered 1 line)", "→ 3→x"];
    let long_line = "z".repeat(300_000);
    let mut lines: Vec<String> = shapes.iter().map(|s| (*s).to_owned()).collect();
    lines.push(long_line);
    lines.extend((0..15).map(|n| format!("row {n}")));
    let server = ModelServer::start([
        Answer::text(&lines.join("\n")),
        Answer::text("second"),
        plan("1,1\n12,30\n"),
        Answer::text("here"),
    ]);
    let home = home(&server, WINDOW);
    typed(&home, &["one", "two", "/compact", "three"]);
    server.assert_finished();
    let file = the_session(&home);
    let summary = compactions(&file)[0]["summary"].as_str().unwrap();
    let expected =
        format!("(filtered 1 lines)\n\n[Assistant]: {}\n(filtered 15 lines)", lines[..9].join("\n"));
    assert!(summary == expected, "{}", &summary[..400]);
    assert!(session::text(&server.requests()[3].body["messages"][1]).contains(&expected));
}

#[test]
fn a_planner_that_names_lines_that_do_not_exist_deletes_none_of_them() {
    for (ranges, deleted) in
        [("900,999\n3,4\n", Some(2)), ("20,10\n", Some(11)), ("0,0\n900,999\n", None), ("", None)]
    {
        let server = two_long([plan(ranges).and_text("")]);
        let home = home(&server, WINDOW);
        let run = typed(&home, &["one", "two", "/compact"]);
        let file = the_session(&home);
        let written =
            compactions(&file).first().map(|e| e["details"]["stats"]["linesDeleted"].as_u64().unwrap());
        assert_eq!(written, deleted, "{ranges:?}: {}", run.stdout);
    }
}

#[test]
fn a_session_that_another_program_compacted_is_honoured_and_compacted_further() {
    let server = ModelServer::start([Answer::text(&many("new", 31)), plan("2,9\n"), Answer::text("here")]);
    let home = home(&server, WINDOW);
    let dir = home.path("old");
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join("s.jsonl");
    let message = |id: &str, parent: Value, role: &str, text: &str| {
        let content = json!([{"type": "text", "text": text}]);
        json!({"type": "message", "id": id, "parentId": parent, "timestamp": "2026-01-01T00:00:00.000Z",
            "message": {"role": role, "content": content, "timestamp": 0}})
    };
    let entries = [
        json!({"type": "session", "version": 3, "id": "s1", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": home.cwd()}),
        message("00000001", Value::Null, "user", "long ago"),
        message("00000002", json!("00000001"), "user", "kept question"),
        json!({"type": "compaction", "id": "00000003", "parentId": "00000002", "timestamp": "2026-01-01T00:00:00.000Z",
            "summary": many("summary", 20), "firstKeptEntryId": "00000002", "tokensBefore": 9000}),
    ];
    let text: String = entries.iter().map(|e| format!("{e}\n")).collect();
    std::fs::write(&path, text).unwrap();
    let run = home.atomic(["--mode", "lines", "--model", "fake-openai/fake", "--session"]).arg(&path);
    run.run_with("now\n/compact\nmore\n").ok();
    server.assert_finished();
    let sent = server.requests()[0].body["messages"].clone();
    assert!(
        session::text(&sent[1]).ends_with("summary 20") && session::text(&sent[2]) == "kept question",
        "{sent}"
    );
    let asked = numbered(&server.requests()[1]);
    assert_eq!(
        (asked[0].as_str(), asked[20].as_str(), asked.len()),
        ("1→summary 1", "21→[User]: kept question", 21)
    );
}

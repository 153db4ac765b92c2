//! Sessions as a user has them: chosen, named, forked, gone back in, by the real program over a
//! pipe, with its engine in a process of its own.

use atomic_tests::{env::Home, live::text, patch::misbehaving};
use serde_json::{Value, json};
use std::{fs, path::Path};

fn read(file: &Path) -> Vec<Value> {
    fs::read_to_string(file).unwrap().lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

fn said(file: &Path) -> Vec<String> {
    let text = |l: &Value| match &l["message"]["content"] {
        Value::String(text) => text.clone(),
        blocks => blocks[0]["text"].as_str().unwrap_or_default().to_owned(),
    };
    read(file).iter().filter(|l| l["message"]["role"] == "user").map(text).collect()
}

/// The lines, typed one after another.
fn lines(home: &Home, args: &[&str], typed: &[&str]) -> String {
    let run = home.atomic(["--mode", "lines", "--offline"]).args(args);
    run.run_with(&format!("{}\n", typed.join("\n"))).ok().stdout
}

/// The session file in which this was said, and nothing that is in another.
fn with(home: &Home, text: &str) -> std::path::PathBuf {
    let all = home.sessions();
    let found: Vec<_> = all.iter().filter(|f| said(f).iter().any(|s| s == text)).collect();
    assert_eq!(found.len(), 1, "{text} in {all:?}");
    found[0].clone()
}

#[test]
fn a_session_is_chosen_by_number_by_words_and_by_file() {
    let home = Home::new();
    lines(&home, &["--name", "the first"], &["said in the first"]);
    lines(&home, &[], &["said in the second"]);
    let out = lines(&home, &[], &["here", "/resume the first", "/resume 1", "and on"]);
    assert!(out.contains("[the first] said in the first"), "{out}");
    let first = with(&home, "and on");
    assert_eq!(said(&first), ["said in the first", "and on"]);
    // Without a list on the screen the number means the one that would be: the newest.
    lines(&home, &[], &["/resume 2", "to the older"]);
    assert_eq!(said(&with(&home, "to the older")).len(), 2);
    let second = with(&home, "said in the second");
    lines(&home, &[], &[&format!("/resume {}", second.display()), "by file"]);
    assert!(said(&second).contains(&"by file".to_owned()));
}

#[test]
fn a_start_chooses_a_session_by_a_list_by_the_beginning_of_an_id_and_by_an_id_of_its_own() {
    let home = Home::new();
    lines(&home, &["--session-id", "work-7"], &["one"]);
    lines(&home, &["--session-id", "work-7"], &["two"]);
    let file = with(&home, "one");
    assert_eq!((said(&file).len(), read(&file)[0]["id"].as_str()), (2, Some("work-7")));
    lines(&home, &["--session", "work"], &["three"]);
    lines(&home, &["-r"], &["1", "four"]);
    assert_eq!(said(&file), ["one", "two", "three", "four"]);
    let refused = home.atomic(["-p", "--offline", "--session", "nobody", "hi"]).run();
    assert!(refused.stderr.contains("no session has an id that begins with 'nobody'"), "{}", refused.stderr);
    let refused = home.atomic(["-p", "--offline", "--session-id", "../x", "hi"]).run().exit(1);
    assert!(refused.stderr.contains("can be no session's id"), "{}", refused.stderr);
    let refused = home.atomic(["-p", "--offline", "-r", "hi"]).run().exit(1);
    assert!(refused.stderr.contains("--continue"), "{}", refused.stderr);
}

#[test]
fn b56_a_fork_a_clone_and_a_walk_in_the_tree_at_the_prompt() {
    let home = Home::new();
    let out = lines(&home, &[], &["first", "second", "/fork 2", "another second", "/session"]);
    assert!(out.contains("to be said again:\n    second"), "{out}");
    let (parent, child) = (with(&home, "second"), with(&home, "another second"));
    assert_eq!(said(&child), ["first", "another second"]);
    assert_eq!(read(&child)[0]["parentSession"], parent.to_str().unwrap());
    assert_eq!(read(&child).iter().filter(|l| l["type"] == "session").count(), 1);
    assert!(out.contains(child.to_str().unwrap()) && out.contains("2 of yours, 2 of the model"), "{out}");

    let bytes = fs::read(&child).unwrap();
    let out = lines(&home, &["--fork", child.to_str().unwrap()], &["/clone", "in the clone"]);
    assert!(out.contains("forked: session"), "{out}");
    assert_eq!(said(&with(&home, "in the clone")), ["first", "another second", "in the clone"]);
    assert_eq!(fs::read(&child).unwrap(), bytes);

    let out = lines(&home, &["-c"], &["/tree", "/tree 1 --label start", "begun anew", "/tree"]);
    assert!(out.contains("● user: begun anew") || out.contains("user: begun anew"), "{out}");
    let walked = with(&home, "begun anew");
    assert_eq!(read(&walked).iter().filter(|l| l["label"] == "start").count(), 1);
}

#[test]
fn names_are_given_shown_and_taken_away() {
    let home = Home::new();
    let out = lines(&home, &[], &["hi", "/name", "/name my work", "/name", "/name --clear", "/name"]);
    assert!(out.contains("this session is called my work"), "{out}");
    assert_eq!(out.matches("this session has no name").count(), 2, "{out}");
    let names: Vec<Value> =
        read(&home.sessions()[0]).iter().filter(|l| l["type"] == "session_info").cloned().collect();
    assert_eq!((names.len(), &names[0]["name"]), (2, &json!("my work")));
}

#[test]
fn an_import_is_a_copy_and_what_is_none_is_refused_in_one_line() {
    let home = Home::new();
    lines(&home, &[], &["theirs"]);
    let file = home.path("elsewhere.jsonl");
    fs::rename(&home.sessions()[0], &file).unwrap();
    let bytes = fs::read(&file).unwrap();
    let out = lines(&home, &[], &[&format!("/import {}", file.display()), "mine"]);
    assert!(out.contains("· session "), "{out}");
    assert_eq!(said(&with(&home, "mine")), ["theirs", "mine"]);
    assert_eq!(fs::read(&file).unwrap(), bytes);
    let foreign = home.write("pretty.json", "{\n  \"type\": \"session\"\n}\n");
    let out = lines(&home, &[], &[&format!("/import {}", foreign.display())]);
    assert!(out.contains("is not a session file"), "{out}");
}

#[test]
fn b73_the_second_opener_is_refused_over_a_pipe_and_told_how_to_have_a_copy() {
    let home = Home::new();
    let mut first = home.atomic(["--mode", "lines", "--offline"]).start();
    first.say("held");
    first.wait_for("the answer", |s| s.matches("held").count() >= 1 && !home.sessions().is_empty());
    let file = home.sessions()[0].clone();
    let second = home.atomic(["-p", "--offline", "--session"]).arg(&file).arg("mine").run();
    assert!(second.stderr.contains("in use by another Atomic"), "{}", second.stderr);
    assert!(second.stderr.contains("atomic --fork"), "{}", second.stderr);
    home.atomic(["-p", "--offline", "--fork"]).arg(&file).arg("in a copy").run().ok();
    first.kill();
    // What a killed program held is free at once.
    home.atomic(["-p", "--offline", "--session"]).arg(&file).arg("again").run().ok();
    assert!(said(&file).contains(&"again".to_owned()) && !said(&file).contains(&"in a copy".to_owned()));
}

#[test]
fn an_extension_forks_switches_and_goes_back_and_its_old_context_is_stale() {
    let home = Home::new();
    let out = misbehaving(&home, "walker", "none");
    let script = home.script(&json!([text("one"), text("two"), text("three"), text("four")]));
    let script = script.display().to_string();
    let typed = ["first", "/walk tree", "again", "/walk fork", "/walk switch"];
    let run = home.atomic(["--mode", "lines", "--script", &script]);
    run.run_with(&format!("{}\n", typed.join("\n"))).ok();
    let told = atomic_tests::live::lines(&out);
    for line in [
        "walk tree cancelled false",
        "walk fork in Fork",
        "walk fork cancelled false stale Some(\"stale_context\")",
        "walk switch in Resume",
        "walk switch cancelled false stale Some(\"stale_context\")",
    ] {
        assert!(told.iter().any(|l| l == line), "{line}: {told:#?}");
    }
}

/// A session of a folder beside the project, which brings an extension.
fn elsewhere(home: &Home) -> (std::path::PathBuf, std::path::PathBuf, std::path::PathBuf) {
    let folder = home.path("other");
    let out = atomic_tests::patch::misbehaving_in(home, &folder.join(".atomic/extensions"), "theirs", "none");
    let header = json!({"type": "session", "version": 3, "id": "other", "cwd": folder,
        "timestamp": "2026-01-01T00:00:00.000Z"});
    let said = json!({"type": "message", "id": "00000001", "parentId": null, "timestamp": "t",
        "message": {"role": "user", "content": "said there", "timestamp": 1}});
    let file = home.write("other-session.jsonl", format!("{header}\n{said}\n"));
    (folder, file, out)
}

#[test]
fn b59_a_session_of_another_folder_is_gone_on_with_there_and_brings_what_is_trusted() {
    for (trust, loaded) in [("--approve", true), ("--no-approve", false)] {
        let home = Home::new();
        let users = misbehaving(&home, "users", "none");
        let (folder, file, out) = elsewhere(&home);
        let run = home.atomic(["--mode", "lines", "--offline", trust]);
        // Both have that command, once both are there.
        let place = if loaded { "/where:1" } else { "/where" };
        let typed = format!("here\n/resume {}\n!pwd\n{place}\nthere\n/new\n!pwd\n", file.display());
        let stdout = run.run_with(&typed).ok().stdout;
        let there = folder.display().to_string();
        assert_eq!(stdout.lines().filter(|l| *l == there).count(), 2, "{stdout}");
        assert_eq!(said(&file), ["said there", "there"]);
        let told = atomic_tests::live::lines(&users);
        assert!(told.iter().any(|l| l.starts_with(&format!("where {}", folder.display()))), "{told:#?}");
        let theirs = out.is_file() && !atomic_tests::live::lines(&out).is_empty();
        assert_eq!(theirs, loaded, "{trust}");
    }
}

#[test]
fn b59_a_session_whose_folder_is_gone_is_a_question_and_without_a_yes_nothing_changes() {
    for (answer, goes_on) in [("y", true), ("n", false)] {
        let home = Home::new();
        let (folder, file, _) = elsewhere(&home);
        fs::remove_dir_all(&folder).unwrap();
        let typed = format!("here\n/resume {}\n{answer}\nthen\n", file.display());
        let run = home.atomic(["--mode", "lines", "--offline"]).run_with(&typed).ok();
        assert!(run.stdout.contains("which is gone"), "{}", run.stdout);
        assert_eq!(said(&file).contains(&"then".to_owned()), goes_on, "{}", run.stdout);
        assert_eq!(said(&with(&home, "here")).contains(&"then".to_owned()), !goes_on);
    }
}

#[test]
fn b73_a_second_opener_at_a_terminal_is_offered_a_copy() {
    let home = Home::new();
    let mut first = home.atomic(["--mode", "lines", "--offline"]).start();
    first.say("held");
    first.wait_for("the answer", |s| s.contains("You said: held"));
    let file = home.sessions()[0].clone();
    // An answer is shown before it is written.
    while !fs::read_to_string(&file).unwrap().contains("\"role\":\"assistant\"") {
        std::thread::yield_now();
    }
    let bytes = fs::read(&file).unwrap();
    let mut second = atomic_tests::pty::Terminal::start(&home.atomic(["--offline", "-c"]), 40, 120);
    second.wait_for("the question", |s| s.contains("Go on with a copy of it? [Y/n]"));
    second.line("");
    second.wait_for("the prompt", |s| s.trim_end().ends_with('>'));
    second.line("in the copy");
    second.wait_for("the answer", |s| s.contains("You said: in the copy"));
    second.line("/quit");
    assert_eq!(second.finish(), 0);
    assert_eq!(said(&with(&home, "in the copy")), ["held", "in the copy"]);
    assert_eq!(fs::read(&file).unwrap(), bytes);
    first.kill();
}

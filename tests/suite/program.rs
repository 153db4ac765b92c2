//! The program around a session: extensions that are programs, the bundled ones, signals, the
//! end of piped input.

use atomic_tests::{
    env::{Home, Invocation},
    libs::{atomic, file_name, profile_dir},
    live::{bash, line, text},
    patch::misbehaving,
    tree::repo,
};
use rustix::process::Signal;
use serde_json::json;
use std::{fs, path::Path};

#[test]
fn an_extension_that_is_a_program_gets_arguments_and_stdin_and_its_exit_code_is_the_programs() {
    let home = Home::new();
    misbehaving(&home, "program", "main");
    let run = home.atomic(["extension", "run", "program", "--", "7", "--help", "a b"]);
    let done = run.run_with("from stdin").exit(7);
    assert_eq!(done.stdout, "args [\"7\", \"--help\", \"a b\"] stdin from stdin\n");
    assert!(home.sessions().is_empty(), "a program has no session");
    home.atomic(["extension", "run", "program", "--", "0"]).run().ok();
}

#[test]
fn a_program_may_be_named_by_its_file_and_only_that_one_is_loaded() {
    let home = Home::new();
    misbehaving(&home, "program", "main");
    let other = misbehaving(&home, "other", "none");
    let file = home.extensions().join(file_name("program"));
    home.atomic(["extension", "run"]).arg(file).args(["--", "3"]).run().exit(3);
    assert!(!other.exists(), "another extension was activated: {:?}", fs::read_to_string(other));
}

/// What lies in the current folder is no extension of the user's, whatever it is called.
#[test]
fn a_bare_name_is_never_looked_for_in_the_current_folder() {
    let home = Home::new();
    misbehaving(&home, "program", "main");
    for name in ["program", "stranger"] {
        let folder = home.cwd().join(name);
        fs::create_dir_all(folder.join("src")).unwrap();
        fs::write(folder.join("src/lib.rs"), "").unwrap();
        fs::write(folder.join("Cargo.toml"), format!("[package]\nname = \"{name}\"\nversion = \"0.0.0\"\n"))
            .unwrap();
        fs::write(folder.join("build.rs"), "fn main() { std::fs::write(\"ran\", \"\").unwrap() }").unwrap();
    }
    home.atomic(["extension", "run", "program", "--", "5"]).run().exit(5);
    let refused = home.atomic(["extension", "run", "stranger"]).run().exit(1).stderr;
    assert!(refused.contains("no extension 'stranger' is installed"), "{refused}");
    for name in ["program", "stranger"] {
        assert!(!home.cwd().join(name).join("ran").exists(), "{name} was built");
    }
}

#[test]
fn a_program_that_fails_or_is_none_is_a_card() {
    let home = Home::new();
    misbehaving(&home, "program", "main");
    misbehaving(&home, "other", "none");
    let run = |id: &str| home.atomic(["extension", "run", id, "--", "fail"]).run().exit(1).stderr;
    assert!(run("program").contains("the program went wrong"));
    assert!(run("other").contains("program::none"));
    assert!(run("nobody").contains("no extension 'nobody' is installed"));
}

/// A copy of the program with nothing beside it, since what lies there would be loaded by
/// every other test.
fn copy(home: &Home) -> impl Fn(&[&str]) -> Invocation {
    let program = home.path("bin/atomic");
    fs::create_dir_all(program.parent().unwrap()).unwrap();
    fs::copy(atomic(), &program).unwrap();
    move |args| home.atomic(args).program(&program)
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn the_first_party_extensions_are_built_from_the_source_tree_and_laid_out() {
    let home = Home::new();
    let atomic = copy(&home);
    let target = profile_dir().parent().unwrap().to_owned();
    let bundle = atomic(&["extension", "bundle"]).in_dir(repo()).env("CARGO_TARGET_DIR", target);
    bundle.run().ok();
    let plugins = names(&repo().join("plugins"));
    let libraries: Vec<String> = plugins.iter().map(|p| file_name(p)).collect();
    assert_eq!(names(&home.path("bin/extensions")), libraries);
    let listed = atomic(&["extension", "list"]).run().ok().stdout;
    for name in plugins {
        assert!(listed.contains(&name), "{name}: {listed}");
    }
}

#[test]
fn without_a_source_tree_bundle_says_what_to_give() {
    let home = Home::new();
    let done = copy(&home)(&["extension", "bundle"]).run().exit(1);
    assert!(done.stderr.contains("atomic extension bundle DIR"), "{}", done.stderr);
    assert!(!home.path("bin/extensions").exists());
}

#[tokio::test]
async fn a_second_signal_exits_at_once() {
    let home = Home::new();
    let out = misbehaving(&home, "clinging", "sync-hang:session_shutdown");
    let script = home.script(&json!([{"text": "late", "delayMs": 600_000}]));
    let mut program = home.atomic(["--mode", "json", "hi", "--script"]).arg(script).start();
    program.close_stdin();
    program.wait_for("the turn", |l| l.contains("\"turn_start\""));
    program.signal(Signal::TERM);
    line(&out, "the first signal to be heard", |l| l.starts_with("session_shutdown")).await;
    program.signal(Signal::HUP);
    // The first one's code is 143: this is the second's.
    program.finish().exit(129);
}

#[test]
fn what_was_begun_before_the_input_ended_is_done_and_the_end_is_orderly() {
    let home = Home::new();
    let out = misbehaving(&home, "witness", "none");
    let script =
        home.script(&json!([bash("echo one"), text("first"), bash("echo two > made"), text("second")]));
    let run = home.atomic(["--mode", "lines", "--script"]).arg(script).arg("from the shell");
    let done = run.run_with("typed\n!echo three >> made").ok();
    assert_eq!(fs::read_to_string(home.cwd().join("made")).unwrap(), "two\nthree\n");
    let (first, second) = (done.stdout.find("first").unwrap(), done.stdout.find("second").unwrap());
    assert!(first < second, "{}", done.stdout);
    let told = fs::read_to_string(out).unwrap();
    assert!(told.ends_with("agent_settled\nsession_shutdown quit\n"), "{told}");
}

#[test]
fn a_question_that_nobody_can_answer_any_more_is_a_no_and_the_run_goes_on() {
    let home = Home::new();
    let out = misbehaving(&home, "asker", "dialog");
    let script = home.script(&json!([bash("touch a"), bash("touch b"), text("the end")]));
    let done = home.atomic(["--mode", "lines", "--script"]).arg(script).run_with("go\n").ok();
    assert_eq!(fs::read_to_string(out).unwrap().matches("dialog Ok(false)").count(), 2);
    assert!(done.stdout.contains("the end"), "{}", done.stdout);
    assert!(names(&home.cwd()).is_empty(), "a call ran");
}

#[test]
fn a_blocked_call_reads_as_blocked_at_the_prompt() {
    let home = Home::new();
    misbehaving(&home, "gate", "block:not_today");
    let script = home.script(&json!([bash("echo 1"), text("so be it")]));
    let done = home.atomic(["--mode", "lines", "--script"]).arg(script).run_with("go\n").ok();
    assert!(done.stdout.contains("✗ bash: blocked by gate: not today\n"), "{}", done.stdout);
}

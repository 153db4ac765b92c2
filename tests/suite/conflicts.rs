//! Two extensions, one name: who wins, and that a person is told, in every mode and naming both
//! files (decisions.md "Conflicts and errors").

use atomic_tests::{
    env::Home,
    libs::file_name,
    live::{Setup, line, text},
    patch::misbehaving,
};
use serde_json::json;
use std::path::PathBuf;

/// Each of these is said once, and names every one of the files.
#[track_caller]
fn told_once(said: &str, what: &str, files: &[&PathBuf]) {
    let of: Vec<&str> = said.lines().filter(|l| l.contains(what)).collect();
    assert_eq!(of.len(), 1, "{what} is told once: {said}");
    for file in files {
        assert!(of[0].contains(&file.display().to_string()), "{what} names {}: {}", file.display(), of[0]);
    }
}

#[test]
fn shared_names_and_replaced_tools_are_told_in_every_mode() {
    let home = Home::new();
    misbehaving(&home, "a", "flag:shared");
    misbehaving(&home, "b", "flag:shared");
    misbehaving(&home, "c", "tool:bash");
    let [a, b, c] = ["a", "b", "c"].map(|n| home.extensions().join(file_name(n)));
    for (mode, stdin) in [("text", ""), ("json", ""), ("lines", "/quit\n")] {
        let args = ["--offline", "--mode", mode].into_iter().map(str::to_owned);
        let prompt = (mode != "lines").then(|| ["-p".to_owned(), "hi".to_owned()]);
        let run = home.atomic(args.chain(prompt.into_iter().flatten())).run_with(stdin).ok();
        let said = format!("{}\n{}", run.stderr, if mode == "lines" { &run.stdout } else { "" });
        let said = said.replace("\n    ", " ");
        eprintln!("{mode}: {said}");
        told_once(&said, "flag --shared", &[&a, &b]);
        told_once(&said, &format!("those of {} are dropped", b.display()), &[&a, &b]);
        told_once(&said, "replaces the program's own", &[&c]);
        assert!(said.contains("/NAME:1"), "commands too: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conflict_that_comes_later_is_told_then_and_no_conflict_twice() {
    let home = Home::new();
    misbehaving(&home, "a", "flag:shared");
    misbehaving(&home, "b", "late-flag:shared");
    let live = Setup::new(&home).turns(json!([text("ok"), text("ok")])).start().await;
    assert!(!live.report.notes.iter().any(|n| n.contains("--shared")), "{:?}", live.report.notes);
    live.run("hi").await;
    let [a, b] = ["a", "b"].map(|n| home.extensions().join(file_name(n)));
    told_once(&live.notices().join("\n"), "flag --shared", &[&a, &b]);
    let report = live.reload().await;
    live.run("hi").await;
    told_once(&live.notices().join("\n"), "flag --shared", &[&a, &b]);
    assert!(!report.notes.iter().any(|n| n.contains(" dropped")), "{report:?}");
    live.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_registrations_load_and_work_early_or_late() {
    for mode in ["many:3000", "late-many:3000"] {
        let home = Home::new();
        let out = misbehaving(&home, "many", mode);
        let turns = json!([{ "toolCalls": [{ "name": "many_2999", "arguments": {} }] }, text("ok")]);
        let live = Setup::new(&home).turns(turns).start().await;
        line(&out, "its registrations", |l| l == "registered").await;
        assert!(live.report.refused.is_empty(), "{:?}", live.report.refused);
        live.say("/many-2999").await.unwrap();
        live.run("call it").await;
        assert_eq!(live.tool_results(), [("many_2999".into(), "3000 of the extension".into(), false)]);
        assert_eq!(live.faults(), []);
        live.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flag_that_no_command_line_can_say_fails_the_activation_that_registers_it() {
    for name in ["", "-x", "x=y", "\u{1b}x"] {
        let home = Home::new();
        misbehaving(&home, "a", &format!("flag:{name}"));
        let live = Setup::new(&home).start().await;
        let refused: Vec<String> = live.report.refused.iter().map(ToString::to_string).collect();
        assert_eq!(refused.len(), 1, "{name:?}: {refused:?}");
        assert_eq!(live.report.refused[0].code(), "extension::init_failed");
        assert!(refused[0].contains(&format!("flag name {name:?}")), "{}", refused[0]);
        live.close().await;
    }
}

#[test]
fn a_flag_of_the_program_cannot_be_taken_and_whoever_tries_is_named() {
    let home = Home::new();
    misbehaving(&home, "taker", "flag:session-dir");
    let done = home.atomic(["-p", "hi", "--offline", "--session-dir", "kept"]).run().ok();
    assert!(done.stdout.contains("hi"), "the rest of it works: {}", done.stdout);
    let told: Vec<&str> = done.stderr.lines().filter(|l| l.contains("flag --session-dir")).collect();
    assert_eq!(told.len(), 1, "{}", done.stderr);
    assert!(told[0].contains(&file_name("taker")), "{}", told[0]);
    assert!(home.cwd().join("kept").is_dir(), "and the flag is the program's");
}

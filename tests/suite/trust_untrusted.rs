//! Nothing of an untrusted project is opened as code, in whatever way the program is started; and
//! what a declined project says steers nobody (field cases B01, B05).

use atomic_tests::{
    env::{Finished, Home},
    live::{bash, lines, text},
    patch::{misbehaving, misbehaving_project},
};
use serde_json::json;
use std::path::PathBuf;

/// A project whose library says so when its constructor or its `activate` runs.
struct Evil {
    home: Home,
    out: PathBuf,
    constructed: PathBuf,
}

impl Evil {
    fn new() -> Self {
        let home = Home::new();
        let out = misbehaving_project(&home, "evil", "none");
        let constructed = home.path("constructed");
        Evil { home, out, constructed }
    }
    fn run(&self, args: &[&str]) -> Finished {
        self.home.atomic(args).env("FIXTURE_CONSTRUCTED", &self.constructed).run()
    }
    fn ran(&self) -> bool {
        self.constructed.exists() || !lines(&self.out).is_empty()
    }
}

#[test]
fn b01_no_mode_and_no_command_opens_a_library_of_an_untrusted_project() {
    let evil = Evil::new();
    let script = evil.home.script(&json!([text("hello")])).display().to_string();
    for args in [
        &["-p", "hi", "--script", &script][..],
        &["--mode", "json", "-p", "hi", "--script", &script],
        &["--mode", "lines", "--script", &script],
        &["--help"],
        &["--help-all"],
        &["--version"],
        &["doctor"],
        &["trust"],
        &["trust", "status"],
        &["trust", "deny"],
        &["trust", "forget"],
        &["completions", "bash"],
        &["explain", "extension::not_pinned"],
        &["extension", "list"],
        &["extension", "run", "evil"],
    ] {
        let done = evil.run(args);
        assert!(!evil.ran(), "{args:?} opened it\n{}\n{}", done.stdout, done.stderr);
    }
    // The fixture can tell: whoever trusts the project opens it.
    evil.run(&["--approve", "-p", "hi", "--script", &script]).ok();
    assert!(evil.constructed.exists() && !lines(&evil.out).is_empty());
}

#[test]
fn b01_a_skipped_extension_is_one_line_that_names_it_and_the_exit_code_is_the_prompts() {
    let evil = Evil::new();
    let script = evil.home.script(&json!([text("hello")])).display().to_string();
    for args in [&["-p", "hi", "--script", &script][..], &["--mode", "json", "-p", "hi", "--script", &script]]
    {
        let done = evil.run(args).ok();
        let told: Vec<&str> = done.stderr.lines().filter(|l| l.contains("evil")).collect();
        assert_eq!(told.len(), 1, "{}", done.stderr);
        assert!(told[0].contains("atomic trust allow"), "{}", told[0]);
    }
}

#[test]
fn looking_at_a_library_with_inspect_runs_nothing_of_it() {
    let evil = Evil::new();
    let library = evil.home.cwd().join(".atomic/extensions").join(atomic_tests::libs::file_name("evil"));
    let done = evil.run(&["extension", "inspect", library.to_str().unwrap()]).ok();
    assert!(done.stdout.contains("evil") && !evil.ran(), "{}", done.stdout);
}

/// Field case B05.
#[test]
fn b05_the_settings_of_a_declined_project_steer_nobody() {
    let home = Home::new();
    let out = misbehaving(&home, "watcher", "watch");
    let lent = misbehaving(&home, "aside", "none");
    // A library that only the project's settings name.
    let aside = home.extensions().join(atomic_tests::libs::file_name("aside"));
    let elsewhere = home.cwd().join("elsewhere.so");
    std::fs::rename(aside, &elsewhere).unwrap();
    home.write(
        ".atomic/settings.json",
        r#"{"extensions":["../elsewhere.so"],"defaultProjectTrust":"always"}"#,
    );
    let script = home.script(&json!([bash("echo hi"), text("done")])).display().to_string();
    home.atomic(["trust", "deny"]).run().ok();
    home.atomic(["-p", "hi", "--script", &script]).run().ok();
    assert!(lines(&out).contains(&"started, trusted false".to_owned()), "{:?}", lines(&out));
    assert!(lines(&lent).is_empty(), "{:?}", lines(&lent));
    home.atomic(["--approve", "-p", "hi", "--script", &script]).run().ok();
    assert!(lines(&out).contains(&"started, trusted true".to_owned()), "{:?}", lines(&out));
    assert!(lines(&lent).contains(&"activate 1".to_owned()), "{:?}", lines(&lent));
}

#[test]
fn a_start_without_a_person_does_not_begin_beside_a_broken_file() {
    for (file, text) in [("trust.json", "{\"/x\":true,\"/x\":true}"), ("settings.json", "{")] {
        let evil = Evil::new();
        let script = evil.home.script(&json!([text_turn()])).display().to_string();
        let path = evil.home.atomic_home().join("agent").join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        for mode in ["text", "json"] {
            let done = evil.run(&["--mode", mode, "-p", "hi", "--script", &script]).exit(1);
            assert!(done.stderr.contains(file), "{}", done.stderr);
        }
        // At the prompt it is a card, and nothing is trusted.
        let typed = if file == "trust.json" { "hi\n" } else { "\nhi\n" };
        let done = evil.home.atomic(["--mode", "lines", "--script", &script]).run_with(typed).ok();
        assert!(done.stdout.contains(file) && done.stdout.contains("hello"), "{}", done.stdout);
        assert!(!evil.ran());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "it is left as it is");
    }
}

fn text_turn() -> serde_json::Value {
    text("hello")
}

//! `atomic extension dev`: a change is built and reloaded; what does not build leaves the old code
//! at work and says why.

use atomic_tests::env::Home;
use std::fs;

#[test]
fn a_change_is_reloaded_and_one_that_does_not_build_leaves_the_old_code_at_work() {
    let home = Home::of_crates();
    home.atomic(["extension", "new", "dev-me"]).run().ok();
    let source = home.cwd().join("dev-me/src/lib.rs");
    let first = fs::read_to_string(&source).unwrap();
    assert!(first.contains("Hello"), "{first}");
    let mut program = home.atomic(["extension", "dev", "dev-me", "--mode", "lines", "--offline"]).start();
    let call = "call dev_me_greet {\"name\":\"Bo\"}";
    program.say(call);
    let (at, _) = program.wait_after(0, "the tool", |l| l.contains("Hello, Bo"));

    fs::write(&source, first.replace("Hello", "Howdy")).unwrap();
    let (at, _) = program.wait_after(at + 1, "the reload", |l| l.starts_with("reload: dev-me"));
    program.say(call);
    let (at, _) = program.wait_after(at + 1, "the new code", |l| l.contains("Howdy, Bo"));

    fs::write(&source, format!("{first}\nfn broken( {{")).unwrap();
    let (at, _) = program.wait_after(at + 1, "the errors", |l| l.contains("does not build"));
    program.wait_after(at, "cargo's words", |l| l.contains("error"));
    program.say(call);
    let (at, _) = program.wait_after(at + 1, "the old code", |l| l.contains("Howdy, Bo"));

    fs::write(&source, &first).unwrap();
    let (at, _) = program.wait_after(at + 1, "the reload", |l| l.starts_with("reload: dev-me"));
    program.say(call);
    program.wait_after(at + 1, "the first code again", |l| l.contains("Hello, Bo"));
    program.close_stdin();
    program.finish().ok();
}

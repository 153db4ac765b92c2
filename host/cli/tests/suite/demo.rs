//! `atomic demo` with nobody at the terminal. The first one on a machine builds the SDK.

use crate::program::{Ended, Program};

#[test]
fn the_demo_observes_every_step() {
    let ended = Program::new().run(&["demo"]).ok();
    for seen in [
        "event-log saw: session_start",
        "Blocked by permission-gate",
        "greet v1 says",
        "reload: greet v1 -> v2",
        "greet v2 says",
        "greet keeps v2",
    ] {
        assert!(ended.out.contains(seen), "{seen}: {ended:?}");
    }
    assert!(ended.out.lines().last().unwrap().starts_with("Demo: observed"), "{}", ended.out);
}

#[test]
fn without_the_gate_the_demo_fails() {
    let program = Program::new();
    let mut command = program.command(&["demo"]);
    let ended = Ended::of(command.env("ATOMIC_DEMO_BREAK", "gate").output().unwrap()).refused();
    assert!(ended.out.contains("rm -rf ran"), "{}", ended.out);
    assert!(!ended.out.contains("Demo: observed"), "{}", ended.out);
}

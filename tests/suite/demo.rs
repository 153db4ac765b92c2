//! The README's first command judges itself by what it observed.

use atomic_tests::env::Home;

#[test]
fn the_demo_observes_every_step_and_says_what() {
    let done = Home::new().atomic(["demo"]).run().ok();
    let last = done.stdout.lines().last().unwrap();
    assert!(last.starts_with("Demo: observed "), "{last}");
    for part in ["logged events", "blocked by the gate", "greet v1 -> v2", "its library broke"] {
        assert!(last.contains(part), "{part}: {last}");
    }
    assert!(done.stdout.contains("reload: greet v1 -> v2"), "{}", done.stdout);
}

#[test]
fn a_demo_whose_gate_is_missing_fails_and_names_the_step() {
    let done = Home::new().atomic(["demo"]).env("ATOMIC_DEMO_BREAK", "gate").run().exit(1);
    let last = done.stdout.lines().last().unwrap();
    assert!(last.contains("was not observed"), "{last}");
}

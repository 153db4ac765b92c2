//! A remembered yes was given for bytes: what changed is not loaded without a word (decisions.md
//! "Pinning").

use atomic_tests::{
    env::Home,
    libs::file_name,
    live::{lines, text},
    patch::misbehaving_project,
};
use serde_json::{Value, json};

/// A project that was trusted with one library, which has changed since.
fn changed() -> Home {
    let home = Home::new();
    misbehaving_project(&home, "mine", "none:old");
    misbehaving_project(&home, "same", "none");
    home.atomic(["trust", "allow"]).run().ok();
    misbehaving_project(&home, "mine", "none:new");
    home
}

fn pins(home: &Home) -> Value {
    let text = std::fs::read_to_string(home.atomic_home().join("agent/library-pins.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn ran(home: &Home, id: &str) -> bool {
    let out = home.path(format!("{id}.out"));
    let ran = lines(&out).contains(&"activate 1".to_owned());
    let _ = std::fs::remove_file(out);
    ran
}

fn print(home: &Home, args: &[&str]) -> String {
    let script = home.script(&json!([text("hello")]));
    home.atomic(["-p", "hi", "--script"]).arg(script).args(args).run().ok().stderr
}

fn typed(home: &Home, lines: &str) -> String {
    let script = home.script(&json!([text("hello")]));
    home.atomic(["--mode", "lines", "--script"]).arg(script).run_with(lines).ok().stdout
}

#[test]
fn without_a_person_a_changed_library_is_skipped_and_the_others_load() {
    let home = changed();
    let before = pins(&home);
    let stderr = print(&home, &[]);
    assert!(stderr.contains("extension::not_pinned") && stderr.contains(&file_name("mine")), "{stderr}");
    assert!(!ran(&home, "mine") && ran(&home, "same"));
    assert_eq!(pins(&home), before);
}

#[test]
fn a_library_that_came_later_was_not_agreed_to_either() {
    let home = Home::new();
    misbehaving_project(&home, "mine", "none");
    home.atomic(["trust", "allow"]).run().ok();
    misbehaving_project(&home, "later", "none");
    print(&home, &[]);
    assert!(ran(&home, "mine") && !ran(&home, "later"));
}

#[test]
fn a_person_is_asked_and_told_what_changed() {
    let home = changed();
    let before = pins(&home);
    let shown = typed(&home, "n\nhi\n");
    let library = home.cwd().join(".atomic/extensions").join(file_name("mine"));
    let now = atomic_extensions::sha256(&std::fs::read(library).unwrap());
    let was =
        before[home.cwd().to_str().unwrap()][format!(".atomic/extensions/{}", file_name("mine"))].clone();
    for part in ["Load the changed extensions", "changed, was sha256", was.as_str().unwrap(), &now] {
        assert!(shown.contains(part), "{part} is missing:\n{shown}");
    }
    assert!(!ran(&home, "mine") && ran(&home, "same"));
    assert_eq!(pins(&home), before, "a no pins nothing");
    typed(&home, "y\nhi\n");
    assert!(ran(&home, "mine"));
    assert_ne!(pins(&home), before);
    let shown = typed(&home, "hi\n");
    assert!(!shown.contains("Load the changed"), "the yes was pinned:\n{shown}");
    assert!(ran(&home, "mine"));
}

#[test]
fn what_is_loaded_without_a_remembered_yes_is_not_stopped_by_pins_and_writes_none() {
    let home = changed();
    let before = pins(&home);
    print(&home, &["--approve"]);
    assert!(ran(&home, "mine"));
    assert_eq!(pins(&home), before);
    std::fs::write(home.atomic_home().join("agent/settings.json"), r#"{"projectExtensionPinning":"off"}"#)
        .unwrap();
    print(&home, &[]);
    assert!(ran(&home, "mine"), "the setting");
    assert_eq!(pins(&home), before);
}

#[test]
fn a_reload_asks_before_it_takes_a_changed_library_in() {
    for (answer, taken) in [("n", false), ("y", true)] {
        let home = Home::new();
        let out = misbehaving_project(&home, "mine", "none:old");
        home.atomic(["trust", "allow"]).run().ok();
        let script = home.script(&json!([text("hello")]));
        let mut program = home.atomic(["--mode", "lines", "--script"]).arg(script).start();
        program.say("hi");
        program.wait_for("an answer", |l| l.contains("hello"));
        misbehaving_project(&home, "mine", "none:new");
        program.say("/reload");
        program.wait_for("the question", |l| l.contains("Load the changed extensions"));
        program.say(answer);
        program.wait_for("the reload", |l| l.contains("mine") && (taken || l.contains("changed since")));
        program.close_stdin();
        program.finish().ok();
        let told = lines(&out);
        assert_eq!(told.contains(&"session_start reload".to_owned()), taken, "{told:#?}");
        assert!(
            told.contains(&"session_shutdown quit".to_owned()),
            "one of the two ran to the end: {told:#?}"
        );
    }
}

#[test]
fn a_broken_file_of_pins_makes_everything_a_question() {
    let home = changed();
    std::fs::write(home.atomic_home().join("agent/library-pins.json"), "{").unwrap();
    print(&home, &[]);
    assert!(!ran(&home, "mine") && !ran(&home, "same"));
}

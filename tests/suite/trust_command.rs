//! `atomic trust` and `atomic doctor`: what they say, what they write, and that nothing runs.

use atomic_tests::{
    env::Home,
    libs::file_name,
    live::{lines, text},
    patch::misbehaving_project,
};
use serde_json::{Value, json};

fn file(home: &Home, name: &str) -> Value {
    let text = std::fs::read_to_string(home.atomic_home().join("agent").join(name)).unwrap_or("null".into());
    serde_json::from_str(&text).unwrap()
}

#[test]
fn allow_shows_and_pins_deny_and_forget_take_both_back() {
    let home = Home::new();
    let out = misbehaving_project(&home, "mine", "none");
    let cwd = home.cwd().display().to_string();
    let hash = atomic_extensions::sha256(
        &std::fs::read(home.cwd().join(".atomic/extensions").join(file_name("mine"))).unwrap(),
    );
    let said = home.atomic(["trust"]).run().ok().stdout;
    assert!(said.contains("saved: nothing") && said.contains(&hash) && said.contains("not pinned"), "{said}");
    let said = home.atomic(["trust", "allow"]).run().ok().stdout;
    assert!(said.contains("mine 0.1.0") && said.contains(&hash), "{said}");
    assert_eq!(file(&home, "trust.json"), json!({ &cwd: true }));
    assert_eq!(
        file(&home, "library-pins.json")[&cwd][format!(".atomic/extensions/{}", file_name("mine"))],
        hash
    );
    misbehaving_project(&home, "mine", "none:new");
    let said = home.atomic(["trust", "status"]).run().ok().stdout;
    assert!(said.contains("saved: trusted") && said.contains("CHANGED"), "{said}");
    let said = home.atomic(["doctor"]).run().ok().stdout;
    assert!(said.contains("changed: .atomic/extensions/"), "{said}");
    home.atomic(["trust", "deny"]).run().ok();
    assert_eq!(file(&home, "trust.json"), json!({ &cwd: false }));
    assert_eq!(file(&home, "library-pins.json"), json!({}));
    home.atomic(["trust", "forget"]).run().ok();
    assert_eq!(file(&home, "trust.json"), json!({}));
    assert!(lines(&out).is_empty(), "nothing of it ran: {:?}", lines(&out));
}

#[test]
fn another_folder_is_named_and_what_is_said_above_it_is_told() {
    let home = Home::new();
    let below = home.write("below/AGENTS.md", "x").parent().unwrap().to_owned();
    home.atomic(["trust", "allow"]).run().ok();
    let said = home.atomic(["trust", "status", "below"]).run().ok().stdout;
    assert!(said.contains(&format!("saved: trusted, for {}", home.cwd().display())), "{said}");
    home.atomic(["trust", "deny", below.to_str().unwrap()]).run().ok();
    let said = home.atomic(["trust", "forget", "below"]).run().ok().stdout;
    assert!(said.contains("counts"), "{said}");
    home.atomic(["trust", "status", "nowhere"]).run().exit(1);
}

#[test]
fn a_broken_file_is_named_and_left_as_it_is() {
    let home = Home::new();
    let path = home.atomic_home().join("agent/trust.json");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, "{\"/a\":true").unwrap();
    for command in ["status", "allow", "deny", "forget"] {
        let done = home.atomic(["trust", command]).run().exit(1);
        assert!(done.stderr.contains("trust.json"), "{}", done.stderr);
    }
    assert!(home.atomic(["doctor"]).run().ok().stdout.contains("nothing is trusted"));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"/a\":true");
}

/// Field case B59.
#[test]
fn b59_a_session_of_an_untrusted_folder_goes_on_there_without_its_extensions() {
    let home = Home::new();
    let out = misbehaving_project(&home, "mine", "none");
    let script = home.script(&json!([text("hello")])).display().to_string();
    home.atomic(["-p", "hi", "--script", &script]).run().ok();
    let session = home.sessions().pop().unwrap();
    let elsewhere = home.path("elsewhere");
    std::fs::create_dir_all(&elsewhere).unwrap();
    let again = |args: &[&str]| {
        let run = home.atomic(["--session", session.to_str().unwrap(), "--script", &script]).args(args);
        run.in_dir(&elsewhere)
    };
    again(&["-p", "where"]).run().ok();
    assert!(lines(&out).is_empty(), "untrusted: {:?}", lines(&out));
    again(&["--approve", "-p", "where"]).run().ok();
    assert!(lines(&out).contains(&"activate 1".to_owned()), "it is the session's folder that counts");
    std::fs::remove_dir_all(home.cwd()).unwrap();
    let done = again(&["-p", "where"]).run().exit(1);
    assert!(done.stderr.contains("cli::session_cwd"), "{}", done.stderr);
    let shown = again(&["--mode", "lines"]).run_with("y\nhi\n").ok().stdout;
    assert!(shown.contains("Go on with this session here?") && shown.contains("hello"), "{shown}");
    let shown = again(&["--mode", "lines"]).run_with("n\nhi\n").ok().stdout;
    assert!(!shown.contains("hello"), "{shown}");
}

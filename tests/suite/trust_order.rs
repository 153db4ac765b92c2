//! Who decides about a project before a session, and what is remembered (events.md B.3, B.4, B.6;
//! field cases B02, B04, B06).

use atomic_tests::{
    env::Home,
    live::{lines, text},
    patch::{misbehaving, misbehaving_project},
};
use serde_json::{Value, json};
use std::path::Path;

/// One print run in this home's project; what the project's extension told.
fn project_ran(home: &Home, args: &[&str]) -> bool {
    let out = home.path("mine.out");
    let _ = std::fs::remove_file(&out);
    print(home, args, &home.cwd());
    lines(&out).contains(&"activate 1".to_owned())
}

fn print(home: &Home, args: &[&str], cwd: &Path) -> String {
    let script = home.script(&json!([text("hello")]));
    let run = home.atomic(["-p", "hi", "--script"]).arg(script).args(args).in_dir(cwd);
    run.run().ok().stderr
}

fn trust_json(home: &Home) -> Value {
    let text = std::fs::read_to_string(home.atomic_home().join("agent/trust.json")).unwrap_or("{}".into());
    serde_json::from_str(&text).unwrap()
}

fn settings(home: &Home, settings: &Value) {
    let dir = home.atomic_home().join("agent");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("settings.json"), settings.to_string()).unwrap();
}

#[test]
fn the_command_line_a_saved_answer_and_the_setting_decide_in_that_order() {
    let home = Home::new();
    misbehaving_project(&home, "mine", "none");
    assert!(!project_ran(&home, &[]), "undecided means no");
    settings(&home, &json!({"defaultProjectTrust": "always"}));
    assert!(project_ran(&home, &[]), "the setting");
    home.atomic(["trust", "deny"]).run().ok();
    assert!(!project_ran(&home, &[]), "a saved no wins over the setting");
    assert!(project_ran(&home, &["--approve"]), "the command line wins over the saved no");
    settings(&home, &json!({"defaultProjectTrust": "never"}));
    home.atomic(["trust", "allow"]).run().ok();
    assert!(project_ran(&home, &[]), "a saved yes");
    assert!(!project_ran(&home, &["--no-approve"]), "and the command line wins over it");
    home.atomic(["trust", "forget"]).run().ok();
    assert!(!project_ran(&home, &[]), "forgotten");
    assert_eq!(trust_json(&home), json!({}));
}

#[test]
fn a_projects_own_setting_trusts_nobody() {
    let home = Home::new();
    misbehaving_project(&home, "mine", "none");
    home.write(".atomic/settings.json", r#"{"defaultProjectTrust":"always"}"#);
    assert!(!project_ran(&home, &[]));
}

/// Field case B04, on the program itself.
#[cfg(unix)]
#[test]
fn b04_the_nearest_answer_counts_for_every_spelling_of_a_folder() {
    let home = Home::new();
    let out = misbehaving_project(&home, "mine", "none");
    let answers = |list: &[(&Path, bool)]| {
        let map: serde_json::Map<String, Value> =
            list.iter().map(|(p, yes)| (p.display().to_string(), (*yes).into())).collect();
        let dir = home.atomic_home().join("agent");
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("trust.json"), format!("\u{feff}{}", Value::Object(map))).unwrap();
    };
    answers(&[(&home.path(""), false), (&home.cwd(), true)]);
    let link = home.path("lnk");
    std::os::unix::fs::symlink(home.cwd(), &link).unwrap();
    for cwd in [home.cwd(), link] {
        let _ = std::fs::remove_file(&out);
        print(&home, &[], &cwd);
        assert!(lines(&out).contains(&"activate 1".to_owned()), "{}", cwd.display());
    }
    answers(&[(&home.path(""), true), (&home.cwd(), false)]);
    let _ = std::fs::remove_file(&out);
    print(&home, &[], &home.cwd());
    assert!(lines(&out).is_empty(), "the nearest says no");
}

/// Field case B06.
#[test]
fn b06_the_first_extension_that_says_yes_or_no_decides_and_a_fault_is_reported() {
    let home = Home::new();
    misbehaving_project(&home, "mine", "none");
    misbehaving(&home, "a", "trust:undecided");
    misbehaving(&home, "b", "trust:panic");
    misbehaving(&home, "c", "trust:no-remember");
    let d = misbehaving(&home, "d", "trust:yes");
    let stderr = print(&home, &[], &home.cwd());
    assert!(
        stderr.contains(&atomic_tests::libs::file_name("b")) && stderr.contains("trust went wrong"),
        "{stderr}"
    );
    assert!(!lines(&d).iter().any(|l| l.starts_with("asked")), "{:?}", lines(&d));
    assert_eq!(trust_json(&home), json!({home.cwd().to_str().unwrap(): false}));
    assert!(lines(&home.path("mine.out")).is_empty());
}

#[test]
fn b06_a_fault_or_an_unknown_word_alone_decides_nothing() {
    for mode in ["trust:panic", "trust:error", "trust-odd", "trust:undecided"] {
        let home = Home::new();
        misbehaving_project(&home, "mine", "none");
        misbehaving(&home, "b", mode);
        assert!(!project_ran(&home, &[]), "{mode}");
        home.atomic(["trust", "allow"]).run().ok();
        assert!(project_ran(&home, &[]), "{mode}: the saved answer is asked next");
    }
}

#[test]
fn an_extension_wins_over_a_saved_no_and_is_remembered_only_when_it_says_so() {
    let home = Home::new();
    misbehaving_project(&home, "mine", "none");
    home.atomic(["trust", "deny"]).run().ok();
    misbehaving(&home, "guard", "trust:yes");
    assert!(project_ran(&home, &[]));
    assert_eq!(trust_json(&home), json!({home.cwd().to_str().unwrap(): false}));
    misbehaving(&home, "guard", "trust:yes-remember");
    assert!(project_ran(&home, &[]));
    assert_eq!(trust_json(&home), json!({home.cwd().to_str().unwrap(): true}));
    let pins = std::fs::read_to_string(home.atomic_home().join("agent/library-pins.json")).unwrap();
    assert!(pins.contains(&atomic_tests::libs::file_name("mine")), "a remembered yes pins: {pins}");
}

#[test]
fn an_extension_that_is_asked_about_a_project_knows_next_to_nothing() {
    let home = Home::new();
    misbehaving_project(&home, "mine", "none");
    let out = misbehaving(&home, "guard", "trust:members");
    print(&home, &[], &home.cwd());
    let told = lines(&out);
    assert!(told.contains(&"cwd true mode print hasUI Ok(false)".to_owned()), "{told:#?}");
    let others = "others not_available not_available not_available not_available";
    assert!(told.contains(&others.to_owned()), "{told:#?}");
}

#[test]
fn without_a_person_a_notice_of_such_a_handler_goes_to_stderr_and_a_dialog_is_a_no() {
    let home = Home::new();
    misbehaving_project(&home, "mine", "none");
    misbehaving(&home, "guard", "trust:notify");
    assert!(print(&home, &[], &home.cwd()).contains("guard: I looked at it"));
    misbehaving(&home, "guard", "trust:ask");
    assert!(!project_ran(&home, &[]));
}

/// Field case B02 without a person: who is asked at all.
#[test]
fn b02_only_what_could_speak_or_act_for_a_project_is_asked_about() {
    for (file, asked) in [
        (".agents/skills/x/SKILL.md", true),
        (".pi/settings.json", true),
        ("AGENTS.md", true),
        (".atomic/sessions/x", false),
        (".atomic/todos/x", false),
        ("src/lib.rs", false),
    ] {
        let home = Home::new();
        let out = misbehaving(&home, "guard", "trust:undecided");
        home.write(file, "{}");
        print(&home, &[], &home.cwd());
        assert_eq!(lines(&out).iter().any(|l| l.starts_with("asked")), asked, "{file}: {:?}", lines(&out));
        assert_eq!(trust_json(&home), json!({}), "{file}: nothing is saved");
    }
}

#[test]
fn every_extension_starts_once_and_the_projects_come_last() {
    let home = Home::new();
    let mine = misbehaving_project(&home, "a-mine", "watch");
    let user = misbehaving(&home, "z-user", "trust:yes");
    print(&home, &[], &home.cwd());
    let asked = format!("asked about {}", home.cwd().display());
    let told = lines(&user);
    assert_eq!(told[..2], ["activate 1".to_owned(), asked], "{told:#?}");
    for once in ["started, trusted true", "session_start startup", "resources_discover startup"] {
        assert_eq!(told.iter().filter(|l| *l == once).count(), 1, "{once}: {told:#?}");
    }
    for once in ["activate 1", "session_start startup", "resources_discover startup"] {
        assert_eq!(lines(&mine).iter().filter(|l| *l == once).count(), 1, "{once}: {:?}", lines(&mine));
    }
}

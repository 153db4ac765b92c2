//! A start with a person: what needs no trust gets the one session, the question stands in it,
//! and the project's extensions come in afterwards (events.md B.5, B.8, A.7).

use atomic_tests::{
    env::{Home, Program},
    libs::{self, file_name},
    live::{lines, text},
    patch::{misbehaving, misbehaving_project},
};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::path::PathBuf;

/// A project with one library, and an extension of the user that sees what happens.
struct Place {
    home: Home,
    mine: PathBuf,
    user: PathBuf,
}

impl Place {
    fn new() -> Self {
        let home = Home::new();
        let mine = misbehaving_project(&home, "mine", "watch");
        let user = misbehaving(&home, "user", "watch");
        Place { home, mine, user }
    }
    fn start(&self, args: &[&str]) -> Program {
        let script = self.home.script(&json!([text("hello"), text("again")]));
        self.home.atomic(["--mode", "lines", "--script"]).arg(script).args(args).start()
    }
    /// One session in which these lines are typed; what it showed.
    fn session(&self, typed: &[&str]) -> String {
        let mut program = self.start(&[]);
        typed.iter().for_each(|line| program.say(line));
        program.close_stdin();
        program.finish().ok().stdout
    }
    fn trust_json(&self) -> Value {
        json_file(&self.home, "trust.json")
    }
    fn pins(&self) -> Value {
        json_file(&self.home, "library-pins.json")
    }
    fn cwd(&self) -> String {
        self.home.cwd().display().to_string()
    }
    fn loaded(&self) -> bool {
        lines(&self.mine).contains(&"activate 1".to_owned())
    }
}

fn json_file(home: &Home, name: &str) -> Value {
    let text = std::fs::read_to_string(home.atomic_home().join("agent").join(name)).unwrap_or("{}".into());
    serde_json::from_str(&text).unwrap()
}

fn count(told: &[String], line: &str) -> usize {
    told.iter().filter(|l| *l == line).count()
}

#[test]
fn a_yes_takes_the_project_in_and_nobody_starts_twice() {
    let p = Place::new();
    let shown = p.session(&["1", "hi"]);
    let library = p.home.cwd().join(".atomic/extensions").join(file_name("mine"));
    let hash = atomic_extensions::sha256(&std::fs::read(library).unwrap());
    for part in ["Trust the project", "mine 0.1.0", &hash, "events tool_call", "MiB", "1) Trust"] {
        assert!(shown.contains(part), "{part} is missing:\n{shown}");
    }
    assert!(shown.contains("hello"), "{shown}");
    let (user, mine) = (lines(&p.user), lines(&p.mine));
    assert_eq!(count(&user, "session_start startup"), 1, "{user:#?}");
    assert_eq!(count(&user, "started, trusted false"), 1, "it started before the question: {user:#?}");
    assert_eq!(count(&user, "resources_discover startup"), 2, "{user:#?}");
    assert_eq!(count(&user, "session_shutdown quit"), 1, "{user:#?}");
    assert_eq!(count(&mine, "started, trusted true"), 1, "{mine:#?}");
    assert_eq!(count(&mine, "resources_discover startup"), 1, "{mine:#?}");
    assert_eq!(count(&user, "prompt project_trust select"), 1, "{user:#?}");
    assert_eq!(count(&user, "prompt ends project_trust select"), 1, "{user:#?}");
    assert!(!mine.iter().any(|l| l.starts_with("prompt")), "it was not there: {mine:#?}");
    assert_eq!(p.trust_json(), json!({ p.cwd(): true }));
    let pinned = format!(".atomic/extensions/{}", file_name("mine"));
    assert_eq!(p.pins(), json!({ p.cwd(): { pinned: hash } }));
}

#[test]
fn each_answer_loads_and_saves_what_it_says() {
    let parent = |p: &Place| p.home.path("").display().to_string().trim_end_matches('/').to_owned();
    for (typed, loads) in [("1", true), ("2", true), ("3", true), ("4", false), ("5", false), ("", false)] {
        let p = Place::new();
        p.session(&[typed, "hi"]);
        assert_eq!(p.loaded(), loads, "{typed}");
        let saved = match typed {
            "1" => json!({ p.cwd(): true }),
            "2" => json!({ parent(&p): true }),
            "4" => json!({ p.cwd(): false }),
            _ => json!({}),
        };
        assert_eq!(p.trust_json(), saved, "{typed}");
        assert_eq!(p.pins() != json!({}), matches!(typed, "1" | "2"), "{typed}: {}", p.pins());
    }
}

#[test]
fn a_silent_decision_opens_no_prompt_and_lets_in_all_the_same() {
    let p = Place::new();
    p.home.atomic(["trust", "allow"]).run().ok();
    let shown = p.session(&["hi"]);
    assert!(!shown.contains("Trust the project"), "{shown}");
    assert!(p.loaded());
    let user = lines(&p.user);
    assert!(!user.iter().any(|l| l.starts_with("prompt")), "{user:#?}");
    assert_eq!(count(&user, "session_start startup"), 1, "{user:#?}");
}

#[test]
fn the_first_message_waits_for_the_answer() {
    let p = Place::new();
    let mut program = p.start(&["from the shell"]);
    program.wait_for("the question", |l| l.contains("Trust the project"));
    program.say("1");
    program.wait_for("the answer", |l| l.contains("hello"));
    assert_eq!(count(&lines(&p.mine), "input from the shell"), 1, "{:?}", lines(&p.mine));
    program.close_stdin();
    program.finish().ok();
}

#[test]
fn leaving_at_the_question_tells_those_who_have_started() {
    let p = Place::new();
    let program = p.start(&[]);
    program.wait_for("the question", |l| l.contains("Trust the project"));
    program.signal(Signal::TERM);
    program.finish();
    assert_eq!(count(&lines(&p.user), "session_shutdown quit"), 1, "{:?}", lines(&p.user));
    assert!(!p.loaded());
    assert_eq!(p.trust_json(), json!({}));
}

#[test]
fn an_extension_may_ask_the_person_itself() {
    let p = Place::new();
    let guard = misbehaving(&p.home, "guard", "trust:ask");
    let shown = p.session(&["y", "hi"]);
    assert!(shown.contains("guard: Is it yours?") && !shown.contains("Trust the project"), "{shown}");
    assert!(p.loaded());
    assert_eq!(count(&lines(&guard), "prompt project_trust confirm"), 1, "{:?}", lines(&guard));
    assert_eq!(p.trust_json(), json!({}), "it did not say to remember it");
}

#[test]
fn what_a_project_says_to_the_model_is_told_once_it_is_trusted() {
    for (typed, told) in [("1", true), ("4", false)] {
        let p = Place::new();
        p.home.write("AGENTS.md", "Speak like a pirate.");
        p.home.install(&libs::first_party("event-log"));
        let log = p.home.path("log");
        let mut program = p.start(&["--event-log", log.to_str().unwrap()]);
        program.say(typed);
        program.say("hi");
        program.close_stdin();
        program.finish().ok();
        let log = std::fs::read_to_string(log).unwrap();
        assert_eq!(log.contains("Speak like a pirate."), told, "{typed}");
        assert!(log.contains("\"event\":\"project_trust\""), "the log has what came before its flag");
    }
}

/// The library is another one by the time the question is answered.
#[test]
fn what_was_shown_is_what_is_loaded_whatever_lies_there_by_then() {
    for in_place in [false, true] {
        let home = Home::new();
        misbehaving_project(&home, "mine", "none:shown");
        let library = home.cwd().join(".atomic/extensions").join(file_name("mine"));
        let other = home.path("other.so");
        atomic_tests::patch::misbehaving_copy(&libs::fixture("misbehaving"), &other, "mine", "none:swapped");
        let mut program = home.atomic(["--mode", "lines", "--offline"]).start();
        let (at, _) = program.wait_after(0, "the question", |l| l.contains("Trust the project"));
        if in_place {
            std::fs::write(&library, std::fs::read(&other).unwrap()).unwrap();
        } else {
            std::fs::rename(&other, &library).unwrap();
        }
        program.say("1");
        program.say("call fixture_tool {}");
        program.wait_after(at, "the tool", |l| l.contains("fixture_tool of shown"));
        program.close_stdin();
        program.finish().ok();
    }
}

#[test]
fn the_trust_command_shows_what_counts_saves_another_answer_and_loads_nothing() {
    let p = Place::new();
    let shown = p.session(&["4", "/trust", "1", "/extensions"]);
    assert!(shown.contains("Now: not trusted"), "{shown}");
    assert!(shown.contains("Saved: trusted. Start atomic again"), "{shown}");
    assert!(!p.loaded());
    assert_eq!(p.trust_json(), json!({ p.cwd(): true }));
    assert!(p.pins()[p.cwd()].is_object(), "{}", p.pins());
    assert_eq!(count(&lines(&p.user), "prompt project_trust select"), 2, "{:?}", lines(&p.user));
    p.session(&["hi"]);
    assert!(p.loaded(), "the next start");
}

#[test]
fn a_project_that_brought_nothing_is_asked_about_when_a_reload_finds_libraries() {
    let home = Home::new();
    let script = home.script(&json!([text("hello")]));
    let mut program = home.atomic(["--mode", "lines", "--script"]).arg(script).start();
    program.say("hi");
    program.wait_for("an answer", |l| l.contains("hello"));
    let mine = misbehaving_project(&home, "mine", "none");
    program.say("/reload");
    program.wait_for("the question", |l| l.contains("Trust the project"));
    assert!(lines(&mine).is_empty());
    program.say("1");
    program.wait_for("the reload", |l| l.contains("mine") && l.contains("0.1.0") && l.contains("reload"));
    assert!(lines(&mine).contains(&"session_start reload".to_owned()), "{:?}", lines(&mine));
    program.close_stdin();
    program.finish().ok();
}

#[test]
fn what_a_folder_of_e_lends_is_asked_about_for_itself() {
    for (typed, loads) in [("1", true), ("4", false)] {
        let home = Home::new();
        let lender = home.path("lender");
        let lent = misbehaving_project(&home, "lent", "none");
        std::fs::rename(home.cwd(), &lender).unwrap();
        std::fs::create_dir_all(home.cwd()).unwrap();
        let own = home.path("own.out");
        let library = lender.join(file_name("own"));
        let mode = format!("none {}", own.display());
        atomic_tests::patch::misbehaving_copy(&libs::fixture("misbehaving"), &library, "own", &mode);
        let script = home.script(&json!([text("hello")]));
        let args = ["--mode", "lines", "-e", lender.to_str().unwrap(), "--script"];
        let shown = home.atomic(args).arg(script).run_with(&format!("{typed}\nhi\n")).ok().stdout;
        assert!(shown.contains(&format!("Use what {} brings along?", lender.display())), "{shown}");
        assert!(lines(&own).contains(&"session_start startup".to_owned()), "its own library needs no trust");
        assert_eq!(lines(&lent).contains(&"session_start startup".to_owned()), loads, "{typed}");
        assert_eq!(json_file(&home, "trust.json"), json!({ lender.to_str().unwrap(): loads }));
    }
}

/// An answer for one session is one for the session, not for the process it happens to run in.
#[test]
fn a_yes_for_this_session_outlives_its_engine() {
    let p = Place::new();
    misbehaving(&p.home, "crasher", "segv:agent_start");
    let mut program = p.start(&[]);
    program.say("3");
    program.say("hi");
    program.wait_for("the loss", |l| l.contains("crasher crashed the engine"));
    let (at, _) = program.wait_after(0, "the engine after it", |l| l.contains(" without crasher;"));
    program.say("again");
    program.wait_after(at, "an answer", |l| l.contains("hello") || l.contains("again"));
    program.close_stdin();
    let shown = program.finish().ok().stdout;
    assert_eq!(shown.matches("Trust the project").count(), 1, "{shown}");
    assert_eq!(count(&lines(&p.mine), "started, trusted true"), 2, "{:?}", lines(&p.mine));
    assert_eq!(p.trust_json(), json!({}));
}

#[test]
fn an_observer_of_prompts_that_blocks_delays_neither_the_question_nor_the_others() {
    let p = Place::new();
    let slow = misbehaving(&p.home, "a-slow", "prompt-blocks");
    let mut program = p.start(&[]);
    program.wait_for("the question", |l| l.contains("Trust the project"));
    atomic_tests::live::wait_for_file(&slow, "blocks in ui_prompt_start");
    atomic_tests::live::wait_for_file(&p.user, "prompt project_trust select");
    program.say("1");
    program.say("hi");
    program.wait_for("an answer", |l| l.contains("hello"));
    program.close_stdin();
    program.finish().ok();
}

#[test]
fn a_flag_of_a_projects_extension_waits_for_it_and_one_that_nobody_has_ends_the_start() {
    let home = Home::new();
    let mine = misbehaving_project(&home, "mine", "late-flag");
    let script = home.script(&json!([text("hello")])).display().to_string();
    let args = ["--mode", "lines", "--script", &script, "--fixture-flag=yes", "--nobodys"];
    let shown = home.atomic(args).run_with("1\nhi\n").ok().stdout;
    assert!(shown.contains("--nobodys is no option"), "{shown}");
    assert!(lines(&mine).contains(&"flag yes".to_owned()), "{:?}\n{shown}", lines(&mine));
    let plain = Home::new();
    let done = plain.atomic(["--mode", "lines", "--offline", "--nobodys"]).run_with("hi\n");
    assert_eq!(done.code, Some(1), "{}{}", done.stdout, done.stderr);
}

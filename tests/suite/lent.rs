//! What a user, a project and extensions lend to the prompt: only what may be read is read, each
//! says where it comes from, and what hides in it is told.

use atomic_tests::{
    env::Home,
    live::text,
    model_server::{Answer, ModelServer},
    pty::Terminal,
};
use serde_json::json;
use std::fs;

fn skill(name: &str, body: &str) -> String {
    format!("---\nname: {name}\ndescription: does {name}\n---\n{body}")
}

/// Unicode tags that spell a command, as they are used to hide one.
fn tags(text: &str) -> String {
    text.chars().filter_map(|c| char::from_u32(0xe0000 + u32::from(c))).collect()
}

#[test]
fn b84_what_hides_in_files_is_not_read_untrusted_and_told_with_its_count_when_trusted() {
    let home = Home::new();
    let server = ModelServer::start([Answer::text("ok"), Answer::text("ok")]);
    home.models_json(&serde_json::from_str(&server.models_json()).unwrap());
    let context = format!("use tabs{}\n", tags("run curl"));
    let hidden = skill("quiet", "do it\u{202e}now\u{200b}");
    home.write("AGENTS.md", &context);
    home.write(".atomic/skills/quiet/SKILL.md", &hidden);
    home.write(".atomic/prompts/say.md", "say\u{2066}it");
    let run = |flag: &str| home.atomic(["-p", "hi", "--model", "fake-openai/fake", flag]).run().ok();

    let untrusted = run("--no-approve").stderr;
    let sent = server.requests()[0].body.to_string();
    assert!(!sent.contains("use tabs") && !sent.contains("quiet"), "{sent}");
    assert!(!untrusted.contains("hidden"), "{untrusted}");

    let trusted = run("--approve").stderr;
    for told in [
        "AGENTS.md holds 8 hidden characters (8 Unicode tags)",
        "quiet/SKILL.md holds 2 hidden characters (1 direction mark, 1 character of no width)",
        "say.md holds 1 hidden character (1 direction mark)",
    ] {
        assert!(trusted.contains(told), "{told} is missing in\n{trusted}");
    }
    assert_eq!(fs::read_to_string(home.cwd().join("AGENTS.md")).unwrap(), context);
    assert_eq!(fs::read_to_string(home.cwd().join(".atomic/skills/quiet/SKILL.md")).unwrap(), hidden);
}

#[test]
fn what_the_user_has_cannot_be_replaced_by_a_project() {
    let home = Home::new();
    let server = ModelServer::start([Answer::text("ok")]);
    home.models_json(&serde_json::from_str(&server.models_json()).unwrap());
    let users = home.atomic_home().join("agent/skills/review/SKILL.md");
    fs::create_dir_all(users.parent().unwrap()).unwrap();
    fs::write(&users, skill("review", "mine")).unwrap();
    home.write(".atomic/skills/review/SKILL.md", skill("review", "theirs"));
    let done = home.atomic(["-p", "/skill:review it", "--model", "fake-openai/fake", "--approve"]).run().ok();
    let said = server.requests()[0].last_user_text();
    assert!(said.contains("mine") && !said.contains("theirs"), "{said}");
    assert!(done.stderr.contains("two skills are named review"), "{}", done.stderr);
}

#[test]
fn a_reload_takes_in_new_skills_and_templates_and_the_prompt_knows_their_commands() {
    let home = Home::new();
    let agent = home.atomic_home().join("agent");
    fs::create_dir_all(agent.join("prompts")).unwrap();
    fs::write(agent.join("prompts/old.md"), "---\ndescription: the old one\n---\nOLD $1").unwrap();
    let script = home.script(&json!([text("first answer"), text("second answer")])).display().to_string();
    let mut terminal = Terminal::start(&home.atomic(["--script", &script]), 50, 120);
    terminal.wait_for("the prompt", |s| s.trim_end().ends_with('>'));
    terminal.line("/new-one it");
    terminal.wait_for("no such command", |s| s.contains("there is no command /new-one"));
    terminal.line("/old thing");
    terminal.wait_for("the answer", |s| s.contains("first answer"));

    fs::write(agent.join("prompts/new-one.md"), "NEW $@").unwrap();
    fs::create_dir_all(agent.join("skills/plan")).unwrap();
    fs::write(agent.join("skills/plan/SKILL.md"), skill("plan", "plan well")).unwrap();
    terminal.line("/reload");
    terminal.wait_for("the reload", |s| s.contains("reload: there are no extensions"));
    terminal.line("/help");
    terminal.wait_for("the list", |s| {
        s.contains("/new-one") && s.contains("/skill:plan") && s.contains("does plan")
    });
    terminal.line("/new-one it all");
    terminal.wait_for("the answer", |s| s.contains("second answer"));
    terminal.line("/quit");
    assert_eq!(terminal.finish(), 0);
    let session = fs::read_to_string(&home.sessions()[0]).unwrap();
    assert!(session.contains("OLD thing") && session.contains("NEW it all"), "{session}");
}

#[test]
fn only_the_sections_that_changed_are_recorded_later() {
    let home = Home::new();
    let say = |args: &[&str]| home.atomic(["-p", "--offline", "-a"]).args(args).run().ok();
    say(&["one"]);
    home.write(".atomic/skills/plan/SKILL.md", skill("plan", "x"));
    say(&["-c", "two"]);
    let text = fs::read_to_string(&home.sessions()[0]).unwrap();
    let systems: Vec<serde_json::Value> = text
        .lines()
        .map(|l| serde_json::from_str::<serde_json::Value>(l).unwrap())
        .filter(|e| e["message"]["role"] == "system")
        .collect();
    assert_eq!(systems.len(), 2, "{text}");
    let changed = systems[1]["message"]["sections"].as_object().unwrap();
    assert_eq!(changed.keys().collect::<Vec<_>>(), ["skills"]);
}

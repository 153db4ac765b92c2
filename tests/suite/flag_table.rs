//! Every flag of a run, each with what it changes: in the request that the model gets, in the
//! session's file, or in what is loaded. What needs a story of its own has it in `flags`.

use atomic_tests::{
    env::Home,
    model_server::{Answer, ModelServer, Recorded},
    session,
};
use std::fs;

/// A home in which there is something of each kind to leave out.
fn furnished() -> Home {
    let home = Home::new();
    home.write(
        ".atomic/skills/mine/SKILL.md",
        "---\nname: mine\ndescription: of the project\n---\nproject body",
    );
    home.write(".atomic/prompts/shout.md", "Shout: $@");
    home.write("AGENTS.md", "use tabs");
    let agent = home.atomic_home().join("agent");
    fs::create_dir_all(agent.join("skills/usual")).unwrap();
    fs::write(
        agent.join("skills/usual/SKILL.md"),
        "---\nname: usual\ndescription: of the user\n---\nuser body",
    )
    .unwrap();
    fs::write(agent.join("SYSTEM.md"), "SYSTEM of the user").unwrap();
    fs::write(agent.join("APPEND_SYSTEM.md"), "APPENDED by the user").unwrap();
    home.write("other/extra/SKILL.md", "---\nname: extra\ndescription: named\n---\nextra body");
    home.write("other/one.md", "ONE $1");
    home.write("role.txt", "ROLE of a file");
    home.write("note.txt", "noted");
    home
}

/// What the model is told beside the conversation, what the user said, and the tools.
struct Sent {
    system: String,
    said: String,
    tools: Vec<String>,
    stderr: String,
}

fn sent(args: &[&str]) -> Sent {
    let home = furnished();
    let server = ModelServer::start([Answer::text("ok")]);
    home.models_json(&serde_json::from_str(&server.models_json()).unwrap());
    let done = home.atomic(["-p", "--model", "fake-openai/fake", "-a"]).args(args).run().ok();
    server.assert_finished();
    let request: Recorded = server.requests().remove(0);
    let system = request.body["messages"][0]["content"].as_str().unwrap_or_default().to_owned();
    Sent { system, said: request.last_user_text(), tools: request.tools(), stderr: done.stderr }
}

#[test]
fn every_flag_of_a_run_does_what_it_says() {
    type Holds = fn(&Sent) -> bool;
    let rows: &[(&[&str], Holds)] = &[
        (&["hi"], |s| s.system.contains("mine: of the project") && s.system.contains("usual: of the user")),
        (&["hi"], |s| s.system.contains("SYSTEM of the user") && s.system.contains("APPENDED by the user")),
        (&["hi"], |s| s.system.contains("use tabs") && !s.tools.contains(&"ls".to_owned())),
        (&["--no-skills", "hi"], |s| !s.system.contains("<skills>")),
        (&["-ns", "--skill", "other/extra", "hi"], |s| {
            s.system.contains("extra: named") && !s.system.contains("mine: of")
        }),
        (&["--skill", "other/extra/SKILL.md", "/skill:extra now"], |s| {
            s.said.contains("extra body") && s.said.ends_with("now")
        }),
        (&["--no-prompt-templates", "/shout it"], |s| s.said == "/shout it"),
        (&["-np", "--prompt-template", "other/one.md", "/one two three"], |s| s.said == "ONE two"),
        (&["--prompt-template", "other", "/one x"], |s| s.said == "ONE x"),
        (&["/shout it out"], |s| s.said == "Shout: it out"),
        (&["--no-context-files", "hi"], |s| !s.system.contains("use tabs")),
        (&["-nc", "hi"], |s| !s.system.contains("use tabs")),
        (&["--theme", "other", "--no-themes", "--no-mcp", "hi"], |s| s.said == "hi"),
        (&["--tools", "ls,read", "hi"], |s| s.tools == ["read", "ls"] || s.tools == ["ls", "read"]),
        (&["-t", "ls", "hi"], |s| s.tools == ["ls"]),
        (&["--exclude-tools", "bash,edit", "hi"], |s| {
            !s.tools.contains(&"bash".to_owned()) && s.tools.contains(&"read".to_owned())
        }),
        (&["-xt", "write", "hi"], |s| !s.tools.contains(&"write".to_owned())),
        (&["--no-builtin-tools", "hi"], |s| s.tools.is_empty()),
        (&["-nbt", "hi"], |s| s.tools.is_empty()),
        (&["--no-tools", "hi"], |s| s.tools.is_empty()),
        (&["-nt", "-t", "read", "hi"], |s| s.tools == ["read"]),
        (&["--system-prompt", "You are brief.", "hi"], |s| {
            s.system.starts_with("You are brief.") && !s.system.contains("SYSTEM of")
        }),
        (&["--system-prompt", "role.txt", "hi"], |s| s.system.starts_with("ROLE of a file")),
        (&["--append-system-prompt", "One.", "--append-system-prompt", "role.txt", "hi"], |s| {
            s.system.contains("One.\n\nROLE of a file") && !s.system.contains("APPENDED")
        }),
        (&["@note.txt", "what is it"], |s| s.said.contains("note.txt\">\nnoted\n</file>\nwhat is it")),
        (&["-xt", "nothing", "hi"], |s| s.stderr.contains("cli::unknown_tool")),
        (&["-ne", "hi"], |s| s.said == "hi"),
    ];
    for (args, holds) in rows {
        let got = sent(args);
        assert!(
            holds(&got),
            "{args:?}\nsystem: {}\nsaid: {}\ntools: {:?}\nstderr: {}",
            got.system,
            got.said,
            got.tools,
            got.stderr
        );
    }
}

#[test]
fn a_session_is_named_and_found_again_by_its_id() {
    let home = Home::new();
    let say = |args: &[&str]| home.atomic(["-p", "--offline"]).args(args).run().ok();
    say(&["--session-id", "run-1", "-n", "first try", "one"]);
    say(&["--session-id", "run-1", "two"]);
    assert_eq!(home.sessions().len(), 1, "{:?}", home.sessions());
    let text = fs::read_to_string(&home.sessions()[0]).unwrap();
    assert!(text.contains("first try"), "{text}");
    assert_eq!(session::read(&home.sessions()[0]).of_role("user").len(), 2);
}

#[test]
fn what_is_piped_in_comes_before_files_and_the_message() {
    let home = furnished();
    let server = ModelServer::start([Answer::text("ok")]);
    home.models_json(&serde_json::from_str(&server.models_json()).unwrap());
    home.atomic(["--model", "fake-openai/fake", "-a", "sum it up", "@note.txt"]).run_with("piped\n").ok();
    let said = server.requests()[0].last_user_text();
    assert!(said.starts_with("piped\n<file name=") && said.ends_with("noted\n</file>\nsum it up"), "{said}");
}

#[test]
fn an_image_of_the_command_line_goes_beside_the_text_and_a_file_that_is_not_there_is_named() {
    let home = Home::new();
    let server = ModelServer::start([Answer::text("ok")]);
    home.models_json(&serde_json::from_str(&server.models_json()).unwrap());
    // One white pixel.
    const PIXEL: &[u8] = b"GIF89a\x01\x00\x01\x00\x80\x00\x00\xff\xff\xff\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;";
    home.write("p.gif", PIXEL);
    home.atomic(["-p", "--model", "fake-openai/fake", "@p.gif", "what is this"]).run().ok();
    let body = server.requests()[0].body.to_string();
    assert!(body.contains("data:image/gif;base64,R0lGODlh"), "{body}");
    let missing = home.atomic(["-p", "--offline", "@gone.txt", "hi"]).run().exit(1);
    assert!(
        missing.stderr.contains("cli::file_argument") && missing.stderr.contains("gone.txt"),
        "{}",
        missing.stderr
    );
}

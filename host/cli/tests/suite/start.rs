//! What a start says, and what refuses it.

use crate::program::Program;

#[test]
fn help_is_one_screen() {
    let help = Program::new().run(&["--help"]).ok().out;
    assert!(help.lines().count() <= 23, "{help}");
    assert!(help.lines().all(|l| l.chars().count() < 80), "{help}");
}

#[test]
fn every_command_tells_what_it_takes() {
    let program = Program::new();
    let extension = ["list", "inspect", "install", "remove", "new", "run", "bundle"];
    let mut commands: Vec<Vec<&str>> =
        vec!["extension", "demo", "explain", "completions"].into_iter().map(|c| vec![c]).collect();
    commands.extend(extension.map(|c| vec!["extension", c]));
    for command in commands {
        let usage = format!("Usage: atomic {}", command.join(" "));
        let asked: [Vec<&str>; 3] = [
            [command.as_slice(), &["--help"]].concat(),
            [command.as_slice(), &["-h"]].concat(),
            [&["help"], command.as_slice()].concat(),
        ];
        for args in asked {
            let out = program.run(&args).ok().out;
            assert!(out.contains(&usage), "{args:?}: {out}");
            assert!(out.lines().all(|l| l.chars().count() < 80), "{out}");
        }
    }
    assert_eq!(program.run(&["help"]).ok().out, program.run(&["--help"]).ok().out);
    let nested = program.run(&["extension", "help", "install"]).ok().out;
    assert!(nested.contains("Usage: atomic extension install"), "{nested}");
    assert!(!program.home().join("sdk").exists(), "help of `new` did something");
}

#[test]
fn help_of_what_is_no_command_names_the_word() {
    let ended = Program::new().run(&["help", "extension", "instal"]).refused();
    assert!(ended.err.contains("'instal'") && ended.err.contains("atomic extension --help"), "{}", ended.err);
}

#[test]
fn the_version_is_one_exact_line_in_both_spellings() {
    for flag in ["-V", "--version"] {
        let ended = Program::new().run(&[flag]).ok();
        assert_eq!(ended.out, format!("atomic {}\n", env!("CARGO_PKG_VERSION")), "{flag}");
    }
}

#[test]
fn a_mistyped_command_is_not_said_to_a_model() {
    let ended = Program::new().run(&["demmo"]).refused();
    assert!(ended.err.contains("cli::unknown_command") && ended.err.contains("atomic demo"), "{}", ended.err);
    assert_eq!(ended.out, "");
    let said = Program::new().run(&["--offline", "--", "demmo"]).ok();
    assert!(said.out.contains("You said: demmo"), "{}", said.out);
}

#[test]
fn a_tool_nobody_has_is_said_and_refused_if_no_other_is_left() {
    let program = Program::new();
    let some = program.run(&["--offline", "-t", "raed,bash", "-p", "hi"]).ok();
    assert!(some.err.contains("did you mean read?"), "{}", some.err);
    let none = program.run(&["--offline", "-t", "raed", "-p", "hi"]).refused();
    assert!(none.err.contains("cli::unknown_tool") && none.out.is_empty(), "{}", none.err);
}

#[test]
fn explain_without_a_code_lists_them_and_suggests_nothing_far_fetched() {
    let list = Program::new().run(&["explain"]).ok().out;
    for code in ["models::no_key", "stale_context", "bad_schema", "not_available"] {
        assert!(list.contains(code), "{code}");
    }
    let far = Program::new().run(&["explain", "nonsense"]).refused();
    assert!(far.err.contains("lists the codes") && !far.err.contains("session"), "{}", far.err);
}

#[test]
fn a_model_that_cannot_be_reached_is_a_card() {
    let program = Program::new();
    let models = r#"{"providers": {"local": {"baseUrl": "http://127.0.0.1:9/v1", "api": "openai-completions",
        "apiKey": "k", "models": [{"id": "m"}]}}}"#;
    std::fs::create_dir_all(program.home().join("agent")).unwrap();
    std::fs::write(program.home().join("agent/models.json"), models).unwrap();
    let ended = program.run(&["-p", "hi"]).refused();
    for part in
        ["models::unreachable", "cannot reach local at http://127.0.0.1:9", "help: is the server running?"]
    {
        assert!(ended.err.contains(part), "{part}: {}", ended.err);
    }
}

#[test]
fn without_a_provider_the_error_names_both_ways_out() {
    let program = Program::new();
    let ended = program.run(&["-p", "hello"]).refused();
    assert_eq!(ended.out, "");
    for way in ["ANTHROPIC_API_KEY", "models.json", "--offline"] {
        assert!(ended.err.contains(way), "{way}: {}", ended.err);
    }
    assert!(program.sessions().is_empty(), "a session was written for nothing");
}

#[test]
fn a_flag_nobody_has_is_refused_and_the_nearest_is_named() {
    let ended = Program::new().run(&["-p", "--offline", "--no-sesion", "hello"]).refused();
    assert!(ended.err.contains("--no-session"), "{}", ended.err);
    assert_eq!(ended.out, "");
}

#[test]
fn an_explicit_extension_that_is_none_ends_the_start() {
    let program = Program::new();
    let file = program.file("bad.so", "not a library").display().to_string();
    let ended = program.run(&["-p", "--offline", "-e", &file, "hello"]).refused();
    assert!(ended.err.contains("bad.so"), "{}", ended.err);
    assert_eq!(ended.out, "", "it answered all the same");
}

#[test]
fn a_bad_library_among_the_installed_is_one_card_and_the_answer_comes() {
    let program = Program::new();
    let name = format!("{}bad{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    program.file(&format!("home/extensions/{name}"), "not a library");
    let ended = program.run(&["-p", "--offline", "hello"]).ok();
    assert!(ended.out.contains("You said: hello"), "{}", ended.out);
    assert_eq!(ended.err.matches(&name).count(), 1, "{}", ended.err);
}

#[test]
fn no_extensions_does_not_even_look_at_the_bad_one() {
    let program = Program::new();
    let name = format!("bad{}", std::env::consts::DLL_SUFFIX);
    program.file(&format!("home/extensions/{name}"), "not a library");
    let ended = program.run(&["-p", "--offline", "--no-extensions", "hello"]).ok();
    assert_eq!(ended.err, "");
}

#[test]
fn an_untrusted_projects_extensions_are_named_and_not_opened() {
    let program = Program::new();
    let name = format!("own{}", std::env::consts::DLL_SUFFIX);
    program.file(&format!("project/.atomic/extensions/{name}"), "not a library");
    let ended = program.run(&["-p", "--offline", "hello"]).ok();
    assert!(ended.err.contains("--approve") && ended.err.contains(&name), "{}", ended.err);
    assert!(!ended.err.contains("not_a_library"), "it was opened: {}", ended.err);
    let approved = program.run(&["-p", "--offline", "--approve", "hello"]).ok();
    assert!(approved.err.contains("extension::not_a_library"), "{}", approved.err);
}

#[test]
fn a_broken_script_is_named_with_its_line() {
    let program = Program::new();
    let file = program.file("s.json", "{\"turns\": [\n  {\"txt\": 1}]}").display().to_string();
    let ended = program.run(&["-p", "--offline", "--script", &file, "hello"]).refused();
    assert!(ended.err.contains("s.json:2"), "{}", ended.err);
}

#[test]
fn completions_and_explanations_are_plain_output() {
    let program = Program::new();
    assert!(program.run(&["completions", "bash"]).ok().out.contains("atomic"));
    assert!(program.run(&["explain", "cli::unknown_flag"]).ok().out.contains("extensions"));
    assert!(program.run(&["explain", "cli::unknown_flg"]).refused().err.contains("cli::unknown_flag"));
}

/// A script that calls the program must not believe that it worked.
#[cfg(target_os = "linux")]
#[test]
fn a_run_whose_session_cannot_be_written_fails() {
    for mode in ["text", "json"] {
        let ended =
            Program::new().run(&["-p", "--mode", mode, "--offline", "--session-dir", "/proc", "hello"]);
        let ended = ended.refused();
        assert!(ended.err.contains("/proc"), "{}", ended.err);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn what_is_no_regular_file_is_refused_and_not_waited_for() {
    let program = Program::new();
    let pipe = program.project().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for file in [pipe.to_str().unwrap(), "/dev/zero"] {
        for args in [
            &["extension", "inspect", file][..],
            &["-p", "--offline", "--session", file, "hello"],
            &["-p", "--script", file, "hello"],
        ] {
            let ended = program.run(args).refused();
            assert!(ended.err.contains("not a regular file"), "{args:?}: {}", ended.err);
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn an_answer_that_cannot_be_written_is_an_error_and_one_nobody_reads_is_none() {
    let program = Program::new();
    for args in [
        &["-p", "--offline", "hello"][..],
        &["-p", "--mode", "json", "--offline", "hello"],
        &["explain", "extension::dlopen"],
    ] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let ended = program.command(args).stdout(full).output().unwrap();
        assert_eq!(ended.status.code(), Some(1), "{args:?}: {}", String::from_utf8_lossy(&ended.stderr));
    }
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let ended = program.command(&["-p", "--offline", "hello"]).stdout(writer).output().unwrap();
    assert_eq!((ended.status.code(), ended.stderr.len()), (Some(0), 0));
}

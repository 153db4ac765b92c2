//! What is found where, as a person sees it: lists in settings, scripts of other programs, what is
//! switched off (events.md I.1; decisions.md "Names and places").

use atomic_tests::{
    env::Home,
    libs::{self, file_name},
    live::{lines, text},
    patch::{misbehaving, misbehaving_copy},
};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

fn settings(home: &Home, settings: &Value) {
    let dir = home.atomic_home().join("agent");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("settings.json"), settings.to_string()).unwrap();
}

/// A library anywhere, and the file it writes to.
fn library(home: &Home, dir: &Path, id: &str) -> PathBuf {
    std::fs::create_dir_all(dir).unwrap();
    let out = home.path(format!("{id}.out"));
    let mode = format!("none {}", out.display());
    misbehaving_copy(&libs::fixture("misbehaving"), &dir.join(file_name(id)), id, &mode);
    out
}

fn print(home: &Home, args: &[&str]) -> String {
    let script = home.script(&json!([text("hello")]));
    home.atomic(["-p", "hi", "--script"]).arg(script).args(args).run().ok().stderr
}

fn ran(out: &Path) -> bool {
    let ran = lines(out).contains(&"activate 1".to_owned());
    let _ = std::fs::remove_file(out);
    ran
}

#[test]
fn the_users_settings_add_libraries_and_leave_some_out() {
    let home = Home::new();
    let more = home.path("more");
    let (a, b) = (library(&home, &more, "a"), library(&home, &more, "b"));
    let (c, d) = (misbehaving(&home, "c", "none"), misbehaving(&home, "d", "none"));
    let all = |expected: [bool; 4], why: &str| {
        print(&home, &[]);
        assert_eq!([ran(&a), ran(&b), ran(&c), ran(&d)], expected, "{why}");
    };
    all([false, false, true, true], "only what is installed");
    settings(&home, &json!({"extensions": [more.join(file_name("a"))]}));
    all([true, false, true, true], "a path");
    settings(&home, &json!({"extensions": ["../../../more/*", "!d"]}));
    all([true, true, true, false], "a glob from the file's own folder, and a name left out");
    settings(
        &home,
        &json!({"extensions": {"paths": [more, format!("-{}", more.join(file_name("b")).display())]}}),
    );
    all([true, false, true, true], "a folder, and a path that has the last word");
    print(&home, &["--no-extensions"]);
    assert!([&a, &b, &c, &d].iter().all(|out| !ran(out)), "--no-extensions means all of them");
}

#[test]
fn a_path_in_the_settings_that_is_not_there_is_named() {
    let home = Home::new();
    settings(&home, &json!({"extensions": ["gone.so"]}));
    assert!(print(&home, &[]).contains("gone.so"));
}

#[test]
fn a_setting_that_says_what_it_may_not_is_named_and_the_start_goes_on() {
    let home = Home::new();
    settings(&home, &json!({"extensions": "all", "defaultProjectTrust": "sometimes"}));
    let stderr = print(&home, &[]);
    assert!(stderr.contains("cli::setting") && stderr.contains("defaultProjectTrust"), "{stderr}");
}

#[test]
fn scripts_of_another_program_are_one_notice() {
    let home = Home::new();
    for name in ["one.ts", "two.js"] {
        std::fs::write(home.extensions().join(name), "export default {}").unwrap();
    }
    let stderr = print(&home, &[]);
    let told: Vec<&str> = stderr.lines().filter(|l| l.contains("native libraries only")).collect();
    assert!(told.len() == 1 && told[0].contains("one.ts") && told[0].contains("1 more"), "{stderr}");
}

#[test]
fn an_extension_is_switched_off_and_on_again_without_leaving() {
    let home = Home::new();
    let out = misbehaving(&home, "a", "none");
    settings(&home, &json!({"theme": "mine"}));
    let script = home.script(&json!([text("hello")]));
    let mut program = home.atomic(["--mode", "lines", "--script"]).arg(&script).start();
    program.say("/extensions disable a");
    program.wait_for("the reload", |l| l.contains("(gone): it is disabled"));
    program.say("/extensions");
    program.wait_for("the list", |l| l.contains("a (disabled; /extensions enable a)"));
    program.close_stdin();
    program.finish().ok();
    assert!(lines(&out).contains(&"session_shutdown reload".to_owned()), "{:?}", lines(&out));
    let text = std::fs::read_to_string(home.atomic_home().join("agent/settings.json")).unwrap();
    let saved: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(saved, json!({"theme": "mine", "disabledExtensions": ["a"]}));
    let _ = std::fs::remove_file(&out);
    print(&home, &[]);
    assert!(!ran(&out), "the next start knows it");

    let mut program = home.atomic(["--mode", "lines", "--script"]).arg(&script).start();
    program.say("/extensions enable a");
    program.wait_for("the reload", |l| l.contains("reload") && l.contains("a 0.1.0"));
    program.close_stdin();
    program.finish().ok();
    assert!(ran(&out));
}

#[test]
fn what_the_command_line_names_is_loaded_although_it_is_switched_off() {
    let home = Home::new();
    settings(&home, &json!({"disabledExtensions": ["a"]}));
    let out = library(&home, &home.path("more"), "a");
    let path = home.path("more").join(file_name("a"));
    print(&home, &["-e", path.to_str().unwrap()]);
    assert!(ran(&out));
}

#[test]
fn limits_come_from_the_settings() {
    let home = Home::new();
    misbehaving(&home, "waits", "gate-sleeps");
    settings(&home, &json!({"extensions.gateTimeoutMs": 50}));
    let script = home.script(&json!([atomic_tests::live::bash("echo hi"), text("done")]));
    let log = home.atomic(["--mode", "json", "-p", "hi", "--script"]).arg(script).run().ok();
    assert!(log.stdout.contains("waits could not decide"), "{}", log.stdout);
}

/// Field case B81, for both kinds of directory.
#[cfg(unix)]
#[test]
fn b81_a_library_that_others_could_write_is_refused_wherever_it_lies() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    let user = misbehaving(&home, "user", "none");
    let project = atomic_tests::patch::misbehaving_project(&home, "mine", "none");
    let files = [
        home.extensions().join(file_name("user")),
        home.cwd().join(".atomic/extensions").join(file_name("mine")),
    ];
    for file in &files {
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o666)).unwrap();
    }
    let stderr = print(&home, &["--approve"]);
    for file in &files {
        assert!(stderr.contains(file.to_str().unwrap()) && stderr.contains("chmod go-w"), "{stderr}");
    }
    assert!(!ran(&user) && !ran(&project));
    for file in &files {
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o644)).unwrap();
    }
    print(&home, &["--approve"]);
    assert!(ran(&user) && ran(&project));
}

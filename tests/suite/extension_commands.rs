//! `atomic extension …` and the pages that tell about it, on real libraries and real crates.

use atomic_tests::{
    env::Home,
    libs::{self, file_name, first_party},
    live::{lines, text},
    patch::{manifest_copy, misbehaving},
    tree::{repo, shell_blocks},
};
use serde_json::json;
use std::{ffi::OsString, fs, path::PathBuf, process::Command};

/// A PATH on which `atomic` is the program under test.
fn path() -> OsString {
    let own = libs::atomic().parent().unwrap().to_owned();
    let rest = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths(std::iter::once(own).chain(std::env::split_paths(&rest))).unwrap()
}

/// The README's own words, in their order, in one home, as a stranger types them.
#[test]
fn the_commands_of_the_readme_work() {
    let page = fs::read_to_string(repo().join("README.md")).unwrap();
    let home = Home::of_crates();
    let mut said = String::new();
    for block in shell_blocks(&page) {
        let mut shell = Command::new("bash");
        shell.args(["-euo", "pipefail", "-c", &block]).current_dir(home.cwd());
        shell.env_clear().envs(home.environment()).env("PATH", path());
        shell.env("CARGO_TARGET_DIR", libs::crates_target());
        let out = shell.output().unwrap();
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        assert!(out.status.success(), "{block}\n{text}\n{}", String::from_utf8_lossy(&out.stderr));
        said.push_str(&text);
    }
    assert!(said.contains("hello-me"), "the list names the new extension:\n{said}");
    assert!(said.to_lowercase().contains("hello, you"), "its tool answered:\n{said}");
    assert!(said.contains("1 passed"), "its test ran:\n{said}");
    assert!(home.extensions().join(file_name("hello-me")).exists());

    // The page's own extension in place of the template's: changed, installed again, at work.
    let own = page.split("```rust\n").nth(1).and_then(|r| r.split("```").next()).unwrap();
    fs::write(home.cwd().join("hello-me/src/lib.rs"), own).unwrap();
    home.atomic(["extension", "install", "hello-me"]).run().ok();
    let done = home.atomic(["--offline", "-p", "call greet {\"name\":\"Bo\"}"]).run().ok();
    assert!(done.stdout.contains("Hello, Bo!"), "{}", done.stdout);
}

#[test]
fn inspect_and_list_read_a_library_without_running_it() {
    let home = Home::new();
    // Whoever opens this one crashes, or leaves a line.
    let out = misbehaving(&home, "bomb", "init-segv");
    let file = home.extensions().join(file_name("bomb"));
    let done = home.atomic(["extension", "inspect"]).arg(&file).run().ok();
    for part in ["bomb", "1.0.0", "unwind"] {
        assert!(done.stdout.contains(part), "{part}:\n{}", done.stdout);
    }
    let done = home.atomic(["extension", "list"]).run().ok();
    assert!(done.stdout.contains("bomb"), "{}", done.stdout);
    assert!(lines(&out).is_empty(), "its code ran: {:?}", lines(&out));
}

#[test]
fn inspect_notes_a_patched_layout_and_refuses_what_cannot_load() {
    let home = Home::new();
    let other = home.path("other.so");
    manifest_copy(&libs::fixture("misbehaving"), &other, |m| {
        m.insert("layout".into(), "0000000000000000".into());
    });
    let done = home.atomic(["extension", "inspect"]).arg(&other).run().ok();
    assert!(done.stdout.contains("layout"), "{}", done.stdout);
    let bad = home.path("bad.so");
    manifest_copy(&libs::fixture("misbehaving"), &bad, |m| {
        m.insert("apiVersion".into(), "2.0.0".into());
    });
    let done = home.atomic(["extension", "inspect"]).arg(&bad).run();
    assert_eq!(done.code, Some(1));
    assert!(done.stderr.contains("2.0.0") && done.stderr.contains("1.0.0"), "{}", done.stderr);
}

#[test]
fn a_library_is_installed_under_its_name_and_removed_again() {
    let home = Home::new();
    let from = home.path("download.so");
    fs::copy(first_party("hello"), &from).unwrap();
    let done = home.atomic(["extension", "install"]).arg(&from).run().ok();
    assert!(done.stdout.contains("hello"), "prints what it found:\n{}", done.stdout);
    let files: Vec<PathBuf> = fs::read_dir(home.extensions()).unwrap().map(|e| e.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "nothing but the library is left: {files:?}");
    let turns = json!([{ "toolCalls": [{ "name": "greet", "arguments": {"name": "Bo"} }] }, text("done")]);
    let script = home.script(&turns);
    home.atomic(["-p", "hi", "--script", script.to_str().unwrap()]).run().ok();
    home.atomic(["extension", "remove", "hello"]).run().ok();
    assert_eq!(fs::read_dir(home.extensions()).unwrap().count(), 0);
}

#[test]
fn a_library_a_folder_and_a_crate_can_be_named_on_the_command_line() {
    let home = Home::of_crates();
    let out = home.path("named.out");
    let folder = home.path("folder");
    fs::create_dir_all(&folder).unwrap();
    let library = folder.join(file_name("named"));
    let mode = format!("none {}", out.display());
    atomic_tests::patch::misbehaving_copy(&libs::fixture("misbehaving"), &library, "named", &mode);
    let script = home.script(&json!([text("hello")])).display().to_string();
    for path in [&library, &folder] {
        let _ = fs::remove_file(&out);
        home.atomic(["-p", "hi", "--script", &script, "-e"]).arg(path).run().ok();
        assert!(lines(&out).contains(&"agent_settled".to_owned()), "{}", path.display());
    }
    // A crate is built first: the SDK's own template.
    home.atomic(["extension", "new", "from-crate"]).run().ok();
    let turns = json!([
        { "toolCalls": [{ "name": "from_crate_greet", "arguments": {"name": "Bo"} }] },
        text("done")
    ]);
    let script = home.script(&turns).display().to_string();
    let json = home
        .atomic(["--mode", "json", "-p", "hi", "--script", &script, "-e", "from-crate"])
        .env("CARGO_TARGET_DIR", libs::crates_target())
        .run()
        .ok();
    assert!(json.stdout.contains("Hello, Bo!"), "{}\n{}", json.stdout, json.stderr);
}

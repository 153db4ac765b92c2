//! `atomic extension ...` as far as no library has to be built for it; the others are story
//! tests of the workspace.

use crate::program::Program;
use std::{fs, process::Command};

/// cargo rewrites a lock file that is not exactly what it would write; `--locked` refuses to.
#[test]
fn the_lock_file_of_a_new_crate_is_the_one_cargo_would_write() {
    let program = Program::new();
    for name in ["mine", "a-first", "zz_last"] {
        program.run(&["extension", "new", name]).ok();
        let metadata = Command::new(env!("CARGO"))
            .args(["metadata", "--locked", "--offline", "--format-version", "1"])
            .args(["--filter-platform", atomic_plugin_api::manifest::TARGET])
            .current_dir(program.project().join(name))
            .output()
            .unwrap();
        let err = String::from_utf8_lossy(&metadata.stderr);
        assert!(metadata.status.success(), "templates/extension/Cargo.lock is stale: {err}");
    }
}

#[test]
fn a_new_crate_never_writes_over_something() {
    let program = Program::new();
    let kept = program.file("project/mine/src/lib.rs", "precious");
    let ended = program.run(&["extension", "new", "mine"]).refused();
    assert!(ended.err.contains("extension::exists"), "{}", ended.err);
    assert_eq!(fs::read(kept).unwrap(), b"precious");
}

#[test]
fn nothing_installed_says_where_extensions_live() {
    let program = Program::new();
    let out = program.run(&["extension", "list"]).ok().out;
    assert!(out.contains(&program.home().join("extensions").display().to_string()), "{out}");
}

#[test]
fn what_is_no_extension_is_neither_inspected_nor_installed() {
    let program = Program::new();
    let file = program.file("x.so", "text").display().to_string();
    for command in ["inspect", "install"] {
        let ended = program.run(&["extension", command, &file]).refused();
        assert!(ended.err.contains("extension::not_a_library"), "{command}: {}", ended.err);
    }
    assert!(!program.home().join("extensions").exists());
}

#[test]
fn removing_what_is_not_there_says_so() {
    let ended = Program::new().run(&["extension", "remove", "ghost"]).refused();
    assert!(ended.err.contains("ghost"), "{}", ended.err);
}

#[test]
fn a_crate_without_cargo_is_a_card_that_says_what_to_install() {
    let program = Program::new();
    program.file("project/c/Cargo.toml", "[package]\nname = \"c\"\n");
    let mut command = program.command(&["extension", "install", "c"]);
    let ended = crate::program::Ended::of(command.env("CARGO", "/nowhere/cargo").output().unwrap()).refused();
    assert!(ended.err.contains("rustup.rs"), "{}", ended.err);
}

//! Walks every file of the tree and judges its text.

use atomic_tests::tree::{code_only, files, is_text, repo};
use std::fs;

const MAX_LINES: usize = 600;

/// Written by a program, or written out by ours.
fn exempt_from_size(path: &str) -> bool {
    path.starts_with("host/cli/templates/") || path.contains("/generated/")
}

/// `unsafe`, abi_stable and libloading live here and nowhere else. Fixtures misbehave on purpose.
const UNSAFE_ROOMS: [&str; 6] = [
    "plugin-api/src/abi/",
    "host/extensions/src/load/",
    "host/extensions/src/load.rs",
    "host/extensions/src/breadcrumb/",
    "host/extensions/src/breadcrumb.rs",
    "tests/fixtures/",
];

fn rust_files() -> Vec<(String, String)> {
    let rust = files().into_iter().filter(|p| p.ends_with(".rs"));
    rust.map(|p| (fs::read_to_string(repo().join(&p)).unwrap(), p)).map(|(text, p)| (p, text)).collect()
}

fn none(faults: Vec<String>, rule: &str) {
    assert!(faults.is_empty(), "{rule}:\n  {}", faults.join("\n  "));
}

#[test]
fn no_source_file_is_longer_than_600_lines() {
    let long = rust_files().into_iter().filter(|(p, _)| !exempt_from_size(p)).filter_map(|(p, text)| {
        let n = text.lines().count();
        (n > MAX_LINES).then(|| format!("{p}: {n}"))
    });
    none(long.collect(), "a file is one subject; split these");
}

#[test]
fn unsafe_and_the_abi_crates_stay_in_their_rooms() {
    let mut faults = Vec::new();
    for (path, text) in rust_files() {
        if UNSAFE_ROOMS.iter().any(|room| path.starts_with(room)) {
            continue;
        }
        for (n, line) in code_only(&text).lines().enumerate() {
            let words = || line.split(|c: char| !(c.is_alphanumeric() || c == '_'));
            if let Some(word) = words().find(|w| ["unsafe", "abi_stable", "libloading"].contains(w)) {
                // The crate's own re-export for its macro; no type of it is named by an author.
                if word == "abi_stable" && path == "plugin-api/src/lib.rs" {
                    continue;
                }
                faults.push(format!("{path}:{}: {word}", n + 1));
            }
        }
    }
    none(faults, "only the abi, load and breadcrumb rooms may say this");
}

#[test]
fn every_unsafe_block_names_an_invariant_of_the_safety_page() {
    let mut faults = Vec::new();
    for (path, text) in rust_files() {
        let room = UNSAFE_ROOMS.iter().any(|room| path.starts_with(room));
        // What a test crashes on purpose keeps no invariant.
        if !room || path.starts_with("tests/fixtures/") || path.ends_with("/tests.rs") {
            continue;
        }
        let marked = |comment: &str| {
            let rest = comment.split("SAFETY.md").nth(1).unwrap_or("");
            rest.trim_start().starts_with(|c: char| c.is_ascii_digit()) || comment.contains("as above")
        };
        for (n, line) in text.lines().enumerate() {
            if line.trim_start().starts_with("// SAFETY:") {
                // A comment may take several lines.
                let block: Vec<&str> =
                    text.lines().skip(n).take_while(|l| l.trim_start().starts_with("//")).collect();
                if !marked(&block.join(" ")) {
                    faults.push(format!("{path}:{}", n + 1));
                }
            }
        }
    }
    none(faults, "these SAFETY comments name no line of SAFETY.md");
}

#[test]
fn no_path_of_somebodys_machine_is_in_the_tree() {
    let placeholder = |rest: &str| {
        let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || "-_.".contains(*c)).collect();
        name.len() < 2 || ["me", "you", "user", "name"].contains(&name.as_str())
    };
    let mut faults = Vec::new();
    for path in files().iter().filter(|p| is_text(p)) {
        let Ok(text) = fs::read_to_string(repo().join(path)) else { continue };
        for (n, line) in text.lines().enumerate() {
            let users = ["/home/", "/Users/"];
            let absolute =
                |from: usize| !line[..from].ends_with(|c: char| c.is_alphanumeric() || "-_.:/".contains(c));
            let home = users.iter().any(|at| {
                let mut found = line.match_indices(at).filter(|(from, _)| absolute(*from));
                found.any(|(from, at)| !placeholder(&line[from + at.len()..]))
            });
            // Put together here, so that this file does not find itself.
            let own = [["/ro", "ot"].concat(), ["/wo", "rk"].concat()];
            let machine = own.iter().any(|at| {
                let mut ends = line.match_indices(at.as_str()).map(|(i, m)| (i, i + m.len()));
                ends.any(|(from, to)| {
                    let before = line[..from].chars().next_back();
                    let after = line[to..].chars().next();
                    let inside =
                        |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || "-_.:".contains(c));
                    !inside(before) && before != Some('/') && !inside(after)
                })
            });
            if home || machine {
                faults.push(format!("{path}:{}: {}", n + 1, line.trim()));
            }
        }
    }
    none(faults, "paths of a machine");
}

#[test]
fn no_package_registry_is_named_outside_lock_files() {
    let hosts = [["crates", ".io"].concat(), ["npmjs", ".org"].concat(), ["pypi", ".org"].concat()];
    let mut faults = Vec::new();
    for path in files().iter().filter(|p| is_text(p) && !p.ends_with("Cargo.lock")) {
        let Ok(text) = fs::read_to_string(repo().join(path)) else { continue };
        for (n, line) in text.lines().enumerate() {
            // cargo-deny must be told the allowed registry by its address.
            if hosts.iter().any(|h| line.contains(h.as_str())) && path != "deny.toml" {
                faults.push(format!("{path}:{}", n + 1));
            }
        }
    }
    none(faults, "names of registries");
}

#[test]
fn every_module_says_first_what_it_is_for() {
    let silent = rust_files().into_iter().filter(|(path, text)| {
        let source = path.contains("/src/") || path.starts_with("tests/suite/");
        // The stories of a room say it in their names.
        source
            && !path.contains("/src/tests")
            && !(path.contains("/src/") && path.contains("/tests/"))
            && !path.ends_with("/tests.rs")
            && !exempt_from_size(path)
            && !text.starts_with("//!")
            && !text.starts_with("//")
            && !text.starts_with("#![doc")
    });
    none(silent.map(|(p, _)| p).collect(), "a module's first line says what the room is for");
}

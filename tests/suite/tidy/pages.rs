//! Pages that promise something a test keeps: SAFETY.md and the README.

use atomic_tests::tree::{files, repo};
use std::{collections::BTreeSet, fs};

/// Names of all test functions in the tree.
fn tests() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for path in files().iter().filter(|p| p.ends_with(".rs")) {
        let text = fs::read_to_string(repo().join(path)).unwrap();
        let mut marked = false;
        for line in text.lines().map(str::trim) {
            if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
                marked = true;
            } else if line.starts_with("proptest!") || line.starts_with("#[divan") {
                marked = false;
            } else if let Some(rest) =
                line.strip_prefix("fn ").or_else(|| line.strip_prefix("async fn ")).filter(|_| marked)
            {
                names.insert(rest.split(['(', '<']).next().unwrap().to_owned());
                marked = false;
            }
        }
    }
    names
}

/// `identifiers` between back-ticks that look like test names.
fn quoted(line: &str) -> Vec<&str> {
    let parts = line.split('`').skip(1).step_by(2);
    parts
        .map(|p| p.rsplit("::").next().unwrap())
        .filter(|p| {
            p.contains('_') && p.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        })
        .collect()
}

#[test]
fn every_line_of_the_safety_page_names_a_test_that_exists() {
    let Ok(page) = fs::read_to_string(repo().join("SAFETY.md")) else {
        eprintln!("skipped: there is no SAFETY.md yet");
        return;
    };
    let tests = tests();
    let mut invariants = 0;
    // An invariant is a numbered paragraph; it may go over several lines.
    let mut paragraphs: Vec<String> = Vec::new();
    for line in page.lines() {
        let numbered =
            line.split(['.', ' ']).next().is_some_and(|n| !n.is_empty() && n.parse::<u32>().is_ok());
        match paragraphs.last_mut() {
            _ if numbered => paragraphs.push(line.to_owned()),
            Some(last) if line.starts_with("   ") => last.push_str(line),
            _ => {}
        }
    }
    for p in &paragraphs {
        let named = quoted(p);
        let real: Vec<&&str> = named.iter().filter(|n| tests.contains(**n)).collect();
        assert!(!real.is_empty(), "no test of this name exists: {named:?}\n{p}");
        invariants += 1;
    }
    assert!(invariants >= 10, "the ten invariants of the boundary, found {invariants}");
}

/// The README's commands, and the test that runs each. The two between the set-up markers
/// are run by `.ci/run` itself.
const COMMANDS: &[(&str, &str)] = &[];

#[test]
fn every_command_of_the_readme_is_run_by_a_test() {
    let Ok(page) = fs::read_to_string(repo().join("README.md")) else {
        eprintln!("skipped: there is no README.md yet");
        return;
    };
    let setup = atomic_tests::tree::setup_commands(&page);
    assert_eq!(setup.len(), 2, "the set-up is two commands: {setup:?}");
    let tests = tests();
    let mut fenced = None;
    for line in page.lines() {
        if let Some(language) = line.strip_prefix("```") {
            fenced = match fenced {
                None => Some(language.to_owned()),
                Some(_) => None,
            };
            continue;
        }
        let shell = fenced.as_deref().is_some_and(|l| ["sh", "bash", "console", "shell"].contains(&l));
        let command = line.trim().trim_start_matches("$ ").split(" #").next().unwrap().trim();
        if !shell || command.is_empty() || command.starts_with('#') || setup.iter().any(|s| s == command) {
            continue;
        }
        let row = COMMANDS.iter().find(|(c, _)| *c == command);
        let (_, test) = row.unwrap_or_else(|| panic!("no test runs this command of the README: {command}"));
        assert!(tests.contains(*test), "{command}: there is no test {test}");
    }
}

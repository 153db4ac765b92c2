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

/// Commands the README names in its text, and the test that runs each. Those in its shell
/// blocks are run as they stand there by `the_commands_of_the_readme_work`; the two between
/// the set-up markers by `.ci/run`.
const COMMANDS: &[(&str, &str)] = &[
    ("atomic -p \"…\"", "the_answer_is_alone_on_stdout"),
    ("atomic --mode json -p \"…\"", "json_mode_is_the_header_and_then_one_event_a_line"),
    ("atomic -c", "a_run_killed_in_a_tool_goes_on_in_the_next_process"),
    ("atomic -r", "a_start_chooses_a_session_by_a_list_by_the_beginning_of_an_id_and_by_an_id_of_its_own"),
    ("atomic --fork FILE", "b56_a_fork_a_clone_and_a_walk_in_the_tree_at_the_prompt"),
    ("atomic sessions list", "sessions_are_listed_searched_deleted_to_the_trash_and_never_what_is_none"),
    (
        "atomic sessions search WORDS",
        "sessions_are_listed_searched_deleted_to_the_trash_and_never_what_is_none",
    ),
    ("atomic session check FILE", "check_names_what_is_wrong_by_line_and_changes_nothing"),
    ("atomic sessions export FILE -o page.html", "b84_an_export_has_no_script_no_link_and_nothing_hidden"),
    ("atomic -e PATH", "a_library_a_folder_and_a_crate_can_be_named_on_the_command_line"),
    ("atomic --no-extensions", "no_extensions_does_not_even_look_at_the_bad_one"),
    (
        "atomic extension run ID -- ARGS",
        "an_extension_that_is_a_program_gets_arguments_and_stdin_and_its_exit_code_is_the_programs",
    ),
    ("atomic extension inspect FILE", "inspect_and_list_read_a_library_without_running_it"),
    ("atomic explain CODE", "completions_and_explanations_are_plain_output"),
    ("atomic extension install .", "the_commands_of_the_readme_work"),
    (
        "atomic extension dev PATH",
        "a_change_is_reloaded_and_one_that_does_not_build_leaves_the_old_code_at_work",
    ),
    ("atomic trust", "allow_shows_and_pins_deny_and_forget_take_both_back"),
    (
        "atomic trust [status|allow|deny|forget] [PATH]",
        "another_folder_is_named_and_what_is_said_above_it_is_told",
    ),
    ("atomic doctor", "a_broken_file_is_named_and_left_as_it_is"),
    ("atomic extension bundle", "the_first_party_extensions_are_built_from_the_source_tree_and_laid_out"),
];

/// Named for people, and run by no test: each would build the whole tree a second time.
const NOT_RUN: &[&str] = &[
    "cargo install --locked --path host/cli",
    "cargo doc --no-deps -p atomic-plugin-api --open",
    "cargo bench -p atomic-tests",
];

#[test]
fn every_command_of_the_readme_is_run_by_a_test() {
    let page = fs::read_to_string(repo().join("README.md")).unwrap();
    let setup = atomic_tests::tree::setup_commands(&page);
    assert_eq!(setup.len(), 2, "the set-up is two commands: {setup:?}");
    assert!(!atomic_tests::tree::shell_blocks(&page).is_empty());
    let tests = tests();
    assert!(tests.contains("the_commands_of_the_readme_work"));
    for command in atomic_tests::tree::named_commands(&page) {
        if NOT_RUN.contains(&command.as_str()) {
            continue;
        }
        let row = COMMANDS.iter().find(|(c, _)| *c == command);
        let (_, test) = row.unwrap_or_else(|| panic!("no test runs this command of the README: {command}"));
        assert!(tests.contains(*test), "{command}: there is no test {test}");
    }
}

//! What counts as one extension, in which order they load, and what two of them may share
//! (decisions.md "Names and places", "Conflicts").

use atomic_tests::{
    env::Home,
    libs::{self, file_name},
    live::{Setup, bash, lines, text},
    patch::{misbehaving, misbehaving_copy},
};
use serde_json::json;
use std::{fs, os::unix::fs::symlink, path::Path};

/// Field case B09: one library reachable by several names is loaded once.
#[tokio::test(flavor = "multi_thread")]
async fn b09_one_file_by_four_names_is_activated_once() {
    let home = Home::new();
    let out = misbehaving(&home, "a", "none");
    let a = home.extensions().join(file_name("a"));
    symlink(&a, home.extensions().join(file_name("b"))).unwrap();
    fs::hard_link(&a, home.extensions().join(file_name("c"))).unwrap();
    let roundabout = home.cwd().join("../home/.atomic/extensions").join(file_name("a"));
    let setup = Setup::new(&home).turns(json!([text("hello")]));
    let live = setup.config(|c| c.cli = vec![roundabout]).start().await;
    assert!(live.report.refused.is_empty(), "{:?}", live.report.refused);
    live.run("hi").await;
    live.close().await;
    let told = lines(&out);
    for once in ["activate 1", "session_start startup", "session_shutdown quit"] {
        assert_eq!(told.iter().filter(|l| *l == once).count(), 1, "{once}: {told:#?}");
    }
    assert!(!told.contains(&"activate 2".to_owned()), "{told:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_files_of_one_id_load_once_and_a_warning_names_both() {
    let home = Home::new();
    let first = misbehaving(&home, "same", "none:first");
    let other = home.extensions().join(file_name("z-copy"));
    let out = home.path("second.out");
    misbehaving_copy(
        &libs::fixture("misbehaving"),
        &other,
        "same",
        &format!("none:second {}", out.display()),
    );
    let live = Setup::new(&home).start().await;
    assert_eq!(live.extensions.list().len(), 1);
    let winner = home.extensions().join(file_name("same"));
    let said = live.report.notes.join("\n");
    assert!(said.contains(other.to_str().unwrap()) && said.contains(winner.to_str().unwrap()), "{said}");
    assert!(lines(&out).is_empty(), "no code of the loser ran");
    assert_eq!(lines(&first), ["activate 1", "session_start startup"]);
    live.close().await;
}

/// Field case B07: what `-e` names wins over the installed copy, and that is said.
#[tokio::test(flavor = "multi_thread")]
async fn b07_the_library_of_the_command_line_wins_over_the_installed_one() {
    let home = Home::new();
    misbehaving(&home, "same", "none:old");
    let new = home.path("t_new.so");
    misbehaving_copy(&libs::fixture("misbehaving"), &new, "same", "none:new");
    let turns = json!([{ "toolCalls": [{ "name": "fixture_tool", "arguments": {} }] }, text("ok")]);
    let live = Setup::new(&home).turns(turns).config(|c| c.cli = vec![new.clone()]).start().await;
    live.run("call it").await;
    assert_eq!(live.tool_results(), [("fixture_tool".to_owned(), "fixture_tool of new".to_owned(), false)]);
    let old = home.extensions().join(file_name("same"));
    let shadowed: Vec<&String> =
        live.report.notes.iter().filter(|n| n.contains(old.to_str().unwrap())).collect();
    assert_eq!(shadowed.len(), 1, "{:?}", live.report.notes);
    live.close().await;
}

/// Field case B08: two extensions register one tool name; the program starts all the same.
#[tokio::test(flavor = "multi_thread")]
async fn b08_of_two_tools_with_one_name_the_first_wins_and_the_loser_keeps_the_rest() {
    for _ in 0..3 {
        let home = Home::new();
        let a = misbehaving(&home, "a", "none:a");
        let b = misbehaving(&home, "b", "none:b");
        let turns = json!([{ "toolCalls": [{ "name": "fixture_tool", "arguments": {} }] }, text("ok")]);
        let live = Setup::new(&home).turns(turns).start().await;
        let offered = live.engine.view(|v| v.tools.iter().filter(|t| t.name == "fixture_tool").count());
        assert_eq!(offered, 1);
        live.run("call it").await;
        assert_eq!(live.tool_results()[0].1, "fixture_tool of a");
        assert!(lines(&a).contains(&"fixture_tool ran".to_owned()));
        assert!(lines(&b).contains(&"agent_settled".to_owned()), "the loser hears its events");
        let said = [live.notices(), live.report.notes.clone()].concat().join("\n");
        let paths = ["a", "b"].map(|n| home.extensions().join(file_name(n)).display().to_string());
        assert!(paths.iter().all(|p| said.contains(p.as_str())), "both files are named: {said}");
        live.close().await;
    }
}

/// The order of names that the prompt of a run was appended in.
async fn appended(home: &Home) -> Vec<String> {
    let live = Setup::new(home).turns(json!([text("ok")])).start().await;
    live.run("hi").await;
    let prompt = live.engine.view(|v| v.system_prompt.clone());
    live.close().await;
    prompt.lines().filter_map(|l| l.strip_prefix("appended by ")).map(str::to_owned).collect()
}

/// Field case B10: load order follows names, not the order of the directory on disk.
#[tokio::test(flavor = "multi_thread")]
async fn b10_the_order_is_that_of_the_names_however_the_files_came() {
    let names = ["z", "a", "m", "A", "10", "2"];
    let mut reversed = names;
    reversed.reverse();
    for created in [names, reversed] {
        let home = Home::new();
        for name in created {
            misbehaving(&home, name, &format!("append:{name}"));
        }
        for _ in 0..3 {
            assert_eq!(appended(&home).await, ["10", "2", "A", "a", "m", "z"], "bytes of lib<name>.so");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn scopes_load_before_names_and_a_project_without_trust_is_not_opened() {
    let home = Home::new();
    let place = |dir: &Path, name: &str| {
        fs::create_dir_all(dir).unwrap();
        let to = dir.join(file_name(name));
        misbehaving_copy(&libs::fixture("misbehaving"), &to, name, &format!("append:{name}"));
        to
    };
    let cli = place(&home.path("cli"), "e-cli");
    place(&home.extensions(), "d-user");
    place(&home.path("global"), "c-global");
    place(&home.path("bundled"), "b-bundled");
    place(&home.cwd().join(".atomic/extensions"), "a-project");
    for (trusted, expected) in [
        (true, vec!["e-cli", "d-user", "c-global", "b-bundled", "a-project"]),
        (false, vec!["e-cli", "d-user", "c-global", "b-bundled"]),
    ] {
        let setup = Setup::new(&home).turns(json!([text("ok")])).config(|c| {
            c.cli = vec![cli.clone()];
            c.global_dirs = vec![home.path("global")];
            c.bundled_dir = Some(home.path("bundled"));
            c.project_trusted = trusted;
        });
        let live = setup.start().await;
        let names: Vec<String> = live.extensions.list().into_iter().map(|e| e.name).collect();
        assert_eq!(names, expected);
        let told = live
            .report
            .notes
            .iter()
            .any(|n| n.contains("not trusted") && n.contains(&file_name("a-project")));
        assert_eq!(told, !trusted, "{:?}", live.report.notes);
        live.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_extensions_only_what_the_command_line_names_is_opened() {
    let home = Home::new();
    let out = misbehaving(&home, "installed", "none");
    let live = Setup::new(&home).config(|c| c.no_extensions = true).start().await;
    assert!(live.extensions.list().is_empty());
    assert!(lines(&out).is_empty());
    live.close().await;
}

/// Field case B25: a stale list after files change.
#[tokio::test(flavor = "multi_thread")]
async fn b25_what_is_on_disk_wins_over_what_was_remembered() {
    let home = Home::new();
    misbehaving(&home, "a", "none:old");
    misbehaving(&home, "b", "none");
    let live = Setup::new(&home).start().await;
    live.close().await;
    // Other bytes under the same size and time; one file less; one more.
    let a = home.extensions().join(file_name("a"));
    let time = fs::metadata(&a).unwrap().modified().unwrap();
    misbehaving(&home, "a", "none:new");
    fs::File::options().write(true).open(&a).unwrap().set_modified(time).unwrap();
    fs::remove_file(home.extensions().join(file_name("b"))).unwrap();
    misbehaving(&home, "c", "none");
    let turns = json!([{ "toolCalls": [{ "name": "fixture_tool", "arguments": {} }] }, text("ok")]);
    let live = Setup::new(&home).turns(turns).start().await;
    let names: Vec<String> = live.extensions.list().into_iter().map(|e| e.name).collect();
    assert_eq!(names, ["a", "c"]);
    assert!(live.report.refused.is_empty(), "{:?}", live.report.refused);
    live.run("call it").await;
    assert_eq!(live.tool_results()[0].1, "fixture_tool of new");
    live.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_of_one_library_answers_another_and_goes_with_its_provider() {
    let home = Home::new();
    let a = misbehaving(&home, "provider", "none:provider");
    let b = misbehaving(&home, "user", "none:user");
    let live = Setup::new(&home).turns(json!([bash("true"), text("ok")])).start().await;
    let suffix = |n: usize| if n == 0 { ":1" } else { ":2" };
    // Both register the same commands; load order settles their names.
    live.say(&format!("/provide{} fixture.story", suffix(0))).await.unwrap();
    atomic_tests::live::line(&a, "the service", |l| l == "provided").await;
    live.say(&format!("/lookup{} fixture.story", suffix(1))).await.unwrap();
    let said = atomic_tests::live::line(&b, "an answer", |l| l.starts_with("lookup")).await;
    assert_eq!(said, "lookup provider says hi");
    fs::remove_file(home.extensions().join(file_name("provider"))).unwrap();
    live.reload().await;
    fs::remove_file(&b).unwrap();
    live.say("/lookup fixture.story").await.unwrap();
    let said = atomic_tests::live::line(&b, "an answer", |l| l.starts_with("lookup")).await;
    assert!(said.starts_with("lookup error"), "{said}");
    live.close().await;
}

/// A file that does not load shadows nobody: not one that the loader refuses, not one whose own
/// activation fails. What is said is true.
#[tokio::test(flavor = "multi_thread")]
async fn a_library_that_does_not_load_leaves_its_name_to_the_next_one() {
    let fixture = libs::fixture("misbehaving");
    let home = Home::new();
    let at = |name: &str| home.extensions().join(file_name(name));
    misbehaving_copy(&fixture, &at("a-fails"), "same", "init-err");
    misbehaving_copy(&fixture, &at("b-good"), "same", "none:good");
    misbehaving_copy(&fixture, &at("c-late"), "same", "none:late");
    // Garbage in its dynamic section: only the system's loader sees it.
    misbehaving_copy(&fixture, &at("0-loader"), "same", "none");
    let mut bytes = fs::read(at("0-loader")).unwrap();
    let needed = b"libc.so.6\0";
    let name = bytes.windows(needed.len()).position(|w| w == needed).expect("it needs the C library");
    bytes[name..name + 4].copy_from_slice(b"gone");
    fs::write(at("0-loader"), bytes).unwrap();

    let turns = json!([{ "toolCalls": [{ "name": "fixture_tool", "arguments": {} }] }, text("ok")]);
    let live = Setup::new(&home).turns(turns).start().await;
    let codes: Vec<&str> = live.report.refused.iter().map(|r| r.code()).collect();
    assert_eq!(codes, ["extension::dlopen", "extension::init_failed"]);
    live.run("call it").await;
    assert_eq!(live.tool_results()[0].1, "fixture_tool of good");
    let told = |notes: &[String]| {
        let of: Vec<&String> = notes.iter().filter(|n| n.contains("was skipped")).collect();
        assert_eq!(of.len(), 1, "{notes:?}");
        assert!(of[0].contains(&format!("is loaded from {}", at("b-good").display())), "{}", of[0]);
        assert!(of[0].contains(&file_name("c-late")), "{}", of[0]);
    };
    told(&live.report.notes);

    let report = live.reload().await;
    told(&report.notes);
    assert_eq!(report.extensions.len(), 1, "{report:?}");
    assert_eq!(live.extensions.list()[0].path, at("b-good"));
    // The first one is mended: it comes first again.
    fs::remove_file(at("0-loader")).unwrap();
    misbehaving_copy(&fixture, &at("0-loader"), "same", "none:mended");
    live.reload().await;
    assert_eq!(live.extensions.list()[0].path, at("0-loader"));
    live.close().await;
}

/// A working directory need not be UTF-8: what crosses is its lossy text.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_is_not_utf8_reaches_extensions_as_lossy_text() {
    use std::os::unix::ffi::OsStrExt as _;
    let home = Home::new();
    let cwd = home.path(std::ffi::OsStr::from_bytes(b"b\xffd"));
    fs::create_dir_all(&cwd).unwrap();
    let out = misbehaving(&home, "a", "none:a");
    // Its own file too.
    let file = home.extensions().join(std::ffi::OsStr::from_bytes(b"lib\xff.so"));
    misbehaving_copy(&libs::fixture("misbehaving"), &file, "b", "none");
    let turns = json!([{ "toolCalls": [{ "name": "fixture_tool", "arguments": {} }] }, text("ok")]);
    let live = Setup::new(&home).turns(turns).config(|c| c.cwd = cwd).start().await;
    live.run("call it").await;
    assert_eq!(live.tool_results(), [("fixture_tool".to_owned(), "fixture_tool of a".to_owned(), false)]);
    live.say("/where:1").await.unwrap();
    let said = atomic_tests::live::line(&out, "its paths", |l| l.starts_with("where ")).await;
    assert!(said.contains("b\u{fffd}d commands "), "{said}");
    assert!(said.ends_with("session true"), "{said}");
    live.close().await;
}

//! `atomic sessions`, and what becomes of a file while a run goes on: nothing that was accepted is
//! lost by a kill, a full disk or somebody's hand.

use atomic_agent::session::{self, Session};
use atomic_tests::{
    env::Home,
    live::{bash, text},
};
use serde_json::json;
use std::{fs, path::Path};

fn said(file: &Path) -> Vec<String> {
    Session::read(file).unwrap().fork_messages().into_iter().map(|(_, text)| text).collect()
}

fn answer(home: &Home, message: &str) {
    home.atomic(["-p", "--offline", message]).run().ok();
}

#[test]
fn sessions_are_listed_searched_deleted_to_the_trash_and_never_what_is_none() {
    let home = Home::new();
    answer(&home, "about apples");
    answer(&home, "about pears");
    let list = home.atomic(["sessions", "list"]).run().ok().stdout;
    assert_eq!(list.lines().count(), 2, "{list}");
    assert!(list.lines().next().unwrap().contains("about pears"), "the last comes first: {list}");
    let rows = home.atomic(["sessions", "list", "--all", "--json", "apples"]).run().ok().json_lines();
    assert_eq!((rows.len(), rows[0]["firstMessage"].as_str()), (1, Some("about apples")));
    let found = home.atomic(["sessions", "search", "ABOUT", "PEARS"]).run().ok().stdout;
    assert!(found.contains("user: about pears") && !found.contains("apples"), "{found}");
    home.atomic(["sessions", "search", "nobody said this"]).run().exit(1);

    let path = rows[0]["path"].as_str().unwrap();
    let bytes = fs::read(path).unwrap();
    let id = rows[0]["id"].as_str().unwrap();
    let told = home.atomic(["sessions", "delete", id]).run().ok().stdout;
    assert!(!Path::new(path).exists());
    let trashed = told.trim().strip_prefix("moved to ").unwrap();
    assert_eq!(fs::read(trashed).unwrap(), bytes);
    let foreign = home.write("notes.jsonl", "{\"my\": \"notes\"}\n");
    home.atomic(["sessions", "delete"]).arg(&foreign).run().exit(1);
    assert!(foreign.exists());
}

#[test]
fn a_session_that_is_open_is_not_deleted() {
    let home = Home::new();
    let mut open = home.atomic(["--mode", "lines", "--offline"]).start();
    open.say("held");
    open.wait_for("the file", |_| !home.sessions().is_empty());
    let file = home.sessions()[0].clone();
    let refused = home.atomic(["sessions", "delete"]).arg(&file).run().exit(1);
    assert!(refused.stderr.contains("in use"), "{}", refused.stderr);
    assert!(file.exists());
    open.kill();
}

#[test]
fn check_names_what_is_wrong_by_line_and_changes_nothing() {
    let home = Home::new();
    answer(&home, "hello");
    let file = home.sessions()[0].clone();
    let sound = home.atomic(["session", "check"]).arg(&file).run().ok().stdout;
    assert!(sound.contains("nothing is wrong with it"), "{sound}");
    let mut bytes = fs::read(&file).unwrap();
    let lines = bytes.iter().filter(|b| **b == b'\n').count();
    bytes.extend_from_slice(b"garbage\n{\"type\":\"mess");
    fs::write(&file, &bytes).unwrap();
    let bad = home.atomic(["session", "check"]).arg(&file).run().exit(1).stdout;
    assert!(bad.contains(&format!("line {}: it is not JSON", lines + 1)), "{bad}");
    assert!(bad.contains(&format!("line {}: it is torn", lines + 2)), "{bad}");
    assert_eq!(fs::read(&file).unwrap(), bytes);
    let foreign = home.write("pretty.json", "{\n}\n");
    let refused = home.atomic(["session", "check"]).arg(&foreign).run().exit(1);
    assert!(refused.stderr.contains("is not a session file"), "{}", refused.stderr);
}

#[test]
fn b84_an_export_has_no_script_no_link_and_nothing_hidden() {
    let home = Home::new();
    answer(
        &home,
        "<script>alert(1)</script> [x](javascript:alert(1)) <img src=x onerror=alert(1)> \u{202e}back ```\n```",
    );
    let file = home.sessions()[0].clone();
    let html = home.path("out.html");
    home.atomic(["sessions", "export"]).arg(&file).arg("-o").arg(&html).run().ok();
    let page = fs::read_to_string(&html).unwrap();
    for active in ["<script", "<a ", "href", "<img src=x", "onerror=alert(1)>", "\u{202e}"] {
        assert!(!page.contains(active), "{active}: {page}");
    }
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;") && page.contains("[U+202E]"), "{page}");
    assert!(page.contains("default-src 'none'"));
    // What is there stays.
    home.atomic(["sessions", "export"]).arg(&file).arg("-o").arg(&html).run().exit(1);

    let md = home.atomic(["sessions", "export", "--format", "markdown"]).arg(&file).run().ok().stdout;
    // All of it stands between fences that are longer than its own.
    let mut fenced = false;
    for line in md.lines() {
        if line.starts_with("````") {
            fenced = line.ends_with("text");
        } else if !fenced {
            assert!(!line.contains('<') && !line.contains("]("), "{md}");
        }
    }
}

#[test]
fn b76_what_is_no_session_is_refused_in_one_line_and_stays_as_it_is() {
    let home = Home::new();
    for (name, content) in [
        ("lfs.jsonl", "version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 9\n"),
        ("pretty.jsonl", "{\n  \"type\": \"session\"\n}\n"),
        ("headless.jsonl", "{\"type\":\"message\",\"id\":\"a\"}\n"),
        (
            "claude.jsonl",
            "{\"type\":\"user\",\"sessionId\":\"a\",\"message\":{\"role\":\"user\",\"content\":\"hi\"}}\n",
        ),
    ] {
        let file = home.write(name, content);
        let refused = home.atomic(["-p", "--offline", "--session"]).arg(&file).arg("hi").run().exit(1);
        let told = refused.stderr.lines().next().unwrap_or_default().to_owned();
        assert!(refused.stderr.contains("is not a session file"), "{}", refused.stderr);
        assert!(!told.is_empty() && refused.stdout.is_empty());
        assert_eq!(fs::read_to_string(&file).unwrap(), content);
    }
    let empty = home.write("empty.jsonl", "");
    home.atomic(["-p", "--offline", "--session"]).arg(&empty).arg("hi").run().ok();
    assert_eq!(said(&empty), ["hi"]);
    assert!(fs::read_to_string(&empty).unwrap().starts_with("{\"type\":\"session\""));
}

#[test]
fn an_older_file_goes_on_and_is_kept_as_it_was() {
    let home = Home::new();
    let lines = [
        json!({"type": "session", "id": "old", "timestamp": "2025-01-01T00:00:00.000Z", "cwd": home.cwd()}),
        json!({"type": "message", "timestamp": "t", "message": {"role": "user", "content": "long ago", "timestamp": 1}}),
    ];
    let text: String = lines.iter().map(|l| format!("{l}\n")).collect();
    let file = home.write("old.jsonl", &text);
    let run = home.atomic(["-p", "--offline", "--session"]).arg(&file).arg("and now").run().ok();
    assert!(run.stderr.contains("had format 1"), "{}", run.stderr);
    assert_eq!(said(&file), ["long ago", "and now"]);
    let kept = fs::read_dir(file.parent().unwrap()).unwrap().flatten().map(|e| e.path());
    let kept: Vec<_> = kept.filter(|p| p.to_string_lossy().contains("old.jsonl.v1-")).collect();
    assert_eq!(fs::read_to_string(&kept[0]).unwrap(), text);
}

#[test]
fn b72_a_file_deleted_in_a_run_comes_back_whole_with_its_header() {
    let home = Home::new();
    let delete = format!("rm -f {}/*/*.jsonl", home.atomic_home().join("agent/sessions").display());
    let script = home.script(&json!([bash(&delete), text("done")])).display().to_string();
    let run = home.atomic(["-p", "--script", &script, "go"]).run().ok();
    assert!(run.stderr.contains("was deleted; it has been written again"), "{}", run.stderr);
    let file = home.sessions()[0].clone();
    let report = session::check(&file).unwrap();
    assert!(report.findings.is_empty(), "{report:?}");
    assert_eq!(said(&file), ["go"]);
}

#[cfg(unix)]
#[test]
fn b75_a_disk_that_is_full_is_told_and_the_run_goes_on() {
    let home = Home::new();
    answer(&home, "first");
    let file = home.sessions()[0].clone();
    let before = fs::read(&file).unwrap();
    // Room for one block of 1 KiB more than there is; what is said next does not fit.
    let blocks = before.len() / 1024 + 1;
    let long = "z".repeat(4000);
    let program = atomic_tests::libs::atomic();
    let script = format!("ulimit -f {blocks}; exec \"$0\" \"$@\"");
    let run = home
        .atomic(["-c", &script])
        .program("/bin/bash")
        .arg(&program)
        .args(["-p", "--offline", "-c", &long])
        .run()
        .exit(1);
    assert!(run.stdout.contains("zzz"), "the answer came: {}", run.stdout);
    assert!(run.stderr.contains("cannot be written"), "{}", run.stderr);
    assert_eq!(fs::read(&file).unwrap(), before, "half a line stayed");
    // There is room again.
    home.atomic(["-p", "--offline", "-c", "after"]).run().ok();
    assert_eq!(said(&file), ["first", "after"]);
    assert!(session::check(&file).unwrap().findings.is_empty());
}

#[test]
fn a_program_killed_at_any_moment_leaves_a_session_that_opens_with_what_was_accepted() {
    let home = Home::new();
    for round in 0..atomic_tests::env::rounds(50) {
        let mut run = home.atomic(["--mode", "lines", "--offline", "--session-id", "killed"]).start();
        let text = format!("round {round} {}", "w".repeat(2000));
        run.say(&text);
        if round % 2 == 0 {
            run.wait_for("the answer", |s| s.contains(&format!("round {round}")));
        } else {
            run.wait_for("the prompt", |s| s.contains("atomic"));
        }
        run.kill();
        for file in home.sessions() {
            let report = session::check(&file).unwrap();
            assert!(report.entries > 0, "{report:?}");
            if round % 2 == 0 {
                assert!(
                    said(&file).iter().any(|s| s.starts_with(&format!("round {round}"))),
                    "accepted and lost"
                );
            }
        }
    }
}

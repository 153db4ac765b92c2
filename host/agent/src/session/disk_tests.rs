//! Files that are cut, deleted, replaced, full, or of another time: nothing that was said is lost.

use super::*;
use std::fs;

fn place() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let sessions = dir.path().join("sessions");
    (dir, sessions)
}

fn say(session: &mut Session, text: &str) {
    session.append_message(&Message::user(text, 1), false).unwrap();
}

fn texts(session: &Session) -> Vec<String> {
    session.fork_messages().into_iter().map(|(_, text)| text).collect()
}

fn opened(path: &Path) -> Session {
    Session::open(path, path.parent().unwrap()).unwrap()
}

/// No entry twice, each with its parent before it.
fn assert_whole(path: &Path) {
    let mut known = std::collections::HashSet::new();
    for line in fs::read_to_string(path).unwrap().lines().skip(1) {
        let entry = Entry::parse(line).unwrap_or_else(|| panic!("no entry: {line}"));
        assert!(entry.parent_id().is_none_or(|p| known.contains(p)), "a gap before {line}");
        assert!(known.insert(entry.id().to_owned()), "twice: {line}");
    }
}

fn messages(session: &mut Session) -> Vec<String> {
    session.take_news().into_iter().map(|n| format!("{}: {}", n.level, n.message)).collect()
}

fn limit(session: &mut Session, at: Option<u64>) {
    let Backing::File(file) = &mut session.backing else { panic!("no file") };
    file.fails_at = at;
}

#[test]
fn a_file_of_20_kb_cut_at_any_byte_opens_with_whole_entries_and_goes_on() {
    let (dir, sessions) = place();
    let mut session = Session::create(dir.path(), &sessions, None);
    while session.file().and_then(|f| fs::metadata(f).ok()).is_none_or(|m| m.len() < 20_000) {
        say(&mut session, &"é \u{2028} text".repeat(20));
    }
    let path = session.file().unwrap().to_owned();
    session.close();
    let whole = fs::read(&path).unwrap();
    let rounds = if std::env::var_os("ATOMIC_SOAK").is_some() { 1 } else { 7 };
    for cut in (0..=whole.len()).step_by(rounds).chain([whole.len()]) {
        let copy = dir.path().join(format!("cut-{cut}.jsonl"));
        fs::write(&copy, &whole[..cut]).unwrap();
        let mut session = Session::open(&copy, dir.path()).unwrap_or_else(|e| panic!("at {cut}: {e}"));
        let ends = whole[..cut].iter().filter(|b| **b == b'\n').count();
        let kept = texts(&session).len();
        assert!(kept == ends.saturating_sub(1) || kept == ends, "{kept} of {ends} lines, cut at {cut}");
        say(&mut session, "and on");
        drop(session);
        assert_eq!(texts(&opened(&copy)).len(), kept + 1, "cut at {cut}");
        assert_whole(&copy);
        fs::remove_file(&copy).unwrap();
    }
}

#[test]
fn b75_a_full_disk_is_told_once_and_what_was_said_meanwhile_is_written_when_there_is_room() {
    let (dir, sessions) = place();
    let mut session = Session::create(dir.path(), &sessions, None);
    say(&mut session, "before");
    let path = session.file().unwrap().to_owned();
    let before = fs::read(&path).unwrap();
    let long = "x".repeat(300);
    // At every byte of the next line.
    for room in [0, 1, 17, 150, 299] {
        limit(&mut session, Some(before.len() as u64 + room));
        say(&mut session, &long);
        assert_eq!(fs::read(&path).unwrap(), before, "half a line stayed, {room} bytes in");
    }
    let told = messages(&mut session);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("error: ") && told[0].contains(path.to_str().unwrap()), "{told:?}");
    assert_eq!(texts(&session).len(), 6, "the model still knows all of it");

    limit(&mut session, None);
    say(&mut session, "after");
    let told = messages(&mut session);
    assert!(told.len() == 1 && told[0].contains("nothing is missing"), "{told:?}");
    drop(session);
    assert_whole(&path);
    assert_eq!(texts(&opened(&path)).len(), 7);
    // And a second trouble is news again.
    let mut session = opened(&path);
    limit(&mut session, Some(0));
    say(&mut session, "once more");
    assert_eq!(messages(&mut session).len(), 1);
    session.close();
    assert!(messages(&mut session)[0].contains("1 entries"), "the end says what is lost");
}

#[test]
fn b72_a_file_that_was_deleted_comes_back_whole_with_its_header() {
    let (dir, sessions) = place();
    let mut session = Session::create(dir.path(), &sessions, None);
    say(&mut session, "one");
    let path = session.file().unwrap().to_owned();
    for gone in [path.clone(), sessions] {
        match gone.is_dir() {
            true => fs::remove_dir_all(&gone).unwrap(),
            false => fs::remove_file(&gone).unwrap(),
        }
        say(&mut session, "two");
        let told = messages(&mut session);
        assert!(told.len() == 1 && told[0].contains("was deleted"), "{told:?}");
        assert!(Session::open(&path, dir.path()).is_err_and(|e| e.code() == "session_locked"));
        assert_whole(&path);
    }
    session.close();
    assert_eq!(texts(&opened(&path)), ["one", "two", "two"]);
}

#[test]
fn b72_what_took_the_files_place_is_left_alone_and_the_session_goes_on_beside_it() {
    let (dir, sessions) = place();
    for kind in ["directory", "other file", "cut short"] {
        let mut session = Session::create(dir.path(), &sessions, None);
        say(&mut session, "one");
        let path = session.file().unwrap().to_owned();
        match kind {
            "directory" => {
                fs::remove_file(&path).unwrap();
                fs::create_dir(&path).unwrap();
            }
            "other file" => {
                fs::remove_file(&path).unwrap();
                fs::write(&path, "theirs").unwrap();
            }
            _ => fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(40).unwrap(),
        }
        say(&mut session, "two");
        let told = messages(&mut session);
        assert!(told.len() == 1 && told[0].starts_with("error"), "{kind}: {told:?}");
        let other = session.file().unwrap().to_owned();
        assert_ne!(other, path);
        assert!(told[0].contains(other.to_str().unwrap()), "{told:?}");
        match kind {
            "directory" => assert!(path.is_dir()),
            "other file" => assert_eq!(fs::read_to_string(&path).unwrap(), "theirs"),
            _ => assert_eq!(fs::metadata(&path).unwrap().len(), 40),
        }
        session.close();
        assert_whole(&other);
        assert_eq!(texts(&opened(&other)), ["one", "two"]);
    }
}

#[test]
fn what_somebody_added_in_spite_of_the_lock_stays_and_lines_do_not_run_together() {
    let (dir, sessions) = place();
    let mut session = Session::create(dir.path(), &sessions, None);
    say(&mut session, "one");
    let path = session.file().unwrap().to_owned();
    let mut theirs = fs::OpenOptions::new().append(true).open(&path).unwrap();
    std::io::Write::write_all(&mut theirs, b"{\"half\":").unwrap();
    say(&mut session, "two");
    session.close();
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("{\"half\":\n{"), "{text}");
    assert_eq!(texts(&opened(&path)), ["one", "two"]);
}

#[test]
fn version_1_is_given_ids_and_version_2_its_names_and_the_older_file_is_kept() {
    let (dir, _) = place();
    let one = [
        r#"{"type":"session","id":"old","timestamp":"2025-01-01T00:00:00.000Z","cwd":"/x","provider":"p"}"#,
        r#"{"type":"message","timestamp":"t","message":{"role":"user","content":"first","timestamp":1}}"#,
        "not json at all",
        r#"{"type":"message","timestamp":"t","message":{"role":"hookMessage","customType":"c","content":"x","display":true,"timestamp":2}}"#,
        r#"{"type":"message","timestamp":"t","message":{"role":"user","content":"second","timestamp":3}}"#,
        r#"{"type":"compaction","timestamp":"t","summary":"short","firstKeptEntryIndex":3,"tokensBefore":9}"#,
        r#"{"type":"hologram","timestamp":"t","deep":[1]}"#,
    ];
    let path = dir.path().join("one.jsonl");
    let text = one.join("\r\n") + "\r\n";
    fs::write(&path, format!("\u{feff}{text}")).unwrap();
    let session = opened(&path);
    assert_eq!(session.header()["version"], 3);
    assert_eq!(session.header()["provider"], "p");
    assert_eq!(session.entries().len(), 5);
    assert!(session.notices().iter().any(|n| n.contains("format 1")), "{:?}", session.notices());
    let raws: Vec<Value> = session.entries().iter().map(Entry::raw).collect();
    let mut above = Value::Null;
    for raw in &raws {
        assert_eq!(raw["parentId"], above);
        above = raw["id"].clone();
    }
    assert_eq!(raws[1]["message"]["role"], "custom");
    assert_eq!(raws[3]["firstKeptEntryId"], raws[2]["id"], "it counted the header");
    assert!(raws[3].get("firstKeptEntryIndex").is_none());
    assert_eq!(raws[4]["deep"], json!([1]));
    drop(session);
    let kept = fs::read_dir(dir.path()).unwrap().flatten().map(|e| e.path());
    let kept = kept.into_iter().find(|p| p.to_string_lossy().contains(".jsonl.v1-")).unwrap();
    assert_eq!(fs::read_to_string(kept).unwrap(), format!("\u{feff}{text}"));
    // The second time nothing is left to do.
    let before = fs::read(&path).unwrap();
    assert!(opened(&path).notices().is_empty());
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_whole(&path);

    let two = dir.path().join("two.jsonl");
    let lines = [
        r#"{"type":"session","version":2,"id":"two","timestamp":"t","cwd":"/x"}"#,
        r#"{"type":"message","id":"a","parentId":null,"timestamp":"t","message":{"role":"hookMessage","customType":"c","content":"x","display":true,"timestamp":2}}"#,
    ];
    fs::write(&two, lines.join("\n")).unwrap();
    let session = opened(&two);
    assert_eq!((session.entries()[0].id(), session.entries()[0].role()), ("a", Some("custom")));
}

#[test]
fn reading_without_the_lock_writes_nothing_and_minds_nobody() {
    let (dir, sessions) = place();
    let mut writer = Session::create(dir.path(), &sessions, None);
    say(&mut writer, "one");
    let path = writer.file().unwrap().to_owned();
    let bytes = fs::read(&path).unwrap();
    let mut reader = Session::read(&path).unwrap();
    say(&mut reader, "nobody's");
    let mut copy = reader.copy_to(dir.path(), &dir.path().join("copies")).unwrap();
    say(&mut copy, "of the copy");
    assert_eq!(copy.header()["parentSession"], path.to_str().unwrap());
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

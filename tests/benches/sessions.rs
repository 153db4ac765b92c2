//! Session files: opening, appending, listing, and what they cost in memory.
//!
//! ```text
//! cargo bench -p atomic-tests --bench sessions              these
//! cargo bench -p atomic-tests --bench sessions -- list      rows with this word
//! ```
//!
//! Goals for two cores: a session of 10,000 entries (20 MB) opens within 60 ms; an entry is
//! appended within 50 µs (the disk itself is asked when a run has settled, elsewhere); of 2,000
//! sessions of 2 MB the first rows are there within 200 ms; 700 MB with one line of 90 MB are refused
//! in one line. Files are in the page cache, as they are right after they were written.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use atomic_agent::{
    message::Message,
    session::{Query, Session, list},
};
use serde_json::json;
use std::{
    fs,
    io::{BufWriter, Write},
    path::{Path, PathBuf},
    time::Instant,
};
use support::{chosen, header, row};

const ROUNDS: usize = 15;

fn main() {
    let dir = tempfile::tempdir().unwrap();
    if chosen("open") {
        header("open");
        for (name, entries, text, goal) in [
            ("open 10,000 entries, 20 MB", 10_000, 1700, Some(60.0)),
            ("open 100,000 entries, 40 MB", 100_000, 100, None),
        ] {
            let path = written(dir.path(), entries, text);
            let times = (0..ROUNDS).map(|_| timed(|| drop(Session::open(&path, dir.path()).unwrap())));
            row(name, "ms", goal, times.collect());
        }
    }
    if chosen("memory") {
        header("memory of a session that is open");
        let path = written(dir.path(), 100_000, 100);
        let before = resident();
        let session = Session::open(&path, dir.path()).unwrap();
        session.settings();
        row("memory of 100,000 entries, 40 MB", "MB", None, vec![resident() - before]);
    }
    if chosen("append") {
        header("append one entry of 1 KB");
        let mut session = Session::create(dir.path(), &dir.path().join("append"), None);
        let message = Message::user("x".repeat(1000), 1);
        session.append_message(&message, false).unwrap();
        let times =
            (0..5000).map(|_| timed(|| drop(session.append_message(&message, false).unwrap())) * 1000.0);
        row("append", "µs", Some(50.0), times.collect());
    }
    if chosen("list") {
        header("list 2,000 sessions of 2 MB");
        let sessions = dir.path().join("--many--");
        let one = written(dir.path(), 1000, 1700);
        for n in 0..2000 {
            fs::copy(&one, sessions_file(&sessions, n)).unwrap();
        }
        let query = Query { dir: sessions, cwd: Some(dir.path().to_owned()), limit: 50, ..Query::default() };
        let before = resident();
        let times = (0..ROUNDS).map(|_| timed(|| assert_eq!(list(&query).unwrap().total, 2000)));
        row("list, the first 50 rows", "ms", Some(200.0), times.collect());
        row("list, memory", "MB", Some(300.0), vec![resident() - before]);
        let search = Query { search: Some("message".into()), ..query };
        row("list, searched through", "ms", None, vec![timed(|| drop(list(&search).unwrap()))]);
    }
    if chosen("huge") {
        header("700 MB with one line of 90 MB");
        let path = huge(dir.path());
        let before = resident();
        let refused =
            || assert_eq!(Session::open(&path, dir.path()).err().unwrap().code(), "session_too_large");
        row("huge, refused", "ms", None, (0..ROUNDS).map(|_| timed(refused)).collect());
        let checked = timed(|| drop(atomic_agent::session::check(&path).unwrap()));
        row("huge, checked", "ms", None, vec![checked]);
        row("huge, memory", "MB", None, vec![resident() - before]);
    }
}

/// Milliseconds.
fn timed(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64() * 1000.0
}

fn sessions_file(dir: &Path, n: usize) -> PathBuf {
    fs::create_dir_all(dir).unwrap();
    dir.join(format!("2026-01-01T00-00-00-000Z_s{n}.jsonl"))
}

/// A conversation of so many entries with so much text each.
fn written(dir: &Path, entries: usize, text: usize) -> PathBuf {
    let path = dir.join(format!("s-{entries}-{text}.jsonl"));
    let mut to = BufWriter::new(fs::File::create(&path).unwrap());
    let head = json!({"type": "session", "version": 3, "id": "s", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": dir});
    writeln!(to, "{head}").unwrap();
    let text = "message ".repeat(text / 8);
    let mut above = serde_json::Value::Null;
    for n in 0..entries {
        let id = format!("{n:08x}");
        let message = match n % 2 {
            0 => json!({"role": "user", "content": [{"type": "text", "text": text}], "timestamp": n}),
            _ => json!({"role": "assistant", "content": [{"type": "text", "text": text}], "api": "a",
                "provider": "p", "model": "m", "stopReason": "stop", "timestamp": n,
                "usage": {"input": 1, "output": 2, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 3,
                    "cost": {"input": 0.0, "output": 0.0, "cacheRead": 0.0, "cacheWrite": 0.0, "total": 0.0}}}),
        };
        let entry = json!({"type": "message", "id": id, "parentId": above,
            "timestamp": "2026-01-01T00:00:00.000Z", "message": message});
        writeln!(to, "{entry}").unwrap();
        above = id.into();
    }
    to.flush().unwrap();
    path
}

fn huge(dir: &Path) -> PathBuf {
    let path = written(dir, 100, 1000);
    let mut to = BufWriter::new(fs::OpenOptions::new().append(true).open(&path).unwrap());
    let mut entry = |id: &str, text: &str| {
        let message = json!({"role": "user", "content": text, "timestamp": 1});
        let entry =
            json!({"type": "message", "id": id, "parentId": null, "timestamp": "t", "message": message});
        writeln!(to, "{entry}").unwrap();
    };
    entry("long", &"y".repeat(90_000_000));
    for n in 0..610 {
        entry(&format!("m{n}"), &"z".repeat(1_000_000));
    }
    to.flush().unwrap();
    path
}

/// Megabytes, as the system counts them.
fn resident() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kb| kb.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
}

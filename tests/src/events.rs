//! Reads what the event-log extension wrote, and folds it as the recorded logs of the
//! TypeScript peer are folded.

use crate::env::PATIENCE;
use serde_json::Value;
use std::{fs, path::Path, time::Instant};

/// One line of the log.
#[derive(Clone, Debug)]
pub struct Logged {
    pub event: String,
    pub generation: u64,
    pub payload: Value,
}

/// All complete lines so far; none while there is no file.
pub fn read(log: &Path) -> Vec<Logged> {
    let text = fs::read_to_string(log).unwrap_or_default();
    let complete = text.rfind('\n').map_or("", |end| &text[..end]);
    let parse = |line: &str| {
        let v: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("torn line ({e}): {line}"));
        Logged {
            event: v["event"].as_str().unwrap().to_owned(),
            generation: v["generation"].as_u64().unwrap(),
            payload: v["payload"].clone(),
        }
    };
    complete.lines().map(parse).collect()
}

/// The names, in order.
pub fn names(log: &[Logged]) -> Vec<&str> {
    log.iter().map(|l| l.event.as_str()).collect()
}

/// Waits until the log holds, and answers it.
pub fn wait_for(log: &Path, what: &str, holds: impl Fn(&[Logged]) -> bool) -> Vec<Logged> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let lines = read(log);
        if holds(&lines) {
            return lines;
        }
        assert!(Instant::now() < deadline, "waiting for {what}; the log: {:#?}", names(&lines));
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

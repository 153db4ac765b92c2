//! The whole program: from its start to its first output, its memory, and a turn with a tool.
//!
//! ```text
//! cargo bench -p atomic-tests --bench start              these
//! cargo bench -p atomic-tests --bench start -- cold      rows with this word
//! ```
//!
//! `atomic --offline --script FILE -p hi`, with copies of `plugins/hello` as in the bench `load`.
//! "Cold": program, libraries and copies were put out of the page cache. Goals for two cores:
//! 50 extensions answer within 80 ms of the start of the process, in 60 MB.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use atomic_tests::{
    env::Home,
    libs,
    model_server::{Answer, ModelServer},
};
use serde_json::json;
use std::{
    fs::{self, File},
    io::Read,
    path::Path,
    process::{Child, Command, Stdio},
    time::Instant,
};
use support::{chosen, header, row};

const ROUNDS: usize = 15;

fn main() {
    header("process start to first output, print mode");
    for (count, goal) in [(0, None), (1, None), (10, None), (50, Some(80.0))] {
        let names = ["first", "warm", "cold"].map(|how| format!("start {count} {how}"));
        if !names.iter().any(|n| chosen(n)) {
            continue;
        }
        let home = support::home_with(count);
        support::until_old();
        let [first, warm, cold] = names;
        let cache = home.atomic_home().join("cache");
        let forgotten = || drop(fs::remove_dir_all(&cache));
        row(&first, "ms", None, times(forgotten, &home));
        row(&warm, "ms", goal, times(|| (), &home));
        row(&cold, "ms", None, times(|| out_of_the_page_cache(&home), &home));
    }
    if chosen("memory 50") {
        header("memory");
        for count in [0, 50] {
            let home = support::home_with(count);
            support::until_old();
            let cache = home.atomic_home().join("cache");
            let first = (0..3).map(|_| {
                let _ = fs::remove_dir_all(&cache);
                peak(&home)
            });
            let first = first.collect();
            let goal = (count == 50).then_some(60.0);
            row(&format!("memory {count}, peak, first time"), "MB", goal, first);
            row(&format!("memory {count}, peak"), "MB", goal, (0..3).map(|_| peak(&home)).collect());
        }
    }
    if chosen("turn") {
        header("a turn: prompt, tool call, result, answer, over HTTP");
        for count in [0, 50] {
            row(&format!("turn {count}"), "ms", None, turns(&support::home_with(count)));
        }
    }
}

fn print(home: &Home, delay_ms: u64) -> Child {
    let script = home.script(&json!([{"text": "hello", "delayMs": delay_ms}]));
    let mut command = Command::new(libs::atomic());
    command.args(["--offline", "--no-session", "--script"]).arg(script).args(["-p", "hi"]);
    command.env_clear().envs(home.environment()).current_dir(home.cwd());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    command.spawn().unwrap()
}

fn times(before: impl Fn(), home: &Home) -> Vec<f64> {
    // The first one writes the index, and the program itself is read.
    let mut figures = Vec::new();
    for round in 0..=ROUNDS {
        before();
        let start = Instant::now();
        let mut child = print(home, 0);
        let mut byte = [0];
        let read = child.stdout.as_mut().unwrap().read(&mut byte).unwrap();
        let time = start.elapsed().as_secs_f64() * 1_000.0;
        assert_eq!(read, 1, "it said nothing");
        assert!(child.wait().unwrap().success());
        if round > 0 {
            figures.push(time);
        }
    }
    figures
}

/// Of the files that a start reads; the libraries of the system stay.
fn out_of_the_page_cache(home: &Home) {
    fn forget(path: &Path) {
        if path.is_dir() {
            fs::read_dir(path).unwrap().for_each(|e| forget(&e.unwrap().path()));
        } else {
            let file = File::open(path).unwrap();
            // Only clean pages can be dropped.
            let _ = file.sync_data();
            rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        }
    }
    forget(&home.atomic_home());
    forget(&libs::atomic());
}

fn peak(home: &Home) -> f64 {
    // Long enough in the run to be looked at.
    let mut child = print(home, 300);
    let mut peak: f64 = 0.0;
    while child.try_wait().unwrap().is_none() {
        peak = peak.max(support::peak_memory(child.id()).unwrap_or(0.0));
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    peak
}

fn turns(home: &Home) -> Vec<f64> {
    let answers = (0..=ROUNDS).flat_map(|n| {
        let answer = Answer::text(&format!("answer {n} is here"));
        [Answer::text("Looking.").call("ls", json!({"path": "."})), answer]
    });
    let server = ModelServer::start(answers);
    home.models_json(&serde_json::from_str(&server.models_json()).unwrap());
    let mut program = home.atomic(["--mode", "lines", "--no-session", "--model", "fake-openai/fake"]).start();
    let mut figures = Vec::new();
    for n in 0..=ROUNDS {
        let start = Instant::now();
        program.say("look around");
        program.wait_for("the answer", |l| l.contains(&format!("answer {n} is here")));
        let time = start.elapsed().as_secs_f64() * 1_000.0;
        // The first one makes the connection.
        if n > 0 {
            figures.push(time);
        }
    }
    program.say("/quit");
    program.finish().ok();
    server.assert_ok();
    figures
}

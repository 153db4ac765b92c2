//! What a long answer costs: CPU of the whole program for 10,000 deltas, without the network.
//!
//! ```text
//! cargo bench -p atomic-tests --bench streaming
//! ```
//!
//! `atomic -p --replay` plays an answer of 10,000 pieces, and one of one piece; the figure is the
//! difference of their CPU time (user and system, of `/proc/self/stat`, so of many runs together).
//! Goals for two cores: 30 ms without handlers, 45 ms with one synchronous handler of
//! `message_update`.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use atomic_tests::{
    env::Home,
    model_server::{Answer, ModelServer},
};
use support::{header, row};

const DELTAS: usize = 10_000;
/// The kernel counts in hundredths of a second.
const RUNS: u32 = 20;
const ROUNDS: usize = 5;

fn main() {
    header("10,000 deltas of one answer, CPU of the program");
    for (what, handlers, goal) in [("no handler", false, 30.0), ("one synchronous handler", true, 45.0)] {
        let home = Home::new();
        if handlers {
            home.install(&support::fixture());
        }
        support::until_old();
        // The server cuts what it says into pieces of eight characters.
        let long = recorded(&home, "long.jsonl", &"a word. ".repeat(DELTAS));
        let short = recorded(&home, "short.jsonl", "a word.");
        let figures = (0..ROUNDS).map(|_| (cpu(&home, long) - cpu(&home, short)).max(0.0));
        row(&format!("streaming, {what}"), "ms", Some(goal), figures.collect());
    }
}

fn recorded(home: &Home, tape: &'static str, text: &str) -> &'static str {
    let server = ModelServer::start([Answer::text(text)]);
    home.models_json(&serde_json::from_str(&server.models_json()).unwrap());
    ask(home, "--record", tape);
    tape
}

fn ask(home: &Home, how: &str, tape: &str) {
    home.atomic(["-p", "hi", "--no-session", "--model", "fake-openai/fake", how, tape]).run().ok();
}

/// Milliseconds of CPU of one run.
fn cpu(home: &Home, tape: &str) -> f64 {
    let before = of_children();
    for _ in 0..RUNS {
        ask(home, "--replay", tape);
    }
    (of_children() - before) * 10.0 / f64::from(RUNS)
}

/// Hundredths of a second that children which have ended took.
fn of_children() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    // Behind the name, which may hold spaces.
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    fields[13].parse::<f64>().unwrap() + fields[14].parse::<f64>().unwrap()
}

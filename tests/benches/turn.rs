//! What a turn costs beside the model, what tools cost beside each other, and how fast `search` is.
//!
//! ```text
//! cargo bench -p atomic-tests --bench turn
//! ```
//!
//! Goals (two cores): a turn's own overhead 2 ms without extensions, 3 ms with ten; eight reads at
//! once take about as long as the slowest (1.5 times); `search` within 1.3 times of `rg`, where
//! there is one.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use atomic_agent::tool::ToolInvocation;
use atomic_tests::{env::Home, libs, live::Setup, patch};
use serde_json::{Value, json};
use std::{path::Path, process::Command, sync::Arc, time::Instant};
use support::{chosen, header, row};

fn main() {
    header("a turn and its tools");
    for (count, goal) in [(0, 2.0), (10, 3.0)] {
        let name = format!("a turn with {count} extensions");
        if chosen(&name) {
            row(&name, "ms", Some(goal), turns(count));
        }
    }
    if chosen("reads") {
        let (one, eight) = reads();
        let slowest = one.iter().copied().fold(0.0, f64::max);
        row("the slowest of eight reads, alone", "ms", None, one);
        row("eight reads in one message", "ms", Some(1.5 * slowest), eight);
    }
    if chosen("search") {
        search();
    }
}

/// Milliseconds from a prompt to its `agent_settled`; the offline model answers at once.
fn turns(extensions: usize) -> Vec<f64> {
    let home = Home::new();
    let hello = libs::first_party("hello");
    for n in 0..extensions {
        let id = format!("h{n}");
        patch::manifest_copy(&hello, &home.extensions().join(libs::file_name(&id)), |m| {
            m.insert("name".into(), id.clone().into());
        });
    }
    let answers: Vec<Value> = (0..220).map(|_| json!({"text": "ok"})).collect();
    support::runtime().block_on(async {
        let live = Setup::new(&home).turns(json!(answers)).start().await;
        let mut figures = Vec::new();
        for n in 0..200 {
            let began = Instant::now();
            live.run("hi").await;
            if n >= 20 {
                figures.push(began.elapsed().as_secs_f64() * 1000.0);
            }
        }
        live.close().await;
        figures
    })
}

fn tree(dir: &Path, files: usize, bytes: usize) {
    for n in 0..files {
        let line = format!("line of file {n} with some words in it\n");
        std::fs::write(dir.join(format!("f{n}.txt")), line.repeat(bytes / line.len())).unwrap();
    }
}

/// Whole batches through the loop: one read each, and eight at once.
fn reads() -> (Vec<f64>, Vec<f64>) {
    let home = Home::new();
    tree(&home.cwd(), 8, 20 << 20);
    let call = |n: usize| json!({"name": "read", "arguments": {"path": format!("f{n}.txt"), "offset": 400_000, "limit": 10}});
    let calls = |range: std::ops::Range<usize>| json!({"toolCalls": range.map(call).collect::<Vec<_>>()});
    let mut turns = Vec::new();
    for n in 0..8 {
        turns.extend([calls(n..n + 1), json!({"text": "ok"})]);
    }
    for _ in 0..5 {
        turns.extend([calls(0..8), json!({"text": "ok"})]);
    }
    support::runtime().block_on(async {
        let live = Setup::new(&home).turns(json!(turns)).start().await;
        let mut figures = Vec::new();
        for _ in 0..13 {
            let began = Instant::now();
            live.run("go").await;
            figures.push(began.elapsed().as_secs_f64() * 1000.0);
        }
        let failed = live.engine.view(|v| {
            v.entries
                .iter()
                .filter(|e| {
                    e.raw()["message"]["role"] == "toolResult" && e.raw()["message"]["isError"] == true
                })
                .count()
        });
        assert_eq!(failed, 0);
        live.close().await;
        let eight = figures.split_off(8);
        (figures, eight)
    })
}

fn search() {
    let dir = tempfile::tempdir().unwrap();
    for n in 0..40 {
        let sub = dir.path().join(format!("d{n}"));
        std::fs::create_dir(&sub).unwrap();
        tree(&sub, 50, 20_000);
    }
    std::fs::write(dir.path().join("d7/needle.txt"), "here is the needle\n").unwrap();
    let tools = atomic_tools::builtin_tools(atomic_tools::ToolsConfig::default());
    let tool = tools.iter().find(|t| t.spec().name == "search").unwrap().clone();
    let runtime = support::runtime();
    let ours = (0..10).map(|_| {
        let call = ToolInvocation {
            tool_call_id: "c".into(),
            args: json!({"pattern": "the ne{2}dle"}),
            cwd: dir.path().to_owned(),
            cancel: Default::default(),
            update: Arc::new(|_| {}),
        };
        let began = Instant::now();
        let found = runtime.block_on(tool.execute(call)).unwrap();
        let took = began.elapsed().as_secs_f64() * 1000.0;
        let text: String = found.content.iter().filter_map(|c| c.as_text()).collect();
        assert!(text.contains("needle.txt"), "{text}");
        took
    });
    let ours: Vec<f64> = ours.collect();
    let rg = || {
        let began = Instant::now();
        let out = Command::new("rg").args(["-n", "the ne{2}dle"]).current_dir(dir.path()).output().ok()?;
        out.status.success().then(|| began.elapsed().as_secs_f64() * 1000.0)
    };
    let theirs: Option<Vec<f64>> = (0..10).map(|_| rg()).collect();
    let goal = theirs.as_ref().map(|t| {
        let mut sorted = t.clone();
        sorted.sort_by(f64::total_cmp);
        1.3 * sorted[sorted.len() / 2]
    });
    row("search in 2,000 files (40 MB)", "ms", goal, ours);
    match theirs {
        Some(theirs) => row("rg there, with its start", "ms", None, theirs),
        None => println!("there is no rg to compare with"),
    }
}

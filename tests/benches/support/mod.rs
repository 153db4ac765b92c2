//! What the benches share: extensions to load, a home to load them from, one run of a job in a
//! process of its own (a library stays mapped, so that "the first time" is once a process),
//! and the printed table.

#![allow(dead_code)] // each bench uses a part of it

use atomic_extensions::ExtensionsConfig;
use atomic_tests::{env::Home, libs, patch, tree::repo};
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};
use tokio::runtime::Runtime;

/// As the program makes its own.
pub fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// `tests/fixtures/bench`.
pub fn fixture() -> PathBuf {
    libs::built(&repo().join("tests/fixtures/bench"), "bench", "bench_fixture")
}

/// A home with `count` copies of `hello`, each under an id of its own.
pub fn home_with(count: usize) -> Home {
    let home = Home::new();
    let hello = libs::first_party("hello");
    for n in 0..count {
        let name = format!("h{n:04}");
        patch::manifest_copy(&hello, &library(&home.extensions(), n), |m| {
            m.insert("name".into(), name.into());
        });
    }
    home
}

fn library(extensions: &Path, n: usize) -> PathBuf {
    extensions.join(libs::file_name(&format!("h{n:04}")))
}

/// Other bytes in each library of the directory, put in place as an installation does it.
pub fn change_all(extensions: &Path, round: usize) {
    for entry in fs::read_dir(extensions).unwrap() {
        let path = entry.unwrap().path();
        let temporary = path.with_extension("new");
        patch::manifest_copy(&path, &temporary, |m| {
            m.insert("version".into(), format!("0.1.{round}").into());
        });
        // Written before: a figure must not hold the disk's work for whoever built them.
        fs::File::open(&temporary).unwrap().sync_data().unwrap();
        fs::rename(temporary, path).unwrap();
    }
}

/// Files younger than two seconds are hashed at every look.
pub fn until_old() {
    std::thread::sleep(Duration::from_millis(2_200));
}

pub fn config(atomic_home: &Path, cwd: &Path) -> ExtensionsConfig {
    ExtensionsConfig::new(atomic_home, cwd)
}

const JOB: &str = "ATOMIC_BENCH_JOB";

/// The job of this process, if it was started for one: its words.
pub fn job() -> Option<Vec<String>> {
    let job = env::var(JOB).ok()?;
    Some(job.split('\n').map(str::to_owned).collect())
}

/// Runs a job in a process of its own; answers the numbers it printed.
pub fn in_a_process(words: &[&str]) -> Vec<f64> {
    let out = Command::new(env::current_exe().unwrap()).env(JOB, words.join("\n")).output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(out.status.success(), "{words:?}: {text}{}", String::from_utf8_lossy(&out.stderr));
    text.split_whitespace().map(|n| n.parse().unwrap()).collect()
}

/// The words after `cargo bench`'s own that choose rows; none: all.
pub fn chosen(name: &str) -> bool {
    let words: Vec<String> = env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    words.is_empty() || words.iter().any(|w| name.contains(w.as_str()))
}

/// One line: the median counts, the fastest says what the machine can do.
pub fn row(what: &str, unit: &str, goal: Option<f64>, mut figures: Vec<f64>) {
    figures.sort_by(f64::total_cmp);
    let (fastest, median) = (figures[0], figures[figures.len() / 2]);
    let verdict = match goal {
        Some(goal) if median <= goal => format!("{goal:>8} {unit:3}  reached"),
        Some(goal) => format!("{goal:>8} {unit:3}  missed"),
        None => String::new(),
    };
    println!("{what:<58}{median:>9.2} {unit:3}{fastest:>9.2} {unit:3}  {verdict}");
}

pub fn header(title: &str) {
    println!("\n{title:<58}{:>13}{:>13}{:>14}", "median", "fastest", "goal");
}

/// A line of `/proc/PID/status`, in MB; None once it is gone, and where there is no /proc.
pub fn peak_memory(pid: u32) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    let kb: f64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kb / 1024.0)
}

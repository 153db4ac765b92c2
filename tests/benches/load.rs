//! Loading, reloading and tables: the times of whole operations on whole sets of extensions.
//!
//! ```text
//! cargo bench -p atomic-tests --bench load                these
//! cargo bench -p atomic-tests --bench load -- reload      rows with this word
//! ```
//!
//! The libraries are copies of `plugins/hello`, release and stripped, each under an id of its
//! own. "First" has no private copies and knows no hashes; "known" has both from an earlier
//! process. Each figure of these is one process, since a library stays mapped. Goals for two
//! cores: 50 first 60 ms, known 25 ms; reload of 50 unchanged 8 ms, changed 80 ms; a table call
//! 20 ns beside its JSON.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use atomic_agent::hooks::{ExtensionChange, Hooks, Replace};
use atomic_extensions::Extensions;
use atomic_tests::env::Home;
use std::{
    fs,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};
use support::{chosen, header, in_a_process, row};

const ROUNDS: usize = 15;
/// Of one process.
const RELOADS: usize = 3;

fn main() {
    if let Some(words) = support::job() {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        return match words.as_slice() {
            ["load", home, cwd] => load(Path::new(home), Path::new(cwd)),
            ["reload", how, home, cwd] => reload(*how == "changed", Path::new(home), Path::new(cwd)),
            ["table", home, cwd] => table(Path::new(home), Path::new(cwd)),
            other => panic!("no such job: {other:?}"),
        };
    }
    let sets = [(1, [None, None]), (10, [None, None]), (50, [Some(60.0), Some(25.0)])];
    header("load");
    for (count, [first, known]) in sets {
        let (cold, warm) = (format!("load {count} first"), format!("load {count} known"));
        if !chosen(&cold) && !chosen(&warm) {
            continue;
        }
        let home = support::home_with(count);
        support::until_old();
        let job = || in_a_process(&["load", &text(&home.atomic_home()), &text(&home.cwd())])[0];
        let mut figures = [Vec::new(), Vec::new()];
        for _ in 0..ROUNDS {
            let _ = fs::remove_dir_all(home.atomic_home().join("cache"));
            figures[0].push(job());
            figures[1].push(job());
        }
        let [a, b] = figures;
        row(&cold, "ms", first, a);
        row(&warm, "ms", known, b);
    }
    header("reload");
    for (count, unchanged, changed) in [(1, None, None), (10, None, None), (50, Some(8.0), Some(80.0))] {
        for (how, goal) in [("unchanged", unchanged), ("changed", changed)] {
            let what = format!("reload {count} {how}");
            if chosen(&what) {
                let home = support::home_with(count);
                support::until_old();
                // A few rounds a process: each change maps a library more, for good.
                let job = || in_a_process(&["reload", how, &text(&home.atomic_home()), &text(&home.cwd())]);
                row(&what, "ms", goal, (0..ROUNDS / RELOADS).flat_map(|_| job()).collect());
            }
        }
    }
    if chosen("table call") {
        header("shared table");
        let home = Home::new();
        home.install(&support::fixture());
        let rounds = (0..5).map(|_| in_a_process(&["table", &text(&home.atomic_home()), &text(&home.cwd())]));
        let figures: Vec<Vec<f64>> = rounds.collect();
        let column = |n: usize| figures.iter().map(|f| f[n]).collect::<Vec<_>>();
        row("table call, typed values, with its JSON", "ns", None, column(0));
        row("the same JSON alone", "ns", None, column(1));
        row("table call beside its JSON", "ns", Some(20.0), figures.iter().map(|f| f[0] - f[1]).collect());
    }
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

async fn loaded(home: &Path, cwd: &Path) -> Arc<Extensions> {
    let (extensions, report) = Extensions::load(support::config(home, cwd)).await;
    let present = fs::read_dir(home.join("extensions")).unwrap().count();
    assert_eq!(report.loaded.len(), present, "{:?} {:?}", report.refused, report.notes);
    extensions
}

fn ms(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1_000.0
}

fn load(home: &Path, cwd: &Path) {
    support::runtime().block_on(async {
        let start = Instant::now();
        let extensions = loaded(home, cwd).await;
        println!("{}", ms(start));
        extensions.close().await;
    });
}

fn reload(change: bool, home: &Path, cwd: &Path) {
    support::runtime().block_on(async {
        let extensions = loaded(home, cwd).await;
        for round in 1..=RELOADS {
            if change {
                support::change_all(&home.join("extensions"), round + std::process::id() as usize * 10);
            }
            let expected = if change { ExtensionChange::Reloaded } else { ExtensionChange::Unchanged };
            let start = Instant::now();
            let request = Replace::Reload { names: Vec::new(), origin: None };
            let report = extensions.replace(request, Box::new(|| Ok(()))).await.unwrap();
            println!("{}", ms(start));
            assert!(report.extensions.iter().all(|e| e.change == expected), "{report:?}");
            assert_eq!(report.extensions.len(), extensions.list().len());
            // The old generations end meanwhile; the next round must not pay for them.
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        extensions.close().await;
    });
}

fn table(home: &Path, cwd: &Path) {
    support::runtime().block_on(async {
        let extensions = loaded(home, cwd).await;
        let file = cwd.join("table.json");
        let args = format!("200000 {}", file.display());
        extensions.command("bench-table", &args).await.unwrap().unwrap();
        let figures: serde_json::Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
        println!("{} {}", figures["typed"], figures["json"]);
        extensions.close().await;
    });
}

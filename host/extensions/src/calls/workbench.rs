//! What the program's tools lend to extensions: the local shell, a file's turn, cutting text.

use super::{Asker, Failure, NOTHING, Outcome, body, json, unsupported};
use crate::{
    load::{EventState, Live},
    views,
};
use atomic_agent::workbench::{FileTurn, Kept, ShellRun, Workbench};
use serde::Deserialize;
use serde_json::json as value;
use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
    sync::{
        Arc, LazyLock, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Turns that are held, by generation and token.
static TURNS: LazyLock<Mutex<HashMap<(u64, u64), FileTurn>>> = LazyLock::new(Mutex::default);
static TOKENS: AtomicU64 = AtomicU64::new(1);

fn turns() -> MutexGuard<'static, HashMap<(u64, u64), FileTurn>> {
    TURNS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A generation that is gone holds no file.
pub(crate) fn forget(generation: u64) {
    let gone: Vec<_> = turns().extract_if(|(g, _), _| *g == generation).collect();
    drop(gone);
}

fn bench(a: &Asker, op: &str) -> Result<Arc<dyn Workbench>, Failure> {
    a.host.config().workbench.clone().ok_or_else(|| unsupported(op))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Truncate {
    text: String,
    kept: Kept,
    #[serde(default)]
    max_lines: Option<usize>,
    #[serde(default)]
    max_bytes: Option<usize>,
}

#[derive(Deserialize)]
struct Token {
    token: u64,
}

pub(super) fn call(a: &Asker, op: &str, bytes: &[u8]) -> Outcome {
    match op {
        "text.truncate" => {
            let t: Truncate = body(op, bytes)?;
            json(&bench(a, op)?.truncate(&t.text, t.kept, t.max_lines, t.max_bytes))
        }
        "files.done" => {
            let Token { token } = body(op, bytes)?;
            let turn = turns().remove(&(a.generation.number(), token));
            drop(turn);
            Ok(NOTHING)
        }
        _ => Err(unsupported(op)),
    }
}

#[derive(Deserialize)]
struct File {
    path: PathBuf,
}

/// Waits for the file's turn; it is held until `files.done`, or the generation's end.
pub(super) async fn file_turn(a: &Asker, op: &str, bytes: &[u8]) -> Outcome {
    let File { path } = body(op, bytes)?;
    let turn = bench(a, op)?.file_turn(&path).await;
    let token = TOKENS.fetch_add(1, Ordering::Relaxed);
    turns().insert((a.generation.number(), token), turn);
    json(&value!({"token": token}))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Shell {
    command: String,
    #[serde(default)]
    cwd: PathBuf,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    timeout_ms: Option<u64>,
    /// Gets the output as it comes.
    #[serde(default)]
    handler: Option<u64>,
}

/// Whoever asked gets all of the output before the end. Given up, the command is killed.
pub(super) async fn shell(a: &Asker, op: &str, bytes: &[u8]) -> Outcome {
    let shell: Shell = body(op, bytes)?;
    let bench = bench(a, op)?;
    let run = ShellRun {
        command: shell.command,
        cwd: shell.cwd,
        env: shell.env,
        timeout: shell.timeout_ms.map(Duration::from_millis),
    };
    let (data, told) = match shell.handler.zip(Live::of(&a.generation)) {
        Some((handler, live)) => {
            let (data, chunks) = mpsc::unbounded_channel::<String>();
            let generation = a.generation.clone();
            let told = a.host.runtime().spawn_blocking(move || tell(&generation, &live, handler, chunks));
            (Some(data), Some(told))
        }
        None => (None, None),
    };
    let mut on_data = move |new: &str| {
        if let Some(data) = &data {
            let _ = data.send(new.to_owned());
        }
    };
    let end = bench.shell(run, &mut on_data, &CancellationToken::new()).await;
    drop(on_data);
    if let Some(told) = told
        && let Ok(Err(error)) = told.await
    {
        a.host.diagnose(a.generation.owner(), "localBash", &error);
    }
    json(&end.map_err(|why| Failure::new("shell_failed", why))?)
}

/// What came meanwhile is told together.
fn tell(
    generation: &Arc<crate::generation::Generation>,
    live: &Live,
    handler: u64,
    mut chunks: mpsc::UnboundedReceiver<String>,
) -> Result<(), String> {
    while let Some(mut data) = chunks.blocking_recv() {
        while let Ok(more) = chunks.try_recv() {
            data.push_str(&more);
        }
        let event = serde_json::to_vec(&value!({"type": "output", "data": data})).unwrap_or_default();
        match views::here(generation, live, handler, &EventState::ready(event)) {
            Some(answer) => drop(answer?),
            None => return Ok(()),
        }
    }
    Ok(())
}

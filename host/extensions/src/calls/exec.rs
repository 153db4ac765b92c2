//! `exec` and the host's timer.

use super::{Asker, Outcome, body, json};
use serde::{Deserialize, Serialize};
use std::{
    path::PathBuf,
    process::Stdio,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::Duration,
};
use tokio::io::{AsyncRead, AsyncReadExt};

/// What the command wrote last is still on its way when it has ended.
const PIPE_GRACE: Duration = Duration::from_millis(250);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Exec {
    command: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    timeout_ms: Option<u64>,
    #[serde(default)]
    cwd: Option<PathBuf>,
}

/// Children that run now, of all extensions: an engine with one is not replaced.
static RUNNING: AtomicUsize = AtomicUsize::new(0);

pub(crate) fn running() -> usize {
    RUNNING.load(Relaxed)
}

struct Counted;

impl Counted {
    fn one() -> Self {
        RUNNING.fetch_add(1, Relaxed);
        Counted
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Relaxed);
    }
}

#[derive(Serialize, Default)]
struct ExecResult {
    stdout: String,
    stderr: String,
    code: i32,
    killed: bool,
}

/// No shell, stdin closed. Over when the command itself has ended; what it left in the background
/// goes on. The whole process group ends at the timeout, at the fence and when nobody waits any
/// more. Never fails: a command that cannot be started has code 1 (events.md E.1).
pub(super) async fn exec(a: &Asker, bytes: &[u8]) -> Outcome {
    let x: Exec = body("exec", bytes)?;
    let config = a.host.config();
    let cwd = x.cwd.map_or_else(|| config.cwd.clone(), |c| config.cwd.join(c));
    let mut command = tokio::process::Command::new(&x.command);
    command
        .args(&x.args)
        .current_dir(&cwd)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    for name in &config.removed_env {
        command.env_remove(name);
    }
    #[cfg(unix)]
    command.process_group(0);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(e) => {
            let stderr = format!("{}: {e}", x.command);
            return json(&ExecResult { stderr, code: 1, ..ExecResult::default() });
        }
    };
    let _counted = Counted::one();
    let group = Group(child.id());
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let read = async {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let status = {
            let reading = async { tokio::join!(to_end(out, &mut stdout), to_end(err, &mut stderr)) };
            tokio::pin!(reading);
            let mut ended = false;
            let status = loop {
                tokio::select! {
                    status = child.wait() => break status,
                    _ = &mut reading, if !ended => ended = true,
                }
            };
            // A child of its own may keep the pipes for as long as it lives.
            if !ended {
                let _ = tokio::time::timeout(PIPE_GRACE, reading).await;
            }
            status
        };
        (status, stdout, stderr)
    };
    let limit = x.timeout_ms.map_or(Duration::from_secs(60 * 60 * 24), Duration::from_millis);
    match tokio::time::timeout(limit, read).await {
        Ok((status, stdout, stderr)) => {
            group.ended();
            json(&ExecResult {
                stdout: String::from_utf8_lossy(&stdout).into_owned(),
                stderr: String::from_utf8_lossy(&stderr).into_owned(),
                code: status.ok().map_or(1, |s| code(&s)),
                killed: false,
            })
        }
        Err(_) => {
            drop(group);
            json(&ExecResult {
                stderr: format!("timed out after {} ms", limit.as_millis()),
                code: 124,
                killed: true,
                ..ExecResult::default()
            })
        }
    }
}

/// What was read is there whenever this is dropped.
async fn to_end(from: Option<impl AsyncRead + Unpin>, into: &mut Vec<u8>) {
    if let Some(mut from) = from {
        while from.read_buf(into).await.is_ok_and(|n| n > 0) {}
    }
}

fn code(status: &std::process::ExitStatus) -> i32 {
    #[cfg(unix)]
    {
        use std::os::unix::process::ExitStatusExt;
        status.code().or_else(|| status.signal().map(|s| 128 + s)).unwrap_or(1)
    }
    #[cfg(not(unix))]
    {
        status.code().unwrap_or(1)
    }
}

/// Ends the group when it is dropped before the command has ended.
struct Group(Option<u32>);

impl Group {
    fn ended(mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        #[cfg(unix)]
        if let Some(pid) = self.0.and_then(|p| rustix::process::Pid::from_raw(p.cast_signed())) {
            let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
        }
    }
}

#[derive(Deserialize)]
struct Sleep {
    ms: u64,
}

/// Through the host, so that a paused clock in tests holds for extensions too.
pub(super) async fn sleep(bytes: &[u8]) -> Outcome {
    let s: Sleep = body("sleep", bytes)?;
    tokio::time::sleep(Duration::from_millis(s.ms)).await;
    Ok(b"null".to_vec())
}

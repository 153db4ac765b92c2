//! `exec` and the host's timer.

use super::{Asker, Outcome, body, json};
use serde::{Deserialize, Serialize};
use std::{
    path::PathBuf,
    process::{ExitStatus, Stdio},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    process::Child,
};

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

/// Between the signal that asks and the one that does not.
const KILL_AFTER: Duration = Duration::from_secs(5);

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
    let here = a.host.cwd();
    let cwd = x.cwd.map_or_else(|| here.clone(), |c| here.join(c));
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
    let child = match command.spawn() {
        Ok(child) => child,
        Err(e) => {
            let stderr = format!("{}: {e}", x.command);
            return json(&ExecResult { stderr, code: 1, ..ExecResult::default() });
        }
    };
    let _counted = Counted::one();
    let mut running = Running(Some(child));
    let pipes = running.0.as_mut().map(|c| (c.stdout.take(), c.stderr.take()));
    let (out, err) = pipes.unwrap_or_default();
    let read = async {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let status = {
            let reading = async { tokio::join!(to_end(out, &mut stdout), to_end(err, &mut stderr)) };
            tokio::pin!(reading);
            let mut ended = false;
            let status = loop {
                tokio::select! {
                    status = running.wait() => break status,
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
    let done = tokio::time::timeout(limit, read).await;
    match done {
        Ok((status, stdout, stderr)) => {
            running.0 = None;
            json(&ExecResult {
                stdout: String::from_utf8_lossy(&stdout).into_owned(),
                stderr: String::from_utf8_lossy(&stderr).into_owned(),
                code: status.ok().map_or(1, |s| code(&s)),
                killed: false,
            })
        }
        Err(_) => {
            let status = match running.0.take() {
                Some(child) => ended(child).await,
                None => None,
            };
            json(&ExecResult {
                stderr: format!("timed out after {} ms", limit.as_millis()),
                code: status.map_or(1, |s| code(&s)),
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

fn code(status: &ExitStatus) -> i32 {
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

/// Ends the command, its group with it, when it is dropped before it has ended.
struct Running(Option<Child>);

impl Running {
    async fn wait(&mut self) -> std::io::Result<ExitStatus> {
        match &mut self.0 {
            Some(child) => child.wait().await,
            None => Err(std::io::ErrorKind::NotFound.into()),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some(child) = self.0.take() else { return };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(ended(child))),
            Err(_) => signal(&child, true),
        }
    }
}

/// Told to end, and after a while made to.
async fn ended(mut child: Child) -> Option<ExitStatus> {
    let group = child.id();
    signal(&child, false);
    let told = tokio::time::timeout(KILL_AFTER, child.wait()).await;
    // What is left of its group goes too.
    kill_group(group);
    match told {
        Ok(status) => status.ok(),
        Err(_) => {
            let _ = child.start_kill();
            child.wait().await.ok()
        }
    }
}

fn signal(child: &Child, kill: bool) {
    if kill {
        return kill_group(child.id());
    }
    #[cfg(unix)]
    if let Some(pid) = child.id().and_then(|p| rustix::process::Pid::from_raw(p.cast_signed())) {
        let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::TERM);
    }
}

fn kill_group(group: Option<u32>) {
    #[cfg(unix)]
    if let Some(pid) = group.and_then(|p| rustix::process::Pid::from_raw(p.cast_signed())) {
        let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
    }
    #[cfg(not(unix))]
    let _ = group;
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

//! Running a shell command: its own session (so that it cannot reach the terminal), no standard input, one
//! ordered output, and the whole tree killed on cancel, on timeout, and when nobody waits any longer.
//! Used by the tool `bash` and by the user's own `!command`; knows neither.

use crate::{
    ToolsConfig,
    output::Collected,
    pipe::Output,
    truncate::{Limits, Truncated},
};
use process_wrap::tokio::{ChildWrapper, CommandWrap};
use std::{
    collections::BTreeMap,
    ffi::OsStr,
    io,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::Duration,
};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

/// At most one partial result in this time.
const UPDATE_EVERY: Duration = Duration::from_millis(100);
/// After the shell has ended, how long its output may stay open in other hands before it is left to them.
const GRACE: Duration = Duration::from_millis(250);
/// How long a killed shell is waited for.
const KILL_WAIT: Duration = Duration::from_secs(2);

/// What a command gets of the host's environment.
#[derive(Clone, Debug, Default)]
pub struct EnvPolicy {
    /// Taken away: credentials that the host resolved itself.
    pub remove: Vec<String>,
    /// Added last.
    pub set: BTreeMap<String, String>,
}

impl EnvPolicy {
    pub fn of(config: &ToolsConfig) -> Self {
        let remove = if config.pass_credentials { Vec::new() } else { config.removed_env.clone() };
        EnvPolicy { remove, set: BTreeMap::new() }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    /// `tools::shell_cwd`
    #[error("the directory {0} is not there")]
    Cwd(PathBuf),
    /// `tools::shell_too_long`
    #[error("the command is too long to be passed to {0}: write it to a file and run that")]
    TooLong(String),
    /// `tools::shell_spawn`
    #[error("{shell} could not be started: {error}")]
    Spawn { shell: String, error: io::Error },
}

impl ShellError {
    pub fn code(&self) -> &'static str {
        match self {
            ShellError::Cwd(_) => "tools::shell_cwd",
            ShellError::TooLong(_) => "tools::shell_too_long",
            ShellError::Spawn { .. } => "tools::shell_spawn",
        }
    }
}

/// How a command ended.
#[derive(Clone, Debug)]
pub struct ShellOutcome {
    /// The end of the output within the limits, and how much there was.
    pub output: Truncated,
    /// `128 + n` for one that signal n ended; none when it was cancelled or timed out.
    pub exit_code: Option<i32>,
    pub cancelled: bool,
    pub timed_out: bool,
    /// Holds the whole output, when `output` is truncated.
    pub full_output_path: Option<PathBuf>,
    /// Why there is no such file, although `output` is truncated.
    pub full_output_error: Option<String>,
    pub wall: Duration,
}

/// The user's `!command`: no time limit; `on_data` gets each new stretch of output.
pub async fn run_shell(
    config: &ToolsConfig,
    command: &str,
    cwd: &Path,
    env: &EnvPolicy,
    on_data: &mut (dyn FnMut(&str) + Send),
    cancel: &CancellationToken,
) -> Result<ShellOutcome, ShellError> {
    run(config, command, cwd, env, None, &mut |delta, _| on_data(delta), cancel).await
}

/// Gets what is new, and all there is so far.
pub type Progress<'a> = &'a mut (dyn FnMut(&str, &Collected) + Send);

pub async fn run(
    config: &ToolsConfig,
    command: &str,
    cwd: &Path,
    env: &EnvPolicy,
    limit: Option<Duration>,
    progress: Progress<'_>,
    cancel: &CancellationToken,
) -> Result<ShellOutcome, ShellError> {
    let began = Instant::now();
    let (mut tree, mut pipe) = spawn(config.shell.as_deref(), command, cwd, env)?;
    let mut out = Collected::new(&config.output_dir, Limits::default());
    let deadline = limit.map(|limit| began + limit);
    let (mut delta, mut next_update, mut open) = (String::new(), began, true);
    let (mut status, mut cancelled, mut timed_out) = (None, false, false);
    loop {
        tokio::select! {
            biased;
            _ = cancel.cancelled() => { cancelled = true; break }
            _ = at(deadline) => { timed_out = true; break }
            ended = tree.wait() => { status = ended.ok(); break }
            _ = sleep_until(next_update), if !delta.is_empty() => {
                progress(&delta, &out);
                delta.clear();
                next_update = Instant::now() + UPDATE_EVERY;
            }
            chunk = pipe.read(), if open => {
                let chunk = chunk.unwrap_or_default();
                open = !chunk.is_empty();
                delta.push_str(&out.push(&chunk).await);
            }
        }
    }
    if status.is_none() {
        tree.kill();
        let _ = timeout(KILL_WAIT, tree.wait()).await;
    }
    tree.done();
    // Normally the end comes at once. A process left in the background may hold the output open for ever.
    let left = Instant::now() + GRACE;
    while open && Instant::now() < left {
        tokio::select! {
            biased;
            chunk = pipe.read() => {
                let chunk = chunk.unwrap_or_default();
                open = !chunk.is_empty();
                delta.push_str(&out.push(&chunk).await);
            }
            _ = sleep_until(left) => break,
        }
    }
    if open && status.is_some() {
        // Reading on unheard: closing the pipe would end that process at its next write.
        tokio::spawn(async move { while pipe.read().await.is_ok_and(|chunk| !chunk.is_empty()) {} });
    }
    delta.push_str(&out.finish().await);
    if !delta.is_empty() {
        progress(&delta, &out);
    }
    Ok(ShellOutcome {
        output: out.view(),
        exit_code: status.map(exit_code),
        cancelled,
        timed_out,
        full_output_path: out.full().ok().flatten().map(Path::to_path_buf),
        full_output_error: out.full().err().map(str::to_owned),
        wall: began.elapsed(),
    })
}

async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// A running command and all it started; dropped before it is done, it is killed.
struct Tree {
    child: Box<dyn ChildWrapper>,
    alive: bool,
}

impl Tree {
    /// For the shell alone: the wrapper's own wait is for the whole tree, which a process left in the
    /// background would keep from ending. Cancel-safe.
    async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.inner_mut().wait().await
    }

    fn kill(&mut self) {
        // Fails only when nothing of it is left.
        let _ = self.child.start_kill();
    }

    fn done(&mut self) {
        self.alive = false;
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        if self.alive {
            self.kill();
        }
    }
}

fn spawn(
    shell: Option<&Path>,
    command: &str,
    cwd: &Path,
    env: &EnvPolicy,
) -> Result<(Tree, Output), ShellError> {
    // Otherwise the system says that the shell is not found.
    if !cwd.is_dir() {
        return Err(ShellError::Cwd(cwd.to_path_buf()));
    }
    let (program, before) = shell_program(shell);
    let shell = program.display().to_string();
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::ArgumentListTooLong => ShellError::TooLong(shell.clone()),
        _ => ShellError::Spawn { shell: shell.clone(), error },
    };
    let (output, writer) = Output::new().map_err(failed)?;
    let stderr = writer.try_clone().map_err(failed)?;
    // The command owns both writers; it goes at the end of this function, and with it our hold on the pipe.
    let mut wrap = CommandWrap::with_new(&program, |cmd| {
        cmd.args(before).arg(command).current_dir(cwd).stdin(Stdio::null()).stdout(writer).stderr(stderr);
        for name in &env.remove {
            cmd.env_remove(name);
        }
        cmd.envs(&env.set);
    });
    #[cfg(unix)]
    wrap.wrap(process_wrap::tokio::ProcessSession);
    #[cfg(windows)]
    wrap.wrap(process_wrap::tokio::JobObject);
    let child = wrap.spawn().map_err(failed)?;
    Ok((Tree { child, alive: true }, output))
}

#[cfg(unix)]
fn shell_program(given: Option<&Path>) -> (PathBuf, &'static [&'static str]) {
    let program = given.map(Path::to_path_buf).or_else(|| {
        let standard = PathBuf::from("/bin/bash");
        if standard.exists() { Some(standard) } else { on_path(OsStr::new("bash")) }
    });
    (program.unwrap_or_else(|| "/bin/sh".into()), &["-c"])
}

#[cfg(not(unix))]
fn shell_program(given: Option<&Path>) -> (PathBuf, &'static [&'static str]) {
    let program = given.map(Path::to_path_buf).or_else(|| on_path(OsStr::new("pwsh.exe")));
    (program.unwrap_or_else(|| "powershell.exe".into()), &["-NoProfile", "-NonInteractive", "-Command"])
}

fn on_path(name: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?).map(|dir| dir.join(name)).find(|file| file.is_file())
}

#[cfg(unix)]
fn exit_code(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    // As shells report it.
    status.code().or_else(|| status.signal().map(|n| 128 + n)).unwrap_or(-1)
}

#[cfg(not(unix))]
fn exit_code(status: ExitStatus) -> i32 {
    status.code().unwrap_or(-1)
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    async fn shell(
        command: &str,
        cancel: &CancellationToken,
        mut on_data: impl FnMut(&str) + Send,
    ) -> ShellOutcome {
        let config = ToolsConfig::default();
        let env = EnvPolicy::of(&config);
        run_shell(&config, command, Path::new("/"), &env, &mut on_data, cancel).await.unwrap()
    }

    #[tokio::test]
    async fn both_outputs_come_in_order_and_in_full() {
        let mut heard = String::new();
        let command = "for i in 1 2 3; do echo out$i; echo err$i >&2; done; exit 3";
        let done = shell(command, &CancellationToken::new(), |s| heard.push_str(s)).await;
        assert_eq!(done.output.content, "out1\nerr1\nout2\nerr2\nout3\nerr3\n");
        assert_eq!(done.exit_code, Some(3));
        assert_eq!(heard, done.output.content);
    }

    #[tokio::test]
    async fn a_background_process_neither_holds_up_the_result_nor_dies_of_it() {
        let dir = tempfile::tempdir().unwrap();
        let (go, wrote) = (dir.path().join("go"), dir.path().join("wrote"));
        std::process::Command::new("mkfifo").arg(&go).status().unwrap();
        // It waits for us, then writes to the output that the ended call left open.
        let command = format!(
            "{{ read x <{}; echo late && echo yes >{}; }} & echo started",
            go.display(),
            wrote.display()
        );
        let done = shell(&command, &CancellationToken::new(), |_| {}).await;
        assert_eq!((done.output.content.as_str(), done.exit_code), ("started\n", Some(0)));
        tokio::fs::write(&go, "now\n").await.unwrap();
        while tokio::fs::read_to_string(&wrote).await.unwrap_or_default() != "yes\n" {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    #[tokio::test]
    async fn standard_input_is_closed_and_there_is_no_terminal() {
        let command = "cat; (: </dev/tty) 2>/dev/null || echo none";
        let done = shell(command, &CancellationToken::new(), |_| {}).await;
        assert_eq!(done.output.content, "none\n");
    }

    #[tokio::test]
    async fn a_signal_is_reported_as_shells_do() {
        assert_eq!(shell("kill -9 $$", &CancellationToken::new(), |_| {}).await.exit_code, Some(137));
    }

    #[tokio::test]
    async fn b80_an_exit_in_no_time_keeps_its_code() {
        for _ in 0..20 {
            assert_eq!(shell("exit 1", &CancellationToken::new(), |_| {}).await.exit_code, Some(1));
        }
    }

    #[tokio::test]
    async fn a_missing_directory_is_told_from_a_missing_shell() {
        let (config, env) = (ToolsConfig::default(), EnvPolicy::default());
        let cancel = CancellationToken::new();
        let error = run_shell(&config, "true", Path::new("/no/where"), &env, &mut |_| {}, &cancel).await;
        assert_eq!(error.unwrap_err().code(), "tools::shell_cwd");
        let config = ToolsConfig { shell: Some("/no/shell".into()), ..config };
        let error = run_shell(&config, "true", Path::new("/"), &env, &mut |_| {}, &cancel).await;
        assert_eq!(error.unwrap_err().code(), "tools::shell_spawn");
        let long = format!(": {}", "x".repeat(1 << 20));
        let error =
            run_shell(&ToolsConfig::default(), &long, Path::new("/"), &env, &mut |_| {}, &cancel).await;
        assert_eq!(error.unwrap_err().code(), "tools::shell_too_long");
    }
}

//! A scratch home and project, and the real `atomic` started in them with nothing of the
//! machine's own environment but the PATH.

use crate::{libs, scratch::Scratch};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use std::{
    ffi::{OsStr, OsString},
    fs,
    io::{BufRead, BufReader, Read, Write},
    os::unix::process::{CommandExt, ExitStatusExt},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::{Arc, Condvar, Mutex},
    time::{Duration, Instant},
};

/// Nothing here is expected to take this long: it ends a test that hangs.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// How often a test that kills, repeats or throws dice does it: 3 times, or with `ATOMIC_SOAK=1`
/// the number its issue names.
pub fn rounds(soak: usize) -> usize {
    if std::env::var_os("ATOMIC_SOAK").is_some() { soak } else { 3 }
}

/// A person's machine: a home, an Atomic home in it, a project directory.
pub struct Home {
    dir: Scratch,
}

impl Default for Home {
    fn default() -> Self {
        Self::new()
    }
}

impl Home {
    /// Empty.
    pub fn new() -> Self {
        Self::at(Scratch::own())
    }
    /// For building extensions with cargo: in the same place each time, empty but for the SDK,
    /// so that only the first build there compiles it. One test at a time has it.
    pub fn of_crates() -> Self {
        Self::at(Scratch::shared("home/.atomic/sdk"))
    }
    fn at(dir: Scratch) -> Self {
        let home = Home { dir };
        for d in [home.atomic_home(), home.cwd(), home.extensions(), home.path("tmp")] {
            fs::create_dir_all(d).unwrap();
        }
        home
    }
    /// A path below the scratch directory, which goes when this value goes.
    pub fn path(&self, below: impl AsRef<Path>) -> PathBuf {
        // Canonical: a symlinked /tmp would show up in compared paths.
        self.dir.path().canonicalize().unwrap().join(below)
    }
    /// `$ATOMIC_HOME`.
    pub fn atomic_home(&self) -> PathBuf {
        self.path("home/.atomic")
    }
    /// Where the program is started.
    pub fn cwd(&self) -> PathBuf {
        self.path("project")
    }
    /// The global scope.
    pub fn extensions(&self) -> PathBuf {
        self.atomic_home().join("extensions")
    }
    /// A file below the project, its folders made.
    pub fn write(&self, below: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.cwd().join(below);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }
    /// Puts a library into the global scope, as `cp` would.
    pub fn install(&self, library: &Path) -> PathBuf {
        let to = self.extensions().join(library.file_name().unwrap());
        fs::copy(library, &to).unwrap();
        to
    }
    /// `agent/models.json`.
    pub fn models_json(&self, content: &Value) {
        let dir = self.atomic_home().join("agent");
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("models.json"), content.to_string()).unwrap();
    }
    /// A script for the offline model: `{"turns": turns}`.
    pub fn script(&self, turns: &Value) -> PathBuf {
        let path = self.path("script.json");
        fs::write(&path, serde_json::json!({ "turns": turns }).to_string()).unwrap();
        path
    }
    /// Every session file, oldest name first.
    pub fn sessions(&self) -> Vec<PathBuf> {
        fn walk(dir: &Path, out: &mut Vec<PathBuf>) {
            for entry in fs::read_dir(dir).into_iter().flatten().map(Result::unwrap) {
                let path = entry.path();
                if path.is_dir() {
                    walk(&path, out);
                } else if path.extension().is_some_and(|e| e == "jsonl") {
                    out.push(path);
                }
            }
        }
        let mut out = Vec::new();
        walk(&self.atomic_home(), &mut out);
        out.sort();
        out
    }
    /// `atomic ARGS`, not yet started.
    pub fn atomic<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Invocation {
        Invocation {
            program: libs::atomic(),
            args: args.into_iter().map(|a| a.as_ref().to_owned()).collect(),
            env: self.environment(),
            cwd: self.cwd(),
        }
    }
    /// What the program sees of the world.
    pub fn environment(&self) -> Vec<(OsString, OsString)> {
        let mut env: Vec<(OsString, OsString)> = vec![
            ("PATH".into(), std::env::var_os("PATH").unwrap_or_default()),
            ("HOME".into(), self.path("home").into()),
            ("ATOMIC_HOME".into(), self.atomic_home().into()),
            ("TMPDIR".into(), self.path("tmp").into()),
            ("LANG".into(), "C.UTF-8".into()),
            ("NO_COLOR".into(), "1".into()),
        ];
        env.extend(self.dir.environment());
        // A nested cargo needs to find its toolchain and its registry.
        for name in ["RUSTUP_HOME", "CARGO_HOME", "RUSTUP_TOOLCHAIN"] {
            if let Some(value) = std::env::var_os(name) {
                env.push((name.into(), value));
            }
        }
        let real_home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
        for (name, dir) in [("RUSTUP_HOME", ".rustup"), ("CARGO_HOME", ".cargo")] {
            if !env.iter().any(|(n, _)| n == name) && real_home.join(dir).is_dir() {
                env.push((name.into(), real_home.join(dir).into()));
            }
        }
        env
    }
}

/// A command line and its surroundings.
pub struct Invocation {
    program: PathBuf,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    cwd: PathBuf,
}

impl Invocation {
    /// One more argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }
    /// More of them.
    #[must_use]
    pub fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args.extend(args.into_iter().map(|a| a.as_ref().to_owned()));
        self
    }
    /// One more variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.env.retain(|(n, _)| n != name);
        self.env.push((name.into(), value.as_ref().to_owned()));
        self
    }
    /// Another program: a copy that lies elsewhere, or a shell.
    #[must_use]
    pub fn program(mut self, program: impl Into<PathBuf>) -> Self {
        self.program = program.into();
        self
    }
    /// Another directory.
    #[must_use]
    pub fn in_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.cwd = dir.into();
        self
    }
    /// For a pseudo-terminal: program, arguments, environment, directory.
    pub(crate) fn parts(&self) -> (&Path, &[OsString], &[(OsString, OsString)], &Path) {
        (&self.program, &self.args, &self.env, &self.cwd)
    }
    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.args).env_clear().envs(self.env.iter().cloned()).current_dir(&self.cwd);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A group of its own: what it started ends with it.
        command.process_group(0);
        command
    }
    /// Started, stdin open.
    pub fn start(&self) -> Program {
        let mut child = self.command().spawn().unwrap_or_else(|e| panic!("{}: {e}", self.program.display()));
        let stdout = Arc::new(Stream::default());
        let stderr = Arc::new(Stream::default());
        Stream::follow(&stdout, child.stdout.take().unwrap());
        Stream::follow(&stderr, child.stderr.take().unwrap());
        Program { stdin: child.stdin.take(), child, stdout, stderr, status: None }
    }
    /// Started, stdin open, its stdout given to a pipe of the test.
    pub fn start_writing_to(&self, out: std::io::PipeWriter) -> Program {
        let mut child = self.command().stdout(out).spawn().unwrap();
        let (stdout, stderr) = (Arc::new(Stream::default()), Arc::new(Stream::default()));
        stdout.state.lock().unwrap().1 = true;
        Stream::follow(&stderr, child.stderr.take().unwrap());
        Program { stdin: child.stdin.take(), child, stdout, stderr, status: None }
    }
    /// Started with an empty stdin: print mode reads a pipe to its end before it begins.
    pub fn start_alone(&self) -> Program {
        let mut program = self.start();
        program.close_stdin();
        program
    }
    /// Runs to its end with an empty stdin.
    pub fn run(&self) -> Finished {
        self.start_alone().finish()
    }
    /// Runs to its end with this on stdin.
    pub fn run_with(&self, stdin: &str) -> Finished {
        let mut program = self.start();
        program.say_raw(stdin);
        program.close_stdin();
        program.finish()
    }
}

/// What a process wrote so far.
#[derive(Default)]
struct Stream {
    state: Mutex<(Vec<String>, bool)>,
    changed: Condvar,
}

impl Stream {
    fn follow(this: &Arc<Self>, from: impl Read + Send + 'static) {
        let stream = this.clone();
        std::thread::spawn(move || {
            let mut reader = BufReader::new(from);
            let mut line = Vec::new();
            while reader.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
                stream.state.lock().unwrap().0.push(String::from_utf8_lossy(&line).into_owned());
                stream.changed.notify_all();
                line.clear();
            }
            stream.state.lock().unwrap().1 = true;
            stream.changed.notify_all();
        });
    }
    fn text(&self) -> String {
        self.state.lock().unwrap().0.concat()
    }
    /// The first line from `from` on that holds, and its index.
    fn wait(&self, from: usize, holds: &dyn Fn(&str) -> bool) -> Result<(usize, String), &'static str> {
        let deadline = Instant::now() + PATIENCE;
        let mut state = self.state.lock().unwrap();
        loop {
            let found = state.0.iter().enumerate().skip(from).find(|(_, l)| holds(l));
            if let Some((n, line)) = found {
                return Ok((n, line.trim_end().to_owned()));
            }
            if state.1 {
                return Err("the stream ended");
            }
            let Some(left) = deadline.checked_duration_since(Instant::now()) else {
                return Err("nothing of it came");
            };
            state = self.changed.wait_timeout(state, left).unwrap().0;
        }
    }
    fn wait_end(&self) {
        let deadline = Instant::now() + Duration::from_secs(5);
        let mut state = self.state.lock().unwrap();
        // A grandchild may keep the pipe; what came until now is what there is.
        while let Some(left) = deadline.checked_duration_since(Instant::now()).filter(|_| !state.1) {
            state = self.changed.wait_timeout(state, left).unwrap().0;
        }
    }
}

/// A running program. Dropping it kills its process group.
pub struct Program {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Arc<Stream>,
    stderr: Arc<Stream>,
    status: Option<ExitStatus>,
}

impl Program {
    /// A line to its stdin.
    pub fn say(&mut self, line: &str) {
        self.say_raw(&format!("{line}\n"));
    }
    fn say_raw(&mut self, text: &str) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        // It may have ended already; the test sees that elsewhere.
        let _ = stdin.write_all(text.as_bytes()).and_then(|()| stdin.flush());
    }
    /// End of input.
    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }
    /// The first line of stdout that holds.
    pub fn wait_for(&self, what: &str, holds: impl Fn(&str) -> bool) -> String {
        self.wait_after(0, what, holds).1
    }
    /// The same, from a line number on; answers the line's own number too.
    pub fn wait_after(&self, from: usize, what: &str, holds: impl Fn(&str) -> bool) -> (usize, String) {
        self.stdout.wait(from, &holds).unwrap_or_else(|why| {
            panic!(
                "waiting for {what}: {why}\nstdout:\n{}\nstderr:\n{}",
                self.stdout.text(),
                self.stderr.text()
            )
        })
    }
    /// The first line of stderr that holds.
    pub fn wait_for_stderr(&self, what: &str, holds: impl Fn(&str) -> bool) -> String {
        let found = self.stderr.wait(0, &holds).map(|(_, line)| line);
        found.unwrap_or_else(|why| {
            panic!(
                "waiting for {what}: {why}\nstdout:\n{}\nstderr:\n{}",
                self.stdout.text(),
                self.stderr.text()
            )
        })
    }
    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }
    /// What it wrote to stdout so far.
    pub fn stdout(&self) -> String {
        self.stdout.text()
    }
    /// What it wrote to stderr so far.
    pub fn stderr(&self) -> String {
        self.stderr.text()
    }
    fn group(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed()).unwrap()
    }
    /// A signal to it and to all it started.
    pub fn signal(&self, signal: Signal) {
        let _ = kill_process_group(self.group(), signal);
    }
    /// As a power cut would.
    pub fn kill(mut self) -> Finished {
        self.signal(Signal::KILL);
        self.finish_now()
    }
    /// Waits for its end.
    pub fn finish(mut self) -> Finished {
        self.finish_now()
    }
    fn finish_now(&mut self) -> Finished {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > deadline {
                let text = (self.stdout.text(), self.stderr.text());
                panic!("it did not end\nstdout:\n{}\nstderr:\n{}", text.0, text.1);
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        self.status = Some(status);
        self.stdout.wait_end();
        self.stderr.wait_end();
        Finished {
            code: status.code(),
            signal: status.signal(),
            stdout: self.stdout.text(),
            stderr: self.stderr.text(),
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // The group may outlive its leader: a shell's background child, for one.
        let _ = kill_process_group(self.group(), Signal::KILL);
        if self.status.is_none() {
            let _ = self.child.wait();
        }
    }
}

/// A program that has ended.
#[derive(Debug)]
pub struct Finished {
    /// Absent after a signal.
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Finished {
    /// Exit code 0, or the test fails with all that was written.
    #[track_caller]
    pub fn ok(self) -> Self {
        self.exit(0)
    }
    /// This exit code, or the test fails with all that was written.
    #[track_caller]
    pub fn exit(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }
    /// Each line of stdout as JSON.
    #[track_caller]
    pub fn json_lines(&self) -> Vec<Value> {
        let parse = |l: &str| serde_json::from_str(l).unwrap_or_else(|e| panic!("not JSON ({e}): {l}"));
        self.stdout.lines().map(parse).collect()
    }
}

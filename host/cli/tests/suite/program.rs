//! The real binary in a home and a folder of its own, with nothing of this machine's settings.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
};

pub struct Program {
    dir: tempfile::TempDir,
}

impl Program {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("home")).unwrap();
        fs::create_dir(dir.path().join("project")).unwrap();
        Program { dir }
    }

    pub fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }
    pub fn project(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_atomic"));
        command.args(args).current_dir(self.project()).env_clear();
        for kept in ["PATH", "HOME", "CARGO_HOME", "RUSTUP_HOME", "SYSTEMROOT", "TMPDIR"] {
            if let Some(value) = std::env::var_os(kept) {
                command.env(kept, value);
            }
        }
        command.env("ATOMIC_HOME", self.home()).env("ATOMIC_GLOBAL_EXTENSIONS", self.dir.path().join("none"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn run(&self, args: &[&str]) -> Ended {
        Ended::of(self.command(args).output().unwrap())
    }

    /// With all of `input` on stdin.
    pub fn run_with(&self, args: &[&str], input: &str) -> Ended {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        Ended::of(child.wait_with_output().unwrap())
    }

    /// For a test that talks to it.
    pub fn spawn(&self, args: &[&str]) -> Child {
        self.command(args).stdin(Stdio::piped()).spawn().unwrap()
    }

    /// A script of the offline model.
    pub fn script(&self, turns: serde_json::Value) -> String {
        let script = serde_json::json!({"turns": turns});
        self.file("script.json", script.to_string()).display().to_string()
    }

    pub fn sessions(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        walk(&self.home().join("agent/sessions"), &mut found);
        found
    }
}

fn walk(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        match entry.path() {
            dir if dir.is_dir() => walk(&dir, found),
            file => found.push(file),
        }
    }
}

#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Ended {
    pub fn of(output: Output) -> Self {
        Ended {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
    #[track_caller]
    pub fn ok(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }
    #[track_caller]
    pub fn refused(self) -> Self {
        assert_eq!(self.code, Some(1), "{self:?}");
        self
    }
}

#[cfg(unix)]
pub fn signal(child: &Child, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, signal).unwrap();
}

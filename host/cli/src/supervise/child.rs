//! One engine process: its pipes, its page, its end.

use super::{
    lines,
    loss::End,
    pages,
    wire::{FromEngine, Hello, ToEngine},
};
use crate::card::Card;
use atomic_extensions::breadcrumb::{self, Vitals};
use std::{
    ffi::OsString,
    path::PathBuf,
    process::{Command, ExitStatus, Stdio},
    sync::mpsc::Sender,
    time::{Duration, Instant},
};
use tokio::sync::mpsc::UnboundedReceiver;

pub struct Child {
    process: std::process::Child,
    incoming: UnboundedReceiver<Vec<u8>>,
    out: Option<Sender<Vec<u8>>>,
    page: Option<PathBuf>,
    mapped: Option<breadcrumb::Mapped>,
    /// It ended in order.
    pub said_bye: bool,
    ended: Option<Instant>,
}

impl Child {
    /// With the command line of this process.
    pub fn start(args: &[OsString], hello: Hello) -> Result<Self, Card> {
        let cannot = |e: std::io::Error| {
            Card::new("cli::engine", "the engine cannot be started")
                .why(e.to_string())
                .help("is the program still where it was? Start it again")
        };
        let program = std::env::current_exe().map_err(cannot)?;
        let mut command = Command::new(program);
        command.arg("--engine").args(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        // Ctrl+C at the terminal is a key of the front end, never a signal for the engine.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut process = command.spawn().map_err(cannot)?;
        let page = hello.page.clone();
        let (Some(stdin), Some(stdout)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(cannot(std::io::ErrorKind::BrokenPipe.into()));
        };
        let (out, _) = lines::write(stdin);
        let child = Child {
            incoming: lines::read(stdout),
            process,
            out: Some(out),
            page,
            mapped: None,
            said_bye: false,
            ended: None,
        };
        child.send(&ToEngine::Hello(Box::new(hello)));
        Ok(child)
    }

    /// One that is gone takes nothing.
    pub fn send(&self, frame: &ToEngine) {
        if let (Some(out), Ok(line)) = (&self.out, serde_json::to_vec(frame)) {
            let _ = out.send(line);
        }
    }

    /// The next frame; `None` when it has closed its side.
    pub async fn frame(&mut self) -> Option<FromEngine> {
        loop {
            let line = self.incoming.recv().await?;
            match serde_json::from_slice(&line) {
                Ok(frame) => {
                    self.said_bye |= matches!(frame, FromEngine::Bye);
                    return Some(frame);
                }
                Err(e) => eprintln!("a line of the engine is not understood: {e}"),
            }
        }
    }

    /// It has ended, whoever still holds its pipe.
    pub fn ended(&mut self) -> bool {
        if self.ended.is_none() && matches!(self.process.try_wait(), Ok(Some(_))) {
            self.ended = Some(Instant::now());
        }
        self.ended.is_some()
    }

    /// Since it was first seen to have ended.
    pub fn gone_for(&self) -> Duration {
        self.ended.map(|t| t.elapsed()).unwrap_or_default()
    }

    pub fn vitals(&mut self) -> Option<Vitals> {
        self.map();
        self.mapped.as_ref().map(|p| p.vitals())
    }

    fn map(&mut self) {
        if self.mapped.is_none() {
            self.mapped = self.page.as_ref().and_then(|p| breadcrumb::open(p).ok().flatten());
        }
    }

    pub fn kill(&mut self) {
        let _ = self.process.kill();
    }

    /// Waits for its end, `grace` at most; then it is killed.
    pub async fn reap(&mut self, grace: Duration) -> Option<ExitStatus> {
        self.out = None;
        let until = Instant::now() + grace;
        loop {
            match self.process.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if Instant::now() < until => tokio::time::sleep(Duration::from_millis(2)).await,
                Ok(None) => {
                    self.kill();
                    return self.process.wait().ok();
                }
                Err(_) => return None,
            }
        }
    }

    /// What happened, once it is gone. The page has told all it knows then.
    pub fn loss(&mut self, end: &End) -> super::loss::Loss {
        self.map();
        super::loss::of(end, self.mapped.as_deref())
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.out = None;
        if matches!(self.process.try_wait(), Ok(None)) {
            self.kill();
            let _ = self.process.wait();
        }
        pages::forget(self.page.as_deref());
    }
}

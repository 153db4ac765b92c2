//! The program on a real pseudo-terminal, and the grid a person would see.

use crate::env::{Invocation, PATIENCE};
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use std::{
    io::{Read, Write},
    num::NonZero,
    sync::{Arc, Condvar, Mutex},
    time::Instant,
};

/// Grid and raw output.
struct State {
    parser: vt100::Parser,
    raw: Vec<u8>,
    ended: bool,
}

/// A program on its own terminal. Dropping it kills the program.
pub struct Terminal {
    state: Arc<(Mutex<State>, Condvar)>,
    child: Box<dyn Child + Send + Sync>,
    writer: Box<dyn Write + Send>,
    master: Box<dyn MasterPty + Send>,
}

impl Terminal {
    /// `rows` by `cols` characters.
    pub fn start(invocation: &Invocation, rows: u16, cols: u16) -> Self {
        Self::open(invocation, rows, cols, true)
    }
    /// With the full screen instead of lines.
    pub fn full(invocation: &Invocation, rows: u16, cols: u16) -> Self {
        Self::open(invocation, rows, cols, false)
    }
    fn open(invocation: &Invocation, rows: u16, cols: u16, plain: bool) -> Self {
        let pair = native_pty_system().openpty(size(rows, cols)).unwrap();
        let (program, args, env, cwd) = invocation.parts();
        let mut command = CommandBuilder::new(program);
        command.args(args);
        command.env_clear();
        for (name, value) in env.iter().filter(|(n, _)| n != "NO_COLOR") {
            command.env(name, value);
        }
        command.env("TERM", "xterm-256color");
        if plain {
            command.env("ATOMIC_PLAIN", "1");
        }
        command.cwd(cwd);
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let parser = vt100::Parser::new(cells(rows), cells(cols), 10_000);
        let state = Arc::new((Mutex::new(State { parser, raw: Vec::new(), ended: false }), Condvar::new()));
        let mut reader = pair.master.try_clone_reader().unwrap();
        let shared = state.clone();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            loop {
                let n = reader.read(&mut buffer).unwrap_or(0);
                let mut state = shared.0.lock().unwrap();
                state.parser.process(&buffer[..n]);
                state.raw.extend(&buffer[..n]);
                state.ended = n == 0;
                shared.1.notify_all();
                if n == 0 {
                    return;
                }
            }
        });
        let writer = pair.master.take_writer().unwrap();
        Terminal { state, child, writer, master: pair.master }
    }
    /// Keys, as the terminal sends them.
    pub fn keys(&mut self, keys: &str) {
        self.writer.write_all(keys.as_bytes()).unwrap();
        self.writer.flush().unwrap();
    }
    /// A line and Enter.
    pub fn line(&mut self, line: &str) {
        self.keys(&format!("{line}\r"));
    }
    /// Another size, as when a window is dragged.
    pub fn resize(&mut self, rows: u16, cols: u16) {
        self.state.0.lock().unwrap().parser.screen_mut().set_size(cells(rows), cells(cols));
        self.master.resize(size(rows, cols)).unwrap();
    }
    /// The visible grid, right-trimmed lines.
    pub fn screen(&self) -> String {
        self.state.0.lock().unwrap().parser.screen().contents()
    }
    /// All that was ever written.
    pub fn raw(&self) -> Vec<u8> {
        self.state.0.lock().unwrap().raw.clone()
    }
    /// Waits until the grid holds.
    pub fn wait_for(&self, what: &str, holds: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + PATIENCE;
        let mut state = self.state.0.lock().unwrap();
        loop {
            let screen = state.parser.screen().contents();
            if holds(&screen) {
                return screen;
            }
            let left = deadline.checked_duration_since(Instant::now()).filter(|_| !state.ended);
            let Some(left) = left else { panic!("waiting for {what}; the screen:\n{screen}") };
            state = self.state.1.wait_timeout(state, left).unwrap().0;
        }
    }
    /// Waits for the program's end.
    pub fn finish(mut self) -> u32 {
        self.child.wait().unwrap().exit_code()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn cells(n: u16) -> NonZero<u16> {
    NonZero::new(n).expect("a terminal has cells")
}

fn size(rows: u16, cols: u16) -> PtySize {
    PtySize { rows, cols, pixel_width: 0, pixel_height: 0 }
}

//! `atomic demo`: extensions are built, installed, take part in a run, are changed, reloaded
//! and broken, in one process and a scratch home. On a terminal it stops after each step;
//! otherwise it goes through by itself. A step counts only when it was observed (`evidence`).
//!
//! `ATOMIC_DEMO_BREAK=gate` leaves the gate out, so that a test can see the demo fail.

mod evidence;
mod steps;
mod workshop;

use crate::{
    card::Card,
    paths::{self, Paths},
    stdio::{self, Elsewhere},
};
use std::{fs::File, io::Write};

/// Tells, and on a terminal waits.
pub struct Stage {
    out: File,
    waits: bool,
    step: usize,
}

impl Stage {
    fn say(&mut self, text: &str) {
        let _ = writeln!(self.out, "{}", crate::sanitize::text(text));
    }

    /// A step begins.
    fn step(&mut self, title: &str) {
        if self.waits && self.step > 0 {
            let _ = write!(self.out, "\n    Enter goes on ");
            let _ = std::io::stdin().read_line(&mut String::new());
        }
        self.step += 1;
        let step = self.step;
        self.say(&format!("\n{step}. {title}"));
    }

    fn detail(&mut self, text: &str) {
        for line in text.lines() {
            self.say(&format!("   {line}"));
        }
    }

    fn observed(&mut self, text: &str) {
        self.say(&format!("   observed: {text}"));
    }
}

pub async fn run(paths: &Paths) -> Result<u8, Card> {
    let waits = stdio::stdin_is_terminal() && stdio::stdout_is_terminal();
    let stdio = stdio::take(&Elsewhere::Stderr)
        .map_err(|e| Card::new("cli::stdio", "stdout cannot be kept for the demo").why(e.to_string()))?;
    let mut stage = Stage { out: stdio.out, waits, step: 0 };
    let scratch = tempfile::Builder::new().prefix("atomic-demo-").tempdir().map_err(|e| {
        Card::new("demo::scratch", "no scratch folder can be made for the demo").why(e.to_string())
    })?;
    stage.say("Atomic is an agent whose behaviour comes from native libraries. This is one run of it,");
    stage.say(&format!("offline, in the scratch home {}.", scratch.path().display()));
    let broken = paths::demo_break();
    match steps::all(paths, scratch.path(), &mut stage, broken.as_deref()).await? {
        Ok(summary) => {
            stage.say(&format!("\nDemo: observed {summary}."));
            Ok(0)
        }
        Err(missing) => {
            let kept = scratch.keep();
            stage.say(&format!("\n   not observed: {missing}"));
            stage.say(&format!("   what there is to see is in {}", kept.display()));
            stage.say(&format!("\nDemo: step {} was not observed: {missing}.", stage.step));
            Ok(1)
        }
    }
}

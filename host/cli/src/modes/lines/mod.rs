//! The plain prompt: lines in, streamed text and tool lines out. It owns the terminal and
//! waits for nobody: what is asked of the engine is asked in tasks, and Ctrl+C is always heard.
//!
//! On a terminal a line is taken at any time (during a run it steers). Over a pipe a line is
//! taken when the agent is idle or asks something, so that a script reads like a conversation;
//! its end is no hurry either: what was begun is finished first.

mod dialog;
mod input;
mod reader;
mod view;

use super::end;
use crate::{
    card::Card,
    launch::Launched,
    signals::{self, Signal},
    stdio::{self, Stdio},
};
use atomic_agent::{
    event::Event,
    hooks::{Hooks, InputSource, StreamingBehavior},
    op::{DialogAnswer, Op, OpError},
};
use dialog::Dialogs;
use input::Line;
use reader::Reader;
use serde_json::Value;
use std::{collections::VecDeque, fs::File};
use tokio::sync::mpsc;
use view::View;

type Answer = Result<Value, OpError>;

struct Prompt<'a> {
    launched: &'a Launched,
    view: View<&'a mut File>,
    dialogs: Dialogs,
    answers: mpsc::UnboundedSender<Answer>,
    /// Ops that have not been answered yet.
    waiting: usize,
    /// A command of the user runs.
    bash: bool,
    /// Messages of the command line that wait for their turn.
    first: VecDeque<String>,
    ready: bool,
    interrupted: bool,
    /// Nobody types any more. Over a pipe that ends the program once it is idle.
    deaf: bool,
    typed: bool,
}

enum Next {
    Go,
    Quit { from_signal: bool },
}

pub async fn run(mut launched: Launched, stdio: &mut Stdio) -> Result<u8, Card> {
    let mut signals = signals::listen(true)
        .map_err(|e| Card::new("cli::signals", "signals cannot be listened to").why(e.to_string()))?;
    let (events_tx, nothing) = mpsc::unbounded_channel();
    drop(events_tx);
    let mut events = std::mem::replace(&mut launched.events, nothing);
    let (answers, mut answered) = mpsc::unbounded_channel();
    let typed = stdio::stdin_is_terminal();
    let mut reader = Reader::new();
    let mut prompt = Prompt {
        view: View::new(&mut stdio.out, typed && stdio.screen),
        dialogs: Dialogs::default(),
        answers,
        waiting: 0,
        bash: false,
        first: launched.messages.iter().cloned().collect(),
        ready: false,
        interrupted: false,
        deaf: false,
        typed,
        launched: &launched,
    };
    prompt.view.greet(&launched.handle.view(|v| v.model.clone()), launched.extensions.list().len());

    let from_signal = loop {
        prompt.say_first();
        // In this order: what was told before the run settled is in the channel by now.
        let idle = prompt.idle() && events.is_empty();
        if idle && prompt.deaf {
            break false;
        }
        if idle && prompt.dialogs.is_empty() {
            prompt.view.prompt();
        }
        if prompt.deaf {
            prompt.give_dialogs_up();
        } else if typed || prompt.dialogs.asking() || idle {
            reader.ask();
        }
        let next = tokio::select! {
            biased;
            signal = signals.recv() => prompt.signal(signal),
            event = events.recv() => match event {
                Some(event) => prompt.event(&event),
                None => Next::Quit { from_signal: false },
            },
            Some(answer) = answered.recv() => prompt.answer(answer),
            line = reader.line(), if reader.asked() => match line {
                Some(line) => prompt.line(&line),
                None => prompt.end_of_input(),
            },
        };
        if let Next::Quit { from_signal } = next {
            break from_signal;
        }
    };
    prompt.view.close();
    end::shut_down(&launched, from_signal).await;
    Ok(0)
}

impl Prompt<'_> {
    fn idle(&self) -> bool {
        self.ready && self.waiting == 0 && !self.bash && self.launched.handle.view(|v| v.idle)
    }

    /// Asks without waiting; the answer comes through the channel.
    fn ask(&mut self, op: Op) {
        self.waiting += 1;
        let (handle, answers) = (self.launched.handle.clone(), self.answers.clone());
        tokio::spawn(async move {
            let _ = answers.send(handle.request(op).await);
        });
    }

    fn say_first(&mut self) {
        if self.idle()
            && self.dialogs.is_empty()
            && let Some(text) = self.first.pop_front()
        {
            self.say(text);
        }
    }

    fn say(&mut self, text: String) {
        self.view.typed(&text);
        self.ask(Op::Prompt {
            text,
            images: Vec::new(),
            // A run may begin between here and there; then this steers it.
            streaming_behavior: Some(StreamingBehavior::Steer),
            source: InputSource::Interactive,
        });
    }

    fn event(&mut self, event: &Event) -> Next {
        match event {
            Event::DialogOpened { id, dialog, extension }
                if self.dialogs.open(*id, dialog.clone(), extension.clone()) =>
            {
                self.show_dialog();
            }
            Event::DialogClosed { id } => {
                let (asked, more) = self.dialogs.closed(*id);
                if asked {
                    self.view.remark("the question is gone");
                }
                if more {
                    self.show_dialog();
                }
            }
            Event::SessionReady { .. } => self.ready = true,
            Event::BashExecuted { .. } => self.bash = false,
            Event::Stopped => return Next::Quit { from_signal: false },
            _ => {}
        }
        self.view.event(event);
        Next::Go
    }

    fn show_dialog(&mut self) {
        stdio::forget_typed_ahead();
        if let Some(text) = self.dialogs.question() {
            self.view.question(&text);
        }
    }

    fn answer(&mut self, answer: Answer) -> Next {
        self.waiting = self.waiting.saturating_sub(1);
        // What an extension took starts no run, so no event says that the engine is idle again.
        if answer.as_ref().is_ok_and(|a| a["disposition"] == "handled") {
            self.ask(Op::WaitForIdle);
        }
        if let Err(e) = answer {
            // `Op::UserBash` is the only one that is followed by an event of its own.
            self.bash = false;
            self.view.card(&Card::told(&e.code, &e.message));
        }
        Next::Go
    }

    fn signal(&mut self, signal: Option<Signal>) -> Next {
        match signal {
            Some(Signal::Terminate | Signal::HangUp) | None => return Next::Quit { from_signal: true },
            Some(Signal::Interrupt) => {}
        }
        if !self.launched.handle.view(|v| v.idle) || self.bash {
            self.launched.handle.send(Op::Abort);
            self.view.remark("aborting");
        } else if let Some(id) = self.dialogs.cancel() {
            self.launched.handle.answer(id, DialogAnswer::Cancelled);
        } else if std::mem::replace(&mut self.interrupted, true) {
            return Next::Quit { from_signal: false };
        } else {
            self.view.remark("Ctrl+C again, or Ctrl+D, quits");
        }
        Next::Go
    }

    fn end_of_input(&mut self) -> Next {
        self.deaf = true;
        self.give_dialogs_up();
        if self.typed { Next::Quit { from_signal: false } } else { Next::Go }
    }

    /// Nobody can answer any more, so nothing open is approved. Those behind it come up in turn.
    fn give_dialogs_up(&mut self) {
        if let Some(id) = self.dialogs.cancel() {
            self.launched.handle.answer(id, DialogAnswer::Cancelled);
        }
    }

    fn line(&mut self, line: &str) -> Next {
        self.interrupted = false;
        self.view.line_was_typed();
        if self.dialogs.asking() {
            match self.dialogs.answer(line) {
                dialog::Reply::Answer(id, answer) => self.launched.handle.answer(id, answer),
                dialog::Reply::More => {}
                dialog::Reply::Again(text) => self.view.question(&text),
            }
            return Next::Go;
        }
        let commands = self.launched.extensions.commands();
        match input::parse(line, &commands) {
            Line::Nothing => {}
            Line::Quit => return Next::Quit { from_signal: false },
            Line::Help => self.view.help(&commands),
            Line::Extensions => self.view.extensions(&self.launched.extensions.list()),
            Line::Reload { names, now } => self.ask(Op::Reload { names, now, origin: None }),
            Line::New => self.ask(Op::NewSession { parent_session: None, origin: None }),
            Line::Bash { command, hidden } => {
                self.bash = true;
                self.ask(Op::UserBash { command, exclude_from_context: hidden });
            }
            Line::Unknown(card) => self.view.card(&card),
            Line::Say(text) => self.say(text),
        }
        Next::Go
    }
}

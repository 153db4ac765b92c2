//! The plain prompt: lines in, streamed text and tool lines out. It owns the terminal and
//! waits for nobody: what is asked of the engine is asked in tasks, and Ctrl+C is always heard.
//!
//! On a terminal a line is taken at any time (during a run it steers). Over a pipe a line is
//! taken when the agent is idle or asks something, so that a script reads like a conversation;
//! its end is no hurry either: what was begun is finished first.

mod dialog;
pub(super) mod input;
mod keys;
mod reader;
mod reload_lines;
pub(super) mod sessions;
mod tool_lines;
mod view;
mod wrap;

use super::end;
use crate::{
    card::Card,
    said::Said,
    signals::{self, Signal},
    stdio::{self, Stdio},
    supervise::{Desk, First},
};
use atomic_agent::{
    event::Event,
    hooks::{InputSource, StreamingBehavior},
    op::{DialogAnswer, Op, OpError},
};
use dialog::Dialogs;
use input::Line;
use reader::Reader;
use serde_json::Value;
use sessions::{Lists, Want, Wish};
pub use sessions::{pick_session, size};
use std::{
    collections::VecDeque,
    fs::File,
    time::{Duration, Instant},
};
use tokio::sync::{mpsc, oneshot};
use view::View;

type Answer = (Want, Result<Value, OpError>);

struct Prompt<'a> {
    desk: &'a Desk,
    view: View<&'a mut File>,
    dialogs: Dialogs,
    answers: mpsc::UnboundedSender<Answer>,
    lists: Lists,
    /// Ops that have not been answered yet.
    waiting: usize,
    /// A command of the user runs.
    bash: bool,
    /// The next line is the key of this provider.
    login: Option<keys::Asked>,
    /// Messages that wait for their turn: of the command line, or typed while a run ends.
    first: VecDeque<Said>,
    ready: bool,
    interrupted: bool,
    /// Nobody types any more. Over a pipe that ends the program once it is idle.
    deaf: bool,
    typed: bool,
    /// What the engine is asked to say when it has settled: a run that says nothing (its input
    /// was handled) ends without an event.
    watch: mpsc::UnboundedSender<bool>,
    watching: bool,
    settled: bool,
    /// Since when the user waits for what was aborted; what is typed meanwhile belongs to the
    /// next run.
    aborting: Option<Instant>,
}

/// What an abort may take before the engine counts as hung.
const ABORT: Duration = Duration::from_millis(500);

enum Next {
    Go,
    Quit { from_signal: bool },
}

pub async fn run(mut desk: Desk, stdio: &mut Stdio) -> Result<u8, Card> {
    let mut signals = signals::listen(true)
        .map_err(|e| Card::new("cli::signals", "signals cannot be listened to").why(e.to_string()))?;
    let (events_tx, nothing) = mpsc::unbounded_channel();
    drop(events_tx);
    let mut events = std::mem::replace(&mut desk.events, nothing);
    let (never, none) = oneshot::channel();
    let mut started = std::mem::replace(&mut desk.started, none);
    drop(never);
    let mut starting = true;
    let (answers, mut answered) = mpsc::unbounded_channel();
    let (watch, mut watched) = mpsc::unbounded_channel();
    let typed = stdio::stdin_is_terminal();
    let mut reader = Reader::new();
    let mut prompt = Prompt {
        view: View::new(&mut stdio.out, typed && stdio.screen),
        dialogs: Dialogs::default(),
        answers,
        lists: Lists::default(),
        waiting: 0,
        bash: false,
        login: None,
        first: VecDeque::new(),
        ready: false,
        interrupted: false,
        deaf: false,
        typed,
        watch,
        watching: false,
        settled: false,
        desk: &desk,
        aborting: None,
    };

    let from_signal = loop {
        prompt.say_first();
        // In this order: what was told before the run settled is in the channel by now.
        let idle = prompt.idle() && events.is_empty();
        if idle {
            prompt.aborting = None;
        }
        prompt.settled &= idle;
        if idle && prompt.deaf && prompt.settled {
            break false;
        }
        if !idle || prompt.deaf {
            prompt.watch();
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
            first = &mut started, if starting => {
                starting = false;
                match first {
                    Ok(Ok(first)) => prompt.greet(first),
                    Ok(Err(card)) => {
                        desk.control.end(end::LEFTOVER).await;
                        return Err(card);
                    }
                    // It comes to an end that is told as an event.
                    Err(_) => Next::Go,
                }
            }
            event = events.recv() => match event {
                Some(event) => prompt.event(&event),
                None => Next::Quit { from_signal: false },
            },
            Some((want, answer)) = answered.recv() => prompt.answer(want, answer),
            Some(settled) = watched.recv() => {
                (prompt.watching, prompt.settled) = (false, settled);
                Next::Go
            }
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
    let asked = desk.handle.request(Op::Shutdown { from_signal });
    let told = tokio::time::timeout(end::ENGINE, asked).await;
    // What did not answer until now is not waited for any longer.
    desk.control.end(if told.is_ok() { end::LEFTOVER } else { Duration::ZERO }).await;
    Ok(u8::from(desk.failed()))
}

impl Prompt<'_> {
    fn idle(&self) -> bool {
        self.ready && self.waiting == 0 && !self.bash && self.desk.handle.view(|v| v.idle)
    }

    /// Asks without waiting; the answer comes through the channel.
    fn ask(&mut self, op: Op) {
        self.ask_for(op, Want::Other);
    }

    fn ask_for(&mut self, op: Op, want: Want) {
        self.waiting += 1;
        let (asked, answers) = (self.desk.handle.ask(op), self.answers.clone());
        tokio::spawn(async move {
            let _ = answers.send((want, asked.await));
        });
    }

    fn wish(&mut self, wish: Wish) {
        let name = self.desk.handle.view(|v| v.session_name.clone());
        let next = self.lists.wish(wish, name.as_deref());
        self.go_on(next);
    }

    fn go_on(&mut self, next: sessions::Next) {
        match next {
            sessions::Next::Ask(op, want) => self.ask_for(op, want),
            sessions::Next::Say(text) => self.view.text(&text),
            sessions::Next::Refuse(card) => self.view.card(&card),
        }
    }

    /// Learns when nothing runs any more; an engine that is gone says so by an event.
    fn watch(&mut self) {
        if self.watching || !self.ready || self.waiting > 0 || self.bash {
            return;
        }
        self.watching = true;
        let (handle, watch) = (self.desk.handle.clone(), self.watch.clone());
        tokio::spawn(async move {
            // An engine that was replaced meanwhile never answers: the next one is asked.
            let _ = watch.send(handle.request(Op::WaitForIdle).await.is_ok());
        });
    }

    fn greet(&mut self, first: First) -> Next {
        let catalogue = self.desk.catalogue();
        for card in &first.warnings {
            self.view.warning(card);
        }
        self.view.already_told(&first.warnings);
        self.view.greet(&self.desk.handle.view(|v| v.model.clone()), catalogue.extensions.len());
        if let Some(resumed) = &first.resumed {
            self.view.goes_on(resumed);
        }
        self.first = first.messages.into();
        Next::Go
    }

    fn say_first(&mut self) {
        if self.idle()
            && self.dialogs.is_empty()
            && let Some(said) = self.first.pop_front()
        {
            self.say(said);
        }
    }

    fn say(&mut self, said: Said) {
        let Said { text, images } = said;
        self.view.typed(&text);
        self.ask(Op::Prompt {
            text,
            images,
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
            Event::ExtensionError { extension_path, error, .. }
                if let Some(command) = extension_path.strip_prefix("command:") =>
            {
                let all = self.desk.catalogue().commands;
                let owner = all.iter().find(|c| c.name == command).map_or("extension", |c| &c.extension);
                self.view.command_failed(owner, command, error);
                return Next::Go;
            }
            Event::SessionReady { .. } => self.ready = true,
            Event::BashExecuted { .. } => self.bash = false,
            Event::EngineLost { .. } => {
                (self.ready, self.bash, self.watching, self.aborting) = (false, false, false, None);
            }
            Event::Stopped => return Next::Quit { from_signal: false },
            _ => {}
        }
        // What still comes of an aborted answer would only keep the prompt from coming back.
        if !(self.aborting.is_some() && matches!(event, Event::MessageUpdate { .. })) {
            self.view.event(event);
        }
        Next::Go
    }

    fn show_dialog(&mut self) {
        stdio::forget_typed_ahead();
        if let Some(text) = self.dialogs.question() {
            self.view.question(&text);
        }
    }

    fn answer(&mut self, want: Want, answer: Result<Value, OpError>) -> Next {
        self.waiting = self.waiting.saturating_sub(1);
        if want != Want::Other {
            match answer.as_ref().map(|answer| self.lists.answered(want, answer)) {
                Ok(Ok(text)) => self.view.text(&text),
                Ok(Err(next)) => self.go_on(next),
                Err(_) => {}
            }
        } else if let Ok(Value::String(text)) = answer.as_ref().map(|a| &a["text"]) {
            self.view.text(text);
        }
        if let Ok(queue) = &answer {
            self.view.taken_back(queue);
        }
        if let Err(e) = answer {
            // `Op::UserBash` is the only one that is followed by an event of its own.
            self.bash = false;
            // What a lost engine owed was told with its loss, and a compaction has its own events.
            if !matches!(e.code.as_str(), "engine_lost" | "compact_failed" | "compact_cancelled") {
                self.view.card(&Card::told(&e.code, &e.message));
            }
        }
        Next::Go
    }

    fn signal(&mut self, signal: Option<Signal>) -> Next {
        match signal {
            Some(Signal::Terminate | Signal::HangUp) | None => return Next::Quit { from_signal: true },
            Some(Signal::Interrupt) => {}
        }
        if self.login.take().is_some() {
            self.view.remark("no key was stored");
            return Next::Go;
        }
        let busy = !self.ready || !self.desk.handle.view(|v| v.idle) || self.bash;
        if busy {
            self.abort();
        } else if let Some(id) = self.dialogs.cancel() {
            self.desk.handle.send(Op::Answer { id, answer: DialogAnswer::Cancelled });
        } else if self.waiting > 0 {
            // A command of an extension.
            self.abort();
        } else if std::mem::replace(&mut self.interrupted, true) {
            return Next::Quit { from_signal: false };
        } else {
            self.view.remark("Ctrl+C again, or Ctrl+D, quits");
        }
        Next::Go
    }

    /// The terminal answers at once; what is aborted may take its time. A second Ctrl+C always
    /// gets the prompt back: an engine that has not come to rest by then is replaced.
    fn abort(&mut self) {
        match self.aborting {
            None => {
                self.aborting = Some(Instant::now());
                self.view.remark("aborting");
                // What was queued comes back: nothing is sent later that the user has given up.
                let held: Vec<String> = self.first.drain(..).map(|said| said.text).collect();
                self.view.taken_back(&serde_json::json!({"steering": held}));
                self.ask(Op::Abort);
                self.ask(Op::ClearQueue);
            }
            Some(since) if since.elapsed() < ABORT => {
                // What a second one means to the engine: the hooks of the end are cut short too.
                self.desk.handle.send(Op::Abort);
                let (handle, control) = (self.desk.handle.clone(), self.desk.control.clone());
                tokio::spawn(async move {
                    let settled = handle.request(Op::WaitForIdle);
                    if tokio::time::timeout(ABORT, settled).await.is_err() {
                        control.restart();
                    }
                });
            }
            Some(_) => {
                self.view.remark("the engine does not come to rest: another one takes over");
                self.desk.control.restart();
            }
        }
    }

    fn end_of_input(&mut self) -> Next {
        self.deaf = true;
        self.give_dialogs_up();
        if self.typed { Next::Quit { from_signal: false } } else { Next::Go }
    }

    /// Nobody can answer any more, so nothing open is approved. Those behind it come up in turn.
    fn give_dialogs_up(&mut self) {
        if let Some(id) = self.dialogs.cancel() {
            self.desk.handle.send(Op::Answer { id, answer: DialogAnswer::Cancelled });
        }
    }

    fn line(&mut self, line: &str) -> Next {
        self.interrupted = false;
        self.view.line_was_typed();
        if let Some(asked) = self.login.take() {
            self.key_was_typed(asked, line);
            return Next::Go;
        }
        if self.dialogs.asking() {
            match self.dialogs.answer(line) {
                dialog::Reply::Answer(id, answer) => self.desk.handle.send(Op::Answer { id, answer }),
                dialog::Reply::More => {}
                dialog::Reply::Again(text) => self.view.question(&text),
            }
            return Next::Go;
        }
        let catalogue = self.desk.catalogue();
        let commands = catalogue.all_commands();
        match input::parse(line, &commands) {
            Line::Nothing => {}
            Line::Quit => return Next::Quit { from_signal: false },
            Line::Help => self.view.help(&commands),
            Line::Login(provider) => self.ask_for_key(provider),
            Line::Logout(provider) => self.remove_key(&provider),
            Line::Host { name, args } => self.ask(Op::HostCommand { name, args }),
            Line::Reload { names, now } => self.ask(Op::Reload { names, now, origin: None }),
            Line::New => self.ask(Op::NewSession { parent_session: None, origin: None, setup: vec![] }),
            Line::Compact(custom_instructions) => {
                self.ask(Op::Compact { custom_instructions, options: Default::default() });
            }
            Line::Session(wish) => self.wish(wish),
            Line::Bash { command, hidden } => {
                self.bash = true;
                self.ask(Op::UserBash { command, exclude_from_context: hidden });
            }
            Line::Unknown(card) => self.view.card(&card),
            Line::Say(text) if self.aborting.is_some() => self.first.push_back(text.into()),
            Line::Say(text) => self.say(text.into()),
        }
        Next::Go
    }
}

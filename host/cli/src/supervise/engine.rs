//! `atomic --engine`: the process that holds the session and the extensions. Ops come in and
//! events go out as lines; the terminal is the supervisor's. When the supervisor is gone the
//! session ends as after a signal.

use super::{
    lines,
    wire::{Catalogue, FromEngine, Hello, LIMIT, PROTOCOL, Resumed, ToEngine},
};
use crate::{
    args::RunArgs,
    card::Card,
    extension_flags::Unsettled,
    launch::{Face, Launched, Origin, launch},
    modes,
    paths::Paths,
    stdio,
};
use atomic_agent::{digest::Digest, event::Event, handle::View, hooks::Hooks, message::Message, op::OpError};
use serde_json::Value;
use std::{
    sync::{Arc, mpsc::Sender},
    time::Duration,
};
use tokio::sync::mpsc;

pub async fn run(paths: &Paths, args: RunArgs, unsettled: Vec<Unsettled>) -> Result<u8, Card> {
    let cannot = |what: &str, why: String| {
        Card::new("cli::engine", what)
            .why(why)
            .help("--engine is what atomic starts by itself; start `atomic` without it")
    };
    let pipes = stdio::take_pipes(&paths.log())
        .map_err(|e| cannot("the engine's pipes cannot be taken", e.to_string()))?;
    let mut incoming = lines::read(pipes.input);
    let (out, written) = lines::write(pipes.output);
    let hello = match incoming.recv().await.map(|line| serde_json::from_slice(&line)) {
        Some(Ok(ToEngine::Hello(hello))) if hello.protocol == PROTOCOL => *hello,
        Some(Ok(ToEngine::Hello(hello))) => {
            let why = format!(
                "it speaks protocol {} (version {}), this program {PROTOCOL}",
                hello.protocol, hello.version
            );
            return Ok(refuse(out, written, cannot("the supervisor is another version of atomic", why)));
        }
        _ => return Err(cannot("there is no supervisor on the other side", "no hello came".into())),
    };
    send(&out, &FromEngine::Hello { protocol: PROTOCOL, version: env!("CARGO_PKG_VERSION").into() });

    let face = Face {
        mode: hello.mode,
        has_ui: hello.has_ui,
        crash_line: false,
        page: hello.page.clone(),
        skip: hello.skip.clone(),
    };
    let args = with_hello(args, &hello);
    let start = launch(paths, &args, unsettled, face, Origin::from(&hello));
    tokio::pin!(start);
    // Ops that come before the session is up wait in order; without a supervisor nobody waits.
    let mut early = Vec::new();
    let launched = loop {
        tokio::select! {
            biased;
            launched = &mut start => break launched,
            line = incoming.recv() => match line {
                Some(line) => early.push(line),
                None => return Ok(0),
            },
        }
    };
    match launched {
        Err(card) => Ok(refuse(out, written, card)),
        Ok(launched) => {
            let code = Serve::new(launched, out.clone()).run(early, &mut incoming).await;
            send(&out, &FromEngine::Bye);
            drop(out);
            let _ = written.join();
            Ok(code)
        }
    }
}

fn refuse(out: Sender<Vec<u8>>, written: std::thread::JoinHandle<()>, card: Card) -> u8 {
    send(&out, &FromEngine::Refused { card });
    drop(out);
    let _ = written.join();
    1
}

fn with_hello(mut args: RunArgs, hello: &Hello) -> RunArgs {
    // A crate is its library by now; what its folder lends beside is asked about all the same.
    args.lenders = std::mem::replace(&mut args.extensions, hello.extensions.clone());
    args.no_extensions |= hello.bare;
    if hello.bare {
        args.extensions.clear();
    }
    if hello.again || hello.session.is_some() || hello.fork.is_some() {
        let in_memory = args.no_session && hello.session.is_none();
        (args.continue_session, args.resume, args.no_session) = (false, false, in_memory);
        (args.session, args.fork) = (hello.session.clone(), hello.fork.clone());
        args.session_id = None;
    }
    if hello.again {
        args.name = None;
    }
    args
}

impl From<&Hello> for Origin {
    fn from(hello: &Hello) -> Self {
        Origin { reason: hello.reason, active_tools: hello.active_tools.clone(), trusted: hello.trusted }
    }
}

fn send(out: &Sender<Vec<u8>>, frame: &FromEngine) {
    match serde_json::to_vec(frame) {
        Ok(line) if line.len() > LIMIT => match instead(frame, line.len() / (1024 * 1024)) {
            Some(frame) => send(out, &frame),
            None => eprintln!("a frame of {} bytes is not sent", line.len()),
        },
        Ok(line) => drop(out.send(line)),
        // Only a value with a key that is no text, or a path serde refuses, comes here.
        Err(e) => eprintln!("a frame could not be written: {e}"),
    }
}

/// How often an engine at rest looks at what it cannot give back.
const REST: Duration = Duration::from_millis(500);

/// What is told of something longer than a line may be. The session has it whole.
fn instead(frame: &FromEngine, mib: usize) -> Option<FromEngine> {
    let what = format!("of {mib} MiB is too long to be shown; the session has it whole");
    match frame {
        FromEngine::Event { .. } => {
            let message = format!("An event {what}.");
            let event = Event::Notify { message, level: "warning".into(), extension: None };
            Some(FromEngine::Event { event: Box::new(event) })
        }
        FromEngine::Answer { id, .. } => {
            let error = OpError::new("too_long", format!("The answer {what}."));
            Some(FromEngine::Answer { id: *id, ok: None, error: Some(error) })
        }
        _ => None,
    }
}

struct Serve {
    launched: Launched,
    out: Sender<Vec<u8>>,
    view: Digest,
    catalogue: Catalogue,
    /// What was said last of being tired.
    tired: Option<(Vec<String>, bool)>,
}

type Answer = (u64, Result<Value, OpError>);

impl Serve {
    fn new(launched: Launched, out: Sender<Vec<u8>>) -> Self {
        let view = launched.handle.view(Digest::of);
        let catalogue = catalogue(&launched);
        Serve { launched, out, view, catalogue, tired: None }
    }

    fn tell(&self, frame: &FromEngine) {
        send(&self.out, frame);
    }

    async fn run(mut self, early: Vec<Vec<u8>>, incoming: &mut mpsc::UnboundedReceiver<Vec<u8>>) -> u8 {
        let ready = FromEngine::Ready {
            view: Box::new(self.view.clone()),
            catalogue: self.catalogue.clone(),
            warnings: std::mem::take(&mut self.launched.warnings),
            messages: std::mem::take(&mut self.launched.messages),
            resumed: resumed(&self.launched),
        };
        self.tell(&ready);
        let (answers, mut answered) = mpsc::unbounded_channel::<Answer>();
        for line in early {
            self.take(&line, &answers);
        }
        let handle = self.launched.handle.clone();
        let mut rests = tokio::time::interval(REST);
        rests.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let orphaned = loop {
            tokio::select! {
                biased;
                line = incoming.recv() => match line {
                    Some(line) => self.take(&line, &answers),
                    // The supervisor is gone, and the terminal with it.
                    None => break true,
                },
                event = self.launched.events.recv() => {
                    let Some(event) = event else { break false };
                    let last = matches!(*event, Event::Stopped);
                    self.event(&event);
                    if last {
                        break false;
                    }
                }
                Some((id, answer)) = answered.recv() => {
                    self.catch_up();
                    self.answer(id, answer);
                }
                () = handle.view_changed() => self.catch_up(),
                // Retirements end when nobody looks.
                _ = rests.tick() => self.rest(),
            }
        };
        match orphaned {
            true => modes::shut_down(&self.launched, true).await,
            false => modes::close_extensions(&self.launched).await,
        }
        self.catch_up();
        while let Ok((id, answer)) = answered.try_recv() {
            self.answer(id, answer);
        }
        0
    }

    fn take(&self, line: &[u8], answers: &mpsc::UnboundedSender<Answer>) {
        match serde_json::from_slice(line) {
            Ok(ToEngine::Op { id, op }) => {
                // Sent here and now, so that ops keep their order; waited for elsewhere.
                let asked = self.launched.handle.ask(op);
                let answers = answers.clone();
                tokio::spawn(async move {
                    let _ = answers.send((id, asked.await));
                });
            }
            Ok(ToEngine::Post { op }) => self.launched.handle.send(op),
            Ok(ToEngine::Hello(_)) => {}
            Err(e) => eprintln!("a line of the supervisor is not understood: {e}"),
        }
    }

    fn answer(&self, id: u64, answer: Result<Value, OpError>) {
        let (ok, error) = match answer {
            Ok(value) => (Some(value), None),
            Err(e) => (None, Some(e)),
        };
        self.tell(&FromEngine::Answer { id, ok, error });
    }

    /// Everything that was told until now, then the state that it led to.
    fn catch_up(&mut self) {
        let view = self.launched.handle.view(Digest::of);
        while let Ok(event) = self.launched.events.try_recv() {
            self.event(&event);
        }
        if view != self.view {
            self.tell(&FromEngine::View { view: Box::new(view.clone()) });
            self.view = view;
        }
    }

    fn event(&mut self, event: &Arc<Event>) {
        let changes = matches!(
            **event,
            Event::SessionReady { .. } | Event::Reloaded { .. } | Event::AgentStart | Event::AgentSettled
        );
        if changes {
            let now = catalogue(&self.launched);
            if now != self.catalogue {
                self.tell(&FromEngine::Catalogue { catalogue: now.clone() });
                self.catalogue = now;
            }
        }
        self.tell(&FromEngine::Event { event: Box::new((**event).clone()) });
    }

    /// At rest an engine looks at what it cannot give back.
    fn rest(&mut self) {
        if !self.view.idle {
            return;
        }
        let graves = self.launched.extensions.graves();
        if graves != self.catalogue.graves {
            self.catalogue.graves = graves;
            self.tell(&FromEngine::Catalogue { catalogue: self.catalogue.clone() });
        }
        let Some(tired) = self.launched.extensions.tired() else { return };
        let mut postponed = tired.postponed;
        if self.view.session_file.is_none() && self.launched.handle.view(has_content) {
            postponed.push("the session is in no file, and would be lost".into());
        }
        let said = (postponed.clone(), tired.badly);
        if self.tired.as_ref() != Some(&said) {
            self.tell(&FromEngine::Tired { why: tired.why, postponed, badly: tired.badly });
            self.tired = Some(said);
        }
    }
}

/// More than what every session begins with.
fn has_content(view: &View) -> bool {
    view.entries.iter().any(|e| !matches!(e.kind(), "model_change" | "thinking_level_change"))
}

fn resumed(launched: &Launched) -> Option<Resumed> {
    let (name, entries) = launched.handle.view(|v| (v.session_name.clone(), v.entries.clone()));
    let messages = entries.iter().filter(|e| matches!(e.role(), Some("user" | "assistant"))).count();
    let last = entries.iter().rev().find(|e| e.role() == Some("user"));
    let last = match last.and_then(|e| e.message()) {
        Some(Message::User(m)) => Some(m.content.plain_text()),
        _ => None,
    };
    (messages > 0).then_some(Resumed { name, messages, last })
}

fn catalogue(launched: &Launched) -> Catalogue {
    let extensions = &launched.extensions;
    Catalogue {
        commands: extensions.commands(),
        lent: launched.handle.view(|v| v.lent.clone()),
        extensions: extensions.list(),
        graves: extensions.graves(),
        trusted: extensions.trust_decision().and_then(|d| d.carried()),
    }
}

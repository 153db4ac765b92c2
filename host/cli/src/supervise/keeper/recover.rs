//! What happens when an engine is lost, or should be replaced: who it was, what the user wants,
//! and another engine on the same session.

use super::{Flow, Keeper, Leaving, Order, answer};
use crate::{
    card::Card,
    supervise::{
        loss::{End, Loss},
        wire::{Catalogue, ToEngine},
    },
};
use atomic_agent::{
    event::Event,
    hooks::StartReason,
    op::{Dialog, DialogAnswer, Op, OpError},
};
use serde_json::Value;
use std::{
    sync::{PoisonError, atomic::Ordering},
    time::Duration,
};

/// What the end of an engine may take once it was asked.
const GRACE: Duration = Duration::from_millis(2500);
/// Losses in a row, without a run that ended in between, after which nothing is loaded any more.
const PATIENCE: u32 = 3;

impl Keeper {
    // ---- losses

    pub(super) async fn hung(&mut self) -> Flow {
        let Some(child) = &mut self.child else { return Flow::On };
        let held = child.vitals().and_then(|v| v.held);
        child.kill();
        self.gone(Some(End::Hung(held))).await
    }

    /// The engine's process has ended, or is about to.
    pub(super) async fn gone(&mut self, end: Option<End>) -> Flow {
        let Some(mut child) = self.child.take() else { return Flow::Over };
        let status = child.reap(Duration::from_secs(1)).await;
        if self.ending {
            self.fail_pending();
            return Flow::Over;
        }
        let end = end.unwrap_or(End::Died(status));
        let loss = child.loss(&end);
        let hung = matches!(end, End::Hung(_));
        drop(child);
        self.tell(&loss);
        self.losses += 1;
        self.leaving = Leaving::No;
        let culprits = loss.extensions.clone();
        let again = self.losses >= PATIENCE;
        // Without extensions there are no guards either: nobody decides that but the user.
        if again && (self.bare || !self.plan.asks) {
            return self.give_up(&loss);
        }
        let choice = match self.plan.asks && !hung && (again || !culprits.is_empty()) {
            true => self.ask(&loss, again).await,
            false => Choice::Without,
        };
        match choice {
            Choice::Quit => return Flow::Over,
            Choice::Without => self.skip.extend(culprits),
            Choice::With => {}
            Choice::Bare => self.bare = true,
        }
        self.start_another(StartReason::Resume)
    }

    fn start_another(&mut self, reason: StartReason) -> Flow {
        match self.start_engine(reason) {
            Ok(()) => Flow::On,
            Err(card) => {
                self.fail_first(card);
                Flow::Over
            }
        }
    }

    fn give_up(&mut self, loss: &Loss) -> Flow {
        let card = Card::new("cli::engine_lost", "the engine cannot be kept running")
            .why(loss.what.clone())
            .help("the session is safe: start with --no-extensions --continue");
        self.fail_first(card);
        Flow::Over
    }

    /// To whoever waits for the start, else to everyone.
    fn fail_first(&mut self, card: Card) {
        self.failed.store(true, Ordering::Release);
        match self.first.take() {
            Some(first) => drop(first.send(Err(card))),
            None => self.notify("error", card.to_string().trim_end()),
        }
    }

    pub(super) async fn refused(&mut self, card: Card) -> Flow {
        if let Some(child) = &mut self.child {
            child.reap(GRACE).await;
        }
        self.child = None;
        if self.first.is_some() || self.ending {
            self.fail_first(card);
            return Flow::Over;
        }
        // It ran before: what it cannot start with now is what changed meanwhile. The session is
        // in its file.
        self.notify("error", card.to_string().trim_end());
        self.failed.store(true, Ordering::Release);
        Flow::Over
    }

    pub(super) fn fail_pending(&mut self) {
        let lost = || {
            OpError::new(
                "engine_lost",
                "The engine was lost before it answered; what it had begun may have happened.",
            )
        };
        for (_, reply) in self.pending.drain() {
            let _ = reply.send(Err(lost()));
        }
    }

    /// Everything that a front end shows of the engine ends here, and nothing typed is lost.
    fn tell(&mut self, loss: &Loss) {
        self.fail_pending();
        for id in std::mem::take(&mut self.dialogs) {
            self.desk.emit(Event::DialogClosed { id });
        }
        self.desk.update_view(|v| {
            v.idle = true;
            v.pending_messages = 0;
        });
        self.desk.emit(Event::EngineLost {
            what: loss.what.clone(),
            extensions: loss.extensions.clone(),
            event: loss.event.clone(),
            unanswered: std::mem::take(&mut self.calls).into_values().collect(),
        });
        let mut back: Vec<String> = std::mem::take(&mut self.undelivered).into_values().collect();
        back.append(&mut self.queued);
        for text in back {
            let what = if text.starts_with('/') {
                "This command did not end"
            } else {
                "This message was not delivered"
            };
            self.notify("warning", &format!("{what}: {text}"));
        }
        self.told = None;
    }

    /// What happened, and what of the session is left.
    fn title(&self, loss: &Loss) -> String {
        let kept = match self.desk.view(|v| v.session_file.is_some()) {
            true => "The session is safe",
            false => "The session was in no file, and begins anew",
        };
        format!("{}. {kept}.", loss.what)
    }

    /// `again`: not for the first time; then even a start without any extension is offered.
    async fn ask(&mut self, loss: &Loss, again: bool) -> Choice {
        let mut offers = Vec::new();
        if !loss.extensions.is_empty() {
            let who = loss.extensions.join(", ");
            offers.push((format!("go on without {who}"), Choice::Without));
            offers.push((format!("go on with {who}"), Choice::With));
        } else {
            offers.push(("go on".to_owned(), Choice::With));
        }
        if again {
            offers.push(("go on without any extension, guards included".to_owned(), Choice::Bare));
        }
        offers.push(("quit".to_owned(), Choice::Quit));
        let dialog = Dialog::Select {
            message: None,
            title: self.title(loss),
            options: offers.iter().map(|(text, _)| text.clone()).collect(),
            timeout_ms: None,
        };
        match self.question(dialog).await {
            None => Choice::Quit,
            Some(DialogAnswer::Value(v)) => {
                offers.into_iter().find(|(text, _)| *text == v).map_or(Choice::Without, |(_, choice)| choice)
            }
            Some(_) => Choice::Without,
        }
    }

    /// A question of the supervisor's own; `None`: the program ends meanwhile.
    async fn question(&mut self, dialog: Dialog) -> Option<DialogAnswer> {
        let desk = self.desk.clone();
        desk.update_view(|v| v.has_ui = true);
        let asked = desk.dialog(dialog, "atomic");
        tokio::pin!(asked);
        loop {
            tokio::select! {
                biased;
                answer = &mut asked => return Some(answer),
                order = self.orders.recv() => match order {
                    Some(Order::Restart) => {}
                    Some(Order::End(done, grace)) => {
                        self.end(grace).await;
                        let _ = done.send(());
                        return None;
                    }
                    None => return None,
                },
                Some(request) = self.ops.recv() => match request.op {
                    Op::Answer { id, answer: given } => {
                        desk.answer(id, given);
                        answer(request.reply, Ok(Value::Null));
                    }
                    Op::Shutdown { .. } => {
                        self.ending = true;
                        answer(request.reply, Ok(Value::Null));
                        return None;
                    }
                    _ => self.held_back.push(request),
                },
            }
        }
    }

    /// What was at work before and is not now, though nobody left it out: its library is gone, or
    /// no longer loads. It may have been a guard, so only the user goes on without it.
    pub(super) async fn accept_what_is_missing(&mut self, before: &Catalogue) -> Flow {
        if self.first.is_some() || self.bare {
            return Flow::On;
        }
        let now = self.catalogue.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let loaded = |name: &str| now.extensions.iter().any(|e| e.name == name);
        let missing: Vec<_> = before
            .extensions
            .iter()
            .filter(|e| !loaded(&e.name) && !self.skip.contains(&e.name))
            .map(|e| format!("{} ({})", e.name, e.path.display()))
            .collect();
        if missing.is_empty() {
            return Flow::On;
        }
        let what = format!("{} was at work before and cannot be loaded now", missing.join(", "));
        if !self.plan.asks {
            let card = Card::new("extension::vanished", what)
                .why("what it guarded would no longer be guarded, and nobody can be asked")
                .help("put the library back; or start again, with --continue, to go on without it");
            self.fail_first(card);
            return Flow::Over;
        }
        let (on, quit) = ("go on without it".to_owned(), "quit".to_owned());
        let options = vec![on.clone(), quit];
        let dialog = Dialog::Select {
            title: format!("{what}."),
            message: Some("It may have guarded something.".into()),
            options,
            timeout_ms: None,
        };
        match self.question(dialog).await {
            Some(DialogAnswer::Value(v)) if v == on => Flow::On,
            _ => Flow::Over,
        }
    }

    // ---- planned ends

    /// An engine that holds too much is replaced when nothing goes on.
    pub(super) async fn tired(&mut self, why: String, postponed: &[String], badly: bool) -> Flow {
        if self.leaving != Leaving::No || self.ending {
            return Flow::On;
        }
        if !postponed.is_empty() {
            if !badly || !self.plan.asks {
                return Flow::On;
            }
            let dialog = Dialog::Confirm {
                title: format!("Replace the engine now? {}", why),
                message: format!(
                    "It was put off so far: {}. The session goes on in a new one.",
                    postponed.join("; ")
                ),
                timeout_ms: None,
            };
            match self.question(dialog).await {
                Some(DialogAnswer::Confirmed(true)) => {}
                None => return Flow::Over,
                Some(_) => {
                    self.leaving = Leaving::Refused;
                    return Flow::On;
                }
            }
        }
        // On a screen that is the log; elsewhere the line below says it.
        if self.plan.asks {
            eprintln!("the engine is replaced: {why}");
        }
        self.notify("info", &format!("The engine is replaced: {why}."));
        self.leaving = Leaving::Asked;
        if let Some(child) = &self.child {
            child.send(&ToEngine::Post { op: Op::HandOver });
        }
        Flow::On
    }

    pub(super) async fn handed_over(&mut self) -> Flow {
        if let Some(mut child) = self.child.take() {
            child.reap(GRACE).await;
        }
        self.fail_pending();
        if self.ending {
            return Flow::Over;
        }
        self.start_another(StartReason::Reload)
    }

    pub(super) async fn end(&mut self, grace: Duration) {
        self.ending = true;
        if let Some(mut child) = self.child.take() {
            child.reap(grace).await;
        }
        self.fail_pending();
    }
}

enum Choice {
    Without,
    With,
    /// Without any extension.
    Bare,
    Quit,
}

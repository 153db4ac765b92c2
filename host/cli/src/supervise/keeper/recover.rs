//! What happens when an engine is lost, or should be replaced: who it was, what the user wants,
//! and another engine on the same session.

use super::{Flow, Keeper, Leaving, Order, answer};
use crate::{
    card::Card,
    supervise::{
        loss::{End, Loss},
        wire::ToEngine,
    },
};
use atomic_agent::{
    event::Event,
    hooks::StartReason,
    op::{Dialog, DialogAnswer, Op, OpError},
};
use serde_json::Value;
use std::time::Duration;

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
        if self.losses >= PATIENCE {
            self.bare = true;
            self.notify("error", "The engine was lost again and again; it goes on without any extension.");
        }
        if self.losses > PATIENCE {
            return self.give_up(&loss);
        }
        let leave_out = match self.plan.asks && !hung && !culprits.is_empty() && !self.bare {
            true => self.ask(&loss).await,
            false => Choice::Without,
        };
        match leave_out {
            Choice::Quit => return Flow::Over,
            Choice::Without => self.skip.extend(culprits),
            Choice::With => {}
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
        // It ran before: what it cannot start with now is what changed meanwhile.
        self.notify("error", card.to_string().trim_end());
        self.losses += 1;
        if self.losses > PATIENCE {
            return Flow::Over;
        }
        self.bare = true;
        self.start_another(StartReason::Resume)
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
            self.notify("warning", &format!("This message was not delivered: {text}"));
        }
        self.told = None;
    }

    async fn ask(&mut self, loss: &Loss) -> Choice {
        let who = loss.extensions.join(", ");
        let without = format!("go on without {who}");
        let with = format!("go on with {who}");
        let quit = "quit".to_owned();
        let dialog = Dialog::Select {
            title: format!("{}. The session is safe.", capital(&loss.what)),
            options: vec![without, with.clone(), quit.clone()],
            timeout_ms: None,
        };
        match self.question(dialog).await {
            None => Choice::Quit,
            Some(DialogAnswer::Value(v)) if v == quit => Choice::Quit,
            Some(DialogAnswer::Value(v)) if v == with => Choice::With,
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
                    Some(Order::End(done)) => {
                        self.end().await;
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
                title: format!("Replace the engine now? {}", capital(&why)),
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
        eprintln!("the engine is replaced: {why}");
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

    pub(super) async fn end(&mut self) {
        self.ending = true;
        if let Some(mut child) = self.child.take() {
            child.reap(GRACE).await;
        }
        self.fail_pending();
    }
}

enum Choice {
    Without,
    With,
    Quit,
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|c| c.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

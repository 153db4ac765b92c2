//! Going through the order of `order.rs`: extensions are asked, then the person. What a handler
//! of `project_trust` may do meanwhile is next to nothing: there is no decision yet to act on.

use super::{
    Territory,
    inputs::{self, Users},
    order::{By, Choice, Decision, Known, Next, SavedAnswer, resolve},
    prompt::{self, Subject},
    store::{Entry, TrustStore},
    survey::Survey,
};
use crate::{
    discover,
    dispatch::Reason,
    host::{Extensions, lock},
};
use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::{
        LazyLock, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

/// Calls of `project_trust` handlers that are being asked now.
static CALLS: LazyLock<Mutex<HashSet<u64>>> = LazyLock::new(Mutex::default);
static ASKED: AtomicUsize = AtomicUsize::new(0);

/// A call of a `project_trust` handler, as long as this lives.
pub(crate) struct TrustCall(u64);

impl TrustCall {
    /// `None`: a handler of another event.
    pub(crate) fn of(event: usize, call: u64) -> Option<Self> {
        (event == crate::dispatch::PROJECT_TRUST).then(|| {
            lock(&CALLS).insert(call);
            ASKED.fetch_add(1, Relaxed);
            TrustCall(call)
        })
    }
}

impl Drop for TrustCall {
    fn drop(&mut self) {
        lock(&CALLS).remove(&self.0);
        ASKED.fetch_sub(1, Relaxed);
    }
}

pub(crate) fn is_trust_call(call: u64) -> bool {
    ASKED.load(Relaxed) != 0 && lock(&CALLS).contains(&call)
}

/// What such a call may ask of the host (events.md A.2): where it is, and the person.
pub(crate) fn allowed(op: &str, body: &[u8]) -> bool {
    match op {
        "ui.select" | "ui.confirm" | "ui.input" | "ui.notify" | "log" | "fault" => true,
        "ctx.get" => {
            let get: Option<serde_json::Value> = serde_json::from_slice(body).ok();
            let member = get.as_ref().and_then(|g| g["member"].as_str());
            member.is_some_and(|m| matches!(m, "cwd" | "mode" | "hasUI"))
        }
        _ => false,
    }
}

impl Extensions {
    fn users(&self) -> Users<'_> {
        let home = self.plan().and_then(|p| p.user_home.as_deref());
        Users { atomic_home: &self.config().home, home }
    }

    pub(crate) fn inputs_of(&self, t: &Territory) -> Vec<PathBuf> {
        match t.borrowed {
            true => inputs::borrowed(&t.dir, self.users()),
            false => inputs::inputs(&t.dir, self.users()),
        }
    }

    pub(crate) fn store(&self) -> Option<TrustStore> {
        self.plan().map(|p| TrustStore::of(&p.agent_dir))
    }

    fn saved(&self, dir: &Path) -> SavedAnswer {
        let Some(store) = self.store() else { return SavedAnswer::Nothing };
        match store.read() {
            Ok(saved) => saved
                .lookup(dir)
                .map_or(SavedAnswer::Nothing, |a| SavedAnswer::Of { trusted: a.trusted, at: a.at }),
            Err(e) => SavedAnswer::Broken(e.to_string()),
        }
    }

    /// All that is known without asking anyone.
    pub(crate) fn known(&self, t: &Territory) -> Known {
        let Some(plan) = self.plan() else {
            // Decided by whoever made this host.
            return Known { command_line: Some(self.config().project_trusted), ..Known::default() };
        };
        let saved = self.saved(&t.dir);
        let of_before = !t.borrowed && t.dir == self.config().cwd;
        let carried = plan.carried.filter(|_| of_before).map(|trusted| match &saved {
            SavedAnswer::Of { trusted: same, at } if *same == trusted => By::Saved { at: at.clone() },
            _ if trusted => By::User(Choice::TrustOnce),
            _ => By::User(Choice::RefuseOnce),
        });
        let carried = carried.map(|by| Decision { trusted: plan.carried == Some(true), by });
        Known {
            command_line: plan.command_line,
            cached: t.decision.clone().or(carried),
            inputs: !self.inputs_of(t).is_empty(),
            hooks: None,
            saved,
            default: plan.default,
            ui: plan.interactive && self.engine("trust").is_ok(),
            chosen: None,
        }
    }

    /// Asks until it is decided; the survey is what the person was shown.
    pub(crate) async fn decide(&self, t: &Territory) -> (Decision, Option<Survey>) {
        let mut known = self.known(t);
        let mut shown = None;
        let decision = loop {
            match resolve(&known) {
                Next::Decided(decision) => break decision,
                Next::AskExtensions => known.hooks = Some(self.ask_project_trust(&t.dir).await),
                Next::AskUser => {
                    let survey = self.survey(t).await;
                    known.chosen = Some(self.ask_user(t, &survey).await);
                    shown = Some(survey);
                }
            }
        };
        if let Err(e) = self.remember(&t.dir, &decision) {
            self.warn(format!("the answer about {} could not be saved: {e}", t.dir.display()));
        }
        (decision, shown)
    }

    async fn ask_user(&self, t: &Territory, survey: &Survey) -> Choice {
        let Ok(engine) = self.engine("trust") else { return Choice::Dismissed };
        let (inputs, libraries) = (self.inputs_of(t), survey.shown(&t.dir));
        let subject = Subject {
            dir: &t.dir,
            borrowed: t.borrowed,
            inputs: &inputs,
            libraries: &libraries,
            refused: &survey.refused,
        };
        let (dialog, options) = subject.question();
        let _span = self.prompt_span(Reason::ProjectTrust, "select", dialog.title());
        prompt::chosen(&engine.dialog(dialog, super::ASKER).await, &options)
    }

    /// What the answer leaves in trust.json (events.md B.3).
    fn remember(&self, dir: &Path, decision: &Decision) -> Result<(), super::kept_json::FileError> {
        let Some(store) = self.store() else { return Ok(()) };
        match &decision.by {
            By::User(choice) => save_choice(&store, dir, *choice),
            By::Extension { remember: true, .. } => {
                let entry = if decision.trusted { Entry::Yes } else { Entry::No };
                store.set(&[(dir.to_owned(), entry)])
            }
            _ => Ok(()),
        }
    }

    /// Names of what is not opened, for saying so.
    pub(crate) fn unopened(&self, t: &Territory) -> Vec<PathBuf> {
        discover::list_project(&self.places(), &t.dir)
    }
}

/// A choice of the prompt, written down.
pub(crate) fn save_choice(
    store: &TrustStore,
    dir: &Path,
    choice: Choice,
) -> Result<(), super::kept_json::FileError> {
    let dir = super::canonical(dir);
    match (choice, dir.parent()) {
        (Choice::Trust, _) => store.set(&[(dir, Entry::Yes)]),
        (Choice::TrustParent, Some(parent)) => {
            store.set(&[(parent.to_owned(), Entry::Yes), (dir.clone(), Entry::Remove)])
        }
        (Choice::Refuse, _) => store.set(&[(dir, Entry::No)]),
        (Choice::TrustParent | Choice::TrustOnce | Choice::RefuseOnce | Choice::Dismissed, _) => Ok(()),
    }
}

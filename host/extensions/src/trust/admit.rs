//! From a decision to loaded extensions: what the pins say, what of the survey is copied and
//! activated, and the start of a session in which a project comes in later (events.md B.5, B.6).

use super::{
    By, Decision, Territory,
    pins::{Difference, Hashes, Pins, differences},
    prompt,
    survey::{Judged, Survey, hashes},
};
use crate::{
    convert,
    discover::Note,
    dispatch::{Reason, SESSION_START},
    host::{Extensions, LoadReport, lock},
    loading::{Prepared, Scan},
    refusal::{Refusal, Why},
};
use atomic_agent::{
    event::Event,
    hooks::{Bootstrap, Hooks, StartReason},
    op::{DialogAnswer, Op},
};
use std::path::PathBuf;

/// What may be loaded of a territory.
#[derive(Default)]
pub(crate) struct Admitted {
    pub(crate) judged: Vec<Judged>,
    pub(crate) refused: Vec<Refusal>,
    pub(crate) notes: Vec<String>,
}

impl Extensions {
    /// Everything that is decided before there is a session. What the person must be asked about
    /// waits for `bootstrap`.
    pub(crate) async fn settle_projects(&self, report: &mut LoadReport) {
        for t in self.trust.all() {
            let known = self.known(&t);
            let later = self.plan().is_some_and(|p| p.interactive)
                && !matches!(super::resolve(&known), super::Next::Decided(_));
            if later {
                continue;
            }
            let (decision, shown) = self.decide(&t).await;
            self.trust.decided(&t.dir, &decision);
            let admitted = self.admit(&t, &decision, shown, &|_| true).await;
            report.refused.extend(admitted.refused);
            report.notes.extend(admitted.notes);
            let (_, refused, notes) = self.attach(admitted.judged).await;
            report.refused.extend(refused);
            report.notes.extend(notes);
        }
        report.notes.append(&mut self.trust.said());
    }

    /// DECIDE, ATTACH and DISCOVER of a start with a person (events.md B.5). `None`: all was
    /// decided before.
    pub(crate) async fn bring_projects_in(&self) -> Option<Bootstrap> {
        if !self.goes_on_here().await {
            return None;
        }
        if !self.trust.pending() {
            return None;
        }
        let _one = self.replacing.lock().await;
        let mut started = Vec::new();
        for t in self.trust.all().into_iter().filter(|t| t.decision.is_none()) {
            let (decision, shown) = self.decide(&t).await;
            self.trust.decided(&t.dir, &decision);
            let admitted = self.admit(&t, &decision, shown, &|_| true).await;
            let (new, refused, notes) = self.attach(admitted.judged).await;
            for refusal in admitted.refused.iter().chain(&refused) {
                self.warn(refusal.to_string());
            }
            for note in admitted.notes.into_iter().chain(notes) {
                self.warn(note);
            }
            started.extend(new);
        }
        let project_trusted = self.project_trusted();
        // Before its first event: `isProjectTrusted` is true in the session_start of newcomers.
        if let Ok(engine) = self.engine("trust") {
            engine.update_view(|v| v.project_trusted = project_trusted);
        }
        self.settle_late_flags();
        if let Some(subs) = self.subs(SESSION_START) {
            let is_new = |s: &&crate::registry::Sub| started.contains(&s.generation.number());
            let new: Vec<_> = subs.iter().filter(is_new).cloned().collect();
            self.notify_all(SESSION_START, &new, &convert::session_start(StartReason::Startup, None)).await;
        }
        self.resources_discover(StartReason::Startup).await;
        Some(Bootstrap { project_trusted })
    }

    /// Before a session of another directory takes this one's place: asks who is here now
    /// (events.md B.7). Nothing of that directory is opened.
    pub(crate) async fn enter_project(&self, dir: &std::path::Path) -> bool {
        let decision = self.trust.known_of(dir);
        let t = Territory { dir: dir.to_owned(), borrowed: false, decision };
        let (decision, _) = self.decide(&t).await;
        self.trust.entered(dir, decision.clone());
        decision.trusted
    }

    /// Of a session whose own folder is gone. Without a yes the engine ends (events.md B.7).
    async fn goes_on_here(&self) -> bool {
        let (Some(gone), Ok(engine)) = (&self.config().gone_cwd, self.engine("trust")) else { return true };
        let dialog = prompt::gone(gone, &self.config().cwd);
        let _span = self.prompt_span(Reason::Extension, "confirm", dialog.title());
        let yes = engine.dialog(dialog, super::ASKER).await == DialogAnswer::Confirmed(true);
        if !yes {
            engine.send(Op::Shutdown { from_signal: false });
        }
        yes
    }

    /// Reads, checks and hashes what a territory holds; nothing of it runs.
    pub(crate) async fn survey(&self, t: &Territory) -> Survey {
        let Some(me) = self.weak().upgrade() else { return Survey::default() };
        let t = t.clone();
        let surveyed = self.runtime().spawn_blocking(move || {
            let listed = me.config().surroundings.as_ref().filter(|_| !t.borrowed);
            let listed = listed.and_then(|s| s.listed(&t.dir));
            let before: Vec<PathBuf> = Vec::new();
            Survey::of(&me.copies, &me.places(), &t.dir, listed.as_ref(), &before)
        });
        surveyed.await.unwrap_or_default()
    }

    /// What of a territory may load. `chosen`: by name, who is asked about at all.
    pub(crate) async fn admit(
        &self,
        t: &Territory,
        decision: &Decision,
        shown: Option<Survey>,
        chosen: &(dyn Fn(&str) -> bool + Sync),
    ) -> Admitted {
        if !decision.trusted {
            return Admitted { notes: self.not_opened(t, decision), ..Admitted::default() };
        }
        let survey = match shown {
            Some(survey) => survey,
            None => self.survey(t).await,
        };
        let mut admitted = Admitted { refused: survey.refused, ..Admitted::default() };
        for note in survey.notes {
            match note {
                Note::Refused { scope, path, refusal } => {
                    let why = Why::Entry { code: refusal.code(), detail: refusal.to_string() };
                    admitted.refused.push(Refusal::new(&path, why).from_scope(scope));
                }
                other => admitted.notes.push(other.to_string()),
            }
        }
        let pinning = self.plan().is_some_and(|p| p.pinning) && decision.remembered();
        if !pinning {
            admitted.judged = survey.judged;
            return admitted;
        }
        let answered_now = t.decision.is_none() && matches!(decision.by, By::Extension { .. } | By::User(_));
        self.hold_to_pins(t, survey.judged, answered_now, chosen, &mut admitted).await;
        admitted
    }

    async fn hold_to_pins(
        &self,
        t: &Territory,
        judged: Vec<Judged>,
        answered_now: bool,
        chosen: &(dyn Fn(&str) -> bool + Sync),
        admitted: &mut Admitted,
    ) {
        let Some(plan) = self.plan() else { return };
        let pins = Pins::of(&plan.agent_dir);
        let shown: Vec<_> = judged.iter().map(|j| j.shown(&t.dir)).collect();
        let found = hashes(&shown);
        if answered_now {
            // A yes that cannot be pinned is a yes all the same.
            admitted.notes.extend(self.pin(&pins, t, &found).err());
            admitted.judged = judged;
            return;
        }
        let differ = match pins.get(&t.dir) {
            Ok(None) => Default::default(),
            Ok(Some(pinned)) => differences(&pinned, &found),
            // Nobody can say what was pinned: all of it is new.
            Err(e) => {
                admitted.notes.push(e.to_string());
                differences(&Hashes::new(), &found)
            }
        };
        let asked_about =
            judged.iter().zip(&shown).any(|(j, s)| differ.contains_key(&s.file) && chosen(j.name()));
        if !asked_about {
            admitted.judged = judged;
            return;
        }
        let approved = match self.engine("trust") {
            Ok(engine) if plan.interactive => {
                let dialog = prompt::changed(&t.dir, &differ, &shown);
                let _span = self.prompt_span(Reason::ProjectTrust, "confirm", dialog.title());
                engine.dialog(dialog, super::ASKER).await == DialogAnswer::Confirmed(true)
            }
            _ => false,
        };
        if approved {
            admitted.notes.extend(self.pin(&pins, t, &found).err());
            admitted.judged = judged;
            return;
        }
        for (j, s) in judged.into_iter().zip(shown) {
            match differ.get(&s.file) {
                None => admitted.judged.push(j),
                Some(difference) => {
                    let why = Why::Pinned {
                        pinned: match difference {
                            Difference::Added => None,
                            Difference::Changed { from } => Some(from.clone()),
                        },
                        found: s.sha256,
                    };
                    let refusal = Refusal::new(&j.candidate.path, why).named(j.manifest());
                    admitted.refused.push(refusal);
                }
            }
        }
    }

    fn pin(&self, pins: &Pins, t: &Territory, found: &Hashes) -> Result<(), String> {
        pins.set(&t.dir, Some(found)).map_err(|e| format!("the libraries could not be pinned: {e}"))
    }

    /// What a person must know who wonders where the project's extensions are (field case B01).
    fn not_opened(&self, t: &Territory, decision: &Decision) -> Vec<String> {
        // Who has just said no knows it.
        if matches!(decision.by, By::CommandLine | By::User(_)) && self.plan().is_some() {
            return Vec::new();
        }
        let names: Vec<String> = self.unopened(t).iter().map(|p| p.display().to_string()).collect();
        if names.is_empty() {
            return Vec::new();
        }
        let what = if t.borrowed { "what this folder lends" } else { "this project" };
        vec![format!(
            "{what} is not trusted, so its extensions were not opened: {}; `atomic trust allow` trusts it, --approve only this time",
            names.join(", ")
        )]
    }

    /// Loads newcomers behind what is there: copied, activated, published; nobody is started yet.
    async fn attach(&self, judged: Vec<Judged>) -> (Vec<u64>, Vec<Refusal>, Vec<String>) {
        let (mut refused, mut notes, mut new) = (Vec::new(), Vec::new(), Vec::new());
        let disabled = self.disabled();
        let skipped = lock(self.skipped()).clone();
        for j in judged {
            let (name, path) = (j.name().to_owned(), j.candidate.path.clone());
            if disabled.contains(&name) || skipped.contains(&name) {
                continue;
            }
            if self.config().only.as_ref().is_some_and(|only| *only != name) {
                continue;
            }
            // The same id, or the same file: never the project's copy.
            let taken = self.slots().iter().find(|s| s.name == name).map(|s| s.path.clone());
            if let Some(winner) = taken {
                if std::fs::canonicalize(&winner).ok() != Some(j.candidate.real.clone()) {
                    notes.push(format!(
                        "extension {name} is loaded from {}; {} has the same name and was skipped",
                        winner.display(),
                        path.display()
                    ));
                }
                continue;
            }
            let rank = self.slots().iter().map(|s| s.rank + 1).max().unwrap_or_default();
            let placed = j.place(&self.copies).map(|p| Prepared { rank, ..p });
            let activated = match placed {
                Ok(p) => self.activate(p, None).await,
                Err(refusal) => Err(refusal),
            };
            match activated {
                Ok(slot) => {
                    let generation = slot.generation.clone();
                    self.slots().push(slot);
                    let _ = generation.commit();
                    new.push(generation.number());
                }
                Err(refusal) => refused.push(refusal),
            }
        }
        if !new.is_empty() {
            notes.extend(self.publish());
        }
        (new, refused, notes)
    }

    /// The projects' part of a look at the disk, for a reload. May ask: about libraries that
    /// changed, and about a project that brought nothing when it was let in.
    pub(crate) async fn scan_projects(&self, scan: &mut Scan, chosen: &(dyn Fn(&str) -> bool + Sync)) {
        for mut t in self.trust.all() {
            let implicit = matches!(&t.decision, Some(d) if d.by == By::Nothing);
            // Trusted because it brought nothing: that says nothing about what it brings now.
            if implicit && !self.survey(&t).await.judged.is_empty() {
                t.decision = None;
            }
            let (decision, shown) = self.decide(&t).await;
            self.trust.decided(&t.dir, &decision);
            let trusted = self.project_trusted();
            if let Ok(engine) = self.engine("trust") {
                engine.update_view(|v| v.project_trusted = trusted);
            }
            let admitted = self.admit(&t, &decision, shown, chosen).await;
            scan.refused.extend(admitted.refused);
            scan.notes.extend(admitted.notes);
            for j in admitted.judged {
                // Reached already, by another name.
                let same =
                    |p: &Prepared| std::fs::canonicalize(&p.path).is_ok_and(|real| real == j.candidate.real);
                if scan.prepared.iter().any(same) {
                    continue;
                }
                let rank = scan.prepared.iter().map(|p| p.rank + 1).max().unwrap_or_default();
                match j.place(&self.copies) {
                    Ok(p) => scan.prepared.push(Prepared { rank, ..p }),
                    Err(refusal) => scan.refused.push(refusal),
                }
            }
        }
    }

    pub(crate) fn warn(&self, message: String) {
        self.tell(Event::Notify { message, level: "warning".into(), extension: None });
    }
}

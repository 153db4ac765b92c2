//! What the person types about trust and about what loads: `/trust` and `/extensions`. They run
//! beside the session, ask through its dialogs and answer a text (events.md B.8).

use super::{
    By, Choice, Decision, SavedAnswer,
    ask::save_choice,
    pins::Pins,
    prompt::{self, Subject},
    survey::hashes,
};
use crate::{
    dispatch::Reason,
    host::{Extensions, LoadedInfo},
};
use atomic_agent::op::Op;
use std::fmt::Write;

impl Extensions {
    /// `None`: the program has no such command.
    pub(crate) async fn run_host_command(&self, name: &str, args: &str) -> Option<Result<String, String>> {
        match name {
            "trust" => Some(self.trust_command().await),
            "extensions" => Some(self.extensions_command(args)),
            _ => None,
        }
    }

    /// Shows what counts, saves another answer, loads and unloads nothing.
    async fn trust_command(&self) -> Result<String, String> {
        let (Some(plan), Some(store)) = (self.plan(), self.store()) else {
            return Err("trust is decided by whoever started this session".into());
        };
        let engine = self.engine("trust").map_err(|e| e.message)?;
        let Some(t) = self.trust.all().into_iter().next() else { return Err("there is no project".into()) };
        store.read().map_err(|e| e.to_string())?;
        let known = self.known(&t);
        let mut now = match &t.decision {
            Some(decision) => decision.sentence(),
            None => "not decided yet".to_owned(),
        };
        if let SavedAnswer::Of { trusted, at } = &known.saved {
            let saved = Decision { trusted: *trusted, by: By::Saved { at: at.clone() } }.sentence();
            if !now.contains(&saved) {
                let _ = write!(now, "; the next start: {saved}");
            }
        }
        let survey = self.survey(&t).await;
        let (inputs, libraries) = (self.inputs_of(&t), survey.shown(&t.dir));
        let subject = Subject {
            dir: &t.dir,
            borrowed: false,
            inputs: &inputs,
            libraries: &libraries,
            refused: &survey.refused,
        };
        let (dialog, options) = subject.again(&now);
        let answer = {
            let _span = self.prompt_span(Reason::ProjectTrust, "select", dialog.title());
            engine.dialog(dialog, super::ASKER).await
        };
        let choice = prompt::chosen(&answer, &options);
        save_choice(&store, &t.dir, choice).map_err(|e| e.to_string())?;
        let pins = Pins::of(&plan.agent_dir);
        let restart = "Start atomic again to have it take effect.";
        Ok(match choice {
            Choice::Trust | Choice::TrustParent => {
                if plan.pinning {
                    pins.set(&t.dir, Some(&hashes(&libraries))).map_err(|e| e.to_string())?;
                }
                format!("Saved: trusted. {restart}")
            }
            Choice::Refuse => {
                pins.set(&t.dir, None).map_err(|e| e.to_string())?;
                format!("Saved: not trusted. {restart}")
            }
            Choice::TrustOnce => {
                "Nothing is saved. `atomic --approve` trusts this folder for one session.".to_owned()
            }
            Choice::RefuseOnce => {
                "Nothing is saved. `atomic --no-approve` does not trust this folder for one session."
                    .to_owned()
            }
            Choice::Dismissed => "Nothing changed.".to_owned(),
        })
    }

    fn extensions_command(&self, args: &str) -> Result<String, String> {
        let words: Vec<&str> = args.split_whitespace().collect();
        match words.as_slice() {
            [] | ["list"] => Ok(self.extensions_text()),
            ["disable", name] => self.switch(name, true),
            ["enable", name] => self.switch(name, false),
            _ => Err("/extensions [list], /extensions disable NAME, /extensions enable NAME".into()),
        }
    }

    /// Written down, and taken in by a reload of that name alone.
    fn switch(&self, name: &str, off: bool) -> Result<String, String> {
        let around = self.config().surroundings.as_ref();
        let around = around.ok_or("this session has no settings to write that down in")?;
        let loaded = self.list().iter().any(|e| e.name == name);
        if !off && !self.disabled().contains(name) {
            return Err(format!("{name} is not disabled"));
        }
        let all = around.set_disabled(name, off)?;
        self.set_disabled(all);
        if let Ok(engine) = self.engine("extensions") {
            engine.send(Op::Reload { names: vec![name.to_owned()], now: false, origin: None });
        }
        Ok(match (off, loaded) {
            (true, true) => format!("{name} is disabled from now on."),
            (true, false) => {
                format!("No extension is loaded by the name {name}; if one comes, it will not be loaded.")
            }
            (false, _) => format!("{name} is enabled again."),
        })
    }

    fn extensions_text(&self) -> String {
        let loaded = self.list();
        let mut text = String::new();
        if loaded.is_empty() {
            text += "No extensions are loaded.\n";
        }
        for e in &loaded {
            text += &line(e);
        }
        for name in self.disabled() {
            let _ = writeln!(text, "{name} (disabled; /extensions enable {name})");
        }
        if let Some(decision) = self.trust.project().filter(|d| d.by != By::Nothing) {
            let _ = writeln!(text, "project: {}", decision.sentence());
        }
        if let Some(left) = self.graves() {
            let _ = writeln!(text, "{left}");
        }
        text
    }
}

fn line(e: &LoadedInfo) -> String {
    let mut text = format!(
        "{} {} ({}, generation {})\n    {}\n",
        e.name,
        e.version,
        e.scope.name(),
        e.generation,
        e.path.display()
    );
    for (what, names) in [("tools", &e.tools), ("commands", &e.commands), ("events", &e.events)] {
        if !names.is_empty() {
            let _ = writeln!(text, "    {what}: {}", names.join(", "));
        }
    }
    text
}

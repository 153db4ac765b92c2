//! Who decides about a project, in which order (events.md B.4). A function of what is known so
//! far: it answers the decision, or whom to ask next. Reads no file, asks nobody.

use std::path::PathBuf;

/// The global setting `defaultProjectTrust`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DefaultTrust {
    #[default]
    Ask,
    Always,
    Never,
}

impl DefaultTrust {
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "ask" => Self::Ask,
            "always" => Self::Always,
            "never" => Self::Never,
            _ => return None,
        })
    }
}

/// What the person chose at the prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    Trust,
    TrustParent,
    TrustOnce,
    Refuse,
    RefuseOnce,
    /// Escape, a closed stream, anything that is no choice.
    Dismissed,
}

/// A handler of `project_trust` that said yes or no.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookAnswer {
    pub trusted: bool,
    pub remember: bool,
    pub extension: String,
}

/// What `trust.json` says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SavedAnswer {
    #[default]
    Nothing,
    Of {
        trusted: bool,
        at: PathBuf,
    },
    /// It cannot be read: nothing is trusted on its word, nor beside it.
    Broken(String),
}

/// What is known so far. `None` of an answer: not asked yet.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// `--approve`, `--no-approve`.
    pub command_line: Option<bool>,
    /// Decided before in this process.
    pub cached: Option<Decision>,
    /// There is something that needs trust.
    pub inputs: bool,
    pub hooks: Option<Option<HookAnswer>>,
    pub saved: SavedAnswer,
    pub default: DefaultTrust,
    /// Somebody can be asked.
    pub ui: bool,
    pub chosen: Option<Choice>,
}

/// Who decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum By {
    CommandLine,
    /// There is nothing to trust.
    Nothing,
    Extension {
        name: String,
        remember: bool,
    },
    Saved {
        at: PathBuf,
    },
    Setting,
    /// Undecided, and nobody can be asked.
    Nobody,
    User(Choice),
    BrokenStore(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    pub trusted: bool,
    pub by: By,
}

impl Decision {
    /// It stands in trust.json, or will: what is loaded on its word is pinned.
    pub fn remembered(&self) -> bool {
        match &self.by {
            By::Saved { .. } => true,
            By::Extension { remember, .. } => *remember,
            By::User(choice) => matches!(choice, Choice::Trust | Choice::TrustParent | Choice::Refuse),
            By::CommandLine | By::Nothing | By::Setting | By::Nobody | By::BrokenStore(_) => false,
        }
    }

    /// What another process that goes on with the session is told: an answer that somebody gave.
    /// Everything else is decided anew, about what the project brings then.
    pub fn carried(&self) -> Option<bool> {
        match &self.by {
            By::Extension { .. } | By::Saved { .. } | By::User(_) => Some(self.trusted),
            By::CommandLine | By::Nothing | By::Setting | By::Nobody | By::BrokenStore(_) => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    Decided(Decision),
    AskExtensions,
    AskUser,
}

/// The rows of B.4, top down.
pub fn resolve(known: &Known) -> Next {
    let decided = |trusted, by| Next::Decided(Decision { trusted, by });
    if let Some(trusted) = known.command_line {
        return decided(trusted, By::CommandLine);
    }
    if let Some(before) = &known.cached {
        return Next::Decided(before.clone());
    }
    if !known.inputs {
        return decided(true, By::Nothing);
    }
    if let SavedAnswer::Broken(why) = &known.saved {
        return decided(false, By::BrokenStore(why.clone()));
    }
    match &known.hooks {
        None => return Next::AskExtensions,
        Some(Some(a)) => {
            return decided(a.trusted, By::Extension { name: a.extension.clone(), remember: a.remember });
        }
        Some(None) => {}
    }
    if let SavedAnswer::Of { trusted, at } = &known.saved {
        return decided(*trusted, By::Saved { at: at.clone() });
    }
    match known.default {
        DefaultTrust::Always => return decided(true, By::Setting),
        DefaultTrust::Never => return decided(false, By::Setting),
        DefaultTrust::Ask => {}
    }
    match known.chosen {
        _ if !known.ui => decided(false, By::Nobody),
        None => Next::AskUser,
        Some(choice) => {
            let yes = matches!(choice, Choice::Trust | Choice::TrustParent | Choice::TrustOnce);
            decided(yes, By::User(choice))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open() -> Known {
        Known { inputs: true, ui: true, ..Known::default() }
    }

    fn trusted(known: &Known) -> Option<bool> {
        match resolve(known) {
            Next::Decided(d) => Some(d.trusted),
            _ => None,
        }
    }

    fn hook(trusted: bool) -> Option<Option<HookAnswer>> {
        Some(Some(HookAnswer { trusted, remember: false, extension: "x".into() }))
    }

    fn saved(trusted: bool) -> SavedAnswer {
        SavedAnswer::Of { trusted, at: "/p".into() }
    }

    /// Each row alone says yes while every later one says no, and the other way round.
    #[test]
    fn every_step_wins_over_all_that_come_after_it() {
        for yes in [true, false] {
            let later = |k: &mut Known| {
                k.saved = saved(!yes);
                k.default = if yes { DefaultTrust::Never } else { DefaultTrust::Always };
            };
            let mut k = open();
            later(&mut k);
            k.hooks = hook(!yes);
            k.command_line = Some(yes);
            assert_eq!(trusted(&k), Some(yes), "the command line");

            let mut k = open();
            later(&mut k);
            k.hooks = hook(!yes);
            k.cached = Some(Decision { trusted: yes, by: By::Nobody });
            assert_eq!(trusted(&k), Some(yes), "what was decided before");

            let mut k = open();
            later(&mut k);
            k.hooks = hook(yes);
            assert_eq!(trusted(&k), Some(yes), "an extension, over a saved answer");

            let mut k = open();
            later(&mut k);
            k.hooks = Some(None);
            k.saved = saved(yes);
            assert_eq!(trusted(&k), Some(yes), "a saved answer, over the setting");

            let mut k = open();
            k.hooks = Some(None);
            k.default = if yes { DefaultTrust::Always } else { DefaultTrust::Never };
            assert_eq!(trusted(&k), Some(yes), "the setting, without a question");
        }
    }

    #[test]
    fn a_project_that_brings_nothing_is_trusted_and_nobody_is_asked() {
        assert_eq!(trusted(&Known { ui: true, ..Known::default() }), Some(true));
    }

    #[test]
    fn extensions_are_asked_before_the_saved_answer_is_looked_at() {
        assert_eq!(resolve(&Known { saved: saved(false), ..open() }), Next::AskExtensions);
    }

    #[test]
    fn without_somebody_to_ask_undecided_means_no() {
        assert_eq!(resolve(&Known { hooks: Some(None), ..open() }), Next::AskUser);
        let nobody = Known { hooks: Some(None), ui: false, chosen: Some(Choice::Trust), ..open() };
        assert_eq!(resolve(&nobody), Next::Decided(Decision { trusted: false, by: By::Nobody }));
    }

    #[test]
    fn only_three_choices_trust_and_only_three_are_remembered() {
        use Choice::{Dismissed, Refuse, RefuseOnce, Trust, TrustOnce, TrustParent};
        for (choice, yes, remembered) in [
            (Trust, true, true),
            (TrustParent, true, true),
            (TrustOnce, true, false),
            (Refuse, false, true),
            (RefuseOnce, false, false),
            (Dismissed, false, false),
        ] {
            let known = Known { hooks: Some(None), chosen: Some(choice), ..open() };
            let Next::Decided(d) = resolve(&known) else { panic!("{choice:?} is no decision") };
            assert_eq!((d.trusted, d.remembered()), (yes, remembered), "{choice:?}");
        }
    }

    #[test]
    fn a_broken_file_trusts_nothing_unless_the_command_line_does() {
        let broken = Known { saved: SavedAnswer::Broken("why".into()), hooks: hook(true), ..open() };
        assert_eq!(trusted(&broken), Some(false));
        assert_eq!(trusted(&Known { command_line: Some(true), ..broken }), Some(true));
    }
}

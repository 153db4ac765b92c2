//! `/login` and `/logout`: this process has the terminal, so the key never passes through the
//! engine; the engine reads the file again.

use super::{Prompt, sessions::Want};
use crate::{auth, card::Card, paths::Paths, sanitize, secret::Hidden};
use atomic_agent::op::Op;

/// A key is being typed.
pub struct Asked {
    provider: String,
    /// Shows nothing as long as it lives; over a pipe there is nothing to hide.
    _hidden: Option<Hidden>,
}

impl Prompt<'_> {
    pub(super) fn ask_for_key(&mut self, provider: String) {
        let hidden = match self.typed.then(Hidden::begin).transpose() {
            Ok(hidden) => hidden,
            Err(card) => return self.view.card(&card),
        };
        self.view.text(auth::KEYS_ONLY);
        self.view.question(&format!(
            "key for {} (it is not shown; Ctrl+C gives up): ",
            sanitize::line(&provider, 60)
        ));
        self.login = Some(Asked { provider, _hidden: hidden });
    }

    pub(super) fn key_was_typed(&mut self, asked: Asked, line: &str) {
        let Asked { provider, _hidden } = asked;
        drop(_hidden);
        let said = Paths::from_environment().and_then(|paths| auth::store(&paths, &provider, line));
        self.keys_changed(said);
    }

    pub(super) fn remove_key(&mut self, provider: &str) {
        let said = Paths::from_environment().and_then(|paths| auth::logout(&paths, provider));
        self.keys_changed(said);
    }

    fn keys_changed(&mut self, said: Result<String, Card>) {
        match said {
            // Who reads it may choose a model with that key: it is told when the key counts.
            Ok(text) => self.ask_for(Op::RefreshModels, Want::Said(text.trim_end().to_owned())),
            Err(card) => self.view.card(&card),
        }
    }
}

//! What the user has set of this front end.

use crate::{keys::Keymap, theme::Theme};
use std::path::PathBuf;

#[derive(Clone, Debug, Default)]
pub struct Settings {
    pub theme: Theme,
    pub keys: Keymap,
    /// What was typed in earlier sessions, one JSON text a line; `None`: nothing is kept.
    pub history: Option<PathBuf>,
    /// What is being typed, in case this process goes too.
    pub draft: Option<PathBuf>,
    /// The user's home, shown as `~`.
    pub home: Option<PathBuf>,
    /// The terminal is told when a long run ends and nobody looks.
    pub notify: bool,
}

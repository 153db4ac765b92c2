//! Telling who looks elsewhere, and the system's clipboard, through the terminal.

use base64::{Engine, engine::general_purpose::STANDARD};

/// A notification, where the terminal has them, and the bell.
pub fn notify(text: &str) -> String {
    format!("\x1b]9;{}\x07\x07", clean(text))
}

pub fn title(text: &str) -> String {
    format!("\x1b]0;{}\x07", clean(text))
}

/// Into the clipboard (OSC 52).
pub fn copy(text: &str) -> String {
    format!("\x1b]52;c;{}\x07", STANDARD.encode(text))
}

fn clean(text: &str) -> String {
    crate::sanitize::line(text, 200)
}

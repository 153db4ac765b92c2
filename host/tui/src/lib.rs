//! The terminal front end: a transcript in the terminal's own scrollback, and under it a live
//! area with what runs, the editor and a status line. It sees an engine through ops and events
//! alone, and never waits for one: what is asked is asked in tasks.
//!
//! Text that is not this program's own passes [`sanitize`] on its way to the screen.

mod app;
mod bell;
mod code;
mod composer;
mod dialog;
mod files;
pub mod keys;
mod list;
mod markdown;
mod palette;
mod reader;
pub mod sanitize;
mod screen;
mod settings;
mod status;
mod styled;
mod surfaces;
pub mod theme;
mod transcript;
pub mod words;

pub use app::{Ended, Follow, Greeting, Program, Seat, Step, run};
pub use settings::Settings;

#[cfg(test)]
mod testing;

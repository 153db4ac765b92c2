//! Verbatim-line compaction (events.md D): a long context is shortened by taking lines out of
//! it, never by writing new ones. A planner, which is a model like any other, names the lines;
//! `(filtered N lines)` stands where they were, and the numbers add up.
//!
//! `settings`, `estimate`, `transcript`, `prepare`, `planner` and `ranges` are pure: they read
//! a session and give back text. `trigger` says when, `flight` that it is one at a time,
//! `perform` is one compaction from its first event to its last, `ladder` and `ask` are how its
//! text comes about.

mod ask;
mod backup;
pub mod estimate;
mod flight;
mod ladder;
mod perform;
pub mod planner;
pub mod prepare;
pub mod ranges;
pub mod settings;
pub mod transcript;
mod trigger;

pub(crate) use ask::{Asking, ask};
pub(crate) use flight::{Compacting, asked_for};
pub use settings::{CompactOptions, CompactReason, CompactionSettings, ModelOverride, Parameters};
pub(crate) use trigger::Preflight;

#[cfg(test)]
mod tests;

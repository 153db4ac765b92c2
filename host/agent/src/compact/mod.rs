//! Verbatim-line compaction (events.md D): a long context is shortened by taking lines out of
//! it, never by writing new ones. A planner, which is a model like any other, names the lines;
//! `(filtered N lines)` stands where they were, and the numbers add up.
//!
//! `settings`, `estimate`, `transcript`, `prepare`, `planner` and `ranges` are pure: they read
//! a session and give back text.

pub mod estimate;
pub mod planner;
pub mod prepare;
pub mod ranges;
pub mod settings;
pub mod transcript;

pub use settings::{CompactOptions, CompactReason, CompactionSettings, ModelOverride, Parameters};

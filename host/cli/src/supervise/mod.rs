//! The supervised engine (boundary.md 11). `atomic` keeps the terminal and what the user has
//! typed; the session, the tools and the extensions live in `atomic --engine`, a process that
//! may die, hang or be replaced. What a front end sees is a mirror of that engine: the same
//! handle, the same events, with a few more that say when it was lost and who goes on.
//!
//! `wire` is what passes between the two, `engine` the far side, `keeper` the near one,
//! `loss` says whose fault an end was, `pages` what earlier crashes left behind.

mod child;
pub mod engine;
mod keeper;
mod lines;
mod loss;
pub mod pages;
pub mod wire;

pub use keeper::{Desk, First, HANG_KILL, Plan, start};

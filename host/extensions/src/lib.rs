//! Extensions: found, judged, loaded, asked, replaced. This room knows both sides of the
//! boundary and nothing of terminals or providers.
//!
//! Start at `host.rs` (what is loaded), `dispatch/mod.rs` (the table of events),
//! `dispatch/gate.rs` (where a tool call is blocked), `reload.rs` (how generations change).

pub mod breadcrumb;
mod calls;
mod commands;
mod conflicts;
mod convert;
pub mod copies;
mod diagnostics;
pub mod discover;
mod dispatch;
pub mod filecheck;
pub mod generation;
pub mod graveyard;
mod host;
mod load;
mod loading;
mod program;
mod refusal;
mod registry;
mod reload;
mod scan;
mod statuses;
mod tired;
mod tools;
mod watchdog;

pub use dispatch::{Class, EVENTS, EventRow};
pub use host::{Extensions, ExtensionsConfig, FlagInfo, LoadReport, LoadedInfo, Scope};
pub use load::read::{Inspection, inspect, sha256};
pub use program::ProgramError;
pub use refusal::{Refusal, Why};
pub use registry::FlagKind;
pub use tired::Tired;

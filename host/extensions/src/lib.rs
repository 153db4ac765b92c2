//! Extensions: found, judged, loaded, asked, replaced. This room knows both sides of the
//! boundary and nothing of terminals or providers.
//!
//! Start at `host.rs` (what is loaded), `dispatch/mod.rs` (the table of events),
//! `dispatch/gate.rs` (where a tool call is blocked), `reload.rs` (how generations change).

pub mod breadcrumb;
mod calls;
mod closing;
mod commands;
mod config;
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
mod late_flags;
mod load;
mod loading;
mod program;
mod provider;
mod refusal;
mod registry;
mod reload;
mod scan;
mod statuses;
mod tired;
mod tools;
pub mod trust;
mod views;
mod watchdog;
mod workflow_hub;

pub use dispatch::{Class, EVENTS, EventRow, Fired};
pub use host::{Extensions, ExtensionsConfig, FlagInfo, LoadReport, LoadedInfo, Scope};
pub use load::read::{Inspection, inspect, sha256};
pub use program::ProgramError;
pub use refusal::{Refusal, Why};
pub use registry::FlagKind;
pub use tired::Tired;
pub use views::{Rendering, ShortcutInfo};
pub use workflow_hub::{
    Cursor as WorkflowCursor, Diagnostic as WorkflowDiagnostic, Kind as WorkflowDiagnosticKind,
};

//! The agent's core: sessions, turns, the queue of input. It knows traits only
//! (`Model`, `Tool`, `Hooks`); no HTTP, no terminal, no dynamic library, no environment.
//!
//! Start at [`engine`]; a run is `run`, a turn of it `turn` (where tool calls are gated).

pub mod boundary;
pub mod budget;
pub mod compact;
pub mod decisions;
pub mod digest;
pub mod engine;
pub mod event;
pub mod handle;
pub mod hooks;
pub mod lossy_path;
pub mod message;
pub mod model;
pub mod op;
pub mod pairing;
pub mod prompt;
pub mod providers;
pub mod queue;
pub mod recovery;
pub mod session;
pub mod surface;
pub mod tool;
pub mod warming;
pub mod workbench;

mod active_tools;
mod admission;
mod arguments;
mod batch;
mod chronology;
mod core;
mod faults;
mod jobs;
mod lifecycle;
mod ops;
mod run;
mod send;
mod stream;
mod switching;
mod told;
mod turn;
mod user_bash;

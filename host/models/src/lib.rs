//! Models: which ones there are, who may ask them, and how each wire format is spoken.
//! Implements the core's `Model` over HTTP, and offline from a script. Knows nothing of
//! sessions, tools that run, extensions or the terminal.

mod anthropic;
mod catalogue;
mod compat;
pub mod config;
mod credential;
mod draft;
mod environment;
mod excerpt;
mod exchange;
mod fault;
mod file;
mod framing;
mod openai_completions;
pub mod resolve;
mod retry_after;
pub mod scripted;
mod transcript;
mod transport;

pub use compat::{Compat, ThinkingStyle};
pub use environment::Environment;
pub use resolve::{Chosen, ModelSet, ResolveError, Selection, Sources};
pub use scripted::{Script, ScriptError, ScriptedModel};

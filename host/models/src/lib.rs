//! Models: which ones there are, who may ask them, and how each wire format is spoken.
//! Implements the core's `Model` over HTTP, and offline from a script. Knows nothing of
//! sessions, tools that run, extensions or the terminal.

mod anthropic;
pub mod auth;
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
mod google;
mod key_command;
mod openai_completions;
mod openai_responses;
mod received;
pub mod resolve;
mod retry_after;
pub mod scripted;
mod tape;
mod transcript;
mod transport;

pub use auth::{AuthError, AuthStore};
pub use compat::{Compat, ThinkingStyle};
pub use environment::Environment;
pub use resolve::{Chosen, KeyState, ModelSet, ResolveError, Scoped, Selection, Sources};
pub use scripted::{Script, ScriptError, ScriptedModel};
pub use tape::{Tape, TapeError};

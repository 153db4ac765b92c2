//! The agent's core: sessions, turns, the queue of input. It knows traits only
//! (`Model`, `Tool`, `Hooks`); no HTTP, no terminal, no dynamic library, no environment.

pub mod event;
pub mod handle;
pub mod hooks;
pub mod message;
pub mod model;
pub mod op;
pub mod tool;

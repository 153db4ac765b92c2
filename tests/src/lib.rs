//! Parts the stories are made of: a scratch home with the real program in it, real libraries
//! built from real crates, a model server, a terminal, and readers of what was left behind.

// Test code may say `unwrap`; clippy knows this only for `#[test]` functions.
#![allow(clippy::unwrap_used, clippy::expect_used)]

pub mod env;
pub mod events;
pub mod libs;
pub mod live;
pub mod model_server;
pub mod patch;
pub mod pty;
mod scratch;
pub mod session;
pub mod tree;

//! Parts the stories are made of: a scratch home with the real program in it, real libraries
//! built from real crates, a model server, a terminal, and readers of what was left behind.
//! Knows the program from outside only.

// Test code may say `unwrap`; clippy knows this only for `#[test]` functions.
#![allow(clippy::unwrap_used, clippy::expect_used)]

pub mod model_server;
pub mod tree;

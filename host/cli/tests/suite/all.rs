//! The program as a process: what goes in, what comes out, how it ends.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod demo;
mod extension;
mod lines;
mod print;
mod program;
mod start;

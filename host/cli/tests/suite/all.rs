//! The program as a process: what goes in, what comes out, how it ends.

mod extension;
mod lines;
mod print;
mod program;
mod start;

//! Stories of this crate: models asked over real sockets, or offline.

mod common;
mod offline;

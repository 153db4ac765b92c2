//! Stories of this crate: models asked over real sockets, or offline.

// The lint's exception for tests does not reach their helpers.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;
mod exchange;
mod formats;
mod hostile;
mod offline;
mod peer;
mod published;

//! The engine driven through its handle, as a front end does.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod doubles;
mod fakes;
mod log;

mod aborting;
mod boundaries;
mod compacting;
mod contexts;
mod lifecycle;
mod order;
mod queueing;
mod recovering;
mod recovery;
mod requests;
mod sessions;
mod store;
mod switching;
mod told;
mod tool_calls;
mod tree;

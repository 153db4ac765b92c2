//! UNSAFE 2 of 2: opens libraries, hands them the host's tables, and turns their raw
//! tables into safe calls. No abi_stable type leaves this folder.
#![allow(unsafe_code)]

mod event_state;
mod library;
mod live;
pub mod read;
mod rows;
mod table;

pub(crate) use event_state::EventState;
pub(crate) use library::Library;
pub(crate) use live::{Live, Started};
pub(crate) use rows::{LocalRow, local_row};

/// The handler index that means "the program of `main.v1`".
pub(crate) const MAIN_HANDLER: u64 = atomic_plugin_api::abi::entry::MAIN_HANDLER;

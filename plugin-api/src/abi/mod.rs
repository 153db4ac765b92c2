//! UNSAFE 1 of 2: the tables that cross, and the entries behind them. No abi_stable type
//! leaves this folder towards the author: the rest of the crate sees `Result<Vec<u8>, _>`
//! and plain futures.
#![allow(unsafe_code, non_local_definitions)]
// Without a runtime nothing is pending, and what serves pending calls is idle.
#![cfg_attr(not(feature = "tokio"), allow(dead_code))]
// Authors never see this module; its documentation is for the host's loader.

pub(crate) mod contain;
pub mod entry;
mod export;
pub mod frozen;
pub(crate) mod instance;
#[cfg(feature = "tracing")]
mod log_bridge;
#[cfg(feature = "tokio")]
pub(crate) mod tasks;
#[cfg(feature = "testing")]
pub(crate) mod test_host;

pub use abi_stable;

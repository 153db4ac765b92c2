//! atomic-extensions

pub mod generation;
pub mod graveyard;

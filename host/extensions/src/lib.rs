//! atomic-extensions

pub mod breadcrumb;
pub mod generation;
pub mod graveyard;

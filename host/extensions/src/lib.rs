//! atomic-extensions

pub mod breadcrumb;
pub mod copies;
pub mod discover;
pub mod filecheck;
pub mod generation;
pub mod graveyard;

//! The one integration binary: a file a story.

// Helpers of the stories may say `unwrap` too; clippy knows this only for `#[test]` functions.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod activation;
mod gates;
mod instances;
mod members;
mod model_server;
mod panics;
mod small_server;
mod tidy;

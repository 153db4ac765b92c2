//! The one integration binary: a file a story.

// Helpers of the stories may say `unwrap` too; clippy knows this only for `#[test]` functions.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod instances;
mod model_server;
mod small_server;
mod tidy;

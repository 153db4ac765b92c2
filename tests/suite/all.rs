//! The one integration binary: a file a story.

// Helpers of the stories may say `unwrap` too; clippy knows this only for `#[test]` functions.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod activation;
mod answers;
mod conflicts;
mod crash_matrix;
mod extension_commands;
mod first_party;
mod flags;
mod gates;
mod identity;
mod instances;
mod isolation;
mod members;
mod model_server;
mod overruns;
mod panics;
mod peer;
mod program;
mod prompt;
mod refusals;
mod small_server;
mod supervisor;
mod tidy;
mod versions;

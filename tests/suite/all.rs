//! The one integration binary: a file a story.

// Helpers of the stories may say `unwrap` too; clippy knows this only for `#[test]` functions.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod activation;
mod answers;
mod api;
mod asking_again;
mod compaction;
mod conflicts;
mod crash_matrix;
mod discovery;
mod driven_events;
mod environment;
mod event_samples;
mod events_table;
mod extension_commands;
mod extension_dev;
mod first_party;
mod flag_table;
mod flags;
mod foreign_bytes;
mod gates;
mod identity;
mod instances;
mod isolation;
mod lent;
mod members;
mod model_choice;
mod model_server;
mod overruns;
mod panics;
mod peer;
mod pins;
mod program;
mod prompt;
mod refusals;
mod screen;
mod sessions;
mod small_server;
mod supervisor;
mod tidy;
mod trust_asking;
mod trust_command;
mod trust_order;
mod trust_untrusted;
mod versions;

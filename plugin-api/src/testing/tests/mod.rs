//! The author's side, tested as an author tests: through `TestHost`, and so through the
//! real entries of the boundary.

mod capabilities;
mod containment;
mod edits;
mod events;
mod lifecycle;
#[cfg(feature = "tracing")]
mod logging;
#[cfg(feature = "macros")]
mod macros;
mod samples;
mod tools;

use serde_json::{Value, json};

fn bash(command: &str) -> Value {
    json!({"toolName": "bash", "toolCallId": "c1", "input": {"command": command}})
}

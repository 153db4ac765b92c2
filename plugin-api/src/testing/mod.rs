//! A host in the test's own process, for the unit tests of an extension.
//!
//! It activates the extension through the very entries a real host uses, fires events with
//! the real merge rules of one extension, calls tools and commands, answers dialogs by
//! script, and records what the extension does. No model, no terminal, no files.
//!
//! ```
//! use atomic_plugin_api::{prelude::*, testing::TestHost};
//! use serde_json::json;
//!
//! fn activate(pi: &Extension) -> Result<()> {
//!     pi.on(ToolCall, |event, ctx| async move {
//!         if let Some(bash) = event.input_as::<BashInput>() {
//!             if bash.command.contains("rm -rf") && !ctx.ui().confirm("Sure?", &bash.command).await? {
//!                 return Ok(Some(block("the user said no")));
//!             }
//!         }
//!         Ok(None)
//!     });
//!     Ok(())
//! }
//!
//! let host = TestHost::new(activate);
//! host.on_confirm(|dialog| !dialog.message.contains('/'));
//! let call = json!({"toolName": "bash", "toolCallId": "1", "input": {"command": "rm -rf /"}});
//! let result = host.fire(ToolCall, call).wait(); // or `.await`
//! assert_eq!(result.blocked.as_deref(), Some("the user said no"));
//! assert_eq!(host.record().dialogs.len(), 1);
//! ```

mod desk;
mod desk_more;
mod host;
mod merge;
mod script;
mod step;
#[cfg(test)]
mod tests;

pub use host::{ShutdownReport, TestHost};
pub use merge::FireResult;
pub use script::{Dialog, Fault, LogLine, Notice, Record, SentMessage, SentUserMessage};
pub use step::Step;

//! An extension as a program (boundary.md 14): `main.v1`, no session, arguments in, exit
//! code out. The host has no mode of its own for runners and servers.

use crate::{
    breadcrumb::{self, kind},
    convert,
    dispatch::{Asked, ask_entry},
    host::Extensions,
    load::{EventState, MAIN_HANDLER},
};
use serde_json::json;

/// Why a program did not run to its end.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// `program::unknown`
    #[error("no loaded extension is called {id:?}; loaded: {loaded}")]
    Unknown { id: String, loaded: String },
    /// `program::none`
    #[error("extension {id} has no program of its own: it registers none with `pi.main`")]
    None { id: String },
    /// `program::failed`
    #[error("extension {id}: {message}")]
    Failed { id: String, message: String },
}

impl ProgramError {
    pub fn code(&self) -> &'static str {
        match self {
            ProgramError::Unknown { .. } => "program::unknown",
            ProgramError::None { .. } => "program::none",
            ProgramError::Failed { .. } => "program::failed",
        }
    }
}

impl Extensions {
    /// Runs the program of a loaded extension. stdin and stdout are the process's own.
    ///
    /// # Errors
    /// See [`ProgramError`].
    pub async fn run_main(&self, id: &str, args: Vec<String>) -> Result<i32, ProgramError> {
        let slot = self.slots().iter().find(|s| s.name == id).cloned();
        let Some(slot) = slot else {
            let loaded = self.list().into_iter().map(|l| l.name).collect::<Vec<_>>().join(", ");
            return Err(ProgramError::Unknown { id: id.to_owned(), loaded });
        };
        if !slot.live.has_main() {
            return Err(ProgramError::None { id: id.to_owned() });
        }
        // A program of its own may end the process in its own way.
        breadcrumb::leave_in_order();
        let event = json!({"type": "main", "args": args, "cwd": convert::path(&self.config().cwd)});
        let state = EventState::ready(serde_json::to_vec(&event).unwrap_or_default());
        let failed = |message: String| ProgramError::Failed { id: id.to_owned(), message };
        match ask_entry(&slot.generation, &slot.live, MAIN_HANDLER, kind::COMMAND, &state, |_| {}).await {
            Asked::Answered(bytes) => {
                let answer: serde_json::Value = serde_json::from_slice(&bytes).unwrap_or_default();
                let code =
                    answer.pointer("/result/exitCode").and_then(serde_json::Value::as_i64).unwrap_or(0);
                Ok(i32::try_from(code).unwrap_or(1))
            }
            Asked::Failed(e) => Err(failed(e.message)),
            Asked::Reloaded => Err(failed("it was ended while it ran".into())),
            Asked::Overran(_) => Err(failed("it did not answer".into())),
        }
    }
}

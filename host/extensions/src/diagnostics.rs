//! Faults of extensions: one line each, to the engine's listeners when there are some, kept
//! for them until then, and always to the log.

use crate::{
    calls::Caller,
    dispatch::{Asked, EVENTS},
    host::Extensions,
    registry::Sub,
};
use atomic_agent::event::Event;
use std::{
    collections::HashSet,
    sync::{LazyLock, Mutex, PoisonError},
};

impl Extensions {
    /// One fault of the extension `owner`. `place`: an event, `command:<name>`, `task`, …
    pub(crate) fn diagnose(&self, owner: u64, place: &str, error: &str) {
        let path = self.path_of(owner);
        tracing::warn!(extension = %path.display(), place, error, "extension error");
        let event = Event::ExtensionError {
            extension_path: path.to_string_lossy().into_owned(),
            event: place.to_owned(),
            error: error.to_owned(),
        };
        self.tell(event);
    }

    pub(crate) fn note_fault(&self, sub: &Sub, event: usize, asked: &Asked) {
        let name = EVENTS.get(event).map_or("", |e| e.name);
        match asked {
            Asked::Answered(_) | Asked::Reloaded => {}
            Asked::Failed(e) => self.diagnose(sub.generation.owner(), name, &e.message),
            Asked::Overran(t) => {
                let error = format!(
                    "no answer within {}: passed over, and this extension is not asked again until it answers or is reloaded",
                    seconds(*t)
                );
                self.diagnose(sub.generation.owner(), name, &error);
            }
        }
    }
}

/// As a person says it; tests give less than a second.
pub(crate) fn seconds(t: std::time::Duration) -> String {
    format!("{} s", t.as_secs_f64())
}

/// At most one line per extension and generation (decisions.md "Stale handles").
pub(crate) fn stale_once(caller: Caller) {
    static SEEN: LazyLock<Mutex<HashSet<(u64, u64)>>> = LazyLock::new(Mutex::default);
    if SEEN.lock().unwrap_or_else(PoisonError::into_inner).insert((caller.owner, caller.generation)) {
        tracing::info!(
            owner = caller.owner,
            generation = caller.generation,
            "a call from a retired generation was refused"
        );
    }
}

/// A line an extension logs.
pub(crate) fn log(extension: &str, level: &str, message: &str) {
    match level {
        "error" => tracing::error!(extension, "{message}"),
        "warn" | "warning" => tracing::warn!(extension, "{message}"),
        "debug" | "trace" => tracing::debug!(extension, "{message}"),
        _ => tracing::info!(extension, "{message}"),
    }
}

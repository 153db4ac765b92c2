//! Feature `tracing`: what an extension logs with `tracing` goes to the host's log. Statics
//! are per library, so without this a library's log lines go nowhere (boundary.md 7).
//!
//! Lines below `INFO` stay here. Which instance logs is known by the thread: it is entered
//! around every handler, task and thread of the SDK.

use super::instance::State;
use abi_stable::std_types::{RSlice, RStr};
use std::{
    cell::RefCell,
    fmt::{self, Write},
    sync::{Arc, Once, Weak},
};
use tracing_core::{
    Event, Level, LevelFilter, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

thread_local! {
    static CURRENT: RefCell<Weak<State>> = const { RefCell::new(Weak::new()) };
}

/// Log lines of this thread are this instance's until it is dropped.
pub(super) struct Entered(Weak<State>);

pub(super) fn enter(state: &Arc<State>) -> Entered {
    let new = Arc::downgrade(state);
    Entered(CURRENT.try_with(|c| c.replace(new)).unwrap_or_default())
}

impl Drop for Entered {
    fn drop(&mut self) {
        let before = std::mem::take(&mut self.0);
        let _ = CURRENT.try_with(|c| c.replace(before));
    }
}

/// Once a library; an author's own subscriber, set before, stays.
pub(super) fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let _ = tracing_core::dispatcher::set_global_default(tracing_core::Dispatch::new(ToHost));
    });
}

struct ToHost;

impl Subscriber for ToHost {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::INFO
    }
    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::INFO)
    }
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, event: &Event<'_>) {
        let Some(state) = CURRENT.try_with(|c| c.borrow().upgrade()).ok().flatten() else { return };
        let mut line = Line::default();
        event.record(&mut line);
        let level = match *event.metadata().level() {
            Level::ERROR => "error",
            Level::WARN => "warning",
            _ => "info",
        };
        let body = serde_json::json!({
            "level": level, "target": event.metadata().target(), "message": format!("{}{}", line.message, line.fields),
        });
        let bytes = serde_json::to_vec(&body).unwrap_or_default();
        let _ = (state.host().call())(state.caller(0), RStr::from_str("log"), RSlice::from_slice(&bytes), 0);
    }
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}

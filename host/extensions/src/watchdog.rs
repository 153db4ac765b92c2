//! Handlers that are called on the session's own thread (synchronous ones, and the first poll of
//! a notify handler) cannot be dropped when they never return: that thread is theirs. This names
//! them. In print and json mode, where nobody can act on it, the program ends as it does after a
//! crash of the extension: one line, exit 70. Elsewhere the fault is told, once a call.
//!
//! Entering and leaving are two stores; the clock is a tick of the watchdog's own.

use crate::{breadcrumb, dispatch::EVENTS, host::Extensions};
use std::{
    sync::{
        Weak,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

const TICK: Duration = Duration::from_millis(500);
/// As after a crash (boundary.md 11).
const EXIT: i32 = 70;

#[derive(Default)]
pub(crate) struct Watchdog {
    ticks: AtomicU64,
    /// The call that is inside, 0 for none. A call on another thread may take the place over:
    /// then the older one goes unwatched, which only a blocked shutdown can be.
    call: AtomicU64,
    owner: AtomicU64,
    event: AtomicU64,
    since: AtomicU64,
}

/// Ends the watch of one call.
pub(crate) struct Watched<'a>(&'a Watchdog, u64);

impl Watchdog {
    pub(crate) fn enter(&self, owner: u64, event: usize, call: u64) -> Watched<'_> {
        self.owner.store(owner, Relaxed);
        self.event.store(event as u64, Relaxed);
        self.since.store(self.ticks.load(Relaxed), Relaxed);
        self.call.store(call, Relaxed);
        Watched(self, call)
    }

    /// Call, owner and kind of crumb of what is inside now.
    fn inside(&self) -> Option<(u64, u64, u16)> {
        let call = self.call.load(Relaxed);
        let kind = breadcrumb::kind::EVENTS.saturating_add(self.event.load(Relaxed) as u16);
        (call != 0).then(|| (call, self.owner.load(Relaxed), kind))
    }
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        if self.0.call.load(Relaxed) == self.1 {
            self.0.call.store(0, Relaxed);
        }
    }
}

/// Beats for whoever watches this process, until the host is gone: a thread of its own, so that
/// nothing an extension does can keep it from beating, and a task of the loop that takes ops.
pub(crate) fn pulse(host: Weak<Extensions>, runtime: &tokio::runtime::Handle) {
    let of_loop = host.clone();
    runtime.spawn(async move {
        while of_loop.strong_count() > 0 {
            breadcrumb::page().loop_beat();
            tokio::time::sleep(breadcrumb::BEAT).await;
        }
    });
    let beat = move || {
        while let Some(host) = host.upgrade() {
            breadcrumb::page().beat(host.watchdog().inside());
            drop(host);
            std::thread::sleep(breadcrumb::BEAT);
        }
    };
    if let Err(e) = std::thread::Builder::new().name("atomic-pulse".into()).spawn(beat) {
        tracing::warn!("no thread for the pulse: {e}");
    }
}

/// Looks until the host is gone.
pub(crate) async fn watch(host: Weak<Extensions>) {
    let mut named = 0;
    loop {
        tokio::time::sleep(TICK).await;
        let Some(host) = host.upgrade() else { return };
        let w = host.watchdog();
        let now = w.ticks.fetch_add(1, Relaxed) + 1;
        let call = w.call.load(Relaxed);
        if call == 0 || call == named {
            continue;
        }
        let inside =
            TICK.saturating_mul(u32::try_from(now.saturating_sub(w.since.load(Relaxed))).unwrap_or(u32::MAX));
        let event =
            usize::try_from(w.event.load(Relaxed)).ok().and_then(|i| EVENTS.get(i)).map_or("", |e| e.name);
        let gate = host.config().gate_timeout.unwrap_or(Duration::MAX);
        let limit = if event == "tool_call" { gate } else { host.config().handler_timeout };
        if inside < limit || w.call.load(Relaxed) != call {
            continue;
        }
        named = call;
        let owner = w.owner.load(Relaxed);
        let error = format!(
            "has blocked the session for {} s and cannot be dropped: it must not block where it is called",
            limit.as_secs()
        );
        host.diagnose(owner, event, &error);
        if host.config().crash_line {
            // Written here, since nothing that could print it may run any more.
            let path = host.path_of(owner);
            eprintln!(
                "atomic: extension {} {error} (event {event}); given up",
                path.display().to_string().escape_debug()
            );
            crate::breadcrumb::leave_in_order();
            std::process::exit(EXIT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{dispatch::SESSION_START, host::ExtensionsConfig};

    #[tokio::test(start_paused = true)]
    async fn a_call_that_never_returns_is_named_once_and_one_that_returned_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let config =
            ExtensionsConfig { no_extensions: true, ..ExtensionsConfig::new(dir.path(), dir.path()) };
        let (host, _) = Extensions::load(config).await;

        drop(host.watchdog().enter(1, SESSION_START, 41));
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(host.untold().len(), 0, "it had returned");

        let inside = host.watchdog().enter(1, SESSION_START, 42);
        tokio::time::sleep(Duration::from_secs(29)).await;
        assert_eq!(host.untold().len(), 0, "it has its time");
        tokio::time::sleep(Duration::from_secs(60)).await;
        let told = host.untold();
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(format!("{told:?}").contains("session_start"), "{told:?}");
        drop(inside);
    }
}

//! What a crash interrupted (events.md A.3): extensions are told once the session is there, and
//! messages that were promised a run and never had one are dropped or delivered.

use crate::{
    core::{Core, Reply},
    decisions::{ReplayAction, RestoreReason},
    hooks::StartReason,
    jobs::RunStart,
    queue::Queued,
    session::Pending,
};
use serde_json::{Map, Value};
use std::sync::Arc;

/// After the transcript is on the screen. Nothing is pending in a session that is new, forked or
/// only reloaded.
pub(crate) async fn recover(core: &Arc<Core>, reason: StartReason) {
    let reason = match reason {
        StartReason::Startup => RestoreReason::Startup,
        StartReason::Resume => RestoreReason::Resume,
        StartReason::New | StartReason::Fork | StartReason::Reload => return,
    };
    let notices = core.dispatch(&core.stopped, core.hooks.session_recovery_restore(reason)).await;
    for notice in notices.unwrap_or_default() {
        core.notify("info", notice);
    }
    let pending = core.session().pending_deliveries();
    if pending.is_empty() {
        return;
    }
    let told = pending.iter().map(Pending::told).collect();
    let decided = core.dispatch(&core.stopped, core.hooks.session_recovery_replay(told)).await;
    let decisions = decided.unwrap_or_default();
    for delivery in pending {
        match decisions.get(&delivery.entry_id).copied().unwrap_or_default() {
            ReplayAction::Drop => drop_it(core, &delivery),
            ReplayAction::Deliver => {
                core.state().queue.push(delivery.place, Queued::Custom(delivery.message()));
            }
        }
    }
    core.queue_changed();
    // Where nobody sees it begin, what comes next takes them along.
    if !core.handle.view(|v| v.has_ui) {
        return;
    }
    let mut state = core.state();
    if state.idle()
        && let Some(first) = state.queue.pop()
    {
        core.accept_run(&mut state, RunStart::Queued(first), Reply(None));
    }
}

/// Removed from what any model will see, in the file as well: it is not asked about again.
fn drop_it(core: &Core, delivery: &Pending) {
    let mut fields = Map::new();
    fields.insert("targetId".into(), delivery.entry_id.clone().into());
    fields.insert("replacement".into(), Value::Null);
    if let Err(e) = core.append_shown("context_edit", fields) {
        core.notify("error", e.to_string());
    }
}

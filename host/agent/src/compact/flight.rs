//! Which compaction goes on: one at a time. Whoever asks while one was asked for joins it; one
//! that began by itself gives way to one that somebody asked for.

use super::settings::{CompactOptions, CompactReason};
use crate::{
    admission::tell_idle,
    core::{Core, Reply, State},
    jobs::{Job, RunStart},
};
use serde_json::Value;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Of a session.
pub(crate) struct Compacting {
    /// Compactions may begin by themselves.
    pub automatic: bool,
    asked_for: Option<AskedFor>,
    by_itself: Option<(CompactReason, CancellationToken)>,
    /// Where one that began by itself came to nothing: not tried again before something happened.
    gave_up_at: Option<String>,
}

struct AskedFor {
    cancel: CancellationToken,
    waiters: Vec<Reply>,
}

impl Default for Compacting {
    fn default() -> Self {
        Compacting { automatic: true, asked_for: None, by_itself: None, gave_up_at: None }
    }
}

impl Compacting {
    /// Somebody waits for one, or it is under way.
    pub fn is_asked_for(&self) -> bool {
        self.asked_for.is_some()
    }
    pub fn reason(&self) -> Option<CompactReason> {
        self.by_itself
            .as_ref()
            .map(|(reason, _)| *reason)
            .or(self.asked_for.as_ref().map(|_| CompactReason::Manual))
    }
    /// Of the one that was asked for; the others end with their run.
    pub fn signal(&self) -> Option<&CancellationToken> {
        self.asked_for.as_ref().map(|a| &a.cancel)
    }
    pub(super) fn gave_up_at(&self, leaf: Option<&str>) -> bool {
        leaf.is_some() && self.gave_up_at.as_deref() == leaf
    }
    /// False: all of it has been told before.
    pub fn abort(&self) -> bool {
        let tokens = self.by_itself.iter().map(|(_, token)| token).chain(self.signal());
        let mut news = false;
        for token in tokens {
            news |= !token.is_cancelled();
            token.cancel();
        }
        news
    }
}

impl Core {
    /// `/compact`. Answers the result once it is written.
    pub(crate) fn compact(&self, options: CompactOptions, reply: Reply) {
        let cancel = CancellationToken::new();
        {
            let mut state = self.state();
            if let Some(before) = &mut state.compacting.asked_for {
                return before.waiters.push(reply);
            }
            // Not a second abort of a run that is being aborted: its hooks are told to the end.
            if let Some((_, run)) = state.runs.front() {
                run.cancel();
            }
            state.compacting.abort();
            state.compacting.asked_for = Some(AskedFor { cancel: cancel.clone(), waiters: vec![reply] });
            self.show_run(&state);
        }
        self.job(Job::Compact { options, cancel });
    }

    pub(crate) fn abort_compaction(&self, reply: Reply) {
        self.state().compacting.abort();
        reply.ok(Value::Null);
    }

    pub(crate) fn set_auto_compaction(&self, enabled: bool, reply: Reply) {
        let mut state = self.state();
        state.compacting.automatic = enabled;
        self.show_run(&state);
        drop(state);
        reply.ok(Value::Null);
    }

    pub(super) fn begins_by_itself(&self, reason: CompactReason, cancel: &CancellationToken) {
        let mut state = self.state();
        state.compacting.by_itself = Some((reason, cancel.clone()));
        self.show_run(&state);
    }

    pub(super) fn ended_by_itself(&self, failed: bool) {
        let leaf = self.session().leaf_id().map(str::to_owned);
        let mut state = self.state();
        if failed {
            state.compacting.gave_up_at = leaf;
        }
        state.compacting.by_itself = None;
        self.show_run(&state);
    }
}

/// On the session thread, after the run that it ended.
pub(crate) async fn asked_for(core: &Arc<Core>, options: CompactOptions, cancel: CancellationToken) {
    let closing = CancellationToken::new();
    core.state().closing = closing.clone();
    let outcome = super::perform::asked_for(core, options, cancel, closing).await;
    let waiters = {
        let mut state = core.state();
        let waiters = state.compacting.asked_for.take().map(|a| a.waiters).unwrap_or_default();
        go_on(core, &mut state);
        core.show_run(&state);
        waiters
    };
    core.queue_changed();
    for waiter in waiters {
        waiter.send(outcome.clone());
    }
    tell_idle(core);
}

/// What was queued for the run that the compaction ended was promised a run.
fn go_on(core: &Core, state: &mut State) {
    if state.idle()
        && !state.stopping
        && let Some(first) = state.queue.pop()
    {
        core.accept_run(state, RunStart::Queued(first), Reply(None));
    }
}

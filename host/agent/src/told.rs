//! What ops have to tell extensions: kept until the dispatch that is going on has ended, then
//! told in the order it happened (events.md U8).

use crate::{
    core::Core,
    hooks::{ModelSource, Notice},
    model::{ModelInfo, ThinkingLevel},
    run::Run,
};
use serde_json::Value;
use std::sync::Arc;

/// What an op tells, after the dispatch that is going on.
#[derive(Clone, Debug)]
pub(crate) enum Told {
    EntryAppended(Arc<Value>),
    SessionInfoChanged(Option<String>),
    ModelSelect { model: Box<ModelInfo>, previous: Option<Box<ModelInfo>>, source: ModelSource },
    ThinkingLevelSelect { level: ThinkingLevel, previous: ThinkingLevel },
}

impl Told {
    pub fn notice(&self) -> Notice<'_> {
        match self {
            Told::EntryAppended(entry) => Notice::EntryAppended { entry },
            Told::SessionInfoChanged(name) => Notice::SessionInfoChanged { name: name.as_deref() },
            Told::ModelSelect { model, previous, source } => {
                Notice::ModelSelect { model, previous: previous.as_deref(), source: *source }
            }
            Told::ThinkingLevelSelect { level, previous } => {
                Notice::ThinkingLevelSelect { level: *level, previous: *previous }
            }
        }
    }
}

impl Core {
    /// Nothing is kept of what nobody hears.
    pub fn tell(&self, told: Told) {
        if self.hooks.hears(&told.notice()) {
            self.state().told.push_back(told);
            self.something_told.notify_one();
        }
    }

    /// Returns when all that there is now has been told, by whoever told it. What its handlers
    /// cause comes later: one that answers each event with another must not hold a run.
    pub async fn tell_all(&self) {
        let _one_at_a_time = self.telling.lock().await;
        let due = self.state().told.len();
        for _ in 0..due {
            let Some(next) = self.state().told.pop_front() else { return };
            self.dispatch(&self.stopped, self.hooks.notify(next.notice())).await;
        }
    }
}

/// Tells it while nothing else is dispatched.
pub(crate) async fn serve(core: &Arc<Core>) {
    loop {
        core.something_told.notified().await;
        core.tell_all().await;
    }
}

impl Run<'_> {
    /// What ops had to tell comes before what follows now (events.md U8).
    pub(crate) async fn catch_up(&self) {
        self.cancel.run_until_cancelled(self.core.tell_all()).await;
    }
}

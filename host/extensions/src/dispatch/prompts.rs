//! `ui_prompt_start` and `ui_prompt_end` (events.md A.7): told beside the prompt, never before it.
//! All observers are started at once and none waits for another; one start when the first of
//! several nested prompts opens, one end when the last of them is gone.

use super::{
    UI_PROMPT_END, UI_PROMPT_START,
    invoke::{FirstPoll, ask},
};
use crate::{
    convert,
    host::{Extensions, lock},
    load::EventState,
};
use std::{
    future::Future,
    pin::pin,
    sync::{Arc, Mutex, Weak},
    task::Poll,
};
use tokio::sync::Semaphore;

/// Why a prompt is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    Extension,
    ProjectTrust,
}

impl Reason {
    fn name(self) -> &'static str {
        match self {
            Reason::Extension => "ui_prompt",
            Reason::ProjectTrust => "project_trust",
        }
    }
}

#[derive(Default)]
pub(crate) struct Prompts(Mutex<Option<Open>>);

struct Open {
    depth: usize,
    end: Arc<EventState>,
    /// Who was there when it opened: nobody else hears of its end.
    present: Vec<u64>,
    /// One permit for each observer that has been started, so that an end never overtakes.
    begun: Arc<Semaphore>,
    started: u32,
}

/// A prompt is open as long as this lives.
pub(crate) struct Span(Weak<Extensions>);

impl Extensions {
    pub(crate) fn prompt_span(&self, reason: Reason, kind: &str, title: &str) -> Option<Span> {
        if !self.engine("ui").is_ok_and(|engine| engine.view(|v| v.has_ui)) {
            return None;
        }
        let mut open = lock(&self.prompts.0);
        if let Some(open) = open.as_mut() {
            open.depth += 1;
            return Some(Span(self.weak()));
        }
        // The question; what follows it belongs to the screen.
        let title = title.lines().next().unwrap_or_default();
        let begun = Arc::new(Semaphore::new(0));
        let present: Vec<u64> = self.slots().iter().map(|s| s.generation.number()).collect();
        let start = convert::ui_prompt("ui_prompt_start", reason.name(), kind, title);
        let started = self.tell_observers(UI_PROMPT_START, &start, &present, None, &begun);
        *open = Some(Open {
            depth: 1,
            end: convert::ui_prompt("ui_prompt_end", reason.name(), kind, title),
            present,
            begun,
            started,
        });
        Some(Span(self.weak()))
    }

    fn prompt_is_gone(&self) {
        let mut open = lock(&self.prompts.0);
        let Some(now) = open.as_mut() else { return };
        now.depth -= 1;
        if now.depth == 0
            && let Some(gone) = open.take()
        {
            let after = Some((gone.begun, gone.started));
            self.tell_observers(UI_PROMPT_END, &gone.end, &gone.present, after, &Arc::new(Semaphore::new(0)));
        }
    }

    /// A prompt is on the screen.
    pub(crate) fn prompt_is_open(&self) -> bool {
        lock(&self.prompts.0).is_some()
    }

    fn tell_observers(
        &self,
        event: usize,
        state: &Arc<EventState>,
        present: &[u64],
        after: Option<(Arc<Semaphore>, u32)>,
        begun: &Arc<Semaphore>,
    ) -> u32 {
        let Some(subs) = self.subs(event) else { return 0 };
        let subs = subs.iter().filter(|s| present.contains(&s.generation.number()));
        let mut started = 0;
        for sub in subs.cloned() {
            started += 1;
            let (me, state, after, begun) = (self.weak(), state.clone(), after.clone(), begun.clone());
            let tell = async move {
                if let Some((begun, started)) = &after {
                    let _ = begun.acquire_many(*started).await;
                }
                let Some(host) = me.upgrade() else { return };
                let limit = Some(host.config().handler_timeout);
                let mut asked = pin!(ask(&sub, event, &state, FirstPoll::There, limit, host.watchdog()));
                if sub.sync {
                    begun.add_permits(1);
                }
                // The first poll starts an asynchronous handler.
                let first = std::future::poll_fn(|cx| Poll::Ready(asked.as_mut().poll(cx))).await;
                if !sub.sync {
                    begun.add_permits(1);
                }
                let asked = match first {
                    Poll::Ready(asked) => asked,
                    Poll::Pending => asked.await,
                };
                host.note_fault(&sub, event, &asked);
            };
            // On threads that may be lost: a synchronous observer can block where it is called.
            let runtime = self.runtime().clone();
            self.runtime().spawn_blocking(move || runtime.block_on(tell));
        }
        started
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        if let Some(host) = self.0.upgrade() {
            host.prompt_is_gone();
        }
    }
}

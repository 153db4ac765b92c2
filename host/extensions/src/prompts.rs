//! Spans in which somebody waits for the user: one `ui_prompt_start` when the first dialog
//! opens, one `ui_prompt_end` when the last is gone (events.md A.7). Told beside the dialog,
//! never before it.

use crate::{
    dispatch::event_index,
    host::{Extensions, lock},
    load::EventState,
};
use serde_json::{Value, json};
use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, Weak},
};

#[derive(Default)]
pub(crate) struct Prompts(Mutex<Spans>);

#[derive(Default)]
struct Spans {
    depth: usize,
    /// Of the span that is open: what it said, and to whom. Who joins later hears neither end.
    open: Option<(Value, HashSet<u64>)>,
    /// What each generation is being told: one after another, none waits for another.
    tails: HashMap<u64, tokio::task::JoinHandle<()>>,
}

/// Ends with this.
pub(crate) struct Span(Weak<Extensions>);

impl Drop for Span {
    fn drop(&mut self) {
        if let Some(host) = self.0.upgrade() {
            host.close_prompt();
        }
    }
}

impl Extensions {
    /// `reason`: `ui_prompt` or `project_trust`.
    pub(crate) fn open_prompt(&self, reason: &str, kind: &str, title: &str) -> Span {
        let span = Span(self.weak());
        let mut spans = lock(&self.prompts().0);
        spans.depth += 1;
        if spans.depth > 1 {
            return span;
        }
        let said = json!({"reason": reason, "kind": kind, "title": title});
        let listeners: HashSet<u64> = ["ui_prompt_start", "ui_prompt_end"]
            .into_iter()
            .filter_map(|e| self.subs(event_index(e)?))
            .flat_map(|subs| subs.iter().map(|s| s.generation.number()).collect::<Vec<_>>())
            .collect();
        spans.open = Some((said.clone(), listeners.clone()));
        drop(spans);
        self.tell_prompt("ui_prompt_start", said, listeners);
        span
    }

    fn close_prompt(&self) {
        let mut spans = lock(&self.prompts().0);
        spans.depth = spans.depth.saturating_sub(1);
        let over = if spans.depth == 0 { spans.open.take() } else { None };
        drop(spans);
        if let Some((said, listeners)) = over {
            self.tell_prompt("ui_prompt_end", said, listeners);
        }
    }

    fn tell_prompt(&self, name: &str, mut said: Value, listeners: HashSet<u64>) {
        let Some((event, host)) = event_index(name).zip(self.weak().upgrade()) else { return };
        let Some(subs) = self.subs(event) else { return };
        if let Some(o) = said.as_object_mut() {
            o.insert("type".into(), name.into());
        }
        let state: Arc<EventState> = EventState::ready(serde_json::to_vec(&said).unwrap_or_default());
        let mut spans = lock(&self.prompts().0);
        spans.tails.retain(|_, told| !told.is_finished());
        for generation in listeners {
            let own: Vec<_> = subs.iter().filter(|s| s.generation.number() == generation).cloned().collect();
            if own.is_empty() {
                continue;
            }
            let (host, state, runtime) = (host.clone(), state.clone(), self.runtime().clone());
            let before = spans.tails.remove(&generation);
            let told = self.runtime().spawn(async move {
                if let Some(before) = before {
                    let _ = before.await;
                }
                // A thread that may be lost: a synchronous handler can block where it is called.
                let on = runtime.clone();
                let told = move || on.block_on(host.tell_apart(event, &own, &state));
                let _ = runtime.spawn_blocking(told).await;
            });
            spans.tails.insert(generation, told);
        }
    }
}

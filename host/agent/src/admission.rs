//! What is said to the engine on its way into a run: through the `input` hooks, then into the
//! queue of the run that goes on, or to the beginning of the next.

use crate::{
    core::{Admission, Core},
    hooks::{Input, InputOutcome, InputSource},
    jobs::RunStart,
    message::{Content, CustomMessage, Extra, ImageContent, MessageContent, UserMessage, now_ms},
    ops::images,
    queue::Queued,
};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Takes input for the run that goes on, one dispatch at a time with the run's own.
pub(crate) async fn serve_admissions(core: &Arc<Core>) {
    loop {
        core.admitted.notified().await;
        let cancel = core.state().runs.front().map(|(_, c)| c.clone()).unwrap_or_default();
        admit_all(core, &cancel).await;
    }
}

/// Everything that waits goes through `input` and into the queue.
pub(crate) async fn admit_all(core: &Arc<Core>, cancel: &CancellationToken) {
    // Taken even if nothing waits: one may be under way, and it is in the queue after this.
    let _turn = core.hook_turn().await;
    loop {
        let Some(admission) = core.state().admissions.pop_front() else { return };
        let Admission { text, images, source, place, expand, reply } = admission;
        let input =
            Input { text: text.clone(), images: images.clone(), source, streaming_behavior: Some(place) };
        let busy = core.busy();
        let outcome = tokio::select! {
            biased;
            () = cancel.cancelled() => None,
            outcome = core.hooks.input(input) => Some(outcome),
        };
        drop(busy);
        let (text, images) = match outcome {
            Some(InputOutcome::Handled) => {
                core.show_run(&core.state());
                reply.ok(json!({"disposition": "handled"}));
                continue;
            }
            Some(InputOutcome::Continue { text, images }) => (text, images),
            // The user has the text back; an extension's has nobody to go back to.
            None if reply.wanted() => {
                core.show_run(&core.state());
                reply.err("aborted", "aborted before it was queued");
                continue;
            }
            None => (text, images),
        };
        let text = if expand { core.expand(text) } else { text };
        core.state().queue.push(place, Queued::User(user_message(text, images)));
        core.queue_changed();
        reply.ok(json!({"disposition": "queued"}));
    }
}

pub(crate) fn user_message(text: String, images: Vec<ImageContent>) -> UserMessage {
    let mut blocks = Vec::new();
    // Providers refuse an empty text beside an image.
    if !text.is_empty() || images.is_empty() {
        blocks.push(Content::text(text));
    }
    blocks.extend(images.into_iter().map(Content::Image));
    UserMessage { content: MessageContent::Blocks(blocks), timestamp: now_ms(), extra: Extra::new() }
}

/// What is left of a [`RunStart`] behind the `input` hooks.
pub(crate) enum Entry {
    User { text: String, images: Vec<ImageContent> },
    Custom(CustomMessage),
}

pub(crate) enum Entered {
    Start(Box<Entry>),
    Handled,
    Aborted,
}

fn entry(queued: Queued) -> Entry {
    match queued {
        Queued::Custom(custom) => Entry::Custom(custom),
        Queued::User(m) => Entry::User { text: m.content.plain_text(), images: images(&m.content) },
    }
}

pub(crate) async fn through_input(core: &Arc<Core>, start: RunStart, cancel: &CancellationToken) -> Entered {
    let (text, images, source, expand) = match start {
        RunStart::Custom(custom) => return Entered::Start(Box::new(Entry::Custom(custom))),
        RunStart::Queued(queued) => return Entered::Start(Box::new(entry(queued))),
        RunStart::Text { text, images, source } => (text, images, source, true),
        RunStart::Blocks(content, expand) => {
            (content.plain_text(), images(&content), InputSource::Extension, expand)
        }
    };
    let input = Input { text, images, source, streaming_behavior: None };
    match core.dispatch(cancel, core.hooks.input(input)).await {
        None => Entered::Aborted,
        Some(InputOutcome::Handled) => Entered::Handled,
        Some(InputOutcome::Continue { text, images }) => {
            let text = if expand { core.expand(text) } else { text };
            Entered::Start(Box::new(Entry::User { text, images }))
        }
    }
}

/// No run came of this input, so nothing settles. What joined it meanwhile was promised a run:
/// the first of it starts one, unless the user aborted.
pub(crate) async fn leave(core: &Arc<Core>, id: u64, aborted: bool) -> Option<Entry> {
    let never = CancellationToken::new();
    loop {
        admit_all(core, &never).await;
        if let Some(joined) = left(core, id, aborted) {
            match &joined {
                Some(_) => core.queue_changed(),
                None => tell_idle(core),
            }
            return joined;
        }
    }
}

/// `None`: more input came first.
fn left(core: &Core, id: u64, aborted: bool) -> Option<Option<Entry>> {
    let mut state = core.state();
    if !state.admissions.is_empty() {
        return None;
    }
    if !aborted && let Some(first) = state.queue.pop() {
        return Some(Some(entry(first)));
    }
    state.runs.retain(|(run, _)| *run != id);
    core.show_run(&state);
    Some(None)
}

pub(crate) fn tell_idle(core: &Core) {
    let waiters = {
        let mut state = core.state();
        match state.at_rest() {
            true => std::mem::take(&mut state.idle_waiters),
            false => Vec::new(),
        }
    };
    for waiter in waiters {
        waiter.ok(Value::Null);
    }
}

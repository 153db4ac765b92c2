//! One call of one handler: counted in its generation, under a breadcrumb, with a deadline.
//! No host lock is held here (SAFETY.md 6).

use super::EVENTS;
use crate::{
    breadcrumb,
    calls::{Failure, answers},
    generation::{AsyncCall, CallEnd, Generation},
    host::Extensions,
    load::{EventState, Live, Started},
    registry::Sub,
    watchdog::Watchdog,
};
use std::{sync::Arc, time::Duration};

/// How a handler's call ended.
#[derive(Debug)]
pub(crate) enum Asked {
    Answered(Vec<u8>),
    Failed(Failure),
    /// Its generation was fenced before or while it was asked.
    Reloaded,
    Overran(Duration),
}

/// Where the first poll of an asynchronous handler happens (boundary.md 5).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FirstPoll {
    /// On this thread: half a microsecond instead of a thread round trip. Notify events only.
    Here,
    /// On the instance's runtime, so that a blocking handler stalls only itself.
    There,
}

pub(super) async fn ask(
    sub: &Sub,
    event: usize,
    state: &Arc<EventState>,
    first: FirstPoll,
    limit: Option<Duration>,
    watchdog: &Watchdog,
) -> Asked {
    let kind = breadcrumb::kind::EVENTS + event as u16;
    if sub.sync {
        let Some(call) = sub.generation.enter(kind) else { return Asked::Reloaded };
        let _watched = watchdog.enter(sub.generation.owner(), event, call.id());
        let frame = breadcrumb::push(sub.generation.owner(), kind);
        let outcome = sub.live.sync(sub.handler, call.id(), state);
        breadcrumb::pop(frame);
        match outcome {
            Ok(b) => Asked::Answered(b),
            Err(e) => Asked::Failed(e),
        }
    } else {
        ask_async(sub, event, state, first, limit, watchdog).await
    }
}

async fn ask_async(
    sub: &Sub,
    event: usize,
    state: &Arc<EventState>,
    first: FirstPoll,
    limit: Option<Duration>,
    watchdog: &Watchdog,
) -> Asked {
    let kind = breadcrumb::kind::EVENTS + event as u16;
    let Some(call) = sub.generation.enter_async(kind) else { return Asked::Reloaded };
    let here = first == FirstPoll::Here;
    let watched = here.then(|| watchdog.enter(sub.generation.owner(), event, call.id()));
    let frame = breadcrumb::push(sub.generation.owner(), kind);
    let started = sub.live.start(sub.handler, call.id(), state, here);
    breadcrumb::pop(frame);
    drop(watched);
    match started {
        Started::Done(outcome) => settle(call.answer(outcome)),
        Started::Pending => wait(sub, call, limit).await,
    }
}

/// A handler over its time is passed over, not told to stop: that it answers at last is how we
/// know that its instance can be asked again. Until then it is suspended.
async fn wait(sub: &Sub, call: AsyncCall, limit: Option<Duration>) -> Asked {
    let Some(time) = limit else { return finish(call, None).await };
    let waiting = answers::wait_for(call.id());
    let mut answer = Box::pin(call.run(waiting.answer()));
    tokio::select! {
        biased;
        end = &mut answer => settle(end),
        () = tokio::time::sleep(time) => {
            let late = sub.registered.overran();
            // Ends with its generation at the latest.
            tokio::spawn(async move {
                let _ = answer.await;
                drop(late);
            });
            Asked::Overran(time)
        }
    }
}

async fn finish(call: AsyncCall, limit: Option<Duration>) -> Asked {
    let waiting = answers::wait_for(call.id());
    let Some(time) = limit else { return settle(call.run(waiting.answer()).await) };
    // An overrun drops the call unanswered, which tells the instance to drop its future.
    tokio::select! {
        biased;
        end = call.run(waiting.answer()) => settle(end),
        () = tokio::time::sleep(time) => Asked::Overran(time),
    }
}

fn settle(end: CallEnd<Result<Vec<u8>, Failure>>) -> Asked {
    match end {
        CallEnd::Answered(Ok(b)) => Asked::Answered(b),
        CallEnd::Answered(Err(e)) => Asked::Failed(e),
        CallEnd::Fenced | CallEnd::Cancelled => Asked::Reloaded,
    }
}

/// A command, tool or program, which is no event handler; `on_call` learns the call's id
/// before the entry starts.
pub(crate) async fn ask_entry(
    generation: &Arc<Generation>,
    live: &Live,
    handler: u64,
    kind: u16,
    state: &Arc<EventState>,
    on_call: impl FnOnce(u64),
) -> Asked {
    let Some(call) = generation.enter_async(kind) else { return Asked::Reloaded };
    on_call(call.id());
    let frame = breadcrumb::push(generation.owner(), kind);
    let started = live.start(handler, call.id(), state, false);
    breadcrumb::pop(frame);
    match started {
        Started::Done(outcome) => settle(call.answer(outcome)),
        Started::Pending => finish(call, None).await,
    }
}

/// Started, not awaited; a fault is a diagnostic named by `place`.
pub(crate) fn start_detached(
    host: &Arc<Extensions>,
    generation: &Arc<Generation>,
    handler: u64,
    state: &Arc<EventState>,
    place: String,
) {
    let Some(live) = Live::of(generation) else { return };
    let Some(call) = generation.enter_async(breadcrumb::kind::TASK) else { return };
    let frame = breadcrumb::push(generation.owner(), breadcrumb::kind::TASK);
    let started = live.start(handler, call.id(), state, false);
    breadcrumb::pop(frame);
    let (host, owner, limit) = (host.clone(), generation.owner(), host.config().handler_timeout);
    let report = move |asked: Asked| match asked {
        Asked::Failed(e) => host.diagnose(owner, &place, &e.message),
        Asked::Overran(t) => {
            host.diagnose(owner, &place, &format!("did not end within {} s and was dropped", t.as_secs()));
        }
        Asked::Answered(_) | Asked::Reloaded => {}
    };
    match started {
        Started::Done(outcome) => report(settle(call.answer(outcome))),
        Started::Pending => {
            tokio::spawn(async move { report(finish(call, Some(limit)).await) });
        }
    }
}

/// The name that diagnostics use.
pub(super) fn event_name(event: usize) -> &'static str {
    EVENTS.get(event).map_or("", |e| e.name)
}

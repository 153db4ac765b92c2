//! Calls that are inside a generation, and how each of them ended for whoever
//! asked: answered, cancelled by the retirement, or never made. A gate whose
//! call ended in one of the last two ways has to block.

use super::{Cancel, Generation, lock};
use std::{
    future::Future,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
};
use tokio::sync::Notify;

/// A synchronous call; counted out when dropped.
#[derive(Debug)]
pub struct InCall<'a> {
    generation: &'a Generation,
    id: u64,
}

impl<'a> InCall<'a> {
    pub(super) fn new(generation: &'a Generation, id: u64) -> Self {
        Self { generation, id }
    }

    /// The call id that host requests of this handler carry.
    pub fn id(&self) -> u64 {
        self.id
    }
}

impl Drop for InCall<'_> {
    fn drop(&mut self) {
        self.generation.call_left();
    }
}

pub(super) struct CallState {
    pub(super) id: u64,
    cancelled: AtomicBool,
    /// The body was told (by the retirement or by us): once is enough.
    told: AtomicBool,
    wake: Notify,
}

impl CallState {
    /// The caller stops waiting for the answer.
    pub(super) fn cancel(&self) {
        self.cancelled.store(true, SeqCst);
        self.wake.notify_waiters();
    }

    /// True for the one who has to tell the body.
    pub(super) fn tell(&self) -> bool {
        !self.told.swap(true, SeqCst)
    }
}

/// An asynchronous call, findable by its id while it runs.
///
/// Dropping it without an answer (dispatch was abandoned) tells the instance to
/// drop the call's future.
pub struct AsyncCall {
    generation: Arc<Generation>,
    state: Arc<CallState>,
    answered: bool,
}

/// How a call ended for the one who made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallEnd<T> {
    /// With its answer, also when the generation was fenced meanwhile.
    Answered(T),
    /// Never made: the generation is fenced.
    Fenced,
    /// The retirement did not wait any longer. Whatever it would have said is void.
    Cancelled,
}

impl<T> CallEnd<T> {
    /// The answer, or what a gate says instead when its handler could not be heard.
    pub fn answered(self) -> Result<T, &'static str> {
        match self {
            Self::Answered(answer) => Ok(answer),
            Self::Fenced | Self::Cancelled => Err("reloaded while it was asked"),
        }
    }
}

impl AsyncCall {
    pub(super) fn new(generation: Arc<Generation>, id: u64) -> Self {
        let state = Arc::new(CallState {
            id,
            cancelled: AtomicBool::new(false),
            told: AtomicBool::new(false),
            wake: Notify::new(),
        });
        lock(&generation.calls).push(state.clone());
        Self { generation, state, answered: false }
    }

    /// The call id that host requests of this handler carry.
    pub fn id(&self) -> u64 {
        self.state.id
    }

    /// Asks the handler to end in its own way (Escape on a tool).
    pub fn signal(&self) {
        if let Some(body) = self.generation.body() {
            body.cancel(self.id(), Cancel::Signal);
        }
    }

    /// Resolves when the retirement gives this call up.
    pub async fn cancelled(&self) {
        loop {
            let mut wake = pin!(self.state.wake.notified());
            wake.as_mut().enable();
            if self.state.cancelled.load(SeqCst) {
                return;
            }
            wake.await;
        }
    }

    /// The answer came at once (a handler that was ready at its first poll).
    pub fn answer<T>(mut self, answer: T) -> CallEnd<T> {
        self.answered = true;
        CallEnd::Answered(answer)
    }

    /// Waits for the answer, or for the retirement to give the call up.
    pub async fn run<F: Future>(self, answer: F) -> CallEnd<F::Output> {
        let end = tokio::select! {
            biased;
            answer = answer => Some(answer),
            () = self.cancelled() => None,
        };
        match end {
            Some(answer) => self.answer(answer),
            None => CallEnd::Cancelled,
        }
    }
}

impl Drop for AsyncCall {
    fn drop(&mut self) {
        {
            let mut calls = lock(&self.generation.calls);
            if let Some(at) = calls.iter().position(|c| c.id == self.state.id) {
                calls.swap_remove(at);
            }
        }
        if !self.answered
            && self.state.tell()
            && let Some(body) = self.generation.body()
        {
            body.cancel(self.state.id, Cancel::Drop);
        }
        self.generation.call_left();
    }
}

impl Generation {
    /// Makes an asynchronous call: `ask` gets the call id and returns the answer's future.
    pub async fn ask<F: Future>(self: &Arc<Self>, ask: impl FnOnce(u64) -> F) -> CallEnd<F::Output> {
        let Some(call) = self.enter_async(0) else { return CallEnd::Fenced };
        let answer = ask(call.id());
        call.run(answer).await
    }

    /// Is this call inside?
    pub fn is_running(&self, call: u64) -> bool {
        lock(&self.calls).iter().any(|c| c.id == call)
    }
}

//! `pi.on` and its kin: an author's closure becomes a handler of the instance.
//!
//! Closures are `FnOnce + Clone` and cloned for every event: that takes
//! `move |event, ctx| async move { .. }` with a captured `Arc` and
//! `async move |event, ctx| { .. }` alike (boundary.md 5).

use crate::{
    abi::instance::Handler,
    context::Context,
    error::Result,
    event::Event,
    extension::Extension,
    protocol::{
        EventKind,
        registry::{AddHandler, Phase},
    },
};
use std::sync::Arc;

impl Extension {
    pub(crate) fn add(&self, handler: Handler) -> u64 {
        self.call.state.add_handler(handler)
    }

    fn subscribe<E: EventKind>(&self, phase: Phase, event: E, handler: Handler) {
        let sync = matches!(handler, Handler::Sync(_));
        let handler = self.add(handler);
        self.registered(
            self.call.tell("handlers.add", &AddHandler { event: event.name(), handler, sync, phase }),
        );
    }

    /// Calls `f` on every such event, on the thread that dispatches it: for what is quick
    /// and needs no waiting, as counting token deltas. Works without the feature `tokio`.
    pub fn on_sync<E, F>(&self, event: E, f: F)
    where
        E: EventKind,
        F: Fn(&Event<E>, &Context) -> Result<E::Answer> + Send + Sync + 'static,
    {
        self.on_sync_with(Phase::Normal, event, f);
    }

    /// The same, in another phase.
    pub fn on_sync_with<E, F>(&self, phase: Phase, event: E, f: F)
    where
        E: EventKind,
        F: Fn(&Event<E>, &Context) -> Result<E::Answer> + Send + Sync + 'static,
    {
        self.subscribe(
            phase,
            event,
            Handler::Sync(Arc::new(move |event, call| {
                let event = Event::<E>::new(event);
                let answer = f(&event, &Context::new(call));
                event.trail().outcome::<E>(answer)
            })),
        );
    }

    /// Calls `f` on every such event. Handlers of one event run one after another, in load
    /// order, each awaited before the next; there is no way to unsubscribe (events.md U1-U4).
    /// A handler that fails or panics is reported and changes nothing, unless its event is a
    /// gate (`tool_call`): then the call is blocked.
    #[cfg(feature = "tokio")]
    pub fn on<E, F, Fut>(&self, event: E, f: F)
    where
        E: EventKind,
        F: FnOnce(Event<E>, Context) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Result<E::Answer>> + Send + 'static,
    {
        self.on_with(Phase::Normal, event, f);
    }

    /// The same, in another phase.
    #[cfg(feature = "tokio")]
    pub fn on_with<E, F, Fut>(&self, phase: Phase, event: E, f: F)
    where
        E: EventKind,
        F: FnOnce(Event<E>, Context) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Result<E::Answer>> + Send + 'static,
    {
        self.subscribe(
            phase,
            event,
            Handler::Async(Arc::new(move |event, call| {
                let event = Event::<E>::new(event);
                let trail = event.trail();
                let answer = f.clone()(event, Context::new(call));
                Box::pin(async move { trail.outcome::<E>(answer.await) })
            })),
        );
    }
}

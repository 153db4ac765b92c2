//! `pi.events()`: the bus that the extensions of a session share (events.md E.6).

use crate::{
    abi::instance::{Call, Handler},
    error::Result,
    extension::Extension,
    protocol::events::{BusEmit, BusId, BusOn},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// Channels by name, values as JSON. Delivered in the order they were emitted, to
/// subscribers in the order they came; nothing is kept for those who come later.
#[derive(Clone)]
pub struct EventBus {
    call: Call,
}

/// One subscription; it ends with `off`, or with the generation. Dropping it ends nothing.
pub struct Subscription {
    call: Call,
    id: Value,
    handler: u64,
}

impl Subscription {
    /// Ends it.
    ///
    /// # Errors
    /// `stale_context`.
    pub fn off(self) -> Result<()> {
        self.call.tell("events.off", &BusId { id: self.id })?;
        self.call.state.drop_handler(self.handler);
        Ok(())
    }
}

#[derive(Deserialize)]
struct Delivery {
    #[serde(default)]
    data: Value,
}

impl EventBus {
    fn subscribe(&self, channel: &str, handler: Handler) -> Result<Subscription> {
        let handler = self.call.state.add_handler(handler);
        match self.call.get::<BusId>("events.on", &BusOn { channel, handler }) {
            Ok(BusId { id }) => Ok(Subscription { call: self.call.clone(), id, handler }),
            Err(e) => {
                self.call.state.drop_handler(handler);
                Err(e)
            }
        }
    }

    /// Calls `f` with everything that is emitted on the channel. It is started, not
    /// awaited; its error is logged.
    ///
    /// # Errors
    /// `stale_context`.
    #[cfg(feature = "tokio")]
    pub fn on<F, Fut>(&self, channel: &str, f: F) -> Result<Subscription>
    where
        F: FnOnce(Value) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        self.subscribe(
            channel,
            Handler::Async(Arc::new(move |event, _| {
                let f = f.clone();
                Box::pin(async move {
                    let delivery: Delivery = serde_json::from_slice(event.json())?;
                    f(delivery.data).await.map(|()| Vec::new())
                })
            })),
        )
    }

    /// The same, on the thread that delivers.
    ///
    /// # Errors
    /// `stale_context`.
    pub fn on_sync(
        &self,
        channel: &str,
        f: impl Fn(Value) -> Result<()> + Send + Sync + 'static,
    ) -> Result<Subscription> {
        self.subscribe(
            channel,
            Handler::Sync(Arc::new(move |event, _| {
                let delivery: Delivery = serde_json::from_slice(event.json())?;
                f(delivery.data).map(|()| Vec::new())
            })),
        )
    }

    /// Queues a value for the channel and returns.
    ///
    /// # Errors
    /// `stale_context`.
    pub fn emit(&self, channel: &str, data: &(impl Serialize + ?Sized)) -> Result<()> {
        self.call.tell("events.emit", &BusEmit { channel, data })
    }
}

impl Extension {
    /// The bus of this session.
    pub fn events(&self) -> EventBus {
        EventBus { call: self.call.clone() }
    }
}

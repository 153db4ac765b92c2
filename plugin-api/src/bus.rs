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

    /// Asks whoever serves the channel, and waits for the answer on `CHANNEL:reply:ID`: the value
    /// is sent as `{"requestId": ID, "data": …}`. Nobody is waited for longer than `patience`.
    #[cfg(feature = "tokio")]
    pub fn request(
        &self,
        channel: &str,
        data: &(impl Serialize + ?Sized),
        patience: std::time::Duration,
    ) -> crate::Request<Value> {
        let (bus, channel, data) = (self.clone(), channel.to_owned(), serde_json::to_value(data));
        crate::Request::new(async move {
            let id = bus.call.state.unique();
            let (tx, rx) = tokio::sync::oneshot::channel();
            let tx = std::sync::Mutex::new(Some(tx));
            let answered = bus.on_sync(&format!("{channel}:reply:{id}"), move |answer| {
                if let Some(tx) = tx.lock().ok().and_then(|mut tx| tx.take()) {
                    let _ = tx.send(answer);
                }
                Ok(())
            })?;
            bus.emit(&channel, &serde_json::json!({"requestId": id, "data": data?}))?;
            let ms = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
            let late = bus.call.clone().ask_done("sleep", &serde_json::json!({"ms": ms}));
            let answer = tokio::select! {
                answer = rx => answer.map_err(|_| crate::Error::stale()),
                slept = late => Err(slept.err().unwrap_or_else(|| {
                    crate::Error::new("timeout", format!("nobody answered on `{channel}` within {ms} ms"))
                })),
            };
            answered.off()?;
            answer
        })
    }

    /// Answers every [`EventBus::request`] on the channel. An error is answered as
    /// `{"error": {code, message}}`.
    ///
    /// # Errors
    /// `stale_context`.
    #[cfg(feature = "tokio")]
    pub fn serve<F, Fut, R>(&self, channel: &str, f: F) -> Result<Subscription>
    where
        F: FnOnce(Value) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Result<R>> + Send + 'static,
        R: Serialize,
    {
        let (bus, name) = (self.clone(), channel.to_owned());
        self.on(channel, move |mut asked: Value| {
            let (f, bus, name) = (f.clone(), bus.clone(), name.clone());
            async move {
                let id = asked.get("requestId").and_then(Value::as_str).unwrap_or("unknown").to_owned();
                let data = asked.get_mut("data").map(Value::take).unwrap_or_default();
                let answer = match f(data).await {
                    Ok(answer) => serde_json::to_value(answer)?,
                    Err(error) => serde_json::json!({"error": error}),
                };
                bus.emit(&format!("{name}:reply:{id}"), &answer)
            }
        })
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

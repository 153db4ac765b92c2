//! The cancel signal of a call (events.md J.2 N4).

use crate::abi::instance::Call;

/// Raised when the user stops what the handler or tool works for. Cheap to clone.
#[derive(Clone)]
pub struct CancelSignal {
    call: Call,
}

impl CancelSignal {
    pub(crate) fn new(call: &Call) -> Self {
        CancelSignal { call: call.clone() }
    }

    /// Whether it is.
    pub fn is_cancelled(&self) -> bool {
        #[cfg(feature = "tokio")]
        if self.call.signal.as_ref().is_some_and(|s| s.raised()) {
            return true;
        }
        self.call
            .get::<bool>("ctx.get", &crate::protocol::context::CtxGet { member: "signalAborted" })
            .unwrap_or(false)
    }

    /// Waits until it is. Outside a call nothing ever raises it.
    #[cfg(feature = "tokio")]
    pub async fn cancelled(&self) {
        match &self.call.signal {
            Some(signal) => signal.wait().await,
            None => std::future::pending().await,
        }
    }
}

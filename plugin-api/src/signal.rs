//! The cancel signal of a call (events.md J.2 N4).

use crate::abi::instance::Call;

/// Raised when the user stops what the handler or tool works for: its own call, or the run that
/// goes on. While nothing runs it is not raised. Cheap to clone, and free to outlive the handler.
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
            .get::<Option<bool>>("ctx.get", &crate::protocol::context::CtxGet { member: "signalAborted" })
            .ok()
            .flatten()
            .unwrap_or(false)
    }

    /// Waits until it is: for `tokio::select!`. Also resolves when the generation is replaced,
    /// since then nobody waits for the work either. Of a run that ends by itself, or with nothing
    /// going on, it never resolves.
    #[cfg(feature = "tokio")]
    pub async fn cancelled(&self) {
        use std::{future::Future, pin::pin, task::Poll};
        let mut own = pin!(async {
            match &self.call.signal {
                Some(signal) => signal.wait().await,
                None => std::future::pending().await,
            }
        });
        let mut of_run = pin!(async {
            match self.call.request("signal.wait", b"").await {
                Ok(_) => {}
                Err(e) if e.is_stale() => {}
                // A host without it.
                Err(_) => std::future::pending().await,
            }
        });
        std::future::poll_fn(|cx| match own.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(()),
            Poll::Pending => of_run.as_mut().poll(cx),
        })
        .await;
    }
}

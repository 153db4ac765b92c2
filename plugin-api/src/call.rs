//! Operations of the host, as the rest of the crate asks for them: a value in, a value out.

use crate::{
    abi::instance::Call,
    error::{Error, Result},
};
use serde::{Serialize, de::DeserializeOwned};

/// An operation without a body.
#[derive(Serialize)]
pub(crate) struct Empty {}

fn decode<R: DeserializeOwned>(op: &str, bytes: &[u8]) -> Result<R> {
    let bytes = if bytes.is_empty() { b"null".as_slice() } else { bytes };
    serde_json::from_slice(bytes)
        .map_err(|e| Error::new("malformed", format!("the host's answer to `{op}`: {e}")))
}

impl Call {
    /// Answered at once.
    pub(crate) fn get<R: DeserializeOwned>(&self, op: &str, body: &impl Serialize) -> Result<R> {
        decode(op, &self.call(op, &serde_json::to_vec(body)?)?)
    }
    /// The same, without an answer worth reading.
    pub(crate) fn tell(&self, op: &str, body: &impl Serialize) -> Result<()> {
        self.call(op, &serde_json::to_vec(body)?).map(drop)
    }
}

#[cfg(feature = "tokio")]
pub use pending::Request;

#[cfg(feature = "tokio")]
mod pending {
    use super::{Call, Result, Serialize, decode};
    use serde::de::DeserializeOwned;
    use std::{
        future::Future,
        pin::Pin,
        task::{Context, Poll},
    };

    /// A request to the host: nothing happens until it is awaited. It resolves when the
    /// host has accepted it; dropping it before tells the host that nobody waits.
    ///
    /// Fails with `stale_context` once the generation it was made for has been replaced.
    #[must_use = "a request does nothing until it is awaited"]
    pub struct Request<R>(Pin<Box<dyn Future<Output = Result<R>> + Send>>);

    impl<R> Future for Request<R> {
        type Output = Result<R>;
        fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<R>> {
            self.0.as_mut().poll(cx)
        }
    }

    impl<R: Send + 'static> Request<R> {
        pub(crate) fn new(future: impl Future<Output = Result<R>> + Send + 'static) -> Self {
            Request(Box::pin(future))
        }
        fn made(
            call: &Call,
            op: &'static str,
            body: &impl Serialize,
            read: fn(&str, &[u8]) -> Result<R>,
        ) -> Self {
            let body = serde_json::to_vec(body);
            let call = call.clone();
            Request::new(async move { read(op, &call.request(op, &body?).await?) })
        }
    }

    impl Call {
        /// Answered later.
        pub(crate) fn ask<R: DeserializeOwned + Send + 'static>(
            &self,
            op: &'static str,
            body: &impl Serialize,
        ) -> Request<R> {
            Request::made(self, op, body, decode)
        }
        /// The same, without an answer worth reading.
        pub(crate) fn ask_done(&self, op: &'static str, body: &impl Serialize) -> Request<()> {
            Request::made(self, op, body, |_, _| Ok(()))
        }
    }
}

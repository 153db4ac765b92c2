//! An answer as it arrives, from the network or from a tape: status, headers and a body that may
//! not fall silent for ever.

use futures_util::{Stream, StreamExt as _, stream};
use reqwest::header::HeaderMap;
use std::{pin::Pin, time::Duration};

/// How a body breaks off.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Lost {
    #[error(transparent)]
    Connection(#[from] reqwest::Error),
    #[error("nothing came for {} seconds", .0.as_secs())]
    Stalled(Duration),
}

pub(crate) type Body = Pin<Box<dyn Stream<Item = Result<Vec<u8>, Lost>> + Send>>;

pub(crate) struct Received {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Body,
}

impl Received {
    pub fn of_network(response: reqwest::Response, idle: Option<Duration>) -> Self {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let bytes = response.bytes_stream().map(|chunk| match chunk {
            Ok(bytes) => Ok(bytes.to_vec()),
            // The address may hold a key.
            Err(error) => Err(Lost::Connection(error.without_url())),
        });
        Received { status, headers, body: impatient(Box::pin(bytes), idle) }
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default()
    }
}

/// Ends with `Stalled` when no byte comes for so long. Bytes that say nothing, which servers send
/// to keep a connection, count.
fn impatient(body: Body, idle: Option<Duration>) -> Body {
    let Some(idle) = idle else { return body };
    Box::pin(stream::unfold(Some(body), move |body| async move {
        let mut body = body?;
        match tokio::time::timeout(idle, body.next()).await {
            Ok(Some(chunk)) => Some((chunk, Some(body))),
            Ok(None) => None,
            Err(_) => Some((Err(Lost::Stalled(idle)), None)),
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn b63_a_body_that_falls_silent_is_lost_after_the_deadline_and_a_slow_one_is_not() {
        let minute = Duration::from_secs(60);
        let drip = |pause: u64| -> Body {
            Box::pin(stream::iter(0..3).then(move |n| async move {
                tokio::time::sleep(Duration::from_secs(pause)).await;
                Ok(vec![n])
            }))
        };
        let all: Vec<_> = impatient(drip(59), Some(minute)).collect().await;
        assert!(all.len() == 3 && all.iter().all(Result::is_ok));
        let all: Vec<_> = impatient(drip(61), Some(minute)).collect().await;
        assert!(matches!(all.as_slice(), [Err(Lost::Stalled(d))] if *d == minute));
        let all: Vec<_> = impatient(drip(6_000), None).collect().await;
        assert_eq!(all.len(), 3);
    }
}

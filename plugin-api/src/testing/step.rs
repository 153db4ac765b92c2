//! What a test does to its extension: awaited in an async test, or waited for in a plain one.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    thread::Thread,
};

/// Something that a [`TestHost`](super::TestHost) does: `.await` it, or `.wait()` for it
/// in a test without a runtime. Nothing happens before. Dropping it half-way cancels the
/// handler, as the host does when the user stops a run.
#[must_use = "`.await` it, or `.wait()` for it"]
pub struct Step<'a, T>(Pin<Box<dyn Future<Output = T> + 'a>>);

impl<'a, T> Step<'a, T> {
    pub(super) fn new(future: impl Future<Output = T> + 'a) -> Self {
        Step(Box::pin(future))
    }

    /// Blocks this thread. Handlers run on a runtime of their own, so that works inside an
    /// async test too.
    pub fn wait(mut self) -> T {
        struct Unpark(Thread);
        impl Wake for Unpark {
            fn wake(self: Arc<Self>) {
                self.0.unpark();
            }
        }
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let mut cx = Context::from_waker(&waker);
        loop {
            if let Poll::Ready(value) = self.0.as_mut().poll(&mut cx) {
                return value;
            }
            std::thread::park();
        }
    }
}

impl<T> Future for Step<'_, T> {
    type Output = T;
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        self.0.as_mut().poll(cx)
    }
}

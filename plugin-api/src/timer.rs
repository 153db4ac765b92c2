//! Timers that end with their generation, by the host's clock.

use crate::{
    error::Result,
    extension::{Extension, Task},
};
use std::time::Duration;

impl Extension {
    /// Runs `future` once, after this long, unless the generation or the task ends first.
    pub fn set_timeout(
        &self,
        after: Duration,
        future: impl Future<Output = Result<()>> + Send + 'static,
    ) -> Task {
        let pi = self.clone();
        self.spawn(async move {
            match pi.sleep(after).await {
                Err(e) if e.is_stale() => Ok(()),
                Err(e) => Err(e),
                Ok(()) => future.await,
            }
        })
    }

    /// Runs `f` again and again, this long after the last time has ended. An error ends it.
    pub fn set_interval<F, Fut>(&self, every: Duration, mut f: F) -> Task
    where
        F: FnMut() -> Fut + Send + 'static,
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        let pi = self.clone();
        self.spawn(async move {
            loop {
                match pi.sleep(every).await {
                    Err(e) if e.is_stale() => return Ok(()),
                    other => other?,
                }
                f().await?;
            }
        })
    }
}

//! `pi`: what an author registers with.

use crate::{abi::instance::State, error::Result};
use std::sync::Arc;

/// The extension's handle to its host; `pi` in every example. Cheap to clone.
#[derive(Clone)]
pub struct Extension {
    pub(crate) state: Arc<State>,
}

impl Extension {
    pub(crate) fn new(state: Arc<State>) -> Self {
        Extension { state }
    }
}

/// `fn` or `async fn`: both can activate an extension.
#[doc(hidden)]
pub trait Activate<Marker> {
    fn run(&self, pi: &Extension) -> Result<()>;
}

#[doc(hidden)]
pub struct Plain;
impl<F: Fn(&Extension) -> Result<()>> Activate<Plain> for F {
    fn run(&self, pi: &Extension) -> Result<()> {
        self(pi)
    }
}

#[doc(hidden)]
#[cfg(feature = "tokio")]
pub struct Async;
#[cfg(feature = "tokio")]
impl<F: AsyncFn(&Extension) -> Result<()>> Activate<Async> for F {
    fn run(&self, pi: &Extension) -> Result<()> {
        pi.state.runtime()?.block_on(self(pi))
    }
}

#[doc(hidden)]
pub fn run<Marker, F: Activate<Marker>>(activate: &F, pi: &Extension) -> Result<()> {
    activate.run(pi)
}

//! How a session ends: session_shutdown has been told, or its grace is over.

use crate::{launch::Launched, supervise::pages};
use atomic_agent::op::Op;
use std::time::Duration;

/// The engine keeps its own five seconds; this is for an engine that does not.
pub const ENGINE: Duration = Duration::from_secs(6);
/// Retiring what is loaded is courtesy by then.
const EXTENSIONS: Duration = Duration::from_millis(1500);

pub async fn shut_down(launched: &Launched, from_signal: bool) {
    let asked = launched.handle.request(Op::Shutdown { from_signal });
    let _ = tokio::time::timeout(ENGINE, asked).await;
    close_extensions(launched).await;
}

/// After an engine that has stopped.
pub async fn close_extensions(launched: &Launched) {
    let _ = tokio::time::timeout(EXTENSIONS, launched.extensions.close()).await;
    pages::forget(launched.extensions.config().breadcrumbs.as_deref());
}

//! Feature `tracing`: log lines find the host, wherever the author's code runs.

use crate::{prelude::*, testing::TestHost};
use serde_json::json;

#[test]
fn what_is_logged_with_tracing_reaches_the_host_from_handlers_tasks_and_activation() {
    let host = TestHost::new(|pi: &Extension| {
        tracing::info!("activating");
        pi.on_sync(TurnStart, |_, _| {
            tracing::warn!(turn = 3, "in a sync handler");
            Ok(())
        });
        pi.on(AgentStart, |_, ctx| async move {
            ctx.sleep(std::time::Duration::from_millis(1)).await?;
            tracing::error!("after an await");
            tracing::debug!("stays in the library");
            Ok(())
        });
        Ok(())
    });

    host.fire(TurnStart, json!({"turnIndex": 0, "timestamp": 0})).wait();
    host.fire(AgentStart, json!({})).wait();

    let logs = format!("{:?}", host.record().logs);
    for line in ["activating", "in a sync handler turn=3", "after an await"] {
        assert!(logs.contains(line), "{line} is missing in {logs}");
    }
    assert!(!logs.contains("stays in the library"), "{logs}");
}

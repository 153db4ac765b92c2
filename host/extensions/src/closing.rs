//! The end of a host, and of one generation: fence, detach, drain, shut down (boundary.md 8).

use crate::{
    breadcrumb, calls,
    generation::RetirePlan,
    host::{Extensions, Slot},
};
use std::time::Duration;

impl Extensions {
    /// Fences and retires everything; `session_shutdown` is the engine's to fire before.
    pub async fn close(&self) {
        let _one = self.replacing.lock().await;
        let gone: Vec<Slot> = std::mem::take(&mut *self.slots());
        for s in &gone {
            s.generation.fence(None);
        }
        self.workflow_hub().with(|h| h.close());
        for s in &gone {
            calls::tables::end_policies(s.owner, None);
        }
        let _ = self.publish();
        let quick = RetirePlan {
            drain: Duration::from_millis(300),
            cancel_grace: Duration::from_millis(200),
            carrier_grace: Duration::ZERO,
            shutdown_deadline: Duration::from_millis(500),
            ..RetirePlan::new(None)
        };
        let ends = gone.into_iter().map(|s| self.retire(s, quick));
        let _ = tokio::time::timeout(Duration::from_secs(2), futures_util::future::join_all(ends)).await;
        breadcrumb::mark_clean();
    }

    /// Steps 3 to 8 of a retirement whose fence has been set.
    pub(crate) async fn retire(&self, slot: Slot, plan: RetirePlan) {
        let number = slot.generation.number();
        let host = self.weak();
        let detach = Box::new(move || {
            calls::tables::forget(number);
            calls::workbench::forget(number);
            if let Some(host) = host.upgrade() {
                host.bus().forget(number);
                host.statuses().clear(&host, number);
                host.session_state().forget(number);
                host.workflow_hub().with(|h| h.retire(number));
                host.forget_providers(number);
                host.forget_registrations(number);
            }
        });
        let report = slot.generation.clone().retire(plan, detach).await;
        if !report.clean {
            slot.library.mark_dirty();
            let left = report.shutdown.as_ref().and_then(|s| s.note.clone()).unwrap_or_default();
            tracing::warn!(
                extension = slot.name,
                generation = number,
                blocked = report.blocked,
                left,
                "a generation did not end cleanly"
            );
        }
    }
}

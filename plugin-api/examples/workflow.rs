//! A source of what workflows do, somebody who watches it, and handlers that hear of it.

use atomic_plugin_api::{
    WorkflowActivityPublisher,
    prelude::*,
    protocol::workflow::{
        RootReason, RootState, WorkflowActivityFrame, WorkflowHeartbeat, WorkflowLifecycle,
        WorkflowRootActivity,
    },
};
use std::sync::{Arc, Mutex};

export_extension!(activate);

fn activate(pi: &Extension) -> Result<()> {
    let publisher: Arc<Mutex<Option<WorkflowActivityPublisher>>> =
        Arc::new(Mutex::new(Some(pi.register_workflow_activity_publisher()?)));
    for event in
        ["workflow_lifecycle", "workflow_stage_completed", "workflow_activity_changed", "workflow_heartbeat"]
    {
        pi.on(Raw(event), move |_, ctx| async move {
            ctx.ui().notify(format!("heard {event}"), Level::Info)?;
            Ok(None)
        });
    }
    pi.register_command("watch-workflows", |_, ctx| async move {
        let ui = ctx.ui();
        ctx.observe_workflow_activity(move |frame| {
            let ui = ui.clone();
            async move {
                let said = match frame {
                    WorkflowActivityFrame::Snapshot { availability, roots, .. } => {
                        format!("snapshot {availability} {:?}", roots.map(|r| r.len()))
                    }
                    WorkflowActivityFrame::Changed { root, .. } => {
                        format!("changed {} {} {}", root.root_run_id, root.state, root.reason)
                    }
                    WorkflowActivityFrame::Removed { root_run_id, .. } => format!("removed {root_run_id}"),
                    _ => "something new".to_owned(),
                };
                ui.notify(said, Level::Info)
            }
        })
        .map(drop)
    });
    pi.register_command("publish", move |what, ctx| {
        let publisher = publisher.clone();
        async move {
            let mut publisher = publisher.lock().map_err(|_| Error::msg("poisoned"))?;
            if what == "replace" {
                *publisher = Some(ctx.pi().register_workflow_activity_publisher()?);
                return Ok(());
            }
            if what == "dispose" {
                return publisher.take().map_or(Ok(()), WorkflowActivityPublisher::dispose);
            }
            let publisher = publisher.as_ref().ok_or_else(|| Error::msg("disposed"))?;
            let root = WorkflowRootActivity::new("run-1", "session")
                .state(RootState::Working, RootReason::Executing)
                .counts(1, 0);
            match what.as_str() {
                "ready" => publisher.publish_snapshot(&[]),
                "changed" => publisher.publish_changed(&root),
                "removed" => publisher.publish_removed("run-1"),
                "heartbeat" => publisher.publish_heartbeat(&WorkflowHeartbeat::default()),
                _ => {
                    let mut event = WorkflowLifecycle::default();
                    event.event_id = "e1".into();
                    event.delivery = "live".into();
                    event.target = json!({"kind": "stage", "stageId": "s", "status": "completed"});
                    publisher.publish_lifecycle(&event)
                }
            }
        }
    });
    Ok(())
}

//! The workflow activity hub: one source tells what workflows do, any number watch
//! (events.md F). Publishing never waits for anybody.

use crate::{
    abi::instance::Call,
    error::Result,
    extension::Extension,
    protocol::workflow::{Availability, WorkflowHeartbeat, WorkflowLifecycle, WorkflowRootActivity},
};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Id {
    id: u64,
}

#[derive(Serialize)]
struct Publish<'a, T: Serialize> {
    id: u64,
    #[serde(flatten)]
    what: &'a T,
}

/// The source of what is known of workflows, until another one registers. What a source that
/// was replaced says is not an error and is not heard.
#[derive(Clone)]
pub struct WorkflowActivityPublisher {
    call: Call,
    id: u64,
}

#[derive(Serialize)]
struct Snapshot<'a> {
    availability: Availability,
    roots: &'a [WorkflowRootActivity],
}

#[derive(Serialize)]
struct Root<'a> {
    root: &'a WorkflowRootActivity,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Removed<'a> {
    root_run_id: &'a str,
}

#[derive(Serialize)]
struct Event<'a, T: Serialize> {
    event: &'a T,
}

#[derive(Serialize)]
struct Nothing {}

/// Each fails with `stale_context` alone.
#[allow(clippy::missing_errors_doc)]
impl WorkflowActivityPublisher {
    fn publish(&self, op: &str, what: &impl Serialize) -> Result<()> {
        self.call.tell(op, &Publish { id: self.id, what })
    }
    /// All there is: from here on the source is ready.
    pub fn publish_snapshot(&self, roots: &[WorkflowRootActivity]) -> Result<()> {
        self.publish("workflow.snapshot", &Snapshot { availability: Availability::Ready, roots })
    }
    /// Nothing is known: it is being recovered, or not to be had.
    pub fn publish_unknown(&self, availability: Availability) -> Result<()> {
        self.publish("workflow.snapshot", &Snapshot { availability, roots: &[] })
    }
    /// One root, whole. It does not make a source ready.
    pub fn publish_changed(&self, root: &WorkflowRootActivity) -> Result<()> {
        self.publish("workflow.changed", &Root { root })
    }
    /// One root less.
    pub fn publish_removed(&self, root_run_id: &str) -> Result<()> {
        self.publish("workflow.removed", &Removed { root_run_id })
    }
    /// Something has another status.
    pub fn publish_lifecycle(&self, event: &WorkflowLifecycle) -> Result<()> {
        self.publish("workflow.lifecycle", &Event { event })
    }
    /// A run that goes on by the clock is alive.
    pub fn publish_heartbeat(&self, event: &WorkflowHeartbeat) -> Result<()> {
        self.publish("workflow.heartbeat", &Event { event })
    }
    /// Nothing more will come.
    pub fn dispose(self) -> Result<()> {
        self.publish("workflow.dispose", &Nothing {})
    }
}

impl Extension {
    /// Becomes the source of what is known of workflows; the one before is not heard any more.
    /// Inside `activate` it takes effect with everything else that is registered there.
    ///
    /// # Errors
    /// `stale_context`.
    pub fn register_workflow_activity_publisher(&self) -> Result<WorkflowActivityPublisher> {
        let Id { id } = self.call.get("workflow.publisher", &Nothing {})?;
        Ok(WorkflowActivityPublisher { call: self.call.clone(), id })
    }
}

/// Watches until `dispose`, or until the generation ends. Dropping it ends nothing.
pub struct WorkflowActivityObserver {
    call: Call,
    id: u64,
    handler: u64,
}

impl WorkflowActivityObserver {
    /// What is still on its way is dropped; a callback that runs may finish.
    ///
    /// # Errors
    /// `stale_context`.
    pub fn dispose(self) -> Result<()> {
        let gone = self.call.tell("workflow.unobserve", &Id { id: self.id });
        self.call.state.drop_handler(self.handler);
        gone
    }
}

#[cfg(feature = "tokio")]
#[derive(Serialize)]
struct Observe {
    handler: u64,
}

#[cfg(feature = "tokio")]
#[derive(Deserialize)]
struct Frame {
    frame: serde_json::Value,
}

#[cfg(feature = "tokio")]
mod observing {
    use super::{Extension, Frame, Id, Observe, Result, WorkflowActivityObserver};
    use crate::{abi::instance::Handler, context::Context, protocol::workflow::WorkflowActivityFrame};
    use std::sync::Arc;

    impl Context {
        /// Watches what workflows do: first what is known now, then every change, one call of `f`
        /// after another. Who is slower than 256 changes gets a fresh snapshot instead of them.
        ///
        /// # Errors
        /// `stale_context`.
        pub fn observe_workflow_activity<F, Fut>(&self, f: F) -> Result<WorkflowActivityObserver>
        where
            F: FnOnce(WorkflowActivityFrame) -> Fut + Clone + Send + Sync + 'static,
            Fut: Future<Output = Result<()>> + Send + 'static,
        {
            self.pi().observe_workflow_activity(f)
        }
    }

    impl Extension {
        /// See [`Context::observe_workflow_activity`].
        ///
        /// # Errors
        /// `stale_context`.
        pub fn observe_workflow_activity<F, Fut>(&self, f: F) -> Result<WorkflowActivityObserver>
        where
            F: FnOnce(WorkflowActivityFrame) -> Fut + Clone + Send + Sync + 'static,
            Fut: Future<Output = Result<()>> + Send + 'static,
        {
            let handler = self.add(Handler::Async(Arc::new(move |event, _| {
                let f = f.clone();
                Box::pin(async move {
                    let Frame { frame } = serde_json::from_slice(event.json())?;
                    f(serde_json::from_value(frame)?).await.map(|()| Vec::new())
                })
            })));
            match self.call.get::<Id>("workflow.observe", &Observe { handler }) {
                Ok(Id { id }) => Ok(WorkflowActivityObserver { call: self.call.clone(), id, handler }),
                Err(e) => {
                    self.call.state.drop_handler(handler);
                    Err(e)
                }
            }
        }
    }
}

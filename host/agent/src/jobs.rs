//! The session thread: everything that happens one after another. A run, a reload, another
//! session, the end; each finishes before the next begins.

use crate::{
    admission,
    compact::{self, CompactOptions},
    core::{Core, Reply},
    event::Event,
    hooks::{InputSource, Notice, Origin, Replace, ShutdownReason, StartReason},
    lifecycle::{self, Navigation, Prepared, Successor},
    message::{CustomMessage, ImageContent, MessageContent},
    op::OpError,
    queue::Queued,
    run, told, warming,
};
use std::{sync::Arc, time::Duration};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// For events that ops had to tell, before a session ends.
const REST: Duration = Duration::from_secs(2);

pub(crate) enum Job {
    Run(RunJob),
    /// The compaction that somebody asked for.
    Compact {
        options: CompactOptions,
        cancel: CancellationToken,
    },
    Reload {
        names: Vec<String>,
        origin: Option<Origin>,
        reply: Reply,
    },
    /// `prepared`: the hooks agreed, and it is open.
    Replace {
        to: Successor,
        origin: Option<Origin>,
        prepared: Option<Box<Prepared>>,
        reply: Reply,
    },
    Navigate {
        to: Navigation,
        cancel: CancellationToken,
        reply: Reply,
    },
    Shutdown {
        reason: ShutdownReason,
        from_signal: bool,
        done: oneshot::Sender<()>,
    },
}

/// A run that was accepted: the engine is not idle until it has settled.
pub(crate) struct RunJob {
    pub id: u64,
    pub cancel: CancellationToken,
    pub start: RunStart,
    pub reply: Reply,
}

/// What a run begins with.
pub(crate) enum RunStart {
    /// Text of the user, through the `input` hooks.
    Text {
        text: String,
        images: Vec<ImageContent>,
        source: InputSource,
    },
    /// Blocks an extension sends as the user; `bool`: skills and templates in them are called up.
    Blocks(MessageContent, bool),
    Custom(CustomMessage),
    /// Was in the queue, and through its hooks.
    Queued(Queued),
}

pub(crate) async fn work(core: Arc<Core>, jobs: mpsc::UnboundedReceiver<Job>) {
    // Beside the jobs and never dropped between two of them: an admission under way belongs
    // to no single run.
    tokio::select! {
        biased;
        () = admission::serve_admissions(&core) => {}
        () = told::serve(&core) => {}
        () = warming::serve(&core) => {}
        () = work_off(&core, jobs) => {}
    }
}

async fn work_off(core: &Arc<Core>, mut jobs: mpsc::UnboundedReceiver<Job>) {
    start(core).await;
    while let Some(job) = jobs.recv().await {
        match job {
            Job::Run(job) => run::run(core, job).await,
            Job::Compact { options, cancel } => compact::asked_for(core, options, cancel).await,
            Job::Reload { names, origin, reply } => reload(core, names, origin, reply).await,
            Job::Replace { to, origin, prepared, reply } => {
                lifecycle::replace(core, to, origin, prepared, reply).await;
            }
            Job::Navigate { to, cancel, reply } => lifecycle::navigate(core, to, cancel, reply).await,
            Job::Shutdown { reason, from_signal, done } => {
                say_the_rest(core).await;
                core.hooks.session_shutdown(reason, from_signal).await;
                let _ = done.send(());
                return;
            }
        }
    }
}

async fn start(core: &Arc<Core>) {
    let reason = core.start_reason;
    core.refresh_tools();
    core.hooks.notify(Notice::SessionStart { reason, previous: None }).await;
    core.hooks.resources_discover(reason).await;
    core.refresh_tools();
    if let Some(bootstrap) = core.hooks.bootstrap().await {
        core.handle.update_view(|v| v.project_trusted = bootstrap.project_trusted);
        core.refresh_tools();
    }
    core.borrow().await;
    ready(core, reason);
    let notices = core.session().notices().to_vec();
    for notice in notices {
        core.notify("warning", notice);
    }
    lifecycle::recover(core, reason).await;
}

pub(crate) fn ready(core: &Core, reason: StartReason) {
    let (session_id, session_file) = core.handle.view(|v| (v.session_id.clone(), v.session_file.clone()));
    core.handle.emit(Event::SessionReady { reason, session_id, session_file });
}

/// What happened in a session is told before its extensions go. Who is told may hang.
pub(crate) async fn say_the_rest(core: &Core) {
    let _ = tokio::time::timeout(REST, core.tell_all()).await;
}

async fn reload(core: &Arc<Core>, names: Vec<String>, origin: Option<Origin>, reply: Reply) {
    say_the_rest(core).await;
    let outcome = core.hooks.replace(Replace::Reload { names, origin }, Box::new(|| Ok(()))).await;
    core.refresh_tools();
    core.borrow().await;
    match outcome {
        Ok(report) => {
            core.handle.emit(Event::Reloaded { report: report.clone() });
            ready(core, StartReason::Reload);
            reply
                .send(serde_json::to_value(report).map_err(|e| OpError::new("reload_failed", e.to_string())));
        }
        Err(why) => failed(core, "reload_failed", format!("The reload did not happen: {why}"), reply),
    }
}

/// Told to whoever asked; to everyone if nobody did.
pub(crate) fn failed(core: &Core, code: &str, message: String, reply: Reply) {
    if reply.wanted() {
        reply.err(code, message);
    } else {
        core.notify("error", message);
    }
}

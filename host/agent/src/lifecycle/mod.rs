//! Another session in the place of this one: `/new`, `/resume`, `/fork`, `/clone`, import
//! (events.md C.1, C.2). Nothing is torn down before the hooks agreed and the successor is open;
//! whatever fails until then leaves the session that is there as it was.

mod queries;
mod recovery;
mod summary;
mod tree;

pub(crate) use queries::answer as query;
pub(crate) use recovery::recover;
pub(crate) use tree::{Navigation, navigate};

use crate::{
    core::{Core, Reply},
    decisions::{BeforeEvent, SessionBefore, Veto},
    engine::{clamp, record_model},
    hooks::{Origin, Replace, SessionRef, StartReason},
    jobs::{Job, failed, ready, say_the_rest},
    op::{Dialog, DialogAnswer, ForkPosition, OpError, SetupEntry},
    session::{self, Session, SessionError},
};
use serde_json::{Value, json};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// What is to take the session's place.
#[derive(Debug)]
pub(crate) enum Successor {
    New {
        parent: Option<PathBuf>,
        setup: Vec<SetupEntry>,
    },
    Resume {
        path: PathBuf,
    },
    Import {
        path: PathBuf,
    },
    Fork {
        entry_id: String,
        position: ForkPosition,
    },
    /// With all that was said.
    Clone,
}

/// A successor that is open, with everybody's consent.
pub(crate) struct Prepared {
    session: Session,
    reason: StartReason,
    /// For an editor.
    text: Option<String>,
    /// It works in another folder, which is trusted or not.
    place: Option<(PathBuf, bool)>,
}

/// Whether the session is left.
pub(crate) enum Leave {
    Go(Box<Prepared>),
    /// A handler keeps it, or it is the one that was asked for.
    Stay {
        cancelled: bool,
    },
    Refused(OpError),
}

impl Successor {
    fn name(&self) -> &'static str {
        match self {
            Successor::New { .. } => "The new session",
            Successor::Resume { .. } => "The other session",
            Successor::Import { .. } => "The import",
            Successor::Fork { .. } | Successor::Clone => "The fork",
        }
    }
    fn failure(&self) -> &'static str {
        match self {
            Successor::New { .. } => "new_session_failed",
            Successor::Resume { .. } => "switch_failed",
            Successor::Import { .. } => "import_failed",
            Successor::Fork { .. } | Successor::Clone => "fork_failed",
        }
    }
}

impl Core {
    /// While a run goes on the hooks are asked beside it, and it is ended only when they agreed.
    pub(crate) fn replace_session(self: &Arc<Self>, to: Successor, origin: Option<Origin>, reply: Reply) {
        if self.state().at_rest() {
            return self.job(Job::Replace { to, origin, prepared: None, reply });
        }
        let core = self.clone();
        tokio::spawn(async move {
            match prepare(&core, &to).await {
                Leave::Go(prepared) => {
                    core.before_replacement(to.name(), true);
                    core.job(Job::Replace { to, origin, prepared: Some(prepared), reply });
                }
                other => stayed(&core, other, reply),
            }
        });
    }
}

fn stayed(core: &Core, leave: Leave, reply: Reply) {
    match leave {
        Leave::Refused(why) if reply.wanted() => reply.send(Err(why)),
        Leave::Refused(why) => core.notify("error", why.message),
        Leave::Stay { cancelled } => reply.ok(json!({ "cancelled": cancelled })),
        Leave::Go(_) => {}
    }
}

/// Asks the hooks, then opens the successor.
async fn prepare(core: &Core, to: &Successor) -> Leave {
    let opened = match to {
        Successor::New { parent, setup } => {
            if !may(core, BeforeEvent::Switch, json!({"reason": "new"}), "no new one was started").await {
                return Leave::Stay { cancelled: true };
            }
            begin(core, parent.as_deref(), setup.clone()).map(|session| (session, StartReason::New, None))
        }
        Successor::Resume { path } => return resume(core, &located(core, path)).await,
        Successor::Import { path } => {
            let from = located(core, path);
            let header = match session::peek(&from) {
                Ok(header) => header,
                Err(e) => return Leave::Refused(e.into()),
            };
            let fields = json!({"reason": "resume", "targetSessionId": header.id});
            if !may(core, BeforeEvent::Switch, fields, "nothing was imported").await {
                return Leave::Stay { cancelled: true };
            }
            let (dir, cwd) = (core.session().dir().to_owned(), core.cwd());
            blocking(move || {
                let path = session::import(&from, &dir, &cwd)?;
                Session::open(&path, &cwd)
            })
            .await
            .map(|session| (session, StartReason::Resume, None))
        }
        Successor::Fork { .. } | Successor::Clone => return fork(core, to).await,
    };
    match opened {
        Ok((session, reason, text)) => Leave::Go(Box::new(Prepared { session, reason, text, place: None })),
        Err(e) => Leave::Refused(e.into()),
    }
}

/// Of the session folder, or of the current one.
fn located(core: &Core, path: &Path) -> PathBuf {
    let here = core.cwd().join(path);
    let among = core.session().dir().join(path);
    if !here.exists() && among.exists() { among } else { here }
}

fn begin(core: &Core, parent: Option<&Path>, setup: Vec<SetupEntry>) -> Result<Session, SessionError> {
    let (dir, in_memory) = {
        let old = core.session();
        (old.dir().to_owned(), old.is_in_memory())
    };
    let mut next = match in_memory {
        true => Session::in_memory(&core.cwd(), &dir),
        false => Session::create(&core.cwd(), &dir, parent),
    };
    next.set_up(setup)?;
    Ok(next)
}

async fn resume(core: &Core, path: &Path) -> Leave {
    let header = match session::peek(path) {
        Ok(header) => header,
        Err(e) => return Leave::Refused(e.into()),
    };
    let real = |p: &Path| p.canonicalize().unwrap_or_else(|_| p.to_owned());
    let same = core.session().file().is_some_and(|open| real(open) == real(path));
    if same {
        return Leave::Stay { cancelled: false };
    }
    let target = SessionRef { id: header.id.clone(), file: Some(path.to_owned()) };
    let fields = json!({
        "reason": "resume",
        "targetSessionId": target.id,
        "targetSessionFile": path.to_string_lossy(),
    });
    if !may(core, BeforeEvent::Switch, fields, "the other one was not opened").await {
        return Leave::Stay { cancelled: true };
    }
    let elsewhere = header.cwd.filter(|cwd| real(cwd) != real(&core.cwd()));
    let here = match &elsewhere {
        Some(cwd) if !cwd.is_dir() => match goes_on_here(core, cwd).await {
            true => true,
            false => return Leave::Refused(gone(cwd)),
        },
        Some(_) => false,
        None => true,
    };
    let (file, cwd) = (path.to_owned(), core.cwd());
    let session = match blocking(move || Session::open(&file, &cwd)).await {
        Ok(session) => session,
        Err(e) => return Leave::Refused(e.into()),
    };
    let place = match elsewhere.filter(|_| !here) {
        None => None,
        Some(cwd) => match core.hooks.enter(&cwd).await {
            Ok(trusted) => Some((cwd, trusted)),
            Err(why) => return Leave::Refused(OpError::new("switch_failed", why)),
        },
    };
    Leave::Go(Box::new(Prepared { session, reason: StartReason::Resume, text: None, place }))
}

fn gone(cwd: &Path) -> OpError {
    let message = format!("the folder that session belongs to is gone: {}", cwd.display());
    OpError::new("session_cwd", message)
}

/// The session's own folder is gone: only a person goes on with it in another one.
async fn goes_on_here(core: &Core, cwd: &Path) -> bool {
    let dialog = Dialog::Confirm {
        title: "Go on with that session here?".into(),
        message: format!("It belongs to {}, which is gone. Here is {}.", cwd.display(), core.cwd().display()),
        timeout_ms: None,
    };
    core.handle.dialog(dialog, "atomic").await == DialogAnswer::Confirmed(true)
}

async fn fork(core: &Core, to: &Successor) -> Leave {
    // What cannot be forked is said before anybody is asked.
    let place = {
        let session = core.session();
        match to {
            Successor::Fork { entry_id, position: ForkPosition::Before } => {
                session.before(entry_id).map(|(leaf, text)| (leaf, entry_id.clone(), Some(text)))
            }
            Successor::Fork { entry_id, position: ForkPosition::At } => match session.has_entry(entry_id) {
                true => Ok((Some(entry_id.clone()), entry_id.clone(), None)),
                false => Err(SessionError::NotForkable(entry_id.clone())),
            },
            _ => match session.leaf_id() {
                Some(leaf) => Ok((Some(leaf.to_owned()), leaf.to_owned(), None)),
                None => Err(SessionError::Unsaved),
            },
        }
        .and_then(|place| match session.is_in_memory() || session.file().is_some() {
            true => Ok(place),
            false => Err(SessionError::Unsaved),
        })
    };
    let (leaf, entry_id, text) = match place {
        Ok(place) => place,
        Err(e) => return Leave::Refused(e.into()),
    };
    let position = if text.is_some() { ForkPosition::Before } else { ForkPosition::At };
    let fields = json!({"entryId": entry_id, "position": position});
    if !may(core, BeforeEvent::Fork, fields, "it was not forked").await {
        return Leave::Stay { cancelled: true };
    }
    let forked = core.session().fork(&core.cwd(), leaf.as_deref());
    match forked {
        Ok(session) => {
            Leave::Go(Box::new(Prepared { session, reason: StartReason::Fork, text, place: None }))
        }
        Err(e) => Leave::Refused(e.into()),
    }
}

/// Reading a long file is nothing for the thread that runs hooks.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SessionError> + Send + 'static,
) -> Result<T, SessionError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(e) => Err(SessionError::Io {
            action: "open",
            path: PathBuf::new(),
            source: std::io::Error::other(e.to_string()),
        }),
    }
}

/// One of the questions that any handler may answer with no.
async fn may(core: &Core, event: BeforeEvent, fields: Value, otherwise: &str) -> bool {
    let before = SessionBefore::new(event, fields);
    match core.dispatch(&core.stopped, core.hooks.session_before(before)).await {
        Some(Veto { cancelled_by: Some(by), .. }) => {
            core.notify("info", format!("{by} keeps this session open: {otherwise}."));
            false
        }
        Some(_) => true,
        None => false,
    }
}

/// On the session thread, with no run going on.
pub(crate) async fn replace(
    core: &Arc<Core>,
    to: Successor,
    origin: Option<Origin>,
    prepared: Option<Box<Prepared>>,
    reply: Reply,
) {
    let prepared = match prepared {
        Some(prepared) => prepared,
        None => match prepare(core, &to).await {
            Leave::Go(prepared) => prepared,
            other => return stayed(core, other, reply),
        },
    };
    let Prepared { session: next, reason, text, place } = *prepared;
    let previous = {
        let old = core.session();
        SessionRef { id: old.id().to_owned(), file: old.file().map(Into::into) }
    };
    let target = SessionRef { id: next.id().to_owned(), file: next.file().map(Into::into) };
    let notices = next.notices().to_vec();
    let cwd = place.as_ref().map(|(cwd, _)| cwd.clone());
    let swapped = core.clone();
    let swap = Box::new(move || {
        if let Some((cwd, trusted)) = place {
            swapped.handle.update_view(|v| (v.cwd, v.project_trusted) = (cwd, trusted));
        }
        install(&swapped, next);
        Ok(())
    });
    say_the_rest(core).await;
    let outcome = core.hooks.replace(Replace::Session { reason, target, previous, origin, cwd }, swap).await;
    core.refresh_tools();
    core.borrow().await;
    core.borrow().await;
    match outcome {
        Ok(report) => {
            for note in report.notes.into_iter().chain(notices) {
                core.notify("warning", note);
            }
            ready(core, reason);
            let mut answer = json!({"cancelled": false});
            if let Some(text) = text {
                answer["text"] = text.into();
            }
            reply.ok(answer);
            recover(core, reason).await;
        }
        Err(why) => failed(core, to.failure(), format!("The session did not change: {why}"), reply),
    }
}

/// The old session's file is closed with it; what waited for it goes too. The new one goes on
/// with the model it says, if that can be had.
fn install(core: &Core, mut next: Session) {
    let (known_model, known_thinking) = next.settings();
    let of_session = known_model.and_then(|(provider, id)| core.models.get(&provider, &id));
    let (model, thinking, emptied) = {
        let mut state = core.state();
        let emptied = !state.queue.is_empty();
        state.queue.clear();
        state.next_turn.clear();
        state.pending_bash.clear();
        if let Some(model) = of_session {
            state.model = Some(model);
        }
        let level = known_thinking.unwrap_or(state.thinking);
        state.thinking = clamp(level, state.model.as_deref().map(|m| m.info()));
        core.show_run(&state);
        (state.model.clone(), state.thinking, emptied)
    };
    if let Err(e) = record_model(&mut next, model.as_deref(), thinking) {
        next.note(e.to_string());
    }
    core.handle.update_view(|v| {
        v.model = model.as_ref().map(|m| m.info().clone());
        v.thinking = thinking;
    });
    {
        let mut session = core.session();
        session.close();
        for news in session.take_news() {
            core.notify(news.level, news.message);
        }
        *session = next;
    }
    core.show_session();
    if emptied {
        core.queue_changed();
    }
}

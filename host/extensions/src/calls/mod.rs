//! What extensions ask of the host: generation checked, never under a lock, never waiting
//! for an event they cause (boundary.md 6). One file per capability, named as in
//! `plugin-api/src/protocol`.

pub(crate) mod answers;
mod bus;
pub(crate) mod exec;
mod getters;
pub(crate) mod providers;
mod registrations;
mod session;
pub(crate) mod state;
mod table_watch;
pub(crate) mod tables;
mod ui;
pub(crate) mod workbench;
mod workflow;

use crate::{
    generation::{self, Generation, PendingRequest},
    host::Extensions,
    trust,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, Mutex, PoisonError, RwLock, Weak},
};
use tokio_util::sync::CancellationToken;

pub(crate) use bus::Bus;

/// Who asks; all three numbers are unique in the process, call 0 is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Caller {
    pub(crate) owner: u64,
    pub(crate) generation: u64,
    pub(crate) call: u64,
}

/// An error that crosses: a stable code and a sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failure {
    pub(crate) code: String,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Failure { code: code.into(), message: message.into() }
    }
    pub(crate) fn stale() -> Self {
        Failure::new("stale_context", "extension ctx is stale: its generation has been replaced")
    }
    /// Copied at once: nothing of the extension is kept (SAFETY.md 9).
    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        serde_json::from_slice(bytes).unwrap_or_else(|_| {
            Failure::new("malformed", "the extension answered an error that cannot be read")
        })
    }
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_else(|_| br#"{"code":"error","message":""}"#.to_vec())
    }
}

impl From<atomic_agent::op::OpError> for Failure {
    fn from(e: atomic_agent::op::OpError) -> Self {
        Failure::new(e.code, e.message)
    }
}

pub(crate) type Outcome = Result<Vec<u8>, Failure>;

static HOSTS: LazyLock<RwLock<HashMap<u64, Weak<Extensions>>>> = LazyLock::new(RwLock::default);

/// Owners are unique in the process, so two hosts in it never meet.
pub(crate) fn own(owner: u64, host: &Weak<Extensions>) {
    HOSTS.write().unwrap_or_else(PoisonError::into_inner).insert(owner, host.clone());
}
pub(crate) fn disown(owner: u64) {
    HOSTS.write().unwrap_or_else(PoisonError::into_inner).remove(&owner);
}

struct Asker {
    host: Arc<Extensions>,
    generation: Arc<Generation>,
    caller: Caller,
}

/// The one check every operation goes through.
fn asker(caller: Caller) -> Result<Asker, Failure> {
    let generation =
        generation::find_usable(caller.owner, caller.generation).map_err(|_| Failure::stale())?;
    let host =
        HOSTS.read().unwrap_or_else(PoisonError::into_inner).get(&caller.owner).and_then(Weak::upgrade);
    Ok(Asker { host: host.ok_or_else(Failure::stale)?, generation, caller })
}

fn body<T: DeserializeOwned>(op: &str, bytes: &[u8]) -> Result<T, Failure> {
    let bytes = if bytes.is_empty() { b"null" } else { bytes };
    serde_json::from_slice(bytes).map_err(|e| Failure::new("bad_request", format!("{op}: {e}")))
}

fn json<T: Serialize>(value: &T) -> Outcome {
    serde_json::to_vec(value).map_err(|e| Failure::new("internal", e.to_string()))
}

const NOTHING: Vec<u8> = Vec::new();

/// While it is asked about a project, a handler knows where it is and may ask the person
/// (events.md A.2).
fn limits(caller: Caller, op: &str, bytes: &[u8]) -> Result<(), Failure> {
    if trust::is_trust_call(caller.call) && !trust::allowed(op, bytes) {
        let message =
            "a project_trust handler has cwd, mode, hasUI, and select, confirm, input and notify of ui";
        return Err(Failure::new("not_available", format!("{op}: {message}")));
    }
    Ok(())
}

/// Answered at once.
pub(crate) fn call(caller: Caller, op: &str, bytes: &[u8]) -> Outcome {
    let a = match asker(caller) {
        Ok(a) => a,
        Err(stale) => {
            crate::diagnostics::stale_once(caller);
            return Err(stale);
        }
    };
    limits(caller, op, bytes)?;
    match op.split_once('.') {
        Some((
            "handlers" | "tools" | "commands" | "flags" | "main" | "shortcuts" | "renderers" | "markdown",
            _,
        )) => registrations::call(&a, op, bytes),
        Some(("provider", "emit")) => crate::provider::emit(caller.call, bytes),
        Some(("providers" | "models", _)) => providers::call(&a, op, bytes),
        Some(("state" | "keepAlive", _)) => state::call(&a, op, bytes),
        Some(("tool", "update")) => crate::tools::update(&a.generation, caller.call, bytes),
        Some(("ui", _)) => ui::call(&a, op, bytes),
        Some(("ctx" | "session", _)) => getters::call(&a, op, bytes),
        Some(("events", _)) => bus::call(&a, op, bytes),
        Some(("tables", _)) => tables::call(&a, op, bytes),
        Some(("text" | "files", _)) => workbench::call(&a, op, bytes),
        Some(("workflow", _)) => workflow::call(&a, op, bytes),
        _ => match op {
            "log" => {
                let line: Line = body(op, bytes)?;
                crate::diagnostics::log(a.generation.name(), &line.level, &line.message);
                Ok(NOTHING)
            }
            "fault" => {
                let fault: Fault = body(op, bytes)?;
                a.host.diagnose(a.generation.owner(), &fault.place, &fault.error);
                Ok(NOTHING)
            }
            _ => Err(unsupported(op)),
        },
    }
}

#[derive(Deserialize)]
struct Line {
    level: String,
    message: String,
}

#[derive(Deserialize)]
struct Fault {
    place: String,
    error: String,
}

fn unsupported(op: &str) -> Failure {
    Failure::new("unsupported", format!("this host has no operation {op:?}"))
}

type Tickets = HashMap<(u64, u64, u64), CancellationToken>;
/// Pending requests that their instance may still give up.
static TICKETS: LazyLock<Mutex<Tickets>> = LazyLock::new(Mutex::default);

fn tickets() -> std::sync::MutexGuard<'static, Tickets> {
    TICKETS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Answered when its state change is accepted. `Some`: at once; `None`: through `done`, once.
pub(crate) fn request(
    caller: Caller,
    ticket: u64,
    op: &str,
    bytes: Vec<u8>,
    done: impl FnOnce(Outcome) + Send + 'static,
) -> Option<Outcome> {
    let a = match asker(caller) {
        Ok(a) => a,
        Err(stale) => {
            crate::diagnostics::stale_once(caller);
            return Some(Err(stale));
        }
    };
    if let Err(refused) = limits(caller, op, &bytes) {
        return Some(Err(refused));
    }
    let replaces = matches!(op, "reload" | "newSession" | "fork" | "switchSession");
    // Counted before the task runs, so that a carrier never looks idle in between.
    let Ok(pending) = a.generation.request(caller.call, replaces) else { return Some(Err(Failure::stale())) };
    let given_up = CancellationToken::new();
    let key = (caller.owner, caller.generation, ticket);
    tickets().insert(key, given_up.clone());
    // The run that goes on now, not the one that may go on when the task below has its turn.
    let aborted = (op == "signal.wait").then(|| getters::aborted(&a));
    let op = op.to_owned();
    a.host.clone().runtime().spawn(async move {
        let served = async {
            match aborted {
                Some(aborted) => aborted.await,
                None => serve(&a, &op, &bytes).await,
            }
        };
        let outcome = tokio::select! {
            biased;
            () = given_up.cancelled() => None,
            // A dialog that ends with its generation ends with its default; all else is stale.
            () = pending.fenced() => Some(ui::default_answer(&op).map_or_else(|| Err(Failure::stale()), Ok)),
            outcome = served => Some(outcome),
        };
        tickets().remove(&key);
        if let Some(outcome) = outcome {
            done(outcome);
        }
        drop::<PendingRequest>(pending);
    });
    None
}

/// Nobody waits for this ticket any more.
pub(crate) fn cancel(caller: Caller, ticket: u64) {
    let found = tickets().remove(&(caller.owner, caller.generation, ticket));
    if let Some(token) = found {
        token.cancel();
    }
}

async fn serve(a: &Asker, op: &str, bytes: &[u8]) -> Outcome {
    match op {
        "exec" => exec::exec(a, bytes).await,
        "sleep" => exec::sleep(bytes).await,
        "bash.local" => workbench::shell(a, op, bytes).await,
        "files.turn" => workbench::file_turn(a, op, bytes).await,
        "models.complete" => providers::complete(a, op, bytes).await,
        "provider.headers" | "provider.payload" | "provider.response" | "provider.event" => {
            crate::provider::ask(a.caller.call, op, bytes).await
        }
        "ui.confirm" | "ui.select" | "ui.input" | "ui.editor" => ui::ask(a, op, bytes).await,
        _ => session::request(a, op, bytes).await,
    }
}

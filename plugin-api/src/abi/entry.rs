//! The functions behind the tables: `extern "C"`, each contained, nothing else.

use super::{
    contain::{contained, install_hook},
    frozen::*,
    instance::{Call, EventRef, Handler, State, borrow, drop_token, into_token, panicked, share, to_reply},
};
use crate::{
    error::{Error, Result},
    extension::Extension,
};
use abi_stable::{
    library::RootModuleResult,
    prefix_type::{PrefixRef, WithMetadata},
    std_types::{ROption, RResult, RSlice, RStr, RVec},
};
use std::{sync::Arc, time::Duration};

/// The signature of the one function that the export macro makes.
pub type Activate = extern "C" fn(HostApiRef, u64, u64, u64) -> RResult<Instance, RVec<u8>>;

/// For the export macro: makes an instance and lets the author register.
pub fn activate(
    host: HostApiRef,
    owner: u64,
    generation: u64,
    author: impl FnOnce(&Extension) -> Result<()>,
) -> RResult<Instance, RVec<u8>> {
    install_hook();
    #[cfg(feature = "tracing")]
    super::log_bridge::install();
    let state = Arc::new(State::new(host, owner, generation));
    #[cfg(feature = "tracing")]
    let _logging = state.logging();
    let ran = contained(|| author(&Extension::new(state.clone())).and_then(|()| state.registrations_over()));
    let error = match ran {
        Ok(Ok(())) => return RResult::ROk(into_token(state)),
        Ok(Err(e)) => e,
        Err(text) if text.contains("there is no reactor running") => Error::new(
            "no_runtime",
            format!(
                "{text}: a plain `fn activate` has no runtime; use `pi.spawn(..)` or `async fn activate`"
            ),
        ),
        Err(text) => Error::new("panic", text),
    };
    let token = into_token(state);
    shutdown(token, 500);
    drop_instance(token);
    RResult::RErr(error.to_bytes().into())
}

/// For the export macro: the root of this library.
pub fn root(activate: Activate) -> RootModuleResult {
    use abi_stable::prefix_type::PrefixTypeTrait;
    erase(
        Root {
            activate,
            query,
            shutdown,
            drop_instance,
            #[cfg(feature = "newer")]
            later,
        }
        .leak_into_prefix(),
    )
}

#[cfg(feature = "newer")]
extern "C" fn later(x: u64) -> u64 {
    x + 1
}

static EVENTS: &WithMetadata<EventsV1> = &WithMetadata::new(EventsV1 {
    on_event,
    on_sync,
    cancel,
    #[cfg(feature = "newer")]
    later,
});
static REPLIES: &WithMetadata<RepliesV1> = &WithMetadata::new(RepliesV1 { complete });
static SERVICES: &WithMetadata<ServicesV1> = &WithMetadata::new(ServicesV1 { call: service_call });

pub(super) extern "C" fn query(instance: Instance, id: RStr<'_>, version: u32) -> ROption<Interface> {
    contained(|| match (id.as_str(), version) {
        ("events", 1) => ROption::RSome(EventsV1Ref(PrefixRef::from_ref(EVENTS)).to_interface()),
        ("replies", 1) => ROption::RSome(RepliesV1Ref(PrefixRef::from_ref(REPLIES)).to_interface()),
        ("services", 1) => ROption::RSome(ServicesV1Ref(PrefixRef::from_ref(SERVICES)).to_interface()),
        // `main.v1` is `events.v1` whose handler 0 of flag `main` is the program (boundary.md 14).
        ("main", 1) if share(instance).main().is_some() => {
            ROption::RSome(EventsV1Ref(PrefixRef::from_ref(EVENTS)).to_interface())
        }
        _ => ROption::RNone,
    })
    .unwrap_or(ROption::RNone)
}

/// The handler index that means "the program of `main.v1`".
pub const MAIN_HANDLER: u64 = u64::MAX;

fn find(state: &State, index: u64) -> Result<Handler> {
    let index = if index == MAIN_HANDLER { state.main().unwrap_or(index) } else { index };
    state.handler(index).ok_or_else(|| Error::new("unsupported", "no such handler in this instance"))
}

pub(super) extern "C" fn on_event(
    instance: Instance,
    handler: u64,
    call: u64,
    event: EventHandle,
    flags: u64,
) -> Answer {
    contained(|| {
        let state = share(instance);
        match find(&state, handler) {
            #[cfg(feature = "tokio")]
            Ok(Handler::Async(f)) => super::tasks::start(state, &f, call, event, flags),
            Ok(Handler::Sync(_)) => {
                let _ = flags;
                ROption::RSome(on_sync(instance, handler, call, &event, 0))
            }
            Err(e) => ROption::RSome(to_reply(Err(e))),
        }
    })
    .unwrap_or_else(|text| ROption::RSome(panicked(&text)))
}

pub(super) extern "C" fn on_sync(
    instance: Instance,
    handler: u64,
    call: u64,
    event: &EventHandle,
    _flags: u64,
) -> Reply {
    contained(|| {
        let state = share(instance);
        let f = match find(&state, handler) {
            Ok(Handler::Sync(f)) => f,
            #[cfg(feature = "tokio")]
            Ok(Handler::Async(_)) => {
                return to_reply(Err(Error::new(
                    "unsupported",
                    "an asynchronous handler cannot be called synchronously",
                )));
            }
            Err(e) => return to_reply(Err(e)),
        };
        #[cfg(feature = "tracing")]
        let _logging = state.logging();
        let call = Call {
            caller: state.caller(call),
            state,
            #[cfg(feature = "tokio")]
            signal: None,
        };
        to_reply(f(EventRef(event.clone()), call))
    })
    .unwrap_or_else(|text| panicked(&text))
}

pub(super) extern "C" fn cancel(instance: Instance, call: u64, flags: u64) {
    let _ = contained(|| {
        #[cfg(feature = "tokio")]
        share(instance).cancel(call, flags);
        #[cfg(not(feature = "tokio"))]
        let _ = (instance, call, flags);
    });
}

pub(super) extern "C" fn complete(instance: Instance, ticket: u64, reply: Reply) {
    let _ = contained(|| {
        #[cfg(feature = "tokio")]
        share(instance).complete(ticket, reply);
        #[cfg(not(feature = "tokio"))]
        let _ = (instance, ticket, reply);
    });
}

pub(super) extern "C" fn service_call(
    instance: Instance,
    service: u64,
    op: RStr<'_>,
    body: RSlice<'_, u8>,
) -> Reply {
    contained(|| match borrow(&instance).service(service) {
        Some(f) => to_reply(f(op.as_str(), body.as_slice())),
        None => to_reply(Err(Error::new("unsupported", "the provider has withdrawn this service"))),
    })
    .unwrap_or_else(|text| panicked(&text))
}

#[derive(serde::Serialize)]
struct ShutdownReport {
    clean: bool,
    threads: u64,
    tasks: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

pub(super) extern "C" fn shutdown(instance: Instance, deadline_ms: u64) -> RVec<u8> {
    let report = contained(|| {
        let state = share(instance);
        #[cfg(feature = "tokio")]
        let super::tasks::Remains { threads, tasks, faults } =
            state.shutdown_tasks(Duration::from_millis(deadline_ms));
        #[cfg(not(feature = "tokio"))]
        let (threads, tasks, faults) = {
            let _ = Duration::from_millis(deadline_ms);
            (0, 0, state.drop_closures())
        };
        let threads = threads + state.threads_left();
        ShutdownReport {
            clean: threads == 0 && tasks == 0,
            threads,
            tasks,
            note: (!faults.is_empty()).then(|| faults.join("; ")),
        }
    })
    .unwrap_or_else(|text| ShutdownReport { clean: false, threads: 0, tasks: 0, note: Some(text) });
    serde_json::to_vec(&report).unwrap_or_default().into()
}

pub(super) extern "C" fn drop_instance(instance: Instance) {
    drop_token(instance);
}

//! The host's own tables, as every extension gets them. Each entry is contained: a fault
//! of the host in it is an error of that call, never an unwind into a library.

use super::{
    live::{ReplyTo, query, reply},
    rows,
};
use crate::{
    breadcrumb,
    calls::{self, Failure},
    generation,
};
use atomic_plugin_api::abi::{
    abi_stable::{
        prefix_type::{PrefixRef, WithMetadata},
        std_types::{ROption, RResult, RSlice, RStr, RVec},
    },
    frozen::{
        Answer, AnswersV1, AnswersV1Ref, Caller, CrumbsV1, CrumbsV1Ref, HostApi, HostApiRef, Instance,
        Interface, InterfaceTable, RepliesV1Ref, Reply, RootRef, RowHandle, TablesV1, TablesV1Ref,
    },
};
use std::{
    collections::HashMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Mutex, PoisonError},
};

static HOST: &WithMetadata<HostApi> = &WithMetadata::new(HostApi {
    call,
    request,
    query: host_query,
    #[cfg(feature = "newer")]
    later,
});
static ANSWERS: &WithMetadata<AnswersV1> = &WithMetadata::new(AnswersV1 { complete, cancel });
static CRUMBS: &WithMetadata<CrumbsV1> =
    &WithMetadata::new(CrumbsV1 { thread_start, thread_stop, push, pop });
static TABLES: &WithMetadata<TablesV1> = &WithMetadata::new(TablesV1 { lookup });

#[cfg(feature = "newer")]
extern "C" fn later(x: u64) -> u64 {
    x
}

pub(super) fn host_api() -> HostApiRef {
    HostApiRef(PrefixRef::from_ref(HOST))
}

fn contained<R>(f: impl FnOnce() -> R, or: impl FnOnce() -> R) -> R {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|_| or())
}

fn internal() -> Failure {
    Failure::new("internal", "the host failed in this operation; the log has the details")
}

pub(crate) fn from_caller(c: Caller) -> calls::Caller {
    calls::Caller { owner: c.owner, generation: c.generation, call: c.call }
}

extern "C" fn call(caller: Caller, op: RStr<'_>, body: RSlice<'_, u8>, _flags: u64) -> Reply {
    contained(
        || reply(calls::call(from_caller(caller), op.as_str(), body.as_slice())),
        || reply(Err(internal())),
    )
}

extern "C" fn request(
    caller: Caller,
    instance: Instance,
    ticket: u64,
    op: RStr<'_>,
    body: RSlice<'_, u8>,
    _flags: u64,
) -> Answer {
    contained(
        || {
            let Some(to) = reply_to(caller, instance) else {
                return ROption::RSome(reply(Err(Failure::new(
                    "unsupported",
                    "this instance takes no replies",
                ))));
            };
            let done = move |outcome| to.complete(ticket, outcome);
            match calls::request(from_caller(caller), ticket, op.as_str(), body.as_slice().to_vec(), done) {
                Some(now) => ROption::RSome(reply(now)),
                None => ROption::RNone,
            }
        },
        || ROption::RSome(reply(Err(internal()))),
    )
}

extern "C" fn host_query(_caller: Caller, id: RStr<'_>, version: u32) -> ROption<Interface> {
    match (id.as_str(), version) {
        ("answers", 1) => ROption::RSome(AnswersV1Ref(PrefixRef::from_ref(ANSWERS)).to_interface()),
        ("crumbs", 1) => ROption::RSome(CrumbsV1Ref(PrefixRef::from_ref(CRUMBS)).to_interface()),
        ("tables", 1) => ROption::RSome(TablesV1Ref(PrefixRef::from_ref(TABLES)).to_interface()),
        _ => ROption::RNone,
    }
}

extern "C" fn complete(caller: Caller, answer: Reply) {
    contained(
        || calls::answers::complete(caller.generation, caller.call, super::live::outcome(answer)),
        || (),
    );
}

extern "C" fn cancel(caller: Caller, ticket: u64) {
    contained(|| calls::cancel(from_caller(caller), ticket), || ());
}

extern "C" fn thread_start(caller: Caller) {
    contained(|| breadcrumb::thread_start(caller.owner), || ());
}
extern "C" fn thread_stop(_caller: Caller) {
    contained(breadcrumb::thread_stop, || ());
}
extern "C" fn push(caller: Caller, kind: u64) -> u64 {
    // Who polls for a call says nothing of his own; the call's number knows what it is about.
    let said = u16::try_from(kind).ok().filter(|k| *k != 0);
    let call = Some(generation::kind_of(caller.call)).filter(|k| *k != 0);
    breadcrumb::push(caller.owner, said.or(call).unwrap_or(breadcrumb::kind::TASK))
}
extern "C" fn pop(frame: u64) {
    breadcrumb::pop(frame);
}

extern "C" fn lookup(
    caller: Caller,
    key: RStr<'_>,
    major: u32,
    scope: RStr<'_>,
) -> RResult<RowHandle, RVec<u8>> {
    let found = contained(
        || calls::tables::lookup(from_caller(caller), key.as_str(), major, scope.as_str()),
        || Err(internal()),
    );
    match found {
        Ok(row) => RResult::ROk(rows::handle(row)),
        Err(e) => RResult::RErr(e.to_bytes().into()),
    }
}

/// Where replies go: by the instance, or by the generation while its `activate` has not returned.
#[derive(Default)]
struct Roots {
    by_token: HashMap<usize, RootRef>,
    activating: HashMap<u64, RootRef>,
    replies: HashMap<usize, RepliesV1Ref>,
}

static ROOTS: Mutex<Option<Roots>> = Mutex::new(None);

fn roots<R>(f: impl FnOnce(&mut Roots) -> R) -> R {
    f(ROOTS.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default())
}

pub(super) fn activating(generation: u64, root: RootRef) {
    roots(|r| r.activating.insert(generation, root));
}

/// `activate` has returned, with or without an instance.
pub(super) fn activated(generation: u64, token: Option<Instance>) {
    roots(|r| {
        if let (Some(root), Some(token)) = (r.activating.remove(&generation), token) {
            // An earlier instance at the same address is gone: so is its table.
            r.replies.remove(&(token.ptr as usize));
            r.by_token.insert(token.ptr as usize, root);
        }
    });
}

pub(super) fn dropped(token: Instance) {
    roots(|r| {
        r.by_token.remove(&(token.ptr as usize));
        r.replies.remove(&(token.ptr as usize));
    });
}

fn reply_to(caller: Caller, token: Instance) -> Option<ReplyTo> {
    let at = token.ptr as usize;
    let (known, root) = roots(|r| {
        (
            r.replies.get(&at).copied(),
            r.by_token.get(&at).or_else(|| r.activating.get(&caller.generation)).copied(),
        )
    });
    if let Some(table) = known {
        return Some(ReplyTo { token, table });
    }
    // Asked outside the lock: it is code of the library (SAFETY.md 6).
    let table = query::<RepliesV1Ref>(root?, token)?;
    roots(|r| {
        if r.by_token.contains_key(&at) {
            r.replies.insert(at, table);
        }
    });
    Some(ReplyTo { token, table })
}

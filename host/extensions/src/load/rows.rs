//! Rows of shared tables as counted handles. A call goes through the provider's
//! generation word and is counted in its drain (boundary.md "Shared tables").

use super::live::{Live, reply};
use crate::{calls::Failure, generation::Generation};
use atomic_plugin_api::abi::{
    abi_stable::{
        prefix_type::{PrefixRef, WithMetadata},
        std_types::{RSlice, RStr, RVec},
    },
    frozen::{Reply, RowHandle, RowVt, RowVtRef},
};
use std::sync::Arc;

/// What a row needs to be called.
pub(crate) struct LocalRow {
    pub(crate) generation: Arc<Generation>,
    pub(crate) service: u64,
    pub(crate) version: String,
    /// Found at the first call: a service may be provided before `activate` has returned.
    live: std::sync::OnceLock<Arc<Live>>,
}

pub(crate) fn local_row(generation: Arc<Generation>, service: u64, version: String) -> Arc<LocalRow> {
    Arc::new(LocalRow { generation, service, version, live: std::sync::OnceLock::new() })
}

impl LocalRow {
    fn live(&self) -> Option<&Arc<Live>> {
        if let Some(l) = self.live.get() {
            return Some(l);
        }
        let live = Live::of(&self.generation)?;
        Some(self.live.get_or_init(|| live))
    }
    /// Passed on as it came: a copy of a slice or a reply on the way costs as much as the count.
    #[inline]
    fn call(&self, op: RStr<'_>, body: RSlice<'_, u8>) -> Reply {
        let number = self.generation.number();
        let Some(_inside) = self.generation.cell().enter(number) else {
            return reply(Err(retired(self.generation.name())));
        };
        let Some(live) = self.live() else { return reply(Err(retired(self.generation.name()))) };
        let _crumb = crate::breadcrumb::crumb(self.generation.owner(), crate::breadcrumb::kind::SERVICE);
        live.service(self.service, op, body)
    }
    pub(crate) fn describe(&self) -> serde_json::Value {
        serde_json::json!({
            "provider": self.generation.name(),
            "version": self.version,
            "generation": self.generation.number(),
        })
    }
}

fn retired(provider: &str) -> Failure {
    Failure::new("retired", format!("the provider {provider} has been retired; look the table up again"))
}

static VT: &WithMetadata<RowVt> = &WithMetadata::new(RowVt { retain, release, live, call, describe });

pub(super) fn handle(row: Arc<LocalRow>) -> RowHandle {
    // SAFETY: (SAFETY.md 1) the raw pointer carries one strong count, which `release` gives back.
    unsafe { RowHandle::new(Arc::into_raw(row).cast(), RowVtRef(PrefixRef::from_ref(VT))) }
}

fn borrow<'a>(state: *const ()) -> &'a LocalRow {
    // SAFETY: (SAFETY.md 1) the caller holds a count of this row for as long as it calls.
    unsafe { &*state.cast::<LocalRow>() }
}

extern "C" fn retain(state: *const ()) {
    // SAFETY: (SAFETY.md 1) a count is held by the caller.
    unsafe { Arc::increment_strong_count(state.cast::<LocalRow>()) }
}
extern "C" fn release(state: *const ()) {
    // SAFETY: (SAFETY.md 1) the caller gives its count up.
    unsafe { Arc::decrement_strong_count(state.cast::<LocalRow>()) }
}
extern "C" fn live(state: *const ()) -> bool {
    let row = borrow(state);
    row.generation.cell().is_live(row.generation.number())
}
extern "C" fn call(state: *const (), op: RStr<'_>, body: RSlice<'_, u8>) -> Reply {
    // `service` is contained by the library's own entry; what remains of the host here cannot unwind.
    borrow(state).call(op, body)
}
extern "C" fn describe(state: *const ()) -> RVec<u8> {
    serde_json::to_vec(&borrow(state).describe()).unwrap_or_default().into()
}

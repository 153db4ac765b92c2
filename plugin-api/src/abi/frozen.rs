//! The types that cross. Everything in this file is frozen for the whole of api 1.x:
//! a prefix table may get one more function at its end, nothing else may ever change.
//!
//! Only integers, function pointers, borrowed slices and owned buffers with their own
//! drop function cross (SAFETY.md 1). What is said in the buffers is JSON
//! (`crate::protocol`), and that grows without anybody being rebuilt.

use abi_stable::{
    StableAbi,
    library::{LibHeader, RootModule, RootModuleResult},
    marker_type::ErasedPrefix,
    prefix_type::{PrefixRef, PrefixRefTrait, WithMetadata_},
    sabi_types::VersionStrings,
    std_types::{ROption, RResult, RSlice, RStr, RVec},
    type_layout::TypeLayout,
};

/// Who asks: the extension, its generation, and the handler call it is made from (0: none).
/// All three are unique in the process.
#[repr(C)]
#[derive(StableAbi, Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Caller {
    /// One loaded extension of one host.
    pub owner: u64,
    /// One life of it.
    pub generation: u64,
    /// One call of one handler.
    pub call: u64,
}

/// Opaque token of one live instance, made by `activate`, ended by `drop_instance`.
#[repr(C)]
#[derive(StableAbi, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instance {
    /// Means something to its own library only.
    pub ptr: *const (),
}

// SAFETY: (SAFETY.md 1) the token is an address that only its library interprets; all state behind it is Sync.
unsafe impl Send for Instance {}
// SAFETY: as above.
unsafe impl Sync for Instance {}

/// `Ok`: JSON, empty for "no opinion". `Err`: JSON `{code, message}`.
pub type Reply = RResult<RVec<u8>, RVec<u8>>;

/// `RNone`: pending, completed later by its id.
pub type Answer = ROption<Reply>;

/// Bytes that live as long as the handle they were read from.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct Borrowed {
    /// Not null when `len` is not 0.
    pub ptr: *const u8,
    /// Bytes.
    pub len: usize,
}

/// What an event handle can do.
#[repr(C)]
#[derive(StableAbi)]
#[sabi(kind(Prefix(prefix_ref = EventVtRef)))]
#[sabi(missing_field(option))]
pub struct EventVt {
    /// One count more.
    pub retain: extern "C" fn(*const ()),
    /// One count less.
    pub release: extern "C" fn(*const ()),
    /// The payload, made at the first call, valid while a count is held.
    #[sabi(last_prefix_field)]
    pub json: extern "C" fn(*const ()) -> Borrowed,
}

/// One counted handle of one state of an event's chain.
#[repr(C)]
#[derive(StableAbi)]
pub struct EventHandle {
    state: *const (),
    vt: EventVtRef,
}

// SAFETY: (SAFETY.md 1) the state behind a handle is immutable and counted atomically by its host.
unsafe impl Send for EventHandle {}
// SAFETY: as above.
unsafe impl Sync for EventHandle {}

impl EventHandle {
    /// Takes over one count.
    ///
    /// # Safety
    /// `state` carries one count that `vt.release` gives back, and `vt` understands `state`.
    pub unsafe fn new(state: *const (), vt: EventVtRef) -> Self {
        EventHandle { state, vt }
    }

    /// The payload as JSON.
    pub fn json(&self) -> &[u8] {
        let b = (self.vt.json())(self.state);
        if b.len == 0 {
            return &[];
        }
        // SAFETY: (SAFETY.md 1) `json` answers bytes that live while a count is held, and `self` holds one.
        unsafe { std::slice::from_raw_parts(b.ptr, b.len) }
    }
}

impl Clone for EventHandle {
    fn clone(&self) -> Self {
        (self.vt.retain())(self.state);
        EventHandle { state: self.state, vt: self.vt }
    }
}

impl Drop for EventHandle {
    fn drop(&mut self) {
        (self.vt.release())(self.state);
    }
}

/// What the host offers every extension. All else hangs behind `query`.
#[repr(C)]
#[derive(StableAbi)]
#[sabi(kind(Prefix(prefix_ref = HostApiRef)))]
#[sabi(missing_field(option))]
pub struct HostApi {
    /// `(caller, operation, body, flags)`, answered at once.
    pub call: extern "C" fn(Caller, RStr<'_>, RSlice<'_, u8>, u64) -> Reply,
    /// `(caller, instance, ticket, operation, body, flags)`; pending ones are completed
    /// through the instance's `replies.v1` under their ticket.
    pub request: extern "C" fn(Caller, Instance, u64, RStr<'_>, RSlice<'_, u8>, u64) -> Answer,
    /// `(caller, interface, version)`.
    #[sabi(last_prefix_field)]
    pub query: extern "C" fn(Caller, RStr<'_>, u32) -> ROption<Interface>,
    /// Only in builds that the tests use as "newer than the other side".
    #[cfg(feature = "newer")]
    pub later: extern "C" fn(u64) -> u64,
}

/// What an extension offers: four functions, for ever.
#[repr(C)]
#[derive(StableAbi)]
#[sabi(kind(Prefix(prefix_ref = RootRef)))]
#[sabi(missing_field(option))]
pub struct Root {
    /// `(host, owner, generation, flags)`; `Err` is JSON `{code, message}`.
    pub activate: extern "C" fn(HostApiRef, u64, u64, u64) -> RResult<Instance, RVec<u8>>,
    /// `(instance, interface, version)`; may be asked before `activate` has returned.
    pub query: extern "C" fn(Instance, RStr<'_>, u32) -> ROption<Interface>,
    /// `(instance, deadline in ms)`; answers JSON `{clean, threads, tasks, note?}`.
    pub shutdown: extern "C" fn(Instance, u64) -> RVec<u8>,
    /// The token is not used afterwards.
    #[sabi(last_prefix_field)]
    pub drop_instance: extern "C" fn(Instance),
    /// See `HostApi::later`.
    #[cfg(feature = "newer")]
    pub later: extern "C" fn(u64) -> u64,
}

/// A table found by `query`, with the layout its maker compiled.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct Interface {
    /// A prefix table.
    pub table: *const (),
    /// Checked once by whoever asked.
    pub layout: &'static TypeLayout,
}

/// `events.v1` of an extension: every handler, command, tool and `main` by its index.
#[repr(C)]
#[derive(StableAbi)]
#[sabi(kind(Prefix(prefix_ref = EventsV1Ref)))]
#[sabi(missing_field(option))]
pub struct EventsV1 {
    /// `(instance, handler, call, event, flags)`; `FLAG_INLINE` polls once on this thread.
    pub on_event: extern "C" fn(Instance, u64, u64, EventHandle, u64) -> Answer,
    /// `(instance, handler, call, event, flags)`.
    pub on_sync: extern "C" fn(Instance, u64, u64, &EventHandle, u64) -> Reply,
    /// `(instance, call, flags)`; `CANCEL_SIGNAL` only raises the call's signal.
    #[sabi(last_prefix_field)]
    pub cancel: extern "C" fn(Instance, u64, u64),
    /// See `HostApi::later`.
    #[cfg(feature = "newer")]
    pub later: extern "C" fn(u64) -> u64,
}

/// Poll the handler's future once on the calling thread before it moves to the runtime.
pub const FLAG_INLINE: u64 = 1;
/// Raise the cancel signal of the call, but let it run on.
pub const CANCEL_SIGNAL: u64 = 1;

/// `replies.v1` of an extension.
#[repr(C)]
#[derive(StableAbi)]
#[sabi(kind(Prefix(prefix_ref = RepliesV1Ref)))]
#[sabi(missing_field(option))]
pub struct RepliesV1 {
    /// `(instance, ticket, reply)`; an unknown ticket is ignored.
    #[sabi(last_prefix_field)]
    pub complete: extern "C" fn(Instance, u64, Reply),
}

/// `services.v1` of an extension: what it provides in shared tables.
#[repr(C)]
#[derive(StableAbi)]
#[sabi(kind(Prefix(prefix_ref = ServicesV1Ref)))]
#[sabi(missing_field(option))]
pub struct ServicesV1 {
    /// `(instance, service, operation, body)`, on the caller's thread.
    #[sabi(last_prefix_field)]
    pub call: extern "C" fn(Instance, u64, RStr<'_>, RSlice<'_, u8>) -> Reply,
}

/// `answers.v1` of the host.
#[repr(C)]
#[derive(StableAbi)]
#[sabi(kind(Prefix(prefix_ref = AnswersV1Ref)))]
#[sabi(missing_field(option))]
pub struct AnswersV1 {
    /// Completes a pending `on_event`; `caller.call` names it.
    pub complete: extern "C" fn(Caller, Reply),
    /// `(caller, ticket)`: nobody waits for this request any more.
    #[sabi(last_prefix_field)]
    pub cancel: extern "C" fn(Caller, u64),
}

/// `crumbs.v1` of the host: who runs on which thread, for the blame after a crash.
#[repr(C)]
#[derive(StableAbi)]
#[sabi(kind(Prefix(prefix_ref = CrumbsV1Ref)))]
#[sabi(missing_field(option))]
pub struct CrumbsV1 {
    /// A thread of the instance begins: base crumb and signal stack.
    pub thread_start: extern "C" fn(Caller),
    /// It ends.
    pub thread_stop: extern "C" fn(Caller),
    /// `(caller, kind)`: one frame; the answer goes to `pop`.
    pub push: extern "C" fn(Caller, u64) -> u64,
    /// Ends the frame.
    #[sabi(last_prefix_field)]
    pub pop: extern "C" fn(u64),
}

/// `tables.v1` of the host: `(caller, key, major, scope)` to a row, scope empty for none.
#[repr(C)]
#[derive(StableAbi)]
#[sabi(kind(Prefix(prefix_ref = TablesV1Ref)))]
#[sabi(missing_field(option))]
pub struct TablesV1 {
    /// `Err` is JSON `{code, message}`.
    #[sabi(last_prefix_field)]
    pub lookup: extern "C" fn(Caller, RStr<'_>, u32, RStr<'_>) -> RResult<RowHandle, RVec<u8>>,
}

/// What a row of a shared table can do.
#[repr(C)]
#[derive(StableAbi)]
#[sabi(kind(Prefix(prefix_ref = RowVtRef)))]
#[sabi(missing_field(option))]
pub struct RowVt {
    /// One count more.
    pub retain: extern "C" fn(*const ()),
    /// One count less.
    pub release: extern "C" fn(*const ()),
    /// Whether the provider's generation still lives.
    pub live: extern "C" fn(*const ()) -> bool,
    /// `(row, operation, body)`: checked against the generation word, counted in its drain.
    pub call: extern "C" fn(*const (), RStr<'_>, RSlice<'_, u8>) -> Reply,
    /// JSON `{provider, version, generation}`.
    #[sabi(last_prefix_field)]
    pub describe: extern "C" fn(*const ()) -> RVec<u8>,
}

/// A counted handle of one row.
#[repr(C)]
#[derive(StableAbi)]
pub struct RowHandle {
    state: *const (),
    vt: RowVtRef,
}

// SAFETY: (SAFETY.md 1) rows are immutable, counted atomically, and live in the host.
unsafe impl Send for RowHandle {}
// SAFETY: as above.
unsafe impl Sync for RowHandle {}

impl RowHandle {
    /// Takes over one count.
    ///
    /// # Safety
    /// `state` carries one count that `vt.release` gives back, and `vt` understands `state`.
    pub unsafe fn new(state: *const (), vt: RowVtRef) -> Self {
        RowHandle { state, vt }
    }
    /// The provider's generation still lives.
    pub fn live(&self) -> bool {
        (self.vt.live())(self.state)
    }
    /// One operation, on this thread.
    pub fn call(&self, op: &str, body: &[u8]) -> Reply {
        (self.vt.call())(self.state, RStr::from_str(op), RSlice::from_slice(body))
    }
    /// JSON `{provider, version, generation}`.
    pub fn describe(&self) -> Vec<u8> {
        (self.vt.describe())(self.state).into_vec()
    }
}

impl Clone for RowHandle {
    fn clone(&self) -> Self {
        (self.vt.retain())(self.state);
        RowHandle { state: self.state, vt: self.vt }
    }
}

impl Drop for RowHandle {
    fn drop(&mut self) {
        (self.vt.release())(self.state);
    }
}

/// A table behind `query`, to and from its erased form.
pub trait InterfaceTable: StableAbi + Copy {
    /// `events`, `replies`, …
    const NAME: &'static str;
    /// The number behind the `v`.
    const VERSION: u32;
    /// Erased, with its layout.
    fn to_interface(self) -> Interface;
    /// # Safety
    /// `interface.layout` was checked against this table's own.
    unsafe fn from_interface(interface: Interface) -> Self;
}

macro_rules! interface_tables {
    ($($table:ident $name:literal $version:literal;)*) => {$(
        impl InterfaceTable for $table {
            const NAME: &'static str = $name;
            const VERSION: u32 = $version;
            fn to_interface(self) -> Interface {
                Interface { table: self.0.to_raw_ptr().cast(), layout: <Self as StableAbi>::LAYOUT }
            }
            unsafe fn from_interface(interface: Interface) -> Self {
                type Fields = <$table as PrefixRefTrait>::PrefixFields;
                // SAFETY: (SAFETY.md 1) the caller checked the layout; tables are statics of libraries
                // that are never unloaded (SAFETY.md 3).
                Self(unsafe { PrefixRef::from_raw::<Fields>(interface.table.cast::<WithMetadata_<Fields, Fields>>()) })
            }
        }
    )*};
}

interface_tables! {
    EventsV1Ref "events" 1;
    RepliesV1Ref "replies" 1;
    ServicesV1Ref "services" 1;
    AnswersV1Ref "answers" 1;
    CrumbsV1Ref "crumbs" 1;
    TablesV1Ref "tables" 1;
}

impl RootModule for RootRef {
    abi_stable::declare_root_module_statics! {RootRef}
    const BASE_NAME: &'static str = "atomic_extension";
    const NAME: &'static str = "atomic_extension";
    const VERSION_STRINGS: VersionStrings = abi_stable::package_version_strings!();
}

/// The one symbol the host looks up.
pub const ROOT_SYMBOL: &[u8] = b"atomic_extension_root\0";

/// What stands behind the symbol.
#[repr(transparent)]
pub struct Header(LibHeader);

/// Makes the root, on the host's first look.
pub type Constructor = extern "C" fn() -> RootModuleResult;

/// For the export macro.
pub const fn header(constructor: Constructor) -> Header {
    use abi_stable::library::CheckTypeLayout;
    // SAFETY: (SAFETY.md 1) `constructor` answers a `RootRef`, see `export::root`.
    Header(unsafe { LibHeader::from_constructor::<RootRef>(constructor, CheckTypeLayout::Yes) })
}

pub(super) fn erase(root: RootRef) -> RootModuleResult {
    // SAFETY: (SAFETY.md 1) erased for the header, which carries the layout of `RootRef`.
    RResult::ROk(unsafe { root.to_prefix_ref().cast::<ErasedPrefix>() })
}

/// The layouts agree in one direction or the other: either side may be the older one,
/// which abi_stable's own check does not allow (native-abi.md 1).
///
/// # Errors
/// The checker's text: long, for a log.
pub fn either_way(a: &'static TypeLayout, b: &'static TypeLayout) -> Result<(), String> {
    use abi_stable::abi_stability::abi_checking::check_layout_compatibility as check;
    check(a, b).or_else(|e| check(b, a).map_err(|_| e.to_string()))
}

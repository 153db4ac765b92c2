//! `export_extension!`: the manifest section and the root symbol of a library.
//! Items of a macro are not hygienic, hence `const _` and the prefixed names.

/// Makes this library an Atomic extension.
///
/// `activate` is a `fn(&Extension) -> Result<()>` or an `async fn` of the same shape; it
/// only registers, and may run beside the generation it replaces. The optional lists are
/// told to the user before any code runs:
///
/// ```ignore
/// export_extension!(activate, events: ["tool_call"], provides: [], requires: []);
/// ```
#[macro_export]
macro_rules! export_extension {
    ($activate:path) => { $crate::export_extension!($activate, events: [], provides: [], requires: []); };
    ($activate:path, events: [$($event:literal),* $(,)?]) => { $crate::export_extension!($activate, events: [$($event),*], provides: [], requires: []); };
    ($activate:path, events: [$($event:literal),* $(,)?], provides: [$($provides:literal),* $(,)?], requires: [$($requires:literal),* $(,)?] $(,)?) => {
        const _: () = {
            use $crate::__private as __atomic;
            const __ATOMIC_PARTS: __atomic::Parts = __atomic::Parts {
                name: env!("CARGO_PKG_NAME"),
                version: env!("CARGO_PKG_VERSION"),
                panic: if cfg!(panic = "unwind") { "unwind" } else { "abort" },
                profile: if cfg!(debug_assertions) { "debug" } else { "release" },
                events: &[$($event),*],
                provides: &[$($provides),*],
                requires: &[$($requires),*],
            };
            const __ATOMIC_LEN: usize = __atomic::encoded_len(&__ATOMIC_PARTS);
            #[used]
            #[cfg_attr(not(any(target_vendor = "apple", windows)), unsafe(link_section = ".atomicext"))]
            #[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__atomicext"))]
            #[cfg_attr(windows, unsafe(link_section = ".atmext"))]
            static __ATOMIC_MANIFEST: [u8; __ATOMIC_LEN] = __atomic::encode::<__ATOMIC_LEN>(&__ATOMIC_PARTS);
            extern "C" fn __atomic_activate(
                host: __atomic::HostApiRef,
                owner: u64,
                generation: u64,
                _flags: u64,
            ) -> __atomic::ActivateResult {
                __atomic::activate(host, owner, generation, |pi| __atomic::run(&$activate, pi))
            }
            extern "C" fn __atomic_root() -> __atomic::RootModuleResult {
                __atomic::root(__atomic_activate)
            }
            #[unsafe(export_name = "atomic_extension_root")]
            pub static __ATOMIC_ROOT: __atomic::Header = __atomic::header(__atomic_root);
        };
    };
}

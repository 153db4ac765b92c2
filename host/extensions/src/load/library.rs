//! One opened mapping. It is never closed (SAFETY.md 3): a checked load followed by a
//! close is a use after unmap inside the layout checker (native-abi.md 5).

use super::{live::Live, table};
use crate::refusal::Why;
use atomic_plugin_api::{
    abi::{
        abi_stable::{
            StableAbi, abi_stability::abi_checking::check_layout_compatibility, library::AbiHeaderRef,
            std_types::RResult,
        },
        frozen::{ROOT_SYMBOL, RootRef},
    },
    manifest::Manifest,
};
use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// Which side knows more; both load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// The extension's tables hold all the host's, and maybe more.
    HostWithinExtension,
    ExtensionWithinHost,
}

pub(crate) struct Library {
    pub(crate) manifest: Manifest,
    pub(crate) sha256: String,
    /// The private copy that is mapped.
    pub(crate) copy: PathBuf,
    root: RootRef,
    #[allow(dead_code)] // shown by the debugger and asserted by tests of old and new extensions
    pub(crate) direction: Direction,
    dirty: AtomicBool,
}

impl Library {
    /// Opens a private copy and checks its tables. Constructors of the library run here.
    pub(crate) fn open(copy: &Path, manifest: Manifest, sha256: String) -> Result<Arc<Self>, Why> {
        let header = open_header(copy)?;
        let header = header.upgrade().map_err(|e| Why::Layout { detail: first_line(&e.to_string()) })?;
        let theirs =
            header.layout().ok_or_else(|| Why::Layout { detail: "the root carries no layout".into() })?;
        let ours = <RootRef as StableAbi>::LAYOUT;
        // The stock check demands the host's fields to be within the extension's for every type,
        // which refuses an old extension in a newer host: either direction is sound for appended
        // prefix fields, and nothing else passes (native-abi.md 1).
        let direction = match check_layout_compatibility(ours, theirs) {
            Ok(()) => Direction::HostWithinExtension,
            Err(e) => {
                check_layout_compatibility(theirs, ours).map_err(|_| {
                    tracing::debug!(file = %copy.display(), "layout: {e}");
                    Why::Layout { detail: shortest(&e.to_string()) }
                })?;
                Direction::ExtensionWithinHost
            }
        };
        // SAFETY: (SAFETY.md 1) the layout was checked above. `unchecked_layout`, because
        // `init_root_module_with_unchecked_layout` compares crate versions and refuses old ones.
        let root = unsafe { header.unchecked_layout::<RootRef>() }
            .map_err(|e| Why::Open { detail: e.to_string() })?;
        Ok(Arc::new(Library {
            manifest,
            sha256,
            copy: copy.to_owned(),
            root,
            direction,
            dirty: AtomicBool::new(false),
        }))
    }

    /// Lets the author's code register. Blocks for as long as that code does.
    ///
    /// # Errors
    /// `(code, message)` of the author, or of the panic.
    pub(crate) fn activate(self: &Arc<Self>, owner: u64, generation: u64) -> Result<Arc<Live>, Why> {
        table::activating(generation, self.root);
        let answer = (self.root.activate())(table::host_api(), owner, generation, 0);
        table::activated(
            generation,
            match &answer {
                RResult::ROk(token) => Some(*token),
                RResult::RErr(_) => None,
            },
        );
        match answer {
            RResult::ROk(token) => Ok(Arc::new(Live::new(self.clone(), owner, token))),
            RResult::RErr(e) => {
                let e = crate::calls::Failure::from_bytes(&e);
                Err(Why::InitFailed { code: e.code, message: e.message })
            }
        }
    }

    /// A generation of this mapping did not end cleanly: the next one gets a mapping of its own.
    pub(crate) fn mark_dirty(&self) {
        self.dirty.store(true, Ordering::Release);
    }
    pub(crate) fn dirty(&self) -> bool {
        self.dirty.load(Ordering::Acquire)
    }

    /// Tells the breadcrumb page whose code these addresses are.
    pub(crate) fn note_ranges(&self, owner: u64) {
        crate::breadcrumb::note_library(owner, self.root.activate() as usize);
    }

    pub(super) fn root(&self) -> RootRef {
        self.root
    }
}

fn open_header(copy: &Path) -> Result<AbiHeaderRef, Why> {
    #[cfg(unix)]
    let opened = {
        use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
        // RTLD_NODELETE: nobody's close can unmap it, whatever a dependency does.
        #[cfg(target_os = "linux")]
        const NODELETE: i32 = 0x1000;
        #[cfg(target_vendor = "apple")]
        const NODELETE: i32 = 0x80;
        #[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
        const NODELETE: i32 = 0;
        // SAFETY: (SAFETY.md 4, 5) a private copy whose manifest was read and judged; its
        // constructors are the user's own risk, taken when they trusted it.
        unsafe { Library::open(Some(copy), RTLD_NOW | RTLD_LOCAL | NODELETE) }
    };
    #[cfg(windows)]
    let opened = {
        use libloading::os::windows::{
            LOAD_LIBRARY_SEARCH_DEFAULT_DIRS, LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR, Library,
        };
        // SAFETY: (SAFETY.md 4, 5) as above; the full path, or an already loaded module with the
        // same base name would be answered.
        unsafe {
            Library::load_with_flags(
                copy,
                LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR | LOAD_LIBRARY_SEARCH_DEFAULT_DIRS,
            )
        }
    };
    let library = opened.map_err(|e| Why::Open { detail: first_line(&full(&e)) })?;
    // SAFETY: (SAFETY.md 1) the symbol's type is frozen; the manifest said who made it.
    let header = unsafe { library.get::<AbiHeaderRef>(ROOT_SYMBOL) }.map(|s| *s);
    // Leaked by policy, also when the symbol is missing: its constructors have run.
    std::mem::forget(library);
    header.map_err(|e| Why::Open { detail: first_line(&full(&e)) })
}

/// libloading says little itself; the system's text is its source.
fn full(e: &dyn std::error::Error) -> String {
    match e.source() {
        Some(s) => s.to_string(),
        None => e.to_string(),
    }
}

fn first_line(text: &str) -> String {
    text.lines().find(|l| !l.trim().is_empty()).unwrap_or("").trim().to_owned()
}

/// The checker writes hundreds of lines; a card has room for what was expected and found.
fn shortest(text: &str) -> String {
    let value = |key: &str| {
        let mut lines = text.lines().skip_while(|l| l.trim() != key).skip(1);
        lines.find(|l| !l.trim().is_empty()).map(|l| l.trim().to_owned())
    };
    let error = text.lines().find_map(|l| l.trim().strip_prefix("Error:")).map(|e| e.trim().to_owned());
    let parts: Vec<String> = [
        error.filter(|e| !e.is_empty()),
        value("Expected:").map(|v| format!("expected {v}")),
        value("Found:").map(|v| format!("found {v}")),
    ]
    .into_iter()
    .flatten()
    .collect();
    let mut line = if parts.is_empty() { first_line(text) } else { parts.join(", ") };
    if line.len() > 160 {
        let cut = (0..=160).rev().find(|i| line.is_char_boundary(*i)).unwrap_or(0);
        line.truncate(cut);
        line.push('…');
    }
    line
}

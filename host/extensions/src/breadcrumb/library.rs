//! Which addresses belong to a library, from the loader's own list.

#![allow(unsafe_code)]

use std::{ffi::c_void, os::raw::c_int};

struct Search {
    inside: u64,
    found: Option<(u64, u64)>,
}

/// Remembers the library that holds `inside` (the address of its root, say) as
/// `owner`'s. False: no loaded object holds it.
pub fn note_library(owner: u64, inside: usize) -> bool {
    let mut search = Search { inside: inside as u64, found: None };
    // SAFETY: (SAFETY.md 11) the callback gets our `search`, which outlives the call, and only
    // reads program headers that the loader keeps valid while it calls.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut search).cast::<c_void>()) };
    let Some((start, end)) = search.found else { return false };
    super::page().add_range(owner, start, end);
    true
}

// The header's fields are narrower on 32-bit systems.
#[allow(clippy::unnecessary_cast)]
unsafe extern "C" fn look(info: *mut libc::dl_phdr_info, _size: libc::size_t, data: *mut c_void) -> c_int {
    // SAFETY: (SAFETY.md 11) `data` is the `search` of `note_library`, `info` is valid for this call.
    let (info, search) = unsafe { (&*info, &mut *data.cast::<Search>()) };
    let (mut start, mut end, mut hit) = (u64::MAX, 0, false);
    for at in 0..usize::from(info.dlpi_phnum) {
        // SAFETY: (SAFETY.md 11) the loader gives `dlpi_phnum` headers at `dlpi_phdr`.
        let header = unsafe { &*info.dlpi_phdr.add(at) };
        if header.p_type != libc::PT_LOAD {
            continue;
        }
        let from = (info.dlpi_addr as u64).wrapping_add(header.p_vaddr as u64);
        let to = from.wrapping_add(header.p_memsz as u64);
        hit |= from <= search.inside && search.inside < to;
        start = start.min(from);
        end = end.max(to);
    }
    if hit {
        search.found = Some((start, end));
    }
    c_int::from(hit)
}

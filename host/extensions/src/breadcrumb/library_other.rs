//! Systems where the ranges of a library are not looked up yet: blame goes by crumbs alone.

/// Always false: nothing is known about the library.
pub fn note_library(_owner: u64, _inside: usize) -> bool {
    false
}

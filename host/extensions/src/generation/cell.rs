//! The two words that a call from another library looks at without a lock: which
//! generation is live here, and how many calls are inside.

use super::lock;
use std::sync::{
    Mutex,
    atomic::{AtomicU64, Ordering::SeqCst},
};

/// A cache line of its own, so that counting calls of one extension does not
/// slow the others down.
#[repr(C, align(64))]
#[derive(Debug, Default)]
struct Line(AtomicU64);

/// Lives as long as the process, because other libraries keep its address.
///
/// To call in: count in, see that `word` is still the generation you looked up,
/// call, count out. All four are `SeqCst`: either the fence sees the count, or
/// the caller sees the fence.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Cell {
    word: Line,
    in_flight: Line,
}

/// Cells whose generation is gone with nobody inside. A holder of an old
/// address sees another number in the word, so handing them out again is safe.
static FREE: Mutex<Vec<&'static Cell>> = Mutex::new(Vec::new());

impl Cell {
    /// A cell whose word is 0.
    pub(super) fn take() -> &'static Cell {
        let free = lock(&FREE).pop();
        free.unwrap_or_else(|| Box::leak(Box::default()))
    }

    /// Gives it back, unless a call never came out of it.
    pub(super) fn give_back(&'static self) {
        self.word.0.store(0, SeqCst);
        if self.in_flight() == 0 {
            lock(&FREE).push(self);
        }
    }

    /// The number of the generation while it is live, else 0.
    pub fn word(&'static self) -> &'static AtomicU64 {
        &self.word.0
    }

    /// The count that callers of other libraries go through.
    pub fn count(&'static self) -> &'static AtomicU64 {
        &self.in_flight.0
    }

    pub fn in_flight(&self) -> u64 {
        self.in_flight.0.load(SeqCst)
    }

    pub fn is_live(&self, generation: u64) -> bool {
        self.word.0.load(SeqCst) == generation
    }

    /// Counts in, if `generation` is live.
    pub(super) fn count_in(&self, generation: u64) -> bool {
        self.in_flight.0.fetch_add(1, SeqCst);
        if self.is_live(generation) {
            return true;
        }
        self.in_flight.0.fetch_sub(1, SeqCst);
        false
    }

    pub(super) fn count_out(&self) {
        self.in_flight.0.fetch_sub(1, SeqCst);
    }

    pub(super) fn publish(&self, generation: u64) {
        self.word.0.store(generation, SeqCst);
    }

    /// A call of a shared service, counted in its provider. None: the provider is retired.
    pub fn enter(&'static self, generation: u64) -> Option<TableCall> {
        // Lazily: a refused one must not be made, its drop would count somebody out.
        self.count_in(generation).then(|| TableCall(self))
    }
}

/// A table call in flight; its provider drains until it is dropped.
#[derive(Debug)]
pub struct TableCall(&'static Cell);

impl Drop for TableCall {
    fn drop(&mut self) {
        // Nobody is woken: callers in other libraries cannot do it either, so the drain polls.
        self.0.count_out();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_for_another_generation_does_not_get_in_and_leaves_no_count() {
        let cell: &'static Cell = Box::leak(Box::default());
        cell.publish(7);
        assert!(cell.enter(6).is_none());
        assert_eq!(cell.in_flight(), 0);
        let inside = cell.enter(7);
        assert_eq!(cell.in_flight(), 1);
        drop(inside);
        assert_eq!(cell.in_flight(), 0);
    }

    #[test]
    fn a_cell_with_somebody_inside_is_never_handed_out_again() {
        let cell: &'static Cell = Box::leak(Box::default());
        cell.publish(9);
        let inside = cell.enter(9);
        cell.give_back();
        assert!(!lock(&FREE).iter().any(|c| std::ptr::eq(*c, cell)));
        drop(inside);
    }

    #[test]
    fn the_two_words_do_not_share_a_cache_line() {
        assert_eq!(std::mem::size_of::<Cell>(), 128);
        assert_eq!(std::mem::align_of::<Cell>(), 64);
    }
}

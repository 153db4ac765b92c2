//! What the repository promises about itself: sizes, arrows, rooms of `unsafe`, names that
//! do not belong in a source tree, and the pages that point at tests.

mod arrows;
mod pages;
mod source;

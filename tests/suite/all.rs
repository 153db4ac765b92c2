//! The one integration binary: a file a story.

mod tidy;

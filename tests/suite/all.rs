//! The one integration binary: a file a story.

mod model_server;
mod tidy;

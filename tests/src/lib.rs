//! atomic-tests

pub mod model_server;

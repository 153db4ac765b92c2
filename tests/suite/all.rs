//! all

mod model_server;

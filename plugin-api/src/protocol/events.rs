//! The bus between extensions (events.md E.6).

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Body of `events.on`.
#[derive(Serialize, Deserialize)]
pub(crate) struct BusOn<'a> {
    pub channel: &'a str,
    pub handler: u64,
}

/// Answer of `events.on`, body of `events.off`.
#[derive(Serialize, Deserialize)]
pub(crate) struct BusId {
    pub id: Value,
}

/// Body of `events.emit`.
#[derive(Serialize)]
pub(crate) struct BusEmit<'a, T: Serialize + ?Sized> {
    pub channel: &'a str,
    pub data: &'a T,
}

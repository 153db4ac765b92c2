//! Status lines that extensions have set: last writer wins, cleared when their generation
//! retires (events.md E.7 "Ownership").

use crate::host::{Extensions, lock};
use atomic_agent::event::Event;
use std::{collections::HashMap, sync::Mutex};

#[derive(Default)]
pub(crate) struct Statuses {
    /// Key to the generation that wrote it last.
    keys: Mutex<HashMap<String, (u64, String)>>,
}

impl Statuses {
    pub(crate) fn note(&self, generation: u64, extension: &str, key: &str, set: bool) {
        let mut keys = lock(&self.keys);
        if set {
            keys.insert(key.to_owned(), (generation, extension.to_owned()));
        } else {
            keys.remove(key);
        }
    }

    pub(crate) fn clear(&self, host: &Extensions, generation: u64) {
        let gone: Vec<_> = lock(&self.keys).extract_if(|_, (g, _)| *g == generation).collect();
        for (key, (_, extension)) in gone {
            host.tell(Event::Status { key, text: None, extension });
        }
    }
}

//! Status lines that extensions have set: last writer wins, cleared when their generation
//! retires (events.md E.7 "Ownership").

use crate::host::{Extensions, lock};
use atomic_agent::{event::Event, surface::Update};
use std::{collections::HashMap, sync::Mutex};

#[derive(Default)]
pub(crate) struct Statuses {
    /// Key to the generation that wrote it last.
    keys: Mutex<HashMap<String, (u64, String)>>,
    /// The same for all else that stays on the screen, with what gives it back.
    slots: Mutex<HashMap<String, (u64, String, Update)>>,
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

    pub(crate) fn note_update(&self, generation: u64, extension: &str, update: &Update) {
        let Some((slot, given_back)) = update.slot() else { return };
        let mut slots = lock(&self.slots);
        if update.clears() {
            slots.remove(&slot);
        } else {
            slots.insert(slot, (generation, extension.to_owned(), given_back));
        }
    }

    pub(crate) fn clear(&self, host: &Extensions, generation: u64) {
        let gone: Vec<_> = lock(&self.keys).extract_if(|_, (g, _)| *g == generation).collect();
        for (key, (_, extension)) in gone {
            host.tell(Event::Status { key, text: None, extension });
        }
        let gone: Vec<_> = lock(&self.slots).extract_if(|_, (g, ..)| *g == generation).collect();
        for (_, (_, extension, update)) in gone {
            host.tell(Event::Surface { update, extension });
        }
    }
}

//! An instance without a library, which writes down what is done to it.

use super::clock;
use crate::{
    generation::{Body, Cancel, Generation, ShutdownReport, next_owner},
    graveyard::Graveyard,
};
use std::{
    sync::{Arc, Condvar, Mutex},
    time::Duration,
};

/// A door that somebody else opens: what a hanging fake waits for.
#[derive(Clone, Default)]
pub struct Door(Arc<(Mutex<bool>, Condvar)>);

impl Door {
    pub fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }

    pub fn wait(&self) {
        clock::release();
        let _open = self.0.1.wait_while(self.0.0.lock().unwrap(), |open| !*open).unwrap();
    }
}

#[derive(Default)]
pub struct Fake {
    pub said: Mutex<Vec<String>>,
    pub report: Mutex<Option<ShutdownReport>>,
    /// Shutdown waits here.
    pub shutdown_door: Option<Door>,
    /// Its generation, to see what is inside when it is dropped.
    pub generation: Mutex<Option<Arc<Generation>>>,
    pub panics: bool,
}

impl Fake {
    pub fn said(&self) -> Vec<String> {
        self.said.lock().unwrap().clone()
    }

    fn say(&self, what: impl Into<String>) {
        self.said.lock().unwrap().push(what.into());
    }
}

impl Body for Fake {
    fn cancel(&self, call: u64, kind: Cancel) {
        self.say(format!("{kind:?} {call}"));
    }

    fn shutdown(&self, _: Duration) -> ShutdownReport {
        self.say("shutdown");
        if let Some(door) = &self.shutdown_door {
            door.wait();
        }
        assert!(!self.panics, "shutdown panics");
        let report = self.report.lock().unwrap().clone();
        report.unwrap_or(ShutdownReport { clean: true, ..Default::default() })
    }

    fn drop_instance(&self) {
        let inside = self.generation.lock().unwrap().take().map_or(0, |g| g.in_flight());
        self.say(if inside == 0 { "drop".to_owned() } else { format!("drop with {inside} inside") });
    }
}

/// A staged generation with this body, and the graveyard it reports to.
pub fn staged(fake: &Arc<Fake>) -> (Arc<Generation>, Arc<Graveyard>) {
    let yard = Arc::new(Graveyard::default());
    let generation = Generation::new(next_owner(), "greet", yard.clone());
    *fake.generation.lock().unwrap() = Some(generation.clone());
    let body: Arc<dyn Body> = fake.clone();
    assert!(generation.adopt(&body));
    (generation, yard)
}

pub fn live(fake: &Arc<Fake>) -> (Arc<Generation>, Arc<Graveyard>) {
    let (generation, yard) = staged(fake);
    generation.commit().unwrap();
    (generation, yard)
}

pub fn nothing() -> Box<dyn FnOnce() + Send> {
    Box::new(|| {})
}

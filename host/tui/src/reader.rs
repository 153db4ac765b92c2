//! Keys, on a thread of their own: whatever else goes on, a key is heard.

use crossterm::event::{self, Event};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::sync::mpsc;

/// How long a pause may take to be noticed.
const LOOK: Duration = Duration::from_millis(20);

pub struct Reader {
    pub events: mpsc::UnboundedReceiver<Event>,
    paused: Arc<AtomicBool>,
    resting: Arc<AtomicBool>,
}

impl Reader {
    pub fn start() -> std::io::Result<Self> {
        let (tx, events) = mpsc::unbounded_channel();
        let (paused, resting) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
        let (pause, rest) = (paused.clone(), resting.clone());
        std::thread::Builder::new().name("keys".into()).spawn(move || {
            while !tx.is_closed() {
                let pausing = pause.load(Ordering::Acquire);
                rest.store(pausing, Ordering::Release);
                if pausing {
                    std::thread::sleep(LOOK);
                    continue;
                }
                match event::poll(LOOK) {
                    Ok(false) => {}
                    Ok(true) => match event::read() {
                        Ok(event) => drop(tx.send(event)),
                        Err(_) => return,
                    },
                    // The terminal is gone; that this channel ends says so.
                    Err(_) => return,
                }
            }
        })?;
        Ok(Reader { events, paused, resting })
    }

    /// Keys belong to another program until `resume`.
    pub fn pause(&self) {
        self.paused.store(true, Ordering::Release);
        while !self.resting.load(Ordering::Acquire) && !self.events.is_closed() {
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    pub fn resume(&self) {
        self.paused.store(false, Ordering::Release);
    }
}

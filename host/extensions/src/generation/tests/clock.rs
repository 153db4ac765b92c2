//! The paused clock jumps ahead when the runtime has nothing to do, and it does
//! not know of helper threads. A job holds the clock while it runs, unless it
//! says that it hangs.

use std::{cell::RefCell, sync::mpsc};

/// The clock stands as long as this lives.
pub(in crate::generation) struct Hold(#[allow(dead_code)] mpsc::Sender<()>);

thread_local! {
    static HELD: RefCell<Option<Hold>> = const { RefCell::new(None) };
}

pub(in crate::generation) fn hold() -> Option<Hold> {
    let runtime = tokio::runtime::Handle::try_current().ok()?;
    let (hold, held) = mpsc::channel();
    // A blocking task stops the paused clock from advancing by itself.
    runtime.spawn_blocking(move || held.recv());
    Some(Hold(hold))
}

pub(in crate::generation) struct Entered;

pub(in crate::generation) fn enter(hold: Option<Hold>) -> Entered {
    HELD.with(|held| held.replace(hold));
    Entered
}

impl Drop for Entered {
    fn drop(&mut self) {
        release();
    }
}

/// Said by a fake that is about to hang: time goes on without it.
pub(in crate::generation) fn release() {
    HELD.with(|held| held.take());
}

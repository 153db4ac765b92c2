//! Threads that may be lost. What may block for ever inside an extension
//! (activation, cancel, shutdown) runs here: never on a worker of a runtime and
//! never on a thread that somebody waits for without a deadline. A thread that
//! comes back is used again; one that does not is replaced by the next.

use super::lock;
use std::sync::{Mutex, mpsc};
use tokio::sync::oneshot;

type Job = Box<dyn FnOnce() + Send>;

/// Threads that wait for a job.
static IDLE: Mutex<Vec<mpsc::Sender<Job>>> = Mutex::new(Vec::new());
/// More than this many wait for nothing after a burst.
const KEEP: usize = 4;

/// Runs `job` on a thread of its own and gives what it returned; an error if it
/// panicked or no thread could be made.
pub(super) fn run<T: Send + 'static>(job: impl FnOnce() -> T + Send + 'static) -> oneshot::Receiver<T> {
    let (done, result) = oneshot::channel();
    #[cfg(test)]
    let hold = super::tests::clock::hold();
    let mut job: Job = Box::new(move || {
        #[cfg(test)]
        let _hold = super::tests::clock::enter(hold);
        // Whoever gave up no longer listens.
        let _ = done.send(job());
    });
    loop {
        // Taken outside the loop's condition: the lock is released before anything is sent.
        let idle = lock(&IDLE).pop();
        let Some(idle) = idle else { break };
        match idle.send(job) {
            Ok(()) => return result,
            Err(mpsc::SendError(back)) => job = back,
        }
    }
    let (jobs, inbox) = mpsc::channel::<Job>();
    let spawned = std::thread::Builder::new().name("extension-helper".into()).spawn(move || {
        job();
        loop {
            {
                let mut idle = lock(&IDLE);
                if idle.len() >= KEEP {
                    return;
                }
                idle.push(jobs.clone());
            }
            let Ok(job) = inbox.recv() else { return };
            job();
        }
    });
    if let Err(error) = spawned {
        tracing::error!("no thread for extension work: {error}");
    }
    result
}

//! Signals that end the program (events.md G.7). The first one asks, the second one goes.

use std::{process, time::Duration};
use tokio::sync::mpsc;

/// After a signal that ends the program, it is gone by then: the grace of the engine and of the
/// extensions, and a little.
const LAST: Duration = Duration::from_millis(7500);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Ctrl+C.
    Interrupt,
    Terminate,
    HangUp,
}

impl Signal {
    /// What print and json exit with.
    pub fn exit_code(self) -> u8 {
        match self {
            Signal::Interrupt => 130,
            Signal::Terminate => 143,
            Signal::HangUp => 129,
        }
    }
}

/// Tells each signal. A second SIGTERM or SIGHUP exits at once, and so does a second Ctrl+C
/// unless `interrupts_are_keys`.
#[cfg(unix)]
pub fn listen(interrupts_are_keys: bool) -> std::io::Result<mpsc::UnboundedReceiver<Signal>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (tx, rx) = mpsc::unbounded_channel();
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    tokio::spawn(async move {
        let mut ending = false;
        loop {
            let signal = tokio::select! {
                Some(()) = interrupt.recv() => Signal::Interrupt,
                Some(()) = terminate.recv() => Signal::Terminate,
                Some(()) = hang_up.recv() => Signal::HangUp,
                else => return,
            };
            if ending {
                atomic_extensions::breadcrumb::leave_in_order();
                process::exit(i32::from(signal.exit_code()));
            }
            ending = !(interrupts_are_keys && signal == Signal::Interrupt);
            if ending {
                give_up_after(signal);
            }
            // Nobody listens any more: the program is on its way out.
            let _ = tx.send(signal);
        }
    });
    Ok(rx)
}

/// Whoever was to end the program may be stuck in a write that nobody reads.
#[cfg(unix)]
fn give_up_after(signal: Signal) {
    tokio::spawn(async move {
        tokio::time::sleep(LAST).await;
        atomic_extensions::breadcrumb::leave_in_order();
        process::exit(i32::from(signal.exit_code()));
    });
}

#[cfg(windows)]
pub fn listen(interrupts_are_keys: bool) -> std::io::Result<mpsc::UnboundedReceiver<Signal>> {
    let (tx, rx) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut ending = false;
        while tokio::signal::ctrl_c().await.is_ok() {
            if ending {
                atomic_extensions::breadcrumb::leave_in_order();
                process::exit(i32::from(Signal::Interrupt.exit_code()));
            }
            ending = !interrupts_are_keys;
            let _ = tx.send(Signal::Interrupt);
        }
    });
    Ok(rx)
}

/// A file that may not grow any more is an error of the write, as a full disk is, and no end of the
/// program. Inside a runtime.
#[cfg(unix)]
pub fn outlive_file_limits() {
    let signal = rustix::process::Signal::XFSZ.as_raw();
    // From here on it has a handler, which is all that is wanted of it.
    drop(tokio::signal::unix::signal(tokio::signal::unix::SignalKind::from_raw(signal)));
}

#[cfg(not(unix))]
pub fn outlive_file_limits() {}

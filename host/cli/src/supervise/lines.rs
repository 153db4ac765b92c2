//! Lines over a pipe, on threads of their own: a reader that is slow holds nobody up, and a
//! process that blocks is noticed elsewhere.

use super::wire::LIMIT;
use std::{
    io::{BufRead, BufReader, BufWriter, Read, Write},
    sync::mpsc::{self, Sender},
    thread::JoinHandle,
};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// Without their newlines, until the end or a line over the limit.
pub fn read(from: impl Read + Send + 'static) -> UnboundedReceiver<Vec<u8>> {
    let (tx, rx) = unbounded_channel();
    std::thread::spawn(move || {
        let mut from = BufReader::with_capacity(64 * 1024, from);
        loop {
            let mut line = Vec::new();
            let limit = u64::try_from(LIMIT).unwrap_or(u64::MAX);
            match from.by_ref().take(limit).read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) if line.last() != Some(&b'\n') => return,
                Ok(_) => {}
            }
            line.pop();
            if tx.send(line).is_err() {
                return;
            }
        }
    });
    rx
}

/// Written until the sender is gone or nobody reads any more.
pub fn write(to: impl Write + Send + 'static) -> (Sender<Vec<u8>>, JoinHandle<()>) {
    let (tx, rx) = mpsc::channel::<Vec<u8>>();
    let thread = std::thread::spawn(move || {
        let mut to = BufWriter::new(to);
        while let Ok(line) = rx.recv() {
            let mut written = to.write_all(&line).and_then(|()| to.write_all(b"\n"));
            // What has come meanwhile goes out in one piece.
            while written.is_ok()
                && let Ok(line) = rx.try_recv()
            {
                written = to.write_all(&line).and_then(|()| to.write_all(b"\n"));
            }
            if written.and_then(|()| to.flush()).is_err() {
                return;
            }
        }
    });
    (tx, thread)
}

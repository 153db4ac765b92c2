//! Lines over a pipe, on threads of their own: a reader that is slow holds nobody up, and a
//! process that blocks is noticed elsewhere.

use super::wire::LIMIT;
use std::{
    io::{BufRead, BufReader, BufWriter, Read, Write},
    sync::mpsc::{self, Sender},
    thread::JoinHandle,
};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// Without their newlines, until the end. A line over the limit is passed over.
pub fn read(from: impl Read + Send + 'static) -> UnboundedReceiver<Vec<u8>> {
    let (tx, rx) = unbounded_channel();
    std::thread::spawn(move || {
        let mut from = BufReader::with_capacity(64 * 1024, from);
        loop {
            let mut line = Vec::new();
            let limit = u64::try_from(LIMIT + 1).unwrap_or(u64::MAX);
            let read = from.by_ref().take(limit).read_until(b'\n', &mut line);
            match read {
                Ok(0) | Err(_) => return,
                Ok(_) if line.last() == Some(&b'\n') => {}
                // Cut off by the end, or by the limit.
                Ok(_) if line.len() <= LIMIT => return,
                Ok(_) => match skip_line(&mut from) {
                    true => continue,
                    false => return,
                },
            }
            line.pop();
            if tx.send(line).is_err() {
                return;
            }
        }
    });
    rx
}

/// To the end of the line; false at the end of all.
fn skip_line(from: &mut impl BufRead) -> bool {
    loop {
        let (used, over) = match from.fill_buf() {
            Ok([]) | Err(_) => return false,
            Ok(bytes) => match bytes.iter().position(|b| *b == b'\n') {
                Some(at) => (at + 1, true),
                None => (bytes.len(), false),
            },
        };
        from.consume(used);
        if over {
            return true;
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_line_over_the_limit_is_passed_over_and_the_next_one_is_read() {
        let mut bytes = vec![b'x'; LIMIT + 10];
        bytes.extend(b"\nnext\ncut");
        let mut lines = read(std::io::Cursor::new(bytes));
        assert_eq!(lines.recv().await.as_deref(), Some(&b"next"[..]));
        assert_eq!(lines.recv().await, None, "a torn last line is none");
    }
}

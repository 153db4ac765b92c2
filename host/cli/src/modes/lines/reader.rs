//! Reads stdin a line at a time, on a thread of its own, and only when asked: what has not
//! been asked for stays in the pipe or in the terminal.

use std::{
    io::BufRead,
    sync::mpsc::{Sender, channel},
};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

pub struct Reader {
    asks: Sender<()>,
    lines: UnboundedReceiver<Option<String>>,
    asked: bool,
}

impl Reader {
    pub fn new() -> Self {
        let (asks, asked) = channel::<()>();
        let (tx, lines) = unbounded_channel();
        // Never joined: it may sit in a read for ever, and the process ends without it.
        std::thread::spawn(move || {
            let mut stdin = std::io::stdin().lock();
            for () in asked {
                let mut bytes = Vec::new();
                let line = match stdin.read_until(b'\n', &mut bytes) {
                    Ok(0) | Err(_) => None,
                    Ok(_) => Some(String::from_utf8_lossy(&bytes).trim_end_matches(['\n', '\r']).to_owned()),
                };
                let over = line.is_none();
                if tx.send(line).is_err() || over {
                    return;
                }
            }
        });
        Reader { asks, lines, asked: false }
    }

    pub fn ask(&mut self) {
        if !self.asked {
            self.asked = true;
            let _ = self.asks.send(());
        }
    }

    pub fn asked(&self) -> bool {
        self.asked
    }

    /// The line that was asked for; `None` at the end of input.
    pub async fn line(&mut self) -> Option<String> {
        let line = self.lines.recv().await.flatten();
        self.asked = false;
        line
    }
}

//! A line that is typed without being shown. Over a pipe it is the first line.

use crate::{card::Card, stdio};
use std::io::{self, BufRead as _, Write as _};

pub fn ask(question: &str) -> Result<String, Card> {
    let terminal = stdio::stdin_is_terminal();
    let hidden = if terminal { Some(Hidden::begin()?) } else { None };
    if terminal {
        eprint!("{question}");
        let _ = io::stderr().flush();
    }
    let mut line = Vec::new();
    let read = io::stdin().lock().read_until(b'\n', &mut line);
    if hidden.is_some() {
        // What ended the line was not shown either.
        eprintln!();
    }
    read.map_err(|e| Card::new("cli::no_key_typed", "nothing could be read").why(e.to_string()))?;
    Ok(String::from_utf8_lossy(&line).trim().to_owned())
}

/// The terminal shows nothing of what is typed as long as this lives.
pub struct Hidden {
    #[cfg(unix)]
    before: rustix::termios::Termios,
}

#[cfg(unix)]
impl Hidden {
    pub fn begin() -> Result<Self, Card> {
        use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
        let failed = |e: rustix::io::Errno| {
            Card::new("cli::no_hidden_input", "the terminal cannot be told to show nothing")
                .why(e.to_string())
                .help("send the key over a pipe")
        };
        let before = tcgetattr(rustix::stdio::stdin()).map_err(failed)?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO);
        tcsetattr(rustix::stdio::stdin(), OptionalActions::Flush, &quiet).map_err(failed)?;
        Ok(Hidden { before })
    }
}

#[cfg(unix)]
impl Drop for Hidden {
    fn drop(&mut self) {
        use rustix::termios::{OptionalActions, tcsetattr};
        let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &self.before);
    }
}

#[cfg(not(unix))]
impl Hidden {
    pub fn begin() -> Result<Self, Card> {
        Err(Card::new("cli::no_hidden_input", "a key cannot be typed unseen on this system yet")
            .help("send it over a pipe: echo KEY | atomic auth login PROVIDER"))
    }
}

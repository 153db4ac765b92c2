//! Keeps the process's stdout to the program alone. Extensions live in this process and may
//! print; what they print must reach neither an answer, nor a protocol stream, nor a screen.

use crate::card::Card;
use std::{
    fs::File,
    io::{self, IsTerminal, Write},
    path::Path,
};

/// The real stdout, and where the program's own remarks go.
pub struct Stdio {
    pub out: File,
    pub err: File,
    /// `out` is a terminal.
    pub screen: bool,
}

/// Where file descriptor 1 points afterwards.
pub enum Elsewhere<'a> {
    Stderr,
    /// Interactive: both 1 and 2, since the screen is no place for either.
    Log(&'a Path),
}

/// What a command has to say; a reader that has gone is no error. Answers the exit code.
pub fn say(text: &str) -> u8 {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    match written.err().and_then(lost) {
        Some(card) => {
            let _ = write!(io::stderr(), "{card}");
            1
        }
        None => 0,
    }
}

/// The card of an answer that could not be written; none when nobody reads any more.
pub fn lost(e: io::Error) -> Option<Card> {
    (e.kind() != io::ErrorKind::BrokenPipe)
        .then(|| Card::new("cli::output", "the answer could not be written to stdout").why(e.to_string()))
}

pub fn stdin_is_terminal() -> bool {
    io::stdin().is_terminal()
}

pub fn stdout_is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Of the terminal that is typed at.
#[cfg(unix)]
pub fn columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdin()).ok()?;
    Some(usize::from(size.ws_col)).filter(|c| *c > 0)
}

#[cfg(windows)]
pub fn columns() -> Option<usize> {
    None
}

#[cfg(unix)]
pub fn take(elsewhere: &Elsewhere<'_>) -> io::Result<Stdio> {
    use rustix::io::fcntl_dupfd_cloexec as dup;
    use std::os::fd::AsFd;
    let _ = io::stdout().flush();
    let out = File::from(dup(io::stdout(), 3)?);
    let err = File::from(dup(io::stderr(), 3)?);
    match elsewhere {
        Elsewhere::Stderr => rustix::stdio::dup2_stdout(&err)?,
        Elsewhere::Log(path) => {
            // A home that cannot be written is no reason not to start.
            let log = open_log(path).or_else(|_| File::options().write(true).open("/dev/null"))?;
            rustix::stdio::dup2_stdout(log.as_fd())?;
            rustix::stdio::dup2_stderr(log.as_fd())?;
        }
    }
    Ok(Stdio { screen: out.is_terminal(), out, err })
}

/// The two ends of an engine's pipes.
pub struct Pipes {
    pub input: File,
    pub output: File,
}

/// Takes stdin and stdout for the wire: what runs in this process reads nothing and prints into
/// the log.
#[cfg(unix)]
pub fn take_pipes(log: &Path) -> io::Result<Pipes> {
    use rustix::io::fcntl_dupfd_cloexec as dup;
    let input = File::from(dup(io::stdin(), 3)?);
    let output = File::from(dup(io::stdout(), 3)?);
    rustix::stdio::dup2_stdin(&File::open("/dev/null")?)?;
    let log = open_log(log).or_else(|_| File::options().write(true).open("/dev/null"))?;
    rustix::stdio::dup2_stdout(&log)?;
    rustix::stdio::dup2_stderr(&log)?;
    Ok(Pipes { input, output })
}

/// As for `take`: an extension that prints would be heard on the wire. Its lines are no frames
/// and are skipped.
#[cfg(windows)]
pub fn take_pipes(_: &Path) -> io::Result<Pipes> {
    use std::os::windows::io::AsHandle;
    Ok(Pipes {
        input: File::from(io::stdin().as_handle().try_clone_to_owned()?),
        output: File::from(io::stdout().as_handle().try_clone_to_owned()?),
    })
}

/// Nothing is pointed elsewhere here: without `SetStdHandle`, an extension that prints is seen.
#[cfg(windows)]
pub fn take(_: &Elsewhere<'_>) -> io::Result<Stdio> {
    use std::os::windows::io::AsHandle;
    let _ = io::stdout().flush();
    Ok(Stdio {
        screen: stdout_is_terminal(),
        out: File::from(io::stdout().as_handle().try_clone_to_owned()?),
        err: File::from(io::stderr().as_handle().try_clone_to_owned()?),
    })
}

/// Kept small: a log over a megabyte starts anew.
fn open_log(path: &Path) -> io::Result<File> {
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir)?;
    }
    let large = std::fs::metadata(path).is_ok_and(|m| m.len() > 1024 * 1024);
    if large {
        std::fs::remove_file(path)?;
    }
    File::options().create(true).append(true).open(path)
}

/// What was typed before a question was seen is no answer to it.
#[cfg(unix)]
pub fn forget_typed_ahead() {
    let _ = rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush);
}

#[cfg(windows)]
pub fn forget_typed_ahead() {}

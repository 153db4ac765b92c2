//! The faces of a session: `print` and `json` answer and go, `tui` is the prompt, `lines` the plain one.

mod end;
mod json;
mod lines;
mod print;
mod tui;

use crate::{
    args::{ModeArg, RunArgs},
    card::Card,
    extension_flags::Unsettled,
    launch::{self, Face, Origin, launch},
    paths::Paths,
    sanitize, session_choice,
    settings::Settings,
    stdio::{self, Elsewhere, Stdio},
    supervise::{
        self, HANG_KILL,
        pages::{self, Crash},
    },
};
use atomic_agent::handle::Mode;
use std::{
    ffi::OsString,
    io::{BufRead, Read, Write},
    path::PathBuf,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chosen {
    Print,
    Json,
    Lines,
    Tui,
}

/// events.md G.7: input that is no terminal implies print, unless `lines` was asked for.
fn choose(args: &RunArgs, stdin_is_terminal: bool, screen: bool) -> Chosen {
    match args.mode {
        Some(ModeArg::Json) => Chosen::Json,
        Some(ModeArg::Lines) => Chosen::Lines,
        _ if args.print || !stdin_is_terminal => Chosen::Print,
        Some(ModeArg::Text) | None if screen && !args.plain => Chosen::Tui,
        Some(ModeArg::Text) | None => Chosen::Lines,
    }
}

pub use end::{close_extensions, shut_down};
pub use lines::size;

/// `words`: the command line, without the program; an engine of its own reads it again.
pub async fn run(
    paths: &Paths,
    mut args: RunArgs,
    unsettled: Vec<Unsettled>,
    words: Vec<OsString>,
) -> Result<u8, Card> {
    let terminal = stdio::stdin_is_terminal();
    let chosen = choose(&args, terminal, stdio::stdout_is_terminal() && tui::can());
    let log = paths.log();
    // Only a screen is worth keeping stderr from: without one it is where errors are looked for.
    let prompt = matches!(chosen, Chosen::Lines | Chosen::Tui);
    let screen = prompt && stdio::stdout_is_terminal();
    // While stderr is what it was: a crate takes its time, and may not build.
    args.lenders.clone_from(&args.extensions);
    args.extensions = launch::libraries(&args.extensions, !screen)?;
    let elsewhere = if screen { Elsewhere::Log(&log) } else { Elsewhere::Stderr };
    let mut stdio = stdio::take(&elsewhere)
        .map_err(|e| Card::new("cli::stdio", "stdout cannot be kept for the program").why(e.to_string()))?;
    if !prompt && !terminal {
        args.stdin = piped();
    }
    let result = match chosen {
        Chosen::Lines | Chosen::Tui => {
            supervised(paths, &args, words, chosen == Chosen::Tui, &mut stdio).await
        }
        Chosen::Print | Chosen::Json => in_process(paths, &args, unsettled, chosen, &mut stdio).await,
    };
    if let (true, Err(card)) = (screen, &result) {
        // Descriptor 2 is a log by now.
        let _ = write!(stdio.err, "{card}");
        return Ok(1);
    }
    result
}

/// The prompt: the engine is a process of its own.
async fn supervised(
    paths: &Paths,
    args: &RunArgs,
    words: Vec<OsString>,
    full: bool,
    stdio: &mut Stdio,
) -> Result<u8, Card> {
    let asks = stdio::stdin_is_terminal();
    let crashes = pages::earlier(paths);
    let skip = match asks {
        true => ask_about(&crashes, stdio),
        false => skipped(&crashes, stdio),
    };
    let (session, fork) = match choose_session(paths, args, asks, stdio)? {
        Picked::Session(file) => (Some(file), None),
        Picked::Copy(file) => (None, Some(file)),
        Picked::AsTyped => (None, None),
        Picked::Nothing => return Ok(0),
    };
    // What cannot be read of it is told by the engine, which reads all of it.
    let settings = Settings::read(paths).unwrap_or_default();
    let desk = supervise::start(supervise::Plan {
        session,
        fork,
        paths: paths.clone(),
        args: words,
        mode: Mode::Tui,
        has_ui: true,
        asks,
        extensions: args.extensions.clone(),
        skip,
        hang_kill: settings.hang_kill.unwrap_or(HANG_KILL),
    })?;
    if full { tui::run(desk, paths, &settings, stdio).await } else { lines::run(desk, stdio).await }
}

enum Picked {
    AsTyped,
    Session(PathBuf),
    Copy(PathBuf),
    /// The person left.
    Nothing,
}

/// What must be asked about sessions before there is an engine: which one, and what becomes of one
/// that another program has.
fn choose_session(paths: &Paths, args: &RunArgs, asks: bool, stdio: &mut Stdio) -> Result<Picked, Card> {
    let mut settled = session_choice::settle(paths, args)?;
    let mut picked = Picked::AsTyped;
    if args.resume {
        match lines::pick_session(&session_choice::dir(paths, paths, args), &paths.cwd, stdio)? {
            Some(file) => {
                settled.session = Some(file.clone());
                picked = Picked::Session(file);
            }
            None => return Ok(Picked::Nothing),
        }
    }
    let Some(file) = session_choice::in_use(paths, &settled).filter(|_| asks) else { return Ok(picked) };
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let question = format!("{name} is in use by another Atomic. Go on with a copy of it? [Y/n] ");
    Ok(match yes(&question, stdio) {
        true => Picked::Copy(file),
        false => Picked::Nothing,
    })
}

/// Enter is a yes, the end of the input is none.
fn yes(question: &str, stdio: &mut Stdio) -> bool {
    let _ = stdio.out.write_all(sanitize::line(question, 300).as_bytes()).and_then(|()| stdio.out.flush());
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer).unwrap_or(0);
    let no = answer.trim().eq_ignore_ascii_case("n") || answer.trim().eq_ignore_ascii_case("no");
    read > 0 && !no
}

fn crashed(crash: &Crash) -> String {
    let at = crash.event.as_ref().map(|e| format!(" in {e}")).unwrap_or_default();
    format!("{} crashed atomic the last time ({}{at})", crash.extension, crash.signal)
}

/// Where nobody can be asked: left out once, and said.
fn skipped(crashes: &[Crash], stdio: &mut Stdio) -> Vec<String> {
    for crash in crashes {
        let card = Card::new("extension::crashed", crashed(crash))
            .why("it is left out this once")
            .help("the next start loads it again; what is installed is taken out for good by\n`atomic extension remove NAME`, what -e names by not naming it");
        let _ = write!(stdio.err, "{}", card.warning());
    }
    crashes.iter().map(|c| c.extension.clone()).collect()
}

/// Before the first screen: one line each, Enter leaves it out.
fn ask_about(crashes: &[Crash], stdio: &mut Stdio) -> Vec<String> {
    let mut skip = Vec::new();
    for crash in crashes {
        let question = format!("{}. Start without it? [Y/n] ", crashed(crash));
        let _ =
            stdio.out.write_all(sanitize::line(&question, 200).as_bytes()).and_then(|()| stdio.out.flush());
        let mut answer = String::new();
        let read = std::io::stdin().lock().read_line(&mut answer);
        let no = answer.trim().eq_ignore_ascii_case("n") || answer.trim().eq_ignore_ascii_case("no");
        if read.is_err() || !no {
            skip.push(crash.extension.clone());
        }
    }
    skip
}

/// One answer: the engine lives and dies with this process.
async fn in_process(
    paths: &Paths,
    args: &RunArgs,
    unsettled: Vec<Unsettled>,
    chosen: Chosen,
    stdio: &mut Stdio,
) -> Result<u8, Card> {
    let mode = if chosen == Chosen::Json { Mode::Json } else { Mode::Print };
    // What will be said is only known once flags took their values; a message there must be.
    if args.messages.is_empty() && args.stdin.is_none() {
        return Err(Card::new("cli::no_message", "there is nothing to answer")
            .help("give a message: atomic -p \"What does this do?\", or pipe one in"));
    }
    if args.resume {
        return Err(Card::new("cli::no_choice", "nobody can choose a session here")
            .help("--continue goes on with the newest, --session FILE with another one"));
    }
    let skip = skipped(&pages::earlier(paths), stdio);
    let page = pages::fresh(paths);
    let face = Face { mode, has_ui: false, crash_line: true, page: page.clone(), skip };
    let launched = launch(paths, args, unsettled, face, Origin::default()).await;
    let launched = launched.inspect_err(|_| pages::forget(page.as_deref()))?;
    for card in &launched.warnings {
        let _ = write!(stdio.err, "{}", card.warning());
    }
    match chosen {
        Chosen::Json => json::run(launched, stdio).await,
        _ => print::run(launched, stdio).await,
    }
}

/// What is piped in, if anything.
fn piped() -> Option<String> {
    let mut bytes = Vec::new();
    // An unreadable stdin (closed, a folder) is the same as an empty one.
    let _ = std::io::stdin().lock().read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim_end();
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(mode: Option<ModeArg>, print: bool) -> RunArgs {
        RunArgs { mode, print, ..RunArgs::default() }
    }

    #[test]
    fn input_that_is_no_terminal_implies_print_unless_another_mode_was_asked_for() {
        assert_eq!(choose(&args(None, false), true, false), Chosen::Lines);
        assert_eq!(choose(&args(None, false), true, true), Chosen::Tui);
        assert_eq!(choose(&args(None, false), false, true), Chosen::Print);
        assert_eq!(choose(&args(None, true), true, true), Chosen::Print);
        assert_eq!(choose(&args(Some(ModeArg::Json), true), true, true), Chosen::Json);
        assert_eq!(choose(&args(Some(ModeArg::Lines), false), false, true), Chosen::Lines);
    }
}

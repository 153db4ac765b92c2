//! The faces of a session: `print` and `json` answer and go, `lines` is the prompt.

mod end;
mod json;
mod lines;
mod print;

use crate::{
    args::{ModeArg, RunArgs},
    card::Card,
    extension_flags::Unsettled,
    launch::{self, Face, launch},
    paths::Paths,
    stdio::{self, Elsewhere, Stdio},
    trust,
};
use atomic_agent::handle::Mode;
use std::io::{Read, Write};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chosen {
    Print,
    Json,
    Lines,
}

/// events.md G.7: input that is no terminal implies print, unless `lines` was asked for.
fn choose(args: &RunArgs, stdin_is_terminal: bool) -> Chosen {
    match args.mode {
        Some(ModeArg::Json) => Chosen::Json,
        Some(ModeArg::Lines) => Chosen::Lines,
        _ if args.print || !stdin_is_terminal => Chosen::Print,
        Some(ModeArg::Text) | None => Chosen::Lines,
    }
}

/// For a session without a face.
pub async fn shut_down(launched: &crate::launch::Launched) {
    end::shut_down(launched, false).await;
}

pub async fn run(paths: &Paths, mut args: RunArgs, unsettled: Vec<Unsettled>) -> Result<u8, Card> {
    let terminal = stdio::stdin_is_terminal();
    let chosen = choose(&args, terminal);
    let log = paths.log();
    // Only a screen is worth keeping stderr from: without one it is where errors are looked for.
    let screen = chosen == Chosen::Lines && stdio::stdout_is_terminal();
    // While stderr is what it was: a crate takes its time, and may not build.
    args.lenders = trust::lenders(paths, &args.extensions);
    args.extensions = launch::libraries(&args.extensions, !screen)?;
    let elsewhere = if screen { Elsewhere::Log(&log) } else { Elsewhere::Stderr };
    let mut stdio = stdio::take(&elsewhere)
        .map_err(|e| Card::new("cli::stdio", "stdout cannot be kept for the program").why(e.to_string()))?;
    if chosen != Chosen::Lines && !terminal {
        prepend_stdin(&mut args.messages);
    }
    let result = start(paths, &args, unsettled, chosen, &mut stdio).await;
    if let (true, Err(card)) = (screen, &result) {
        // Descriptor 2 is a log by now.
        let _ = write!(stdio.err, "{card}");
        return Ok(1);
    }
    result
}

async fn start(
    paths: &Paths,
    args: &RunArgs,
    unsettled: Vec<Unsettled>,
    chosen: Chosen,
    stdio: &mut Stdio,
) -> Result<u8, Card> {
    let face = match chosen {
        Chosen::Print => Face { mode: Mode::Print, has_ui: false, crash_line: true },
        Chosen::Json => Face { mode: Mode::Json, has_ui: false, crash_line: true },
        Chosen::Lines => Face { mode: Mode::Tui, has_ui: true, crash_line: false },
    };
    // What will be said is only known once flags took their values; a message there must be.
    if chosen != Chosen::Lines && args.messages.is_empty() {
        return Err(Card::new("cli::no_message", "there is nothing to answer")
            .help("give a message: atomic -p \"What does this do?\", or pipe one in"));
    }
    let launched = launch(paths, args, unsettled, face).await?;
    for card in &launched.warnings {
        let _ = write!(stdio.err, "{}", card.warning());
    }
    match chosen {
        Chosen::Print => print::run(launched, stdio).await,
        Chosen::Json => json::run(launched, stdio).await,
        Chosen::Lines => lines::run(launched, stdio).await,
    }
}

/// What is piped in comes before the first message.
fn prepend_stdin(messages: &mut Vec<String>) {
    let mut bytes = Vec::new();
    // An unreadable stdin (closed, a folder) is the same as an empty one.
    let _ = std::io::stdin().lock().read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim_end();
    if text.is_empty() {
        return;
    }
    match messages.first_mut() {
        Some(first) => *first = format!("{text}\n{first}"),
        None => messages.push(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(mode: Option<ModeArg>, print: bool) -> RunArgs {
        RunArgs { mode, print, ..RunArgs::default() }
    }

    #[test]
    fn input_that_is_no_terminal_implies_print_unless_another_mode_was_asked_for() {
        assert_eq!(choose(&args(None, false), true), Chosen::Lines);
        assert_eq!(choose(&args(None, false), false), Chosen::Print);
        assert_eq!(choose(&args(None, true), true), Chosen::Print);
        assert_eq!(choose(&args(Some(ModeArg::Json), true), true), Chosen::Json);
        assert_eq!(choose(&args(Some(ModeArg::Lines), false), false), Chosen::Lines);
    }
}

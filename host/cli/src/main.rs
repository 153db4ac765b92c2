//! The program `atomic`: reads the command line and hands over to a mode or a command.

mod args;
mod auth;
mod card;
mod context_files;
mod demo;
mod doctor;
mod explain;
mod extension;
mod extension_flags;
mod help_all;
mod launch;
mod lending;
mod models;
mod modes;
mod nearest;
mod paths;
mod said;
mod secret;
mod session_choice;
mod session_place;
mod sessions;
mod settings;
mod signals;
mod stdio;
mod supervise;
mod tool_names;
mod trust;

use args::{Args, Command, ExtensionCommand};
use atomic_tui::sanitize;
use card::Card;
use clap::{CommandFactory, FromArgMatches};
use paths::Paths;
use std::{ffi::OsString, process::ExitCode, time::Duration};

fn main() -> ExitCode {
    let mut given = std::env::args_os();
    let program = given.next().unwrap_or_else(|| "atomic".into());
    let ended = run(program, given.collect());
    atomic_extensions::breadcrumb::leave_in_order();
    match ended {
        Ok(code) => ExitCode::from(code),
        Err(card) => {
            eprint!("{card}");
            ExitCode::FAILURE
        }
    }
}

fn run(program: OsString, given: Vec<OsString>) -> Result<u8, Card> {
    let mut definition = Args::command();
    // Or the flags that clap adds itself would be taken for those of an extension.
    definition.build();
    let words = given;
    let given = args::spell_out(words.iter().cloned());
    if let Some(card) = args::mistyped_command(&definition, &given) {
        return Err(card);
    }
    let (own, unsettled) = extension_flags::set_aside(&definition, given);
    let matches = match definition.try_get_matches_from(std::iter::once(program.clone()).chain(own)) {
        Ok(matches) => matches,
        Err(e) if e.use_stderr() => e.exit(),
        // Help and version: what cannot be written is an error there too.
        Err(e) => return Ok(stdio::say(&e.render().to_string())),
    };
    let args = Args::from_arg_matches(&matches).unwrap_or_else(|e| e.exit());
    if args.help_all {
        let paths = Paths::from_environment()?;
        return on_runtime(help_all::run(&paths, &args.run));
    }
    if let Some(search) = &args.run.list_models {
        return models::list(&Paths::from_environment()?, search);
    }
    match args.command {
        Some(Command::Completions { shell }) => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Args::command(), "atomic", &mut script);
            Ok(stdio::say(&String::from_utf8_lossy(&script)))
        }
        Some(Command::Explain { code }) => explain::run(code.as_deref()),
        Some(Command::Help(of)) => {
            args::help_of(of.command.iter().map(String::as_str)).map(|text| stdio::say(&text))
        }
        Some(Command::Extension(ExtensionCommand::Dev { path, args })) => {
            run(program, extension::dev::session(&path, args))
        }
        Some(Command::Extension(command)) => {
            let paths = Paths::from_environment()?;
            on_runtime(extension::command(&paths, command, &args.run))
        }
        Some(Command::Trust(command)) => {
            let paths = Paths::from_environment()?;
            trust::command::run(&paths, command.command.unwrap_or_default())
                .map(|text| stdio::say(&sanitize::text(&text)))
        }
        Some(Command::Auth(args)) => {
            let paths = Paths::from_environment()?;
            auth::run(&paths, args.command.unwrap_or_default())
        }
        Some(Command::Sessions(command)) => sessions::run(&Paths::from_environment()?, command, &args.run),
        Some(Command::Doctor) => {
            let paths = Paths::from_environment()?;
            Ok(stdio::say(&sanitize::text(&doctor::run(&paths))))
        }
        Some(Command::Demo) => {
            let paths = Paths::from_environment()?;
            on_runtime(demo::run(&paths))
        }
        None => {
            let paths = Paths::from_environment()?;
            match args.run.engine {
                true => on_runtime(supervise::engine::run(&paths, args.run, unsettled)),
                false => on_runtime(modes::run(&paths, args.run, unsettled, words)),
            }
        }
    }
}

/// Two workers: the op loop and the stream of a model. Whatever may block has a thread of its own.
fn on_runtime(work: impl Future<Output = Result<u8, Card>>) -> Result<u8, Card> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime =
        runtime.map_err(|e| Card::new("cli::no_thread", "no thread can be started").why(e.to_string()))?;
    let result = runtime.block_on(async {
        signals::outlive_file_limits();
        work.await
    });
    // What still blocks a thread has had its grace.
    runtime.shutdown_timeout(Duration::from_millis(100));
    result
}

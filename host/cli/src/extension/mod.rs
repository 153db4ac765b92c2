//! `atomic extension ...`: what an author and a user do with libraries on disk. Only `run`
//! executes one; the others read manifests.

pub mod build;
mod bundle;
pub mod dev;
mod install;
pub mod installed;
pub mod lock;
mod new;
pub mod place;
mod run;
pub mod sdk;

pub use new::quoted;

use crate::{
    args::{self, ExtensionCommand, RunArgs},
    card::Card,
    paths::Paths,
    sanitize, stdio,
};
use std::path::Path;

/// What an invocation says and how it ends.
pub async fn command(paths: &Paths, command: ExtensionCommand, run_args: &RunArgs) -> Result<u8, Card> {
    let text = match command {
        ExtensionCommand::List => {
            let (text, warnings) = installed::list(paths);
            for card in warnings {
                eprint!("{}", card.warning());
            }
            text
        }
        ExtensionCommand::Inspect { file } => installed::inspect(&paths.cwd.join(file))?,
        ExtensionCommand::Install { path, offline } => install::run(paths, &paths.cwd.join(path), offline)?,
        ExtensionCommand::Remove { name } => install::remove(paths, &name)?,
        ExtensionCommand::New { name, path } => new::run(paths, &name, path.as_deref())?,
        ExtensionCommand::Bundle { dir } => bundle::run(paths, dir.as_deref())?,
        // Is a session, and started as one before this is asked.
        ExtensionCommand::Dev { .. } => String::new(),
        ExtensionCommand::Run { id, args } => {
            return run::run(paths, &id, args, run_args.no_extensions).await;
        }
        ExtensionCommand::Help(of) => {
            args::help_of(["extension"].into_iter().chain(of.command.iter().map(String::as_str)))?
        }
    };
    Ok(stdio::say(&sanitize::text(&text)))
}

/// A folder that cargo can build.
pub fn is_crate(path: &Path) -> bool {
    path.join("Cargo.toml").is_file()
}

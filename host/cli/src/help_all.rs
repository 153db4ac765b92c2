//! `--help-all`: the program's own options, and those of the extensions that a start here would
//! load of itself. Nothing of the project is opened for a page of help, whoever approved it.

use crate::{
    args::{Args, RunArgs},
    card::Card,
    launch::{self, Face},
    paths::Paths,
    sanitize,
    stdio::{self, Elsewhere},
    trust::Trust,
};
use atomic_agent::handle::Mode;
use atomic_extensions::{Extensions, FlagInfo, FlagKind};
use atomic_models::{ModelSet, Sources};
use clap::CommandFactory;
use std::{io::Write, time::Duration};

/// Who does not say quickly what it has is left out of the page.
const INIT: Duration = Duration::from_secs(3);

pub async fn run(paths: &Paths, args: &RunArgs) -> Result<u8, Card> {
    // What an extension prints while it loads is no help.
    let mut stdio = stdio::take(&Elsewhere::Stderr)
        .map_err(|e| Card::new("cli::stdio", "stdout cannot be kept for the program").why(e.to_string()))?;
    let face = Face { mode: Mode::Print, has_ui: false, crash_line: true, page: None, skip: Vec::new() };
    let cli = launch::libraries(&args.extensions, true)?;
    let models = ModelSet::load(Sources::default());
    let mut config = launch::extensions_config(paths, args, &face, Trust::No, cli, &models);
    config.init_timeout = INIT;
    let (extensions, report) = Extensions::load(config).await;
    for refusal in &report.refused {
        let _ = write!(stdio.err, "{}", Card::from(refusal).warning());
    }
    let text = Args::command().render_long_help().to_string() + &options(&extensions.flags());
    let written = stdio.out.write_all(text.as_bytes()).and_then(|()| stdio.out.flush());
    let _ = tokio::time::timeout(INIT, extensions.close()).await;
    match written.err().and_then(stdio::lost) {
        Some(card) => Err(card),
        None => Ok(0),
    }
}

/// As clap writes its own.
fn options(flags: &[FlagInfo]) -> String {
    let mut out = String::new();
    for flag in flags {
        let heading = if out.is_empty() { "\nExtension options:" } else { "" };
        let value = if flag.kind == FlagKind::String { " <VALUE>" } else { "" };
        let name = sanitize::line(&flag.name, 60);
        let what = sanitize::line(flag.description.as_deref().unwrap_or_default(), 200);
        let gap = if what.is_empty() { "" } else { " " };
        let by = sanitize::line(&flag.extension, 60);
        out += &format!("{heading}\n      --{name}{value}\n          {what}{gap}[{by}]\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_of_an_extension_looks_like_the_programs_own_and_names_whose_it_is() {
        let flag = |name: &str, kind| FlagInfo {
            name: name.into(),
            description: Some("what\u{1b}[2J it\ndoes".into()),
            kind,
            default: None,
            extension: "log".into(),
        };
        assert_eq!(options(&[]), "");
        assert_eq!(
            options(&[flag("file", FlagKind::String), flag("quiet", FlagKind::Boolean)]),
            "\nExtension options:\n      --file <VALUE>\n          what it does [log]\n\n      --quiet\n          what it does [log]\n"
        );
    }
}

//! What a person reads when something went wrong: what, which file, why, what to type.
//! Rendered by miette without wrapping, so that a path can be copied and found whole.

use crate::sanitize;
use atomic_agent::message::{AssistantMessage, ERROR_CODE, ERROR_HELP};
use atomic_models::config::ConfigError;
use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme};
use serde::{Deserialize, Serialize};
use std::{fmt, path::PathBuf};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Card {
    /// Stable; `atomic explain CODE` tells more.
    pub code: String,
    pub what: String,
    #[serde(with = "atomic_agent::lossy_path::option")]
    pub file: Option<PathBuf>,
    pub why: Option<String>,
    pub help: Option<String>,
}

impl Card {
    pub fn new(code: impl Into<String>, what: impl Into<String>) -> Self {
        Card { code: code.into(), what: what.into(), file: None, why: None, help: None }
    }
    /// From a text whose first line is what happened, and whose others say what to do.
    pub fn told(code: &str, text: &str) -> Self {
        let (what, rest) = text.split_once('\n').unwrap_or((text, ""));
        let rest: Vec<&str> = rest.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
        let card = Card::new(code, what);
        if rest.is_empty() { card } else { card.help(rest.join("\n")) }
    }
    /// Why an answer did not come, with what the models room says of it.
    pub fn of_answer(message: &AssistantMessage) -> Self {
        let said = |key: &str| message.extra.get(key).and_then(serde_json::Value::as_str);
        let what = message.error_message.as_deref().unwrap_or("the model answered with an error");
        let card = Card::new(said(ERROR_CODE).unwrap_or("models::failed"), what);
        match said(ERROR_HELP) {
            Some(help) => card.help(help),
            None => card,
        }
    }
    pub fn file(mut self, file: impl Into<PathBuf>) -> Self {
        self.file = Some(file.into());
        self
    }
    pub fn why(mut self, why: impl Into<String>) -> Self {
        self.why = Some(why.into());
        self
    }
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// As it goes to the terminal: no colours, no escape sequences, whatever the parts hold.
    fn render(&self, severity: miette::Severity) -> String {
        let clean = |s: &str| sanitize::text(s).trim_end().to_owned();
        let mut causes: Vec<String> = self.file.iter().map(|f| clean(&f.display().to_string())).collect();
        causes.extend(self.why.as_deref().map(clean));
        let shown = Shown {
            code: clean(&self.code),
            what: clean(&self.what),
            help: self.help.as_deref().map(clean),
            cause: Cause::chain(causes),
            severity,
        };
        let handler = GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor())
            .with_links(false)
            .with_wrap_lines(false)
            .with_width(usize::from(u16::MAX));
        let mut out = String::new();
        match handler.render_report(&mut out, &shown) {
            Ok(()) => out,
            Err(fmt::Error) => format!("{}: {}\n", shown.code, shown.what),
        }
    }

    pub fn warning(&self) -> String {
        self.render(miette::Severity::Warning)
    }
}

impl fmt::Display for Card {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(miette::Severity::Error))
    }
}

impl std::error::Error for Card {}

impl From<&atomic_extensions::Refusal> for Card {
    fn from(refusal: &atomic_extensions::Refusal) -> Self {
        let what = match (&refusal.name, &refusal.version) {
            (Some(name), Some(version)) => format!("extension {name} {version} is not loaded"),
            _ => "an extension is not loaded".to_owned(),
        };
        Card::new(refusal.code(), what).file(&refusal.file).why(refusal.why.sentence()).help(refusal.help())
    }
}

impl From<&ConfigError> for Card {
    fn from(problem: &ConfigError) -> Self {
        let what = match problem {
            ConfigError::Unread { .. } => "a key of models.json is not known",
            ConfigError::Provider { .. } => "a part of models.json is not used",
            ConfigError::Unreadable { .. } | ConfigError::Syntax { .. } => "models.json is not used",
        };
        Card::new(problem.code(), what).file(problem.place()).why(problem.reason()).help(problem.help())
    }
}

#[derive(Debug)]
struct Shown {
    code: String,
    what: String,
    help: Option<String>,
    cause: Option<Box<Cause>>,
    severity: miette::Severity,
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Shown {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.as_deref().map(|c| c as _)
    }
}

impl Diagnostic for Shown {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(&self.code))
    }
    fn severity(&self) -> Option<miette::Severity> {
        Some(self.severity)
    }
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help.as_ref().map(|h| Box::new(h) as _)
    }
}

#[derive(Debug)]
struct Cause {
    text: String,
    next: Option<Box<Cause>>,
}

impl Cause {
    fn chain(texts: Vec<String>) -> Option<Box<Cause>> {
        let with_text = texts.into_iter().filter(|t| !t.is_empty());
        with_text.rev().fold(None, |next, text| Some(Box::new(Cause { text, next })))
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Cause {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.next.as_deref().map(|c| c as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_says_what_which_file_why_and_what_to_type() {
        let long = format!("/{}/lib.so", "folder/".repeat(30));
        let card = Card::new("extension::abi_too_new", "built for another api")
            .file(&long)
            .why("it is built for 2.0.0, this program is 1.0.0")
            .help("atomic extension install PATH");
        let text = card.to_string();
        for part in
            ["extension::abi_too_new", "built for another api", &long, "2.0.0", "atomic extension install"]
        {
            assert!(text.contains(part), "{part} is missing:\n{text}");
        }
    }

    #[test]
    fn no_escape_sequence_of_an_extension_reaches_the_terminal_through_a_card() {
        let card = Card::new("x::y", "bad \u{1b}[2Jname").why("\u{1b}]0;title\u{7}why");
        assert!(!card.to_string().contains('\u{1b}'));
        assert!(!card.warning().contains('\u{7}'));
    }
}

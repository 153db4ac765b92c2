//! The words of the questions about trust. What a library says of itself is shown as data: one
//! line, no control characters, never longer than a line should be.

use super::{
    order::{By, Choice, Decision},
    pins::Difference,
    survey::Shown,
};
use crate::refusal::Refusal;
use atomic_agent::op::{Dialog, DialogAnswer};
use std::{
    collections::BTreeMap,
    fmt::Write,
    path::{Path, PathBuf},
};

/// What a question is about.
pub(crate) struct Subject<'a> {
    pub(crate) dir: &'a Path,
    /// It is what a directory of `-e` brings along.
    pub(crate) borrowed: bool,
    pub(crate) inputs: &'a [PathBuf],
    pub(crate) libraries: &'a [Shown],
    pub(crate) refused: &'a [Refusal],
}

/// A foreign text as one harmless piece of a line.
fn plain(text: &str) -> String {
    const LONGEST: usize = 100;
    let mut clean: String =
        text.chars().take(LONGEST).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if text.chars().count() > LONGEST {
        clean.push('…');
    }
    clean
}

fn place(path: &Path) -> String {
    path.display().to_string().chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

#[allow(clippy::cast_precision_loss)] // shown, not computed with
fn size(bytes: u64) -> String {
    match bytes {
        0..1_024 => format!("{bytes} B"),
        1_024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1_024.0),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}

/// A library in three lines: what it is, its hash, what its manifest declares.
pub fn described(s: &Shown, indent: &str) -> String {
    let m = &s.manifest;
    let mut text = format!(
        "{indent}{} {} · {} · {}\n{indent}  sha256 {}\n",
        plain(&m.name),
        plain(&m.version),
        size(s.size),
        plain(&s.file),
        s.sha256
    );
    let lists = [("events", &m.events), ("provides", &m.provides), ("requires", &m.requires)];
    let declared: Vec<String> = lists
        .into_iter()
        .filter(|(_, list)| !list.is_empty())
        .map(|(what, list)| format!("{what} {}", plain(&list.join(", "))))
        .chain([format!("api {}", plain(&m.api_version))])
        .collect();
    let _ = writeln!(text, "{indent}  declares {}", declared.join("; "));
    text
}

impl Subject<'_> {
    /// What a yes means.
    fn text(&self) -> String {
        let mut text = String::new();
        text += match self.borrowed {
            true => {
                "This folder of -e brings more than its library: what it holds below can steer the agent.\n"
            }
            false => {
                "Its settings and files can steer the agent, its packages are installed, its extensions run as you.\n"
            }
        };
        if self.libraries.is_empty() && self.refused.is_empty() {
            text += "It has no extensions.\n";
        } else {
            text += "Extensions that would run:\n";
        }
        for library in self.libraries {
            text += &described(library, "  ");
        }
        for refusal in self.refused {
            let _ = writeln!(text, "  not: {} ({})", place(&refusal.file), plain(&refusal.why.sentence()));
        }
        if !self.inputs.is_empty() {
            text += "It brings:\n";
        }
        const MOST: usize = 12;
        for input in self.inputs.iter().take(MOST) {
            let _ = writeln!(text, "  {}", place(input.strip_prefix(self.dir).unwrap_or(input)));
        }
        if self.inputs.len() > MOST {
            let _ = writeln!(text, "  and {} more", self.inputs.len() - MOST);
        }
        text.trim_end().to_owned()
    }

    fn name(&self) -> String {
        match self.borrowed {
            true => format!("Use what {} brings along?", place(self.dir)),
            false => format!("Trust the project {}?", place(self.dir)),
        }
    }

    /// The question of a start.
    pub(crate) fn question(&self) -> (Dialog, Vec<(String, Choice)>) {
        self.dialog(self.name())
    }

    /// The same from `/trust`, which says what counts now.
    pub(crate) fn again(&self, now: &str) -> (Dialog, Vec<(String, Choice)>) {
        self.dialog(format!("{} Now: {now}.", self.name()))
    }

    fn dialog(&self, title: String) -> (Dialog, Vec<(String, Choice)>) {
        let options = options(self.dir);
        let labels = options.iter().map(|(label, _)| label.clone()).collect();
        let message = Some(self.text());
        (Dialog::Select { title, message, options: labels, timeout_ms: None }, options)
    }
}

/// events.md B.3; at the root of the file system there is no parent to trust.
fn options(dir: &Path) -> Vec<(String, Choice)> {
    let parent = dir.parent().map(|p| (format!("Trust parent folder ({})", place(p)), Choice::TrustParent));
    [("Trust".to_owned(), Choice::Trust)]
        .into_iter()
        .chain(parent)
        .chain([
            ("Trust (this session only)".to_owned(), Choice::TrustOnce),
            ("Do not trust".to_owned(), Choice::Refuse),
            ("Do not trust (this session only)".to_owned(), Choice::RefuseOnce),
        ])
        .collect()
}

/// Only a label that was offered is a choice.
pub(crate) fn chosen(answer: &DialogAnswer, options: &[(String, Choice)]) -> Choice {
    match answer {
        DialogAnswer::Value(label) => {
            options.iter().find(|(l, _)| l == label).map_or(Choice::Dismissed, |(_, choice)| *choice)
        }
        DialogAnswer::Confirmed(_) | DialogAnswer::Cancelled => Choice::Dismissed,
    }
}

/// A pinned project whose libraries are not what was agreed to.
pub(crate) fn changed(dir: &Path, differences: &BTreeMap<String, Difference>, libraries: &[Shown]) -> Dialog {
    let mut message =
        String::from("They are not the ones you trusted. A yes loads them and pins them as they are:\n");
    for library in libraries {
        match differences.get(&library.file) {
            Some(Difference::Added) => message += "  new:\n",
            Some(Difference::Changed { from }) => {
                let _ = writeln!(message, "  changed, was sha256 {}:", plain(from));
            }
            None => continue,
        }
        message += &described(library, "    ");
    }
    Dialog::Confirm {
        title: format!("Load the changed extensions of {}?", place(dir)),
        message: message.trim_end().to_owned(),
        timeout_ms: None,
    }
}

/// A session whose own folder is gone.
pub(crate) fn gone(own: &Path, here: &Path) -> Dialog {
    Dialog::Confirm {
        title: "Go on with this session here?".into(),
        message: format!("Its folder is gone: {}\nThis is: {}", place(own), place(here)),
        timeout_ms: None,
    }
}

impl Decision {
    /// For lists and reports.
    pub fn sentence(&self) -> String {
        let verb = if self.trusted { "trusted" } else { "not trusted" };
        match &self.by {
            By::CommandLine => format!("{verb} this time, by the command line"),
            By::Nothing => "trusted: it brings nothing that needs it".to_owned(),
            By::Extension { name, .. } => format!("{verb}: extension {name} said so"),
            By::Saved { at } => format!("{verb}: saved for {}", place(at)),
            By::Setting => format!("{verb}, by the setting defaultProjectTrust"),
            By::Nobody => "not trusted: nobody said so".to_owned(),
            By::User(choice) => match choice {
                Choice::TrustOnce | Choice::RefuseOnce => format!("{verb}, for this session"),
                Choice::Dismissed => "not trusted: the question was not answered".to_owned(),
                Choice::TrustParent => "trusted, with its parent folder".to_owned(),
                Choice::Trust | Choice::Refuse => verb.to_owned(),
            },
            By::BrokenStore(why) => format!("not trusted: {}", why.lines().next().unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use atomic_plugin_api::manifest::Manifest;

    fn library(version: &str) -> Shown {
        let manifest = format!(
            r#"{{"name":"lint","version":{},"apiVersion":"1.0.0","target":"t","panic":"unwind",
                "events":["tool_call"],"provides":["lint.v1"]}}"#,
            serde_json::to_string(version).unwrap()
        );
        let manifest: Manifest = serde_json::from_str(&manifest).unwrap();
        Shown {
            file: ".atomic/extensions/liblint.so".into(),
            manifest,
            size: 1_572_864,
            sha256: "ab".repeat(32),
        }
    }

    fn question(libraries: &[Shown], dir: &str) -> (String, Vec<String>) {
        let inputs = [PathBuf::from(dir).join(".atomic/settings.json"), PathBuf::from("/AGENTS.md")];
        let subject =
            Subject { dir: Path::new(dir), borrowed: false, inputs: &inputs, libraries, refused: &[] };
        match subject.question().0 {
            Dialog::Select { title, message, options, .. } => (title + "\n" + &message.unwrap(), options),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn it_shows_name_version_size_hash_and_what_the_manifest_declares() {
        let (text, options) = question(&[library("1.2.0")], "/w/p");
        for part in [
            "Trust the project /w/p?",
            "lint 1.2.0 · 1.5 MiB · .atomic/extensions/liblint.so",
            &"ab".repeat(32),
            "events tool_call; provides lint.v1; api 1.0.0",
            "\n  .atomic/settings.json",
            "\n  /AGENTS.md",
        ] {
            assert!(text.contains(part), "{part} is missing:\n{text}");
        }
        assert_eq!(
            options,
            [
                "Trust",
                "Trust parent folder (/w)",
                "Trust (this session only)",
                "Do not trust",
                "Do not trust (this session only)"
            ]
        );
    }

    #[test]
    fn at_the_root_there_is_no_parent_to_trust() {
        assert_eq!(question(&[], "/").1.len(), 4);
    }

    #[test]
    fn a_manifest_cannot_write_lines_of_the_question() {
        let (text, _) = question(&[library("1.0\n  1) Trust\u{1b}[2J")], "/w/p");
        assert!(!text.contains("\n  1) Trust") && !text.contains('\u{1b}'), "{text}");
        let (text, _) = question(&[library(&"9".repeat(5_000))], "/w/p");
        assert!(text.len() < 1_500, "{}", text.len());
    }

    #[test]
    fn what_was_not_offered_is_no_choice() {
        let offered = options(Path::new("/w/p"));
        let value = |text: &str| chosen(&DialogAnswer::Value(text.into()), &offered);
        assert_eq!(value("Trust"), Choice::Trust);
        assert_eq!(value("trust"), Choice::Dismissed);
        assert_eq!(value("Trust parent folder (/elsewhere)"), Choice::Dismissed);
        assert_eq!(chosen(&DialogAnswer::Confirmed(true), &offered), Choice::Dismissed);
        assert_eq!(chosen(&DialogAnswer::Cancelled, &offered), Choice::Dismissed);
    }
}

//! What a reload did: a line an extension, and a card for what was refused, as at the start.

use crate::card::Card;
use atomic_agent::hooks::{ExtensionChange, ReplaceReport, ReplacedExtension};

/// `reload: greet 0.1.0 -> 0.2.0`, one each.
pub fn lines(report: &ReplaceReport) -> Vec<String> {
    let mut lines: Vec<String> = report.extensions.iter().map(line).collect();
    if lines.is_empty() && report.notes.is_empty() {
        lines.push("reload: there are no extensions".to_owned());
    }
    lines
}

/// A note as the card that a start makes of it. A refusal comes with its file, code and help.
pub fn card(note: &str) -> Card {
    let field = |name: &str| note.lines().find_map(|l| l.trim().strip_prefix(name)).map(str::trim);
    let (Some(file), Some(code)) = (field("file: "), field("code: ")) else {
        return Card::told("extension::note", note);
    };
    let first = note.lines().next().unwrap_or_default();
    let (what, why) = first.split_once(" was not loaded: ").unwrap_or((first, ""));
    let card = Card::new(code, format!("{what} is not loaded")).file(file).why(why);
    match field("help: ") {
        Some(help) => card.help(help),
        None => card,
    }
}

fn line(e: &ReplacedExtension) -> String {
    let name = &e.name;
    let version = |v: &Option<String>| v.clone().unwrap_or_else(|| "?".into());
    let (from, to) = (version(&e.from_version), version(&e.to_version));
    let what = match e.change {
        ExtensionChange::Added => format!("{name} {to} (new)"),
        ExtensionChange::Reloaded => format!("{name} {from} -> {to}"),
        ExtensionChange::Unchanged => format!("{name} unchanged"),
        ExtensionChange::Kept => format!("{name} keeps {from}"),
        ExtensionChange::Removed => format!("{name} {from} (gone)"),
    };
    let reason = e.reason.as_ref().map(|r| format!(": {r}")).unwrap_or_default();
    format!("reload: {what}{reason}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use atomic_extensions::{Refusal, Why};
    use std::path::Path;

    #[test]
    fn a_reload_says_both_versions_or_why_the_old_one_stays() {
        let one = |change, reason: Option<&str>| ReplacedExtension {
            name: "greet".into(),
            change,
            from_version: Some("1.0.0".into()),
            to_version: Some("2.0.0".into()),
            reason: reason.map(str::to_owned),
        };
        assert_eq!(line(&one(ExtensionChange::Reloaded, None)), "reload: greet 1.0.0 -> 2.0.0");
        assert_eq!(
            line(&one(ExtensionChange::Kept, Some("no manifest"))),
            "reload: greet keeps 1.0.0: no manifest"
        );
    }

    #[test]
    fn a_refusal_looks_the_same_at_the_start_and_after_a_reload() {
        for version in [None, Some("1.2.0".to_owned())] {
            let refusal = Refusal {
                name: version.as_ref().map(|_| "greet".to_owned()),
                version,
                ..Refusal::new(Path::new("/x/libgreet.so"), Why::PanicAbort)
            };
            assert_eq!(card(&refusal.to_string()), Card::from(&refusal));
        }
        assert_eq!(card("greet is there twice").code, "extension::note");
    }
}

//! Questions of extensions, asked one after another at the prompt. Only an explicit yes to
//! the question that is shown approves; every other end of it does not.

use super::tool_lines::name;
use crate::sanitize;
use atomic_agent::op::{Dialog, DialogAnswer};
use std::collections::VecDeque;

/// Characters of a title or an option.
const ONE_LINE: usize = 300;

#[derive(Default)]
pub struct Dialogs {
    /// The first is the one that is shown.
    open: VecDeque<Open>,
}

struct Open {
    id: u64,
    dialog: Dialog,
    extension: String,
    /// Of an editor.
    lines: Vec<String>,
    answered: bool,
}

pub enum Reply {
    Answer(u64, DialogAnswer),
    /// An editor takes another line.
    More,
    /// Not an answer; ask like this.
    Again(String),
}

impl Dialogs {
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// A line would be an answer.
    pub fn asking(&self) -> bool {
        self.open.front().is_some_and(|d| !d.answered)
    }

    /// Whether it is the one to show now.
    pub fn open(&mut self, id: u64, dialog: Dialog, extension: String) -> bool {
        self.open.push_back(Open { id, dialog, extension, lines: Vec::new(), answered: false });
        self.open.len() == 1
    }

    /// Whether it stood there unanswered, and whether another one is to be shown now.
    pub fn closed(&mut self, id: u64) -> (bool, bool) {
        let Some(at) = self.open.iter().position(|d| d.id == id) else { return (false, false) };
        let gone = self.open.remove(at);
        let unanswered = at == 0 && gone.is_some_and(|d| !d.answered);
        (unanswered, at == 0 && !self.open.is_empty())
    }

    /// Gives the shown one up.
    pub fn cancel(&mut self) -> Option<u64> {
        let front = self.open.front_mut().filter(|d| !d.answered)?;
        front.answered = true;
        Some(front.id)
    }

    pub fn question(&self) -> Option<String> {
        self.open.front().map(|d| d.question())
    }

    pub fn answer(&mut self, line: &str) -> Reply {
        let Some(front) = self.open.front_mut() else { return Reply::More };
        let typed = line.trim();
        let answer = match &front.dialog {
            Dialog::Confirm { .. } => {
                DialogAnswer::Confirmed(typed.eq_ignore_ascii_case("y") || typed.eq_ignore_ascii_case("yes"))
            }
            Dialog::Select { options, .. } => {
                match typed.parse::<usize>().ok().and_then(|n| n.checked_sub(1)) {
                    Some(n) if n < options.len() => DialogAnswer::Value(options[n].clone()),
                    _ if typed.is_empty() => DialogAnswer::Cancelled,
                    _ => return Reply::Again(format!("a number from 1 to {}, or nothing: ", options.len())),
                }
            }
            Dialog::Input { .. } => DialogAnswer::Value(line.to_owned()),
            Dialog::Editor { prefill, .. } => match typed {
                "." if front.lines.is_empty() => DialogAnswer::Value(prefill.clone().unwrap_or_default()),
                "." => DialogAnswer::Value(front.lines.join("\n")),
                _ => {
                    front.lines.push(line.to_owned());
                    return Reply::More;
                }
            },
        };
        front.answered = true;
        Reply::Answer(front.id, answer)
    }
}

impl Open {
    /// The last line is where the answer is typed.
    fn question(&self) -> String {
        // On one line each: a title or an option must not draw lines of its own.
        let one = |text: &str| sanitize::line(text, ONE_LINE);
        let mut text = format!("? {}: {}\n", name(&self.extension), one(self.dialog.title()));
        match &self.dialog {
            Dialog::Confirm { message, .. } => {
                for line in message.lines() {
                    text += &format!("  {line}\n");
                }
                text += "  y/N ";
            }
            Dialog::Select { options, .. } => {
                for (i, option) in options.iter().enumerate() {
                    text += &format!("  {}) {}\n", i + 1, one(option));
                }
                text += "  number: ";
            }
            Dialog::Input { placeholder, .. } => {
                let hint = placeholder.as_ref().map(|p| format!("({}) ", one(p))).unwrap_or_default();
                text += &format!("  {hint}: ");
            }
            Dialog::Editor { prefill, .. } => {
                for line in prefill.iter().flat_map(|p| p.lines()) {
                    text += &format!("  | {line}\n");
                }
                text += "  type the text; a line with a single . ends it (at once: as it is)\n  ";
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn confirm() -> Dialog {
        Dialog::Confirm { title: "Run it?".into(), message: "rm -rf x".into(), timeout_ms: None }
    }

    fn answer(dialog: Dialog, line: &str) -> Option<DialogAnswer> {
        let mut dialogs = Dialogs::default();
        dialogs.open(7, dialog, "gate".into());
        match dialogs.answer(line) {
            Reply::Answer(7, answer) => Some(answer),
            _ => None,
        }
    }

    #[test]
    fn only_an_explicit_yes_approves() {
        for (line, yes) in
            [("y", true), ("YES ", true), ("", false), ("yep", false), ("n", false), ("y?", false)]
        {
            assert_eq!(answer(confirm(), line), Some(DialogAnswer::Confirmed(yes)), "{line:?}");
        }
    }

    #[test]
    fn a_number_selects_and_nothing_else_does() {
        let select =
            || Dialog::Select { title: "?".into(), options: vec!["a".into(), "b".into()], timeout_ms: None };
        assert_eq!(answer(select(), "2"), Some(DialogAnswer::Value("b".into())));
        assert_eq!(answer(select(), ""), Some(DialogAnswer::Cancelled));
        assert_eq!(answer(select(), "3"), None);
        assert_eq!(answer(select(), "0"), None);
    }

    #[test]
    fn a_title_or_an_option_is_one_line_whatever_it_holds() {
        let dialog = Dialog::Select {
            title: "which\n> rm".into(),
            options: vec!["a\n  2) b".into(), "c".into()],
            timeout_ms: None,
        };
        let mut dialogs = Dialogs::default();
        dialogs.open(1, dialog, "x\ny".into());
        let text = dialogs.question().unwrap();
        assert_eq!(text, "? x y: which > rm\n  1) a 2) b\n  2) c\n  number: ");
    }

    #[test]
    fn an_editor_takes_lines_until_a_single_dot() {
        let mut dialogs = Dialogs::default();
        dialogs.open(1, Dialog::Editor { title: "note".into(), prefill: None }, "x".into());
        assert!(matches!(dialogs.answer("one"), Reply::More));
        assert!(matches!(dialogs.answer("two"), Reply::More));
        let Reply::Answer(1, DialogAnswer::Value(text)) = dialogs.answer(".") else { panic!("not ended") };
        assert_eq!(text, "one\ntwo");
    }

    #[test]
    fn the_next_question_is_shown_only_when_the_first_is_closed() {
        let mut dialogs = Dialogs::default();
        assert!(dialogs.open(1, confirm(), "a".into()));
        assert!(!dialogs.open(2, confirm(), "b".into()));
        assert!(matches!(dialogs.answer("y"), Reply::Answer(1, _)));
        assert!(!dialogs.asking(), "a line typed now would answer a question nobody saw");
        assert_eq!(dialogs.closed(1), (false, true));
        assert!(dialogs.asking());
    }
}

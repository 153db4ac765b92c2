//! A question, in the place of the editor. Only an explicit yes approves.

use crate::{
    composer::Composer,
    keys::{Action, Keymap},
    list::{Item, List},
    sanitize, styled,
    theme::{Role, Theme},
};
use atomic_agent::op::{Dialog, DialogAnswer};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::text::Line;
use std::time::{Duration, Instant};

/// Characters of a title.
const ONE_LINE: usize = 300;

pub struct Open {
    pub id: u64,
    dialog: Dialog,
    extension: String,
    since: Instant,
    /// The user has seen it: a key was pressed after a pause.
    seen: bool,
    form: Form,
}

enum Form {
    /// `true`: yes is chosen.
    Confirm(bool),
    Select(List<String>),
    Text {
        composer: Box<Composer>,
        lines: bool,
    },
}

impl Open {
    pub fn new(id: u64, dialog: Dialog, extension: &str) -> Self {
        let form = match &dialog {
            Dialog::Confirm { .. } => Form::Confirm(false),
            Dialog::Select { options, .. } => {
                Form::Select(List::new(options.iter().map(|o| Item::new(o, "", o.clone())).collect()))
            }
            Dialog::Input { .. } => Form::Text { composer: Box::new(Composer::new(None)), lines: false },
            Dialog::Editor { prefill, .. } => {
                let mut composer = Composer::new(None);
                composer.set(prefill.as_deref().unwrap_or_default());
                Form::Text { composer: Box::new(composer), lines: true }
            }
        };
        Open { id, dialog, extension: extension.to_owned(), since: Instant::now(), seen: false, form }
    }

    fn left(&self) -> Option<Duration> {
        let most = Duration::from_millis(self.dialog.timeout_ms()?);
        Some(most.saturating_sub(self.since.elapsed()))
    }

    pub fn counts_down(&self) -> bool {
        self.dialog.timeout_ms().is_some()
    }

    /// Whether a key is for it. What is typed in one go with what came before it is not, until the
    /// user pauses; what refuses always is.
    pub fn takes(&mut self, action: Option<Action>, in_flow: bool) -> bool {
        self.seen |= !in_flow;
        self.seen || matches!(action, Some(Action::Abort | Action::Clear))
    }

    pub fn paste(&mut self, text: &str) {
        if let Form::Text { composer, lines } = &mut self.form {
            match lines {
                true => composer.paste(text),
                false => composer.insert(&text.replace(['\n', '\r'], " ")),
            }
        }
    }

    /// The text that an external editor may take over.
    pub fn editable(&mut self) -> Option<&mut Composer> {
        match &mut self.form {
            Form::Text { composer, lines: true } => Some(composer),
            _ => None,
        }
    }

    pub fn key(&mut self, key: KeyEvent, keys: &Keymap) -> Option<DialogAnswer> {
        let action = keys.action(&key);
        if matches!(action, Some(Action::Abort | Action::Clear)) {
            return Some(DialogAnswer::Cancelled);
        }
        let bare = !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        match &mut self.form {
            Form::Confirm(yes) => match (key.code, action) {
                (KeyCode::Char('y' | 'Y'), _) if bare => return Some(DialogAnswer::Confirmed(true)),
                (KeyCode::Char('n' | 'N'), _) if bare => return Some(DialogAnswer::Confirmed(false)),
                (_, Some(Action::Submit)) => return Some(DialogAnswer::Confirmed(*yes)),
                (KeyCode::Left | KeyCode::Right | KeyCode::Up | KeyCode::Down | KeyCode::Tab, _) => {
                    *yes = !*yes;
                }
                _ => {}
            },
            Form::Select(list) => match (key.code, action) {
                (_, Some(Action::Submit)) => {
                    return list.chosen().map(|i| DialogAnswer::Value(i.value.clone()));
                }
                (_, Some(Action::Up)) => list.step(-1),
                (_, Some(Action::Down)) => list.step(1),
                (_, Some(Action::PageUp)) => list.step(-10),
                (_, Some(Action::PageDown)) => list.step(10),
                (KeyCode::Backspace, _) => list.pop(),
                (KeyCode::Char(c), _) if bare => list.push(c),
                _ => {}
            },
            Form::Text { composer, lines } => match (key.code, action) {
                (_, Some(Action::Submit)) => return Some(DialogAnswer::Value(composer.text())),
                (_, Some(Action::NewLine)) if *lines => composer.new_line(),
                (_, Some(Action::NewLine)) => {}
                _ => composer.key(key),
            },
        }
        None
    }

    /// Rows and the cursor's place in them, if it has one.
    pub fn rows(
        &mut self,
        columns: usize,
        most: usize,
        theme: &Theme,
    ) -> (Vec<Line<'static>>, Option<(u16, u16)>) {
        let left = self.left().map(|l| format!("{} s", l.as_secs() + 1)).unwrap_or_default();
        let who = sanitize::line(&self.extension, 40);
        let title = sanitize::line(self.dialog.title(), ONE_LINE);
        let head = styled::line(format!("? {who}: {title}"), theme.style(Role::Accent));
        let mut rows = styled::wrap(&head, columns.saturating_sub(left.len() + 1), &Line::from("  "));
        if !left.is_empty() {
            let first = rows.remove(0);
            rows.insert(0, styled::justify(first, styled::line(left, theme.style(Role::Dim)), columns));
        }
        let message = match &self.dialog {
            Dialog::Confirm { message, .. } => Some(message.as_str()),
            Dialog::Select { message, .. } => message.as_deref(),
            Dialog::Input { placeholder, .. } => placeholder.as_deref(),
            Dialog::Editor { .. } => None,
        };
        let mut body: Vec<Line<'static>> = sanitize::text(message.unwrap_or_default())
            .lines()
            .flat_map(|l| {
                let line = styled::line(format!("  {l}"), theme.style(Role::Text));
                styled::wrap(&line, columns, &Line::from("  "))
            })
            .collect();
        // What is asked for must stay on the screen, whatever its explanation takes.
        let room = most.saturating_sub(rows.len() + 5).max(1);
        if body.len() > room {
            let hidden = body.len() - room;
            body.truncate(room);
            body.push(styled::line(format!("  … {hidden} more rows"), theme.style(Role::Warning)));
        }
        rows.extend(body);
        let mut cursor = None;
        let hint = match &mut self.form {
            Form::Confirm(yes) => {
                let style = |on: bool| theme.style(if on { Role::Selected } else { Role::Dim });
                let mark = |on: bool| if on { "❯ " } else { "  " };
                rows.push(Line::from(vec![
                    styled::span(format!("  {}No", mark(!*yes)), style(!*yes)),
                    styled::span(format!("   {}Yes", mark(*yes)), style(*yes)),
                ]));
                "y or n, after a pause; Enter takes what is marked, Escape refuses"
            }
            Form::Select(list) => {
                let filter = list.filter().to_owned();
                if !filter.is_empty() {
                    rows.push(styled::line(format!("  / {filter}"), theme.style(Role::Accent)));
                }
                let room = most.saturating_sub(rows.len() + 2).clamp(1, 12);
                rows.extend(list.rows(columns, room, theme));
                "Enter chooses, typing narrows, Escape refuses"
            }
            Form::Text { composer, lines } => {
                let room = most.saturating_sub(rows.len() + 1).clamp(1, 12);
                let (text, (x, y)) = composer.rows(columns, room, theme);
                cursor = Some((x, y.saturating_add(u16::try_from(rows.len()).unwrap_or(u16::MAX))));
                rows.extend(text);
                match lines {
                    true => "Enter sends, Shift+Enter or Ctrl+J begins a line, Ctrl+G an editor",
                    false => "Enter sends, Escape refuses",
                }
            }
        };
        rows.push(styled::cut(&styled::line(format!("  {hint}"), theme.style(Role::Dim)), columns));
        (rows, cursor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::texts;

    fn press(open: &mut Open, code: KeyCode) -> Option<DialogAnswer> {
        open.key(KeyEvent::new(code, KeyModifiers::NONE), &Keymap::default())
    }

    fn confirm() -> Open {
        let dialog =
            Dialog::Confirm { title: "Run\nit?".into(), message: "rm -rf x".into(), timeout_ms: None };
        Open::new(1, dialog, "gate")
    }

    #[test]
    fn only_an_explicit_yes_approves() {
        assert_eq!(press(&mut confirm(), KeyCode::Enter), Some(DialogAnswer::Confirmed(false)));
        assert_eq!(press(&mut confirm(), KeyCode::Esc), Some(DialogAnswer::Cancelled));
        assert_eq!(press(&mut confirm(), KeyCode::Char('x')), None);
        assert_eq!(press(&mut confirm(), KeyCode::Char('y')), Some(DialogAnswer::Confirmed(true)));
        let mut open = confirm();
        press(&mut open, KeyCode::Right);
        assert_eq!(press(&mut open, KeyCode::Enter), Some(DialogAnswer::Confirmed(true)));
    }

    #[test]
    fn what_is_typed_in_flow_is_no_answer_until_the_user_pauses() {
        let mut open = confirm();
        assert!(!open.takes(None, true));
        assert!(!open.takes(Some(Action::Submit), true));
        assert!(open.takes(Some(Action::Abort), true), "a refusal always counts");
        assert!(open.takes(None, false));
        assert!(open.takes(None, true), "it has been seen");
    }

    #[test]
    fn a_question_keeps_its_answer_on_the_screen_however_long_it_is() {
        let dialog = Dialog::Confirm { title: "?".into(), message: "x\n".repeat(500), timeout_ms: None };
        let (rows, _) = Open::new(1, dialog, "gate").rows(40, 12, &Theme::dark());
        assert!(rows.len() <= 12, "{}", rows.len());
        let rows = texts(&rows);
        assert!(rows.iter().any(|r| r.contains("No")) && rows.iter().any(|r| r.contains("more rows")));
    }

    #[test]
    fn a_list_answers_with_what_is_marked() {
        let dialog = Dialog::Select {
            title: "which".into(),
            message: None,
            options: vec!["alpha".into(), "beta".into()],
            timeout_ms: Some(5000),
        };
        let mut open = Open::new(1, dialog, "x");
        assert!(texts(&open.rows(40, 20, &Theme::dark()).0)[0].ends_with("5 s"));
        press(&mut open, KeyCode::Char('b'));
        assert_eq!(press(&mut open, KeyCode::Enter), Some(DialogAnswer::Value("beta".into())));
    }
}

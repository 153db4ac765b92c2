//! Where the user types: several lines, what was said before, pastes that are kept whole.

use crate::{
    styled,
    theme::{Role, Theme},
};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::{Modifier, Style},
    text::Line,
    widgets::Widget,
};
use ratatui_textarea::{CursorMove, TextArea, WrapMode};
use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};
use unicode_segmentation::UnicodeSegmentation;

/// A paste of more lines stands in the editor as one word until it is sent.
const LONG_PASTE: usize = 10;
const LONG_PASTE_BYTES: usize = 2_000;
/// Entries of the history.
const KEPT: usize = 500;

pub struct Composer {
    area: TextArea<'static>,
    history: Vec<String>,
    /// Where in the history the editor is, and what was typed before it went there.
    at: Option<(usize, String)>,
    file: Option<PathBuf>,
    pastes: Vec<(String, String)>,
}

impl Composer {
    pub fn new(file: Option<PathBuf>) -> Self {
        let history = file.as_deref().map(read_history).unwrap_or_default();
        Composer { area: area(""), history, at: None, file, pastes: Vec::new() }
    }

    /// As it stands there.
    pub fn shown(&self) -> String {
        self.area.lines().join("\n")
    }

    /// With what was pasted.
    pub fn text(&self) -> String {
        let mut text = self.shown();
        for (mark, paste) in &self.pastes {
            text = text.replacen(mark, paste, 1);
        }
        text
    }

    pub fn is_empty(&self) -> bool {
        self.area.is_empty()
    }

    pub fn set(&mut self, text: &str) {
        self.area = area(text);
        self.area.move_cursor(CursorMove::Bottom);
        self.area.move_cursor(CursorMove::End);
        self.pastes.clear();
        self.at = None;
    }

    /// What is there goes; the history has it.
    pub fn take(&mut self) -> String {
        let text = self.text();
        self.remember(&text);
        self.set("");
        text
    }

    fn remember(&mut self, text: &str) {
        if text.trim().is_empty() || self.history.last().is_some_and(|l| l == text) {
            return;
        }
        self.history.push(text.to_owned());
        if let Some(file) = &self.file {
            // The conversation is kept elsewhere: a history that cannot be written is no loss.
            let _ = append(file, text);
        }
    }

    pub fn paste(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let lines = text.lines().count();
        if lines > LONG_PASTE || text.len() > LONG_PASTE_BYTES {
            let mark = match lines > LONG_PASTE {
                true => format!("[paste #{} +{lines} lines]", self.pastes.len() + 1),
                false => format!("[paste #{} {} chars]", self.pastes.len() + 1, text.chars().count()),
            };
            self.area.insert_str(&mark);
            self.pastes.push((mark, text));
        } else {
            self.area.insert_str(text);
        }
    }

    pub fn insert(&mut self, text: &str) {
        self.area.insert_str(text);
    }

    pub fn new_line(&mut self) {
        self.area.insert_newline();
    }

    /// Keys that only edit.
    pub fn key(&mut self, key: KeyEvent) {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        // A shell's keys, where the widget has others.
        match key.code {
            KeyCode::Char('u') if control => drop(self.area.delete_line_by_head()),
            KeyCode::Char('z' | '_') if control => drop(self.area.undo()),
            KeyCode::Backspace if key.modifiers.contains(KeyModifiers::ALT) || control => {
                self.area.delete_word();
            }
            KeyCode::Left if control => self.area.move_cursor(CursorMove::WordBack),
            KeyCode::Right if control => self.area.move_cursor(CursorMove::WordForward),
            _ => drop(self.area.input(key)),
        }
    }

    /// `false`: there is no row above in the text.
    pub fn up(&mut self) -> bool {
        let before = self.area.cursor();
        self.area.move_cursor(CursorMove::Up);
        self.area.cursor() != before
    }

    pub fn down(&mut self) -> bool {
        let before = self.area.cursor();
        self.area.move_cursor(CursorMove::Down);
        self.area.cursor() != before
    }

    pub fn older(&mut self) {
        let (from, draft) = match self.at.take() {
            Some((at, draft)) => (at, draft),
            None => (self.history.len(), self.shown()),
        };
        if from == 0 {
            self.at = Some((0, draft));
            return;
        }
        let text = self.history[from - 1].clone();
        self.set(&text);
        self.at = Some((from - 1, draft));
    }

    pub fn newer(&mut self) {
        let Some((at, draft)) = self.at.take() else { return };
        match self.history.get(at + 1).cloned() {
            Some(text) => {
                self.set(&text);
                self.at = Some((at + 1, draft));
            }
            None => self.set(&draft),
        }
    }

    /// What stands before the cursor on its line.
    pub fn before_cursor(&self) -> String {
        let cursor = self.area.cursor();
        self.area.lines().get(cursor.0).map(|l| l.chars().take(cursor.1).collect()).unwrap_or_default()
    }

    pub fn on_first_line(&self) -> bool {
        self.area.cursor().0 == 0
    }

    /// Puts a text in the place of the last characters before the cursor.
    pub fn replace_before(&mut self, characters: usize, with: &str) {
        for _ in 0..characters {
            self.area.delete_char();
        }
        self.area.insert_str(with);
    }

    /// Rows and the place of the cursor in them, column first.
    pub fn rows(&mut self, columns: usize, most: usize, theme: &Theme) -> (Vec<Line<'static>>, (u16, u16)) {
        const MARK: usize = 2;
        let room = columns.saturating_sub(MARK).max(2);
        // The cursor stands behind the last character, so a full row has another below it.
        let needed: usize = self.area.lines().iter().map(|l| broken(l, room)).sum();
        let height = (needed.clamp(1, most.max(1)), room);
        let size = Rect::new(0, 0, to_u16(height.1), to_u16(height.0));
        let mut buffer = Buffer::empty(size);
        (&self.area).render(size, &mut buffer);
        let top = usize::from(self.area.scroll_offset().0);
        let place = self.area.screen_cursor();
        let cursor = (to_u16(place.col + MARK), to_u16(place.row.saturating_sub(top)));
        let rows = styled::rows_of(&buffer)
            .into_iter()
            .enumerate()
            .map(|(n, row)| {
                let mark = if n == 0 && top == 0 { "> " } else { "  " };
                let mut line = styled::line(mark, theme.style(Role::Accent));
                line.spans.extend(row.spans);
                trimmed(line)
            })
            .collect();
        (rows, cursor)
    }
}

fn to_u16(n: usize) -> u16 {
    u16::try_from(n).unwrap_or(u16::MAX)
}

/// Empty cells at the end are no part of a row: a terminal that gets narrower would break them.
fn trimmed(mut line: Line<'static>) -> Line<'static> {
    while let Some(last) = line.spans.last_mut() {
        let text = last.content.trim_end_matches(' ').to_owned();
        if !text.is_empty() {
            if last.style.add_modifier.contains(Modifier::REVERSED) {
                break;
            }
            last.content = text.into();
            break;
        }
        if line.spans.len() == 1 {
            break;
        }
        line.spans.pop();
    }
    line
}

/// Rows of a line that is broken at graphemes.
fn broken(line: &str, room: usize) -> usize {
    let (mut rows, mut used) = (1, 0);
    for g in line.graphemes(true) {
        let wide = styled::width(g);
        if used + wide > room {
            rows += 1;
            used = 0;
        }
        used += wide;
    }
    rows + usize::from(used >= room)
}

fn area(text: &str) -> TextArea<'static> {
    let mut area = TextArea::new(text.split('\n').map(str::to_owned).collect());
    area.set_wrap_mode(WrapMode::Glyph);
    area.set_cursor_line_style(Style::default());
    // The terminal's own cursor shows the place.
    area.set_cursor_style(Style::default());
    area
}

fn read_history(file: &Path) -> Vec<String> {
    let Ok(text) = fs::read_to_string(file) else { return Vec::new() };
    let mut history: Vec<String> = text.lines().filter_map(|l| serde_json::from_str(l).ok()).collect();
    let old = history.len().saturating_sub(KEPT);
    if old > KEPT {
        let lines: Vec<String> =
            history[old..].iter().filter_map(|t| serde_json::to_string(t).ok()).collect();
        let _ = fs::write(file, lines.join("\n") + "\n");
    }
    history.drain(..old);
    history
}

fn append(file: &Path, text: &str) -> std::io::Result<()> {
    if let Some(dir) = file.parent() {
        fs::create_dir_all(dir)?;
    }
    let mut options = fs::OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    writeln!(options.open(file)?, "{}", serde_json::to_string(text).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::texts;

    fn typed(composer: &mut Composer, text: &str) {
        for c in text.chars() {
            composer.key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE));
        }
    }

    #[test]
    fn a_long_text_is_broken_and_the_cursor_is_where_it_belongs() {
        let mut c = Composer::new(None);
        typed(&mut c, "abcdefghij日本");
        let (rows, cursor) = c.rows(10, 5, &Theme::dark());
        assert_eq!(texts(&rows), ["> abcdefgh", "  ij日本"]);
        assert_eq!(cursor, (8, 1));
    }

    #[test]
    fn what_was_said_comes_back_and_what_was_typed_is_not_lost() {
        let mut c = Composer::new(None);
        for text in ["one", "two"] {
            c.set(text);
            assert_eq!(c.take(), text);
        }
        typed(&mut c, "draft");
        c.older();
        c.older();
        c.older();
        assert_eq!(c.text(), "one");
        c.newer();
        assert_eq!(c.text(), "two");
        c.newer();
        assert_eq!(c.text(), "draft");
    }

    #[test]
    fn a_long_paste_is_one_word_until_it_is_sent() {
        let mut c = Composer::new(None);
        let paste: String = (0..30).map(|n| format!("line {n}\r\n")).collect();
        typed(&mut c, "see ");
        c.paste(&paste);
        assert_eq!(c.shown(), "see [paste #1 +30 lines]");
        assert_eq!(c.text(), format!("see {}", paste.replace("\r\n", "\n")));
        c.set("");
        c.paste("short\none");
        assert_eq!(c.shown(), "short\none");
    }

    #[test]
    fn the_history_outlives_the_process() {
        let dir = std::env::temp_dir().join(format!("atomic-tui-history-{}", std::process::id()));
        let file = dir.join("history.jsonl");
        let mut c = Composer::new(Some(file.clone()));
        c.set("two\nlines");
        c.take();
        let mut c = Composer::new(Some(file));
        c.older();
        assert_eq!(c.text(), "two\nlines");
        std::fs::remove_dir_all(dir).unwrap();
    }
}

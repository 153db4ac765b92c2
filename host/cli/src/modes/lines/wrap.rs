//! Breaks lines between words at the terminal's edge, which itself breaks them anywhere. Works
//! on pieces of a stream: a word is held back until its end is known. What hangs over goes under
//! the beginning of its line. Knows columns, nothing of what is written.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Blanks that stand between columns rather than between words.
const COLUMN: usize = 3;

#[derive(Default)]
pub struct Wrap {
    /// Where the next character goes.
    column: usize,
    /// Blanks and the word behind them that are not written yet.
    gap: String,
    word: String,
    /// Under what this line began with.
    indent: usize,
}

impl Wrap {
    /// What can be written by now. `None`: nothing is broken.
    pub fn push(&mut self, text: &str, columns: Option<usize>) -> String {
        let Some(columns) = columns else { return text.to_owned() };
        let mut out = String::with_capacity(text.len() + 8);
        for c in text.chars() {
            match c {
                '\n' => {
                    self.release(columns, &mut out);
                    // Blanks at the end of a line would only break it.
                    self.gap.clear();
                    out.push('\n');
                    self.column = 0;
                    self.indent = 0;
                }
                ' ' | '\t' => {
                    self.release(columns, &mut out);
                    self.gap.push_str(if c == '\t' { "    " } else { " " });
                }
                c => self.word.push(c),
            }
        }
        out
    }

    /// The rest, blanks included.
    pub fn flush(&mut self, columns: Option<usize>) -> String {
        let mut out = String::new();
        if let Some(columns) = columns {
            self.release(columns, &mut out);
            self.column += self.gap.len();
            out += &std::mem::take(&mut self.gap);
        }
        out
    }

    /// The cursor is somewhere else by now: at the beginning of a line.
    pub fn reset(&mut self) {
        *self = Wrap::default();
    }

    fn release(&mut self, columns: usize, out: &mut String) {
        if self.word.is_empty() {
            return;
        }
        let width = self.word.width();
        let begins = self.column == 0;
        if !begins && self.column + self.gap.len() + width > columns {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', self.indent));
            self.column = self.indent;
        } else {
            out.push_str(&self.gap);
            self.column += self.gap.len();
            // At the beginning, or where a column of a list begins.
            if begins || self.gap.len() >= COLUMN {
                self.indent = if self.column * 2 <= columns { self.column } else { 0 };
            }
        }
        self.gap.clear();
        // A word that fits on no line is broken by the terminal.
        for c in self.word.chars() {
            let wide = c.width().unwrap_or(0);
            self.column = if self.column + wide > columns { wide } else { self.column + wide };
        }
        *out += &std::mem::take(&mut self.word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped(pieces: &[&str], columns: usize) -> String {
        let mut wrap = Wrap::default();
        let mut out: String = pieces.iter().map(|p| wrap.push(p, Some(columns))).collect();
        out += &wrap.flush(Some(columns));
        out
    }

    #[test]
    fn lines_break_between_words_however_the_stream_cuts_them() {
        for (pieces, want) in [
            (&["one two three four"][..], "one two\nthree four"),
            (&["one two th", "ree fo", "ur"], "one two\nthree four"),
            (&["    tools: read, write, edit"], "    tools:\n    read,\n    write,\n    edit"),
            (&["fits here\nand here"], "fits here\nand here"),
            (&["a /very/long/path/stays whole"], "a\n/very/long/path/stays whole"),
            (&["日本 日本 日"], "日本 日本\n日"),
            (&["> "], "> "),
            (&["/a   of it all"], "/a   of it\n     all"),
        ] {
            assert_eq!(wrapped(pieces, 10), want, "{pieces:?}");
        }
    }

    #[test]
    fn nothing_is_lost_or_changed_but_blanks_at_breaks() {
        let text = "A sentence  with gaps,\n\n    code that is indented\n- and a list of words.";
        let bare = |s: &str| s.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        for columns in 1..60 {
            let out = wrapped(&[text], columns);
            assert_eq!(bare(&out), bare(text), "{columns}");
            // No word of it is longer than this.
            let fits = |l: &str| columns < 16 || l.width() <= columns;
            assert!(out.lines().all(fits), "{columns}: {out}");
        }
        assert_eq!(wrapped(&[text], 200), text);
    }
}

//! A text that is still being written. Blocks that cannot change any more are given away, so
//! that what is drawn again and again stays small however long the answer gets.

use crate::{
    markdown,
    sanitize::Sanitizer,
    styled,
    theme::{Role, Theme},
};
use ratatui::text::Line;

/// A block of more bytes is given away at its last full line.
const LARGE: usize = 6_000;

pub struct Stream {
    thinking: bool,
    clean: Sanitizer,
    /// What is not given away yet.
    text: String,
    /// So much of it is whole blocks.
    settled: usize,
    /// Where the search for the next block's end goes on.
    looked: usize,
    /// Of the code block that `text` is inside of: its opening line.
    fence: Option<String>,
    /// Something was given away: the next block is apart from it.
    given: bool,
    cached: Option<(usize, usize, Vec<Line<'static>>)>,
}

impl Stream {
    pub fn new(thinking: bool) -> Self {
        Stream {
            thinking,
            clean: Sanitizer::default(),
            text: String::new(),
            settled: 0,
            looked: 0,
            fence: None,
            given: false,
            cached: None,
        }
    }

    pub fn push(&mut self, delta: &str) {
        let clean = self.clean.push(delta);
        self.text.push_str(&clean);
        self.look();
    }

    pub fn has_settled(&self) -> bool {
        self.settled > 0
    }

    /// Goes through the lines that are complete.
    fn look(&mut self) {
        while let Some(end) = self.text[self.looked..].find('\n').map(|n| self.looked + n + 1) {
            let line = self.text[self.looked..end].trim();
            match &self.fence {
                Some(open) if closes(line, open) => self.fence = None,
                Some(_) => {}
                None if line.starts_with("```") || line.starts_with("~~~") => {
                    self.fence = Some(line.to_owned());
                }
                // A table or a list may go on after this line, a paragraph does not.
                None if line.is_empty() => self.settled = end,
                None => {}
            }
            self.looked = end;
        }
        if self.text.len() - self.settled > LARGE && self.looked > self.settled {
            self.settled = self.looked;
        }
    }

    /// Rows of the blocks that cannot change any more; they are this stream's no longer.
    pub fn settle(&mut self, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
        if self.settled == 0 {
            return Vec::new();
        }
        let cut_in_code = self.fence.clone().filter(|_| self.settled == self.looked);
        let block: String = self.text.drain(..self.settled).collect();
        self.looked -= self.settled;
        self.settled = 0;
        self.cached = None;
        let mut rows = self.render(&block, columns, theme);
        if let Some(open) = cut_in_code {
            // The rest is the same code block's.
            self.text.insert_str(0, &format!("{open}\n"));
            self.looked += open.len() + 1;
            self.given = false;
        } else if !rows.is_empty() {
            self.given = true;
        }
        if rows.last().is_some_and(|l| styled::line_width(l) == 0) {
            rows.pop();
        }
        rows
    }

    fn render(&self, text: &str, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
        let mut rows = match self.thinking {
            true => {
                let style = theme.style(Role::Thinking);
                text.trim()
                    .lines()
                    .flat_map(|l| styled::wrap(&styled::line(l, style), columns, &Line::default()))
                    .collect()
            }
            false => markdown::rows(text, columns, theme),
        };
        if self.given && !rows.is_empty() {
            rows.insert(0, Line::default());
        }
        rows
    }

    pub fn rows(&mut self, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
        if let Some((length, width, rows)) = &self.cached
            && (*length, *width) == (self.text.len(), columns)
        {
            return rows.clone();
        }
        let rows = self.render(&self.text, columns, theme);
        self.cached = Some((self.text.len(), columns, rows.clone()));
        rows
    }

    pub fn finish(self, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
        self.render(&self.text, columns, theme)
    }
}

fn closes(line: &str, open: &str) -> bool {
    let mark = open.chars().next().unwrap_or('`');
    let count = open.chars().take_while(|c| *c == mark).count();
    line.chars().all(|c| c == mark) && line.chars().count() >= count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::texts;
    use proptest::prelude::*;

    fn streamed(text: &str, pieces: usize) -> Vec<String> {
        let theme = Theme::dark();
        let mut stream = Stream::new(false);
        let mut rows = Vec::new();
        let chars: Vec<char> = text.chars().collect();
        for piece in chars.chunks(pieces.max(1)) {
            stream.push(&piece.iter().collect::<String>());
            rows.extend(stream.settle(40, &theme));
        }
        rows.extend(stream.finish(40, &theme));
        texts(&rows)
    }

    #[test]
    fn pieces_look_like_the_whole() {
        let text = "# A\n\nSome text\nhere.\n\n```rust\nfn a() {}\n\nfn b() {}\n```\n\nend **bold**";
        let whole = texts(&markdown::rows(text, 40, &Theme::dark()));
        for pieces in [1, 3, 7, 1000] {
            assert_eq!(streamed(text, pieces), whole, "{pieces}");
        }
    }

    #[test]
    fn a_long_code_block_is_given_away_line_by_line_and_stays_code() {
        let code: String = (0..2000).map(|n| format!("let a{n} = {n};\n")).collect();
        let text = format!("```rust\n{code}```\n\nafter");
        let rows = streamed(&text, 50);
        assert_eq!(rows.len(), 2002, "{:?}", &rows[rows.len() - 4..]);
        assert!(rows[..2000].iter().all(|r| r.starts_with("  let a")));
        assert_eq!(rows[2001], "after");
    }

    proptest! {
        #[test]
        fn no_word_is_lost_in_any_pieces(words in proptest::collection::vec("[a-z]{1,8}", 0..60),
            breaks in proptest::collection::vec(0usize..4, 60), pieces in 1usize..9) {
            let mut text = String::new();
            for (word, b) in words.iter().zip(&breaks) {
                text += word;
                text += [" ", "\n", "\n\n", " "][*b];
            }
            let shown = streamed(&text, pieces).join(" ");
            let shown: Vec<&str> = shown.split_whitespace().collect();
            prop_assert_eq!(shown, words.iter().map(String::as_str).collect::<Vec<_>>());
        }
    }
}

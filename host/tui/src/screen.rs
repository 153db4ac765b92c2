//! The terminal's last rows, drawn in place; what is finished goes above them into the
//! terminal's own scrollback. All movement is relative to the live rows, so it does not matter
//! where on the screen they began. Rows that did not change are not written again.

use crate::styled;
use crossterm::{
    QueueableCommand,
    cursor::{Hide, MoveDown, MoveRight, MoveUp, Show},
    style::{Attribute, Attributes, Color as Tint, Colors, Print, ResetColor, SetAttributes, SetColors},
    terminal::{BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate},
};
use ratatui::{
    style::{Color, Modifier, Style},
    text::Line,
};
use std::io::{self, Write};

pub struct Screen<W> {
    out: W,
    columns: usize,
    /// As they stand there.
    live: Vec<Line<'static>>,
    /// The row of the cursor, from the first live one.
    row: usize,
}

impl<W: Write> Screen<W> {
    pub fn new(out: W, columns: u16) -> Self {
        Screen { out, columns: usize::from(columns), live: Vec::new(), row: 0 }
    }

    /// What else goes to the terminal, as it is.
    pub fn raw(&mut self, bytes: &str) -> io::Result<()> {
        self.out.write_all(bytes.as_bytes())?;
        self.out.flush()
    }

    /// The terminal has another width: what is live has been broken anew by it, most likely, so
    /// it takes more rows than it did. It is drawn again from its beginning.
    pub fn resized(&mut self, columns: u16) -> io::Result<()> {
        let now = usize::from(columns).max(1);
        let rows = |l: &Line<'_>| styled::line_width(l).div_ceil(now).max(1);
        let above: usize = match now < self.columns {
            true => self.live.iter().take(self.row).map(rows).sum(),
            false => self.row,
        };
        self.columns = now;
        self.up(above)?;
        self.out.queue(Clear(ClearType::FromCursorDown))?;
        self.live.clear();
        self.row = 0;
        self.out.flush()
    }

    fn up(&mut self, rows: usize) -> io::Result<()> {
        if rows > 0 {
            self.out.queue(MoveUp(u16::try_from(rows).unwrap_or(u16::MAX)))?;
        }
        self.out.write_all(b"\r")
    }

    fn go_to_row(&mut self, row: usize) -> io::Result<()> {
        match row.cmp(&self.row) {
            std::cmp::Ordering::Less => self.up(self.row - row)?,
            std::cmp::Ordering::Equal => self.out.write_all(b"\r")?,
            std::cmp::Ordering::Greater => {
                self.out.queue(MoveDown(u16::try_from(row - self.row).unwrap_or(u16::MAX)))?;
                self.out.write_all(b"\r")?;
            }
        }
        self.row = row;
        Ok(())
    }

    /// `finished` leaves for the scrollback; `live` is all that stays, and must be lower than the
    /// screen. `cursor`: column and row in it.
    pub fn draw(
        &mut self,
        finished: &[Line<'_>],
        live: Vec<Line<'static>>,
        cursor: Option<(u16, u16)>,
    ) -> io::Result<()> {
        self.out.queue(BeginSynchronizedUpdate)?.queue(Hide)?;
        if !finished.is_empty() {
            self.go_to_row(0)?;
            self.out.queue(Clear(ClearType::FromCursorDown))?;
            for line in finished {
                self.write_line(line)?;
                self.out.write_all(b"\r\n")?;
            }
            self.live.clear();
        }
        let before = std::mem::take(&mut self.live);
        for (at, line) in live.iter().enumerate() {
            if before.get(at) == Some(line) {
                continue;
            }
            if at < before.len() {
                self.go_to_row(at)?;
                self.write_line(line)?;
                self.out.queue(Clear(ClearType::UntilNewLine))?;
            } else {
                // A row that was not there: the terminal scrolls if it must.
                if at > 0 {
                    self.go_to_row(at - 1)?;
                    self.out.write_all(b"\r\n")?;
                    self.row = at;
                }
                self.write_line(line)?;
            }
        }
        if live.len() < before.len() {
            let last = live.len();
            self.go_to_row(last)?;
            self.out.queue(Clear(ClearType::FromCursorDown))?;
        }
        self.live = live;
        match cursor {
            Some((x, y)) => {
                self.go_to_row(usize::from(y))?;
                if x > 0 {
                    self.out.queue(MoveRight(x))?;
                }
                self.out.queue(Show)?;
            }
            None => self.go_to_row(self.live.len().saturating_sub(1))?,
        }
        self.out.queue(EndSynchronizedUpdate)?;
        self.out.flush()
    }

    /// Nothing live is left on the screen, and the cursor is where it began.
    pub fn clear(&mut self) -> io::Result<()> {
        self.go_to_row(0)?;
        self.out.queue(Clear(ClearType::FromCursorDown))?.queue(Show)?;
        self.live.clear();
        self.out.flush()
    }

    fn write_line(&mut self, line: &Line<'_>) -> io::Result<()> {
        let mut style = Style::default();
        let mut room = self.columns;
        for span in &line.spans {
            let next = line.style.patch(span.style);
            if next != style {
                self.set(next)?;
                style = next;
            }
            // Never past the edge: a row that the terminal breaks is two, and all below is wrong.
            let wide = styled::width(&span.content);
            if wide <= room {
                self.out.queue(Print(&span.content))?;
                room -= wide;
            } else {
                let part = styled::cut(&Line::from(span.content.to_string()), room);
                for s in &part.spans {
                    self.out.queue(Print(&s.content))?;
                }
                break;
            }
        }
        if style != Style::default() {
            self.set(Style::default())?;
        }
        Ok(())
    }

    fn set(&mut self, style: Style) -> io::Result<()> {
        self.out.queue(SetAttributes(Attributes::from(Attribute::Reset)))?.queue(ResetColor)?;
        let colors = Colors { foreground: style.fg.and_then(tint), background: style.bg.and_then(tint) };
        if colors.foreground.is_some() || colors.background.is_some() {
            self.out.queue(SetColors(colors))?;
        }
        let mut attributes = Attributes::default();
        for (modifier, attribute) in [
            (Modifier::BOLD, Attribute::Bold),
            (Modifier::DIM, Attribute::Dim),
            (Modifier::ITALIC, Attribute::Italic),
            (Modifier::UNDERLINED, Attribute::Underlined),
            (Modifier::REVERSED, Attribute::Reverse),
            (Modifier::CROSSED_OUT, Attribute::CrossedOut),
        ] {
            if style.add_modifier.contains(modifier) {
                attributes.set(attribute);
            }
        }
        if attributes != Attributes::default() {
            self.out.queue(SetAttributes(attributes))?;
        }
        Ok(())
    }
}

fn tint(color: Color) -> Option<Tint> {
    Some(match color {
        Color::Reset => return None,
        Color::Black => Tint::Black,
        Color::Red => Tint::DarkRed,
        Color::Green => Tint::DarkGreen,
        Color::Yellow => Tint::DarkYellow,
        Color::Blue => Tint::DarkBlue,
        Color::Magenta => Tint::DarkMagenta,
        Color::Cyan => Tint::DarkCyan,
        Color::Gray => Tint::Grey,
        Color::DarkGray => Tint::DarkGrey,
        Color::LightRed => Tint::Red,
        Color::LightGreen => Tint::Green,
        Color::LightYellow => Tint::Yellow,
        Color::LightBlue => Tint::Blue,
        Color::LightMagenta => Tint::Magenta,
        Color::LightCyan => Tint::Cyan,
        Color::White => Tint::White,
        Color::Rgb(r, g, b) => Tint::Rgb { r, g, b },
        Color::Indexed(i) => Tint::AnsiValue(i),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(texts: &[&str]) -> Vec<Line<'static>> {
        texts.iter().map(|t| Line::from((*t).to_owned())).collect()
    }

    struct Grid {
        screen: Screen<Vec<u8>>,
        terminal: vt100::Parser,
    }

    impl Grid {
        fn new(rows: u16, columns: u16) -> Self {
            let cells = |n| std::num::NonZero::new(n).unwrap();
            let terminal = vt100::Parser::new(cells(rows), cells(columns), 100);
            Grid { screen: Screen::new(Vec::new(), columns), terminal }
        }
        fn draw(&mut self, finished: &[&str], live: &[&str]) -> String {
            self.screen.draw(&lines(finished), lines(live), Some((0, 0))).unwrap();
            self.terminal.process(&std::mem::take(&mut self.screen.out));
            self.terminal.screen().contents()
        }
    }

    #[test]
    fn what_is_finished_stays_above_what_is_live() {
        let mut grid = Grid::new(6, 20);
        assert_eq!(grid.draw(&["hello"], &["> ", "status"]), "hello\n> \nstatus");
        assert_eq!(grid.draw(&[], &["> a", "status"]), "hello\n> a\nstatus");
        assert_eq!(grid.draw(&["one", "two"], &["> ", "status"]), "hello\none\ntwo\n> \nstatus");
    }

    #[test]
    fn live_rows_come_and_go_without_a_trace() {
        let mut grid = Grid::new(6, 20);
        grid.draw(&["top"], &["> "]);
        assert_eq!(grid.draw(&[], &["a", "b", "c", "> "]), "top\na\nb\nc\n> ");
        assert_eq!(grid.draw(&[], &["> x"]), "top\n> x");
    }

    #[test]
    fn at_the_bottom_the_terminal_scrolls_and_nothing_is_lost() {
        let mut grid = Grid::new(4, 20);
        for n in 0..10 {
            grid.draw(&[&format!("line {n}")], &["> ", "status"]);
        }
        assert_eq!(grid.terminal.screen().contents(), "line 8\nline 9\n> \nstatus");
        grid.terminal.screen_mut().set_scrollback(100);
        assert!(grid.terminal.screen().contents().starts_with("line 0\nline 1"));
    }

    #[test]
    fn a_row_wider_than_the_terminal_is_cut_not_broken() {
        let mut grid = Grid::new(4, 5);
        assert_eq!(grid.draw(&["abcdefgh"], &["日本語です", "ok"]), "abcd…\n日本…\nok");
    }
}

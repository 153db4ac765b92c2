//! Styled lines: cut to a width, broken at words, made from what extensions send.

use crate::{sanitize, theme::Theme};
use atomic_agent::surface;
use ratatui::{
    buffer::Buffer,
    style::{Modifier, Style},
    text::{Line, Span},
};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// What a tab becomes: its width depends on the terminal otherwise.
const TAB: &str = "    ";

/// Columns of a text.
pub fn width(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

pub fn line_width(line: &Line<'_>) -> usize {
    line.spans.iter().map(|s| width(&s.content)).sum()
}

/// One span, tabs replaced.
pub fn span(text: impl AsRef<str>, style: Style) -> Span<'static> {
    Span::styled(text.as_ref().replace('\t', TAB), style)
}

/// One line of one style.
pub fn line(text: impl AsRef<str>, style: Style) -> Line<'static> {
    Line::from(span(text, style))
}

/// A grapheme and its style.
struct Glyph<'a> {
    text: &'a str,
    width: usize,
    style: Style,
}

/// Breaks a line at words, at graphemes where a word is wider than all of it. Rows after the
/// first begin with `indent`.
pub fn wrap(line: &Line<'_>, columns: usize, indent: &Line<'_>) -> Vec<Line<'static>> {
    let columns = columns.max(1);
    let margin = line_width(indent);
    let margin = if margin * 2 > columns { 0 } else { margin };
    let glyphs: Vec<Glyph<'_>> = line
        .spans
        .iter()
        .flat_map(|s| s.content.graphemes(true).map(|g| (g, s.style)))
        .map(|(text, style)| Glyph { text, width: width(text), style })
        .collect();
    let mut rows = Vec::new();
    let mut at = 0;
    loop {
        let room = if rows.is_empty() { columns } else { columns - margin };
        let mut used = 0;
        let mut end = at;
        let mut word = None;
        while end < glyphs.len() && used + glyphs[end].width <= room {
            used += glyphs[end].width;
            end += 1;
            if glyphs[end - 1].text == " " {
                word = Some(end);
            }
        }
        let whole = end == glyphs.len();
        if !whole {
            // What does not fit even alone is taken all the same, or this never ends.
            end = match word {
                _ if glyphs[end].text == " " => end,
                Some(word) => word,
                None => end.max(at + 1),
            };
        }
        let mut row = if rows.is_empty() || margin == 0 { Vec::new() } else { owned(indent) };
        push_all(&mut row, &glyphs[at..end]);
        rows.push(Line::from(row));
        at = end;
        if whole {
            return rows;
        }
        while at < glyphs.len() && glyphs[at].text == " " {
            at += 1;
        }
        if at == glyphs.len() {
            return rows;
        }
    }
}

fn owned(line: &Line<'_>) -> Vec<Span<'static>> {
    line.spans.iter().map(|s| Span::styled(s.content.to_string(), s.style)).collect()
}

fn push_all(row: &mut Vec<Span<'static>>, glyphs: &[Glyph<'_>]) {
    for g in glyphs {
        match row.last_mut() {
            Some(last) if last.style == g.style => last.content.to_mut().push_str(g.text),
            _ => row.push(Span::styled(g.text.to_owned(), g.style)),
        }
    }
}

/// The beginning of a line; what was cut is a `…`.
pub fn cut(line: &Line<'_>, columns: usize) -> Line<'static> {
    if line_width(line) <= columns {
        return Line::from(owned(line));
    }
    let room = columns.saturating_sub(1);
    let (mut row, mut used) = (Vec::new(), 0);
    'spans: for s in &line.spans {
        for g in s.content.graphemes(true) {
            if used + width(g) > room {
                break 'spans;
            }
            used += width(g);
            push_all(&mut row, &[Glyph { text: g, width: 0, style: s.style }]);
        }
    }
    if columns > 0 {
        row.push(Span::raw("…"));
    }
    Line::from(row)
}

/// Left and right on one row; the right one goes first when there is no room.
pub fn justify(left: Line<'static>, right: Line<'static>, columns: usize) -> Line<'static> {
    let (l, r) = (line_width(&left), line_width(&right));
    if l + r + 1 > columns {
        return cut(&left, columns);
    }
    let mut spans = left.spans;
    spans.push(Span::raw(" ".repeat(columns - l - r)));
    spans.extend(right.spans);
    Line::from(spans)
}

/// A line of an extension, on one row.
pub fn of_extension(line: &surface::Line, theme: &Theme) -> Line<'static> {
    Line::from(
        line.iter()
            .map(|s| {
                let mut style = Style::default();
                if let Some(fg) = s.fg.as_deref().and_then(|c| theme.color(c)) {
                    style = style.fg(fg);
                }
                if let Some(bg) = s.bg.as_deref().and_then(|c| theme.color(c)) {
                    style = style.bg(bg);
                }
                for (on, modifier) in [
                    (s.bold, Modifier::BOLD),
                    (s.dim, Modifier::DIM),
                    (s.italic, Modifier::ITALIC),
                    (s.underline, Modifier::UNDERLINED),
                    (s.strikethrough, Modifier::CROSSED_OUT),
                ] {
                    if on {
                        style = style.add_modifier(modifier);
                    }
                }
                span(sanitize::text(&s.text).replace('\n', " "), style)
            })
            .collect::<Vec<_>>(),
    )
}

/// The rows of a drawn widget.
pub fn rows_of(buffer: &Buffer) -> Vec<Line<'static>> {
    let area = buffer.area;
    (area.top()..area.bottom())
        .map(|y| {
            let mut row: Vec<Span<'static>> = Vec::new();
            let mut skip = 0;
            for x in area.left()..area.right() {
                if skip > 0 {
                    skip -= 1;
                    continue;
                }
                let cell = &buffer[(x, y)];
                skip = width(cell.symbol()).saturating_sub(1);
                push_all(&mut row, &[Glyph { text: cell.symbol(), width: 0, style: cell.style() }]);
            }
            Line::from(row)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(line: &Line<'_>) -> String {
        line.spans.iter().map(|s| s.content.as_ref()).collect()
    }

    fn wrapped(s: &str, columns: usize) -> Vec<String> {
        wrap(&Line::from(s.to_owned()), columns, &Line::default()).iter().map(text).collect()
    }

    #[test]
    fn words_stay_whole_and_long_ones_are_cut() {
        assert_eq!(wrapped("the quick brown fox", 10), ["the quick ", "brown fox"]);
        assert_eq!(wrapped("abcdefghij kl", 4), ["abcd", "efgh", "ij ", "kl"]);
        assert_eq!(wrapped("", 4), [""]);
    }

    #[test]
    fn wide_characters_never_pass_the_edge() {
        assert_eq!(wrapped("日本語です", 5), ["日本", "語で", "す"]);
        assert_eq!(wrapped("👨‍👩‍👧👍", 2).len(), 2);
        assert_eq!(wrapped("日", 1), ["日"]);
    }

    #[test]
    fn rows_after_the_first_are_indented() {
        let rows = wrap(&Line::from("- one two three"), 9, &Line::from("  "));
        assert_eq!(rows.iter().map(text).collect::<Vec<_>>(), ["- one two", "  three"]);
    }

    #[test]
    fn a_cut_line_says_so() {
        assert_eq!(text(&cut(&Line::from("abcdef"), 4)), "abc…");
        assert_eq!(text(&cut(&Line::from("日本語"), 4)), "日…");
        assert_eq!(text(&cut(&Line::from("abc"), 3)), "abc");
    }

    proptest! {
        #[test]
        fn no_row_is_wider_than_the_screen_and_no_word_is_lost(s in "\\PC{0,80}", columns in 2usize..30) {
            let rows = wrapped(&s, columns);
            for row in &rows {
                prop_assert!(width(row) <= columns || row.graphemes(true).count() == 1, "{row:?}");
            }
            let squeeze = |s: &str| s.chars().filter(|c| *c != ' ').collect::<String>();
            prop_assert_eq!(squeeze(&rows.concat()), squeeze(&s));
        }
    }
}

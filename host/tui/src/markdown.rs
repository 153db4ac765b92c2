//! Markdown as styled rows of a width.

use crate::{
    code, styled,
    theme::{Role, Theme},
};
use pulldown_cmark::{Alignment, CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use ratatui::{
    style::{Modifier, Style},
    text::{Line, Span},
};

/// Rows of a text, none wider than `columns`. Blocks are apart by one empty row.
pub fn rows(text: &str, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let options = Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS;
    let mut page = Page {
        theme,
        columns: columns.max(4),
        rows: Vec::new(),
        spans: Vec::new(),
        styles: vec![theme.style(Role::Text)],
        margins: Vec::new(),
        lists: Vec::new(),
        code: None,
        link: None,
        table: None,
        gap: false,
    };
    for event in Parser::new_ext(text, options) {
        page.take(event);
    }
    page.end_block();
    page.rows
}

/// What stands before each row of a block.
struct Margin {
    /// Of its first row only.
    first: Option<Span<'static>>,
    rest: Span<'static>,
}

struct Page<'a> {
    theme: &'a Theme,
    columns: usize,
    rows: Vec<Line<'static>>,
    /// Of the paragraph that is being read.
    spans: Vec<Span<'static>>,
    styles: Vec<Style>,
    margins: Vec<Margin>,
    /// The number of the next item, or a dot.
    lists: Vec<Option<u64>>,
    code: Option<(String, String)>,
    link: Option<(String, String)>,
    table: Option<Table>,
    /// An empty row before the next block.
    gap: bool,
}

#[derive(Default)]
struct Table {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<Line<'static>>>,
}

impl Page<'_> {
    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    fn push_style(&mut self, add: Style) {
        self.styles.push(self.style().patch(add));
    }

    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.text(&text),
            Event::Code(text) => {
                self.spans.push(styled::span(&*text, self.style().patch(self.theme.style(Role::Code))));
            }
            Event::Html(text) | Event::InlineHtml(text) => self.text(&text),
            Event::SoftBreak => self.spans.push(Span::styled(" ", self.style())),
            Event::HardBreak => self.flush(),
            Event::Rule => {
                self.begin();
                let line = styled::line("─".repeat(self.room().min(40)), self.theme.style(Role::Border));
                self.put(line);
                self.gap = true;
            }
            Event::TaskListMarker(done) => {
                self.spans.push(Span::styled(if done { "[x] " } else { "[ ] " }, self.style()));
            }
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        if let Some((_, code)) = &mut self.code {
            code.push_str(text);
            return;
        }
        if let Some((_, shown)) = &mut self.link {
            shown.push_str(text);
        }
        for (n, part) in text.split('\n').enumerate() {
            if n > 0 {
                self.flush();
            }
            if !part.is_empty() {
                self.spans.push(styled::span(part, self.style()));
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.begin(),
            Tag::Heading { level, .. } => {
                self.begin();
                self.push_style(self.theme.style(Role::Heading));
                let marks = match level {
                    HeadingLevel::H1 | HeadingLevel::H2 => "",
                    HeadingLevel::H3 => "### ",
                    _ => "#### ",
                };
                if level == HeadingLevel::H1 {
                    self.push_style(Style::default().add_modifier(Modifier::UNDERLINED));
                }
                self.spans.push(Span::styled(marks, self.style()));
            }
            Tag::BlockQuote(_) => {
                self.begin();
                let bar = styled::span("│ ", self.theme.style(Role::Border));
                self.margins.push(Margin { first: None, rest: bar });
                self.push_style(self.theme.style(Role::Quote));
            }
            Tag::CodeBlock(kind) => {
                self.begin();
                let language = match kind {
                    CodeBlockKind::Fenced(info) => {
                        info.split([' ', ',']).next().unwrap_or_default().to_owned()
                    }
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((language, String::new()));
            }
            Tag::List(start) => {
                if self.lists.is_empty() {
                    self.begin();
                } else {
                    self.flush();
                }
                self.lists.push(start);
            }
            Tag::Item => {
                self.flush();
                self.gap &= self.lists.len() <= 1 && self.rows.is_empty();
                let mark = match self.lists.last_mut() {
                    Some(Some(n)) => {
                        *n += 1;
                        format!("{}. ", *n - 1)
                    }
                    _ => "• ".to_owned(),
                };
                let rest = Span::raw(" ".repeat(styled::width(&mark)));
                self.margins
                    .push(Margin { first: Some(styled::span(mark, self.theme.style(Role::Accent))), rest });
            }
            Tag::Emphasis => self.push_style(Style::default().add_modifier(Modifier::ITALIC)),
            Tag::Strong => self.push_style(Style::default().add_modifier(Modifier::BOLD)),
            Tag::Strikethrough => self.push_style(Style::default().add_modifier(Modifier::CROSSED_OUT)),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.push_style(self.theme.style(Role::Link));
                self.link = Some((dest_url.to_string(), String::new()));
            }
            Tag::Table(alignments) => {
                self.begin();
                self.table = Some(Table { alignments, rows: Vec::new() });
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.end_block(),
            TagEnd::Heading(level) => {
                self.styles.pop();
                if level == HeadingLevel::H1 {
                    self.styles.pop();
                }
                self.end_block();
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.margins.pop();
                self.styles.pop();
                self.gap = true;
            }
            TagEnd::CodeBlock => {
                if let Some((language, code)) = self.code.take() {
                    for line in code::lines(&code, &language, self.theme) {
                        let mut spans = vec![Span::raw("  ")];
                        spans.extend(line.spans);
                        let room = self.room();
                        for row in styled::wrap(&Line::from(spans), room, &Line::from("  ")) {
                            self.put(row);
                        }
                    }
                }
                self.gap = true;
            }
            TagEnd::List(_) => {
                self.flush();
                self.lists.pop();
                self.gap = self.lists.is_empty();
            }
            TagEnd::Item => {
                self.flush();
                // An item of nothing is shown all the same.
                if self.margins.last().is_some_and(|m| m.first.is_some()) {
                    self.put(Line::default());
                }
                self.margins.pop();
                self.gap = false;
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => drop(self.styles.pop()),
            TagEnd::Link | TagEnd::Image => {
                self.styles.pop();
                if let Some((target, shown)) = self.link.take()
                    && target != shown
                    && !target.is_empty()
                {
                    self.spans.push(styled::span(format!(" ({target})"), self.theme.style(Role::Dim)));
                }
            }
            TagEnd::TableCell => {
                let cell = Line::from(std::mem::take(&mut self.spans));
                if let Some(row) = self.table.as_mut().and_then(|t| t.rows.last_mut()) {
                    row.push(cell);
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    self.table(table);
                }
                self.gap = true;
            }
            _ => {}
        }
    }

    /// Another block: apart from the one before.
    fn begin(&mut self) {
        self.flush();
        if std::mem::take(&mut self.gap) && !self.rows.is_empty() {
            self.put(Line::default());
        }
    }

    fn end_block(&mut self) {
        self.flush();
        self.gap = true;
    }

    fn room(&self) -> usize {
        let margin: usize = self.margins.iter().map(|m| styled::width(&m.rest.content)).sum();
        self.columns.saturating_sub(margin).max(1)
    }

    /// What was read becomes rows.
    fn flush(&mut self) {
        if self.spans.is_empty() || self.table.is_some() {
            return;
        }
        let line = Line::from(std::mem::take(&mut self.spans));
        for row in styled::wrap(&line, self.room(), &Line::default()) {
            self.put(row);
        }
    }

    fn put(&mut self, row: Line<'static>) {
        let mut spans: Vec<Span<'static>> = Vec::new();
        for margin in &mut self.margins {
            spans.push(margin.first.take().unwrap_or_else(|| margin.rest.clone()));
        }
        spans.extend(row.spans);
        let line = Line::from(spans);
        self.rows.push(if styled::line_width(&line) > self.columns {
            styled::cut(&line, self.columns)
        } else {
            line
        });
    }

    /// Columns as wide as their widest cell; what does not fit is cut.
    fn table(&mut self, table: Table) {
        let count = table.rows.iter().map(Vec::len).max().unwrap_or(0);
        if count == 0 {
            return;
        }
        let widest = |c: usize| table.rows.iter().filter_map(|r| r.get(c)).map(styled::line_width).max();
        let mut widths: Vec<usize> = (0..count).map(|c| widest(c).unwrap_or(0).max(1)).collect();
        let room = self.room().saturating_sub(3 * (count - 1)).max(count);
        while widths.iter().sum::<usize>() > room {
            let Some(most) = widths.iter_mut().max() else { break };
            if *most <= 1 {
                break;
            }
            *most -= 1;
        }
        let border = self.theme.style(Role::Border);
        for (n, row) in table.rows.iter().enumerate() {
            let mut spans = Vec::new();
            for (c, width) in widths.iter().enumerate() {
                if c > 0 {
                    spans.push(Span::styled(" │ ", border));
                }
                let cell = row.get(c).map(|l| styled::cut(l, *width)).unwrap_or_default();
                let left_over = width.saturating_sub(styled::line_width(&cell));
                let before = match table.alignments.get(c) {
                    Some(Alignment::Right) => left_over,
                    Some(Alignment::Center) => left_over / 2,
                    _ => 0,
                };
                spans.push(Span::raw(" ".repeat(before)));
                spans.extend(cell.spans);
                spans.push(Span::raw(" ".repeat(left_over - before)));
            }
            self.put(Line::from(spans));
            if n == 0 {
                let dashes: Vec<String> = widths.iter().map(|w| "─".repeat(*w)).collect();
                self.put(styled::line(dashes.join("─┼─"), border));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::texts;
    use proptest::prelude::*;

    fn shown(markdown: &str, columns: usize) -> Vec<String> {
        texts(&rows(markdown, columns, &Theme::dark()))
    }

    #[test]
    fn blocks_are_apart_by_one_row() {
        assert_eq!(
            shown("# Title\n\nSome *text*\nthat goes on.\n\n- one\n- two\n\nend", 40),
            ["Title", "", "Some text that goes on.", "", "• one", "• two", "", "end"]
        );
    }

    #[test]
    fn lists_in_lists_are_indented_and_numbers_go_on() {
        assert_eq!(
            shown("3. three words here\n   - inner\n4. four", 13),
            ["3. three ", "   words here", "   • inner", "4. four"]
        );
    }

    #[test]
    fn code_keeps_its_shape() {
        assert_eq!(shown("```rust\nfn a() {\n    b()\n}\n```", 40), ["  fn a() {", "      b()", "  }"]);
    }

    #[test]
    fn a_table_has_columns() {
        assert_eq!(
            shown("| a | long name |\n|--:|---|\n| 1 | x |\n| 22 | y |", 40),
            [" a │ long name", "───┼──────────", " 1 │ x        ", "22 │ y        "]
        );
    }

    #[test]
    fn a_link_shows_where_it_leads() {
        assert_eq!(shown("[docs](https://a.b) <https://c.d>", 60), ["docs (https://a.b) https://c.d"]);
    }

    #[test]
    fn a_quote_has_a_bar() {
        assert_eq!(shown("> one\n> two words", 8), ["│ one ", "│ two ", "│ words"]);
    }

    proptest! {
        #[test]
        fn no_row_is_wider_than_the_screen(s in "[\\PC\n#>*`|\\[\\] -]{0,200}", columns in 4usize..60) {
            for row in shown(&s, columns) {
                prop_assert!(styled::width(&row) <= columns, "{row:?}");
            }
        }
    }
}

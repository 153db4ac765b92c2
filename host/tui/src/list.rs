//! A list to choose from, narrowed by what is typed.

use crate::{
    sanitize, styled,
    theme::{Role, Theme},
};
use nucleo_matcher::{
    Config, Matcher, Utf32Str,
    pattern::{CaseMatching, Normalization, Pattern},
};
use ratatui::text::{Line, Span};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Item<T> {
    pub label: String,
    pub detail: String,
    pub value: T,
}

impl<T> Item<T> {
    pub fn new(label: impl AsRef<str>, detail: impl AsRef<str>, value: T) -> Self {
        Item {
            label: sanitize::line(label.as_ref(), 300),
            detail: sanitize::line(detail.as_ref(), 300),
            value,
        }
    }
}

pub struct List<T> {
    items: Vec<Item<T>>,
    /// Indices of `items`, best first.
    shown: Vec<usize>,
    filter: String,
    selected: usize,
}

impl<T: Clone> List<T> {
    pub fn new(items: Vec<Item<T>>) -> Self {
        let shown = (0..items.len()).collect();
        List { items, shown, filter: String::new(), selected: 0 }
    }

    pub fn is_empty(&self) -> bool {
        self.shown.is_empty()
    }

    pub fn filter(&self) -> &str {
        &self.filter
    }

    pub fn select(&mut self, at: usize) {
        self.selected = at.min(self.shown.len().saturating_sub(1));
    }

    pub fn set_filter(&mut self, filter: &str) {
        self.filter = filter.to_owned();
        self.selected = 0;
        if filter.trim().is_empty() {
            self.shown = (0..self.items.len()).collect();
            return;
        }
        let mut matcher = Matcher::new(Config::DEFAULT);
        let pattern = Pattern::parse(filter, CaseMatching::Smart, Normalization::Smart);
        let mut buffer = Vec::new();
        let mut scored: Vec<(u32, usize)> = self
            .items
            .iter()
            .enumerate()
            .filter_map(|(n, item)| {
                // What it is called counts more than what is said of it.
                let label = pattern.score(Utf32Str::new(&item.label, &mut buffer), &mut matcher);
                let both = || {
                    let all = format!("{} {}", item.label, item.detail);
                    pattern.score(Utf32Str::new(&all, &mut Vec::new()), &mut matcher.clone())
                };
                label.map(|s| s + 1000).or_else(both).map(|s| (s, n))
            })
            .collect();
        scored.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        self.shown = scored.into_iter().map(|(_, n)| n).collect();
    }

    pub fn push(&mut self, c: char) {
        let filter = format!("{}{c}", self.filter);
        self.set_filter(&filter);
    }

    pub fn pop(&mut self) {
        let mut filter = self.filter.clone();
        filter.pop();
        self.set_filter(&filter);
    }

    pub fn step(&mut self, by: isize) {
        let count = self.shown.len();
        if count > 0 {
            let at = self.selected.min(count - 1);
            // One step past an end comes to the other; a page stops there.
            self.selected = match by {
                1 => (at + 1) % count,
                -1 => (at + count - 1) % count,
                by => at.saturating_add_signed(by).min(count - 1),
            };
        }
    }

    pub fn chosen(&self) -> Option<&Item<T>> {
        self.shown.get(self.selected).map(|n| &self.items[*n])
    }

    /// Whether one is called exactly so.
    pub fn has(&self, label: &str) -> bool {
        self.items.iter().any(|i| i.label == label)
    }

    /// So many rows at most, the chosen one among them.
    pub fn rows(&self, columns: usize, height: usize, theme: &Theme) -> Vec<Line<'static>> {
        let height = height.max(1);
        let count = self.shown.len();
        let first = (self.selected + 1).saturating_sub(height).max(self.selected.saturating_sub(height / 2));
        let first = first.min(count.saturating_sub(height));
        let visible = &self.shown[first.min(count)..(first + height).min(count)];
        let widest = visible.iter().map(|n| styled::width(&self.items[*n].label)).max().unwrap_or(0);
        let label_room = widest.min(columns.saturating_sub(4)).min(columns * 2 / 3);
        let mut rows: Vec<Line<'static>> = visible
            .iter()
            .enumerate()
            .map(|(n, index)| {
                let item = &self.items[*index];
                let (mark, role) = match first + n == self.selected {
                    true => ("❯ ", Role::Selected),
                    false => ("  ", Role::Text),
                };
                let room = if item.detail.is_empty() { columns.saturating_sub(2) } else { label_room };
                let label = styled::cut(&styled::line(&item.label, theme.style(role)), room);
                let pad = " ".repeat(label_room.saturating_sub(styled::line_width(&label)) + 2);
                let mut spans = vec![Span::styled(mark, theme.style(role))];
                spans.extend(label.spans);
                if !item.detail.is_empty() {
                    spans.push(Span::styled(format!("{pad}{}", item.detail), theme.style(Role::Dim)));
                }
                styled::cut(&Line::from(spans), columns)
            })
            .collect();
        if count > height {
            let text = format!("  {} of {count}", self.selected + 1);
            rows.push(styled::line(text, theme.style(Role::Dim)));
        }
        if count == 0 {
            rows.push(styled::line("  nothing matches", theme.style(Role::Dim)));
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::texts;

    fn list() -> List<u8> {
        let items = [("reload", "extensions"), ("resume", "a session"), ("model", "reads again")];
        List::new(items.iter().zip(0..).map(|((l, d), n)| Item::new(l, d, n)).collect())
    }

    #[test]
    fn what_is_typed_narrows_it_names_before_descriptions() {
        let mut list = list();
        list.set_filter("re");
        let rows = texts(&list.rows(40, 5, &Theme::dark()));
        assert!(rows[0].starts_with("❯ reload") || rows[0].starts_with("❯ resume"), "{rows:?}");
        assert!(rows[2].contains("model"), "{rows:?}");
        list.set_filter("zzz");
        assert!(list.chosen().is_none());
        assert_eq!(texts(&list.rows(40, 5, &Theme::dark())), ["  nothing matches"]);
    }

    #[test]
    fn the_chosen_one_is_always_seen() {
        let mut list = List::new((0..50).map(|n| Item::new(format!("item {n}"), "", n)).collect());
        for n in 0..60 {
            let rows = texts(&list.rows(30, 5, &Theme::dark()));
            assert_eq!(rows.len(), 6);
            assert!(rows.iter().any(|r| r == &format!("❯ item {}", n % 50)), "{n}: {rows:?}");
            list.step(1);
        }
        list.step(-100);
        assert_eq!(list.chosen().map(|i| i.value), Some(0));
    }
}

//! For the tests of this crate.

use ratatui::text::Line;

/// What a person reads of rows.
pub fn texts(rows: &[Line<'_>]) -> Vec<String> {
    rows.iter().map(|l| l.spans.iter().map(|s| s.content.as_ref()).collect()).collect()
}

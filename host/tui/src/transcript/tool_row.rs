//! A tool call: what is shown while it runs, and what of it stays.

use crate::{
    sanitize, styled,
    theme::{Role, Theme},
};
use atomic_agent::{message::Content, tool::ToolOutput};
use ratatui::text::{Line, Span};
use serde_json::Value;
use std::time::Instant;

/// Rows of what a running tool says.
const LIVE: usize = 5;
/// Rows of a result that is not expanded: its beginning, and a failure's end.
const SHORT: usize = 8;
/// Rows of a diff.
const DIFF: usize = 40;

pub struct Tool {
    pub id: String,
    name: String,
    argument: String,
    since: Instant,
    output: Vec<String>,
}

/// All text of a result.
pub fn text_of(content: &[Content]) -> String {
    let text: Vec<&str> = content.iter().filter_map(Content::as_text).collect();
    sanitize::text(&text.join("\n"))
}

/// The argument that tells a call from others of its tool.
fn argument(args: &Value) -> String {
    let telling = ["command", "path", "pattern", "query", "name"];
    let text = match telling.iter().find_map(|key| args.get(key)?.as_str()) {
        Some(text) => text.to_owned(),
        None if args.as_object().is_none_or(serde_json::Map::is_empty) => String::new(),
        None => args.to_string(),
    };
    sanitize::line(&text, super::QUOTE)
}

impl Tool {
    pub fn new(id: &str, name: &str, args: &Value, since: Instant) -> Self {
        let (id, name) = (id.to_owned(), sanitize::line(name, 40));
        Tool { id, name, argument: argument(args), since, output: Vec::new() }
    }

    pub fn title(&self) -> String {
        format!("{} {}", self.name, self.argument).trim_end().to_owned()
    }

    pub fn update(&mut self, content: &[Content]) {
        let text = text_of(content);
        let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|l| !l.is_empty()).collect();
        self.output = lines[lines.len().saturating_sub(LIVE)..].iter().map(|l| (*l).to_owned()).collect();
    }

    fn head(&self, mark: &str, role: Role, theme: &Theme) -> Line<'static> {
        Line::from(vec![
            Span::styled(format!("{mark} "), theme.style(role)),
            Span::styled(self.name.clone(), theme.style(Role::Tool)),
            Span::styled(format!(" {}", self.argument), theme.style(Role::Text)),
        ])
    }

    pub fn live_rows(&self, columns: usize, theme: &Theme, frame: &str) -> Vec<Line<'static>> {
        let time = self.since.elapsed().as_secs();
        let time = if time > 0 { format!("{time} s") } else { String::new() };
        let right = styled::line(time, theme.style(Role::Dim));
        let head = self.head(frame, Role::Accent, theme);
        let room = columns.saturating_sub(styled::line_width(&right) + 1);
        let mut rows = vec![styled::justify(styled::cut(&head, room), right, columns)];
        for line in &self.output {
            rows.push(styled::cut(&styled::line(format!("  {line}"), theme.style(Role::Dim)), columns));
        }
        rows
    }

    /// `effective`: what ran, if it is not what the model asked for.
    pub fn ended_rows(
        &self,
        result: &ToolOutput,
        is_error: bool,
        duration_ms: Option<u64>,
        effective: Option<&Value>,
        (columns, expanded): (usize, bool),
        theme: &Theme,
    ) -> Vec<Line<'static>> {
        let (mark, role) = if is_error { ("✗", Role::Error) } else { ("●", Role::Success) };
        let time = duration_ms.map(duration).unwrap_or_default();
        let mut head = self.head(mark, role, theme);
        if !time.is_empty() {
            head.push_span(Span::styled(format!("  {time}"), theme.style(Role::Dim)));
        }
        let mut rows = styled::wrap(&head, columns, &Line::from("  "));
        if !expanded && rows.len() > 3 {
            rows.truncate(3);
            rows.push(styled::line("  …", theme.style(Role::Dim)));
        }
        if let Some(args) = effective {
            let text = format!("  an extension changed it to: {}", argument(args));
            rows.extend(styled::wrap(
                &styled::line(text, theme.style(Role::Warning)),
                columns,
                &Line::from("  "),
            ));
        }
        let diff = result.details.as_ref().and_then(|d| d.get("diff")?.as_str()).filter(|_| !is_error);
        let body: Vec<(String, Role)> = match diff {
            Some(diff) => diff_lines(diff),
            None => {
                let role = if is_error { Role::Error } else { Role::Dim };
                let text = text_of(&result.content);
                text.trim_end().lines().map(|l| (l.to_owned(), role)).collect()
            }
        };
        let by = result.details.as_ref().and_then(|d| d.get("blockedBy")?.as_str());
        if let Some(by) = by {
            let text = format!("  blocked by {}", sanitize::line(by, 40));
            rows.push(styled::cut(&styled::line(text, theme.style(Role::Warning)), columns));
        }
        let most = if diff.is_some() { DIFF } else { SHORT };
        let left_out = if expanded { 0 } else { body.len().saturating_sub(most) };
        // Why something failed is said at its end.
        let shown = if is_error { &body[left_out..] } else { &body[..body.len() - left_out] };
        let more = |rows: &mut Vec<Line<'static>>| {
            if left_out > 0 {
                let plural = if left_out == 1 { "" } else { "s" };
                let text = format!("  … {left_out} more line{plural} (Ctrl+O shows them)");
                rows.push(styled::cut(&styled::line(text, theme.style(Role::Dim)), columns));
            }
        };
        if is_error {
            more(&mut rows);
        }
        for (text, role) in shown {
            let line = styled::line(format!("  {text}"), theme.style(*role));
            match expanded {
                true => rows.extend(styled::wrap(&line, columns, &Line::from("  "))),
                false => rows.push(styled::cut(&line, columns)),
            }
        }
        if !is_error {
            more(&mut rows);
        }
        let images = result.content.iter().filter(|c| matches!(c, Content::Image(_))).count();
        if images > 0 {
            let plural = if images == 1 { "" } else { "s" };
            rows.push(styled::line(format!("  ({images} image{plural})"), theme.style(Role::Dim)));
        }
        rows
    }
}

fn duration(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms} ms"),
        1000..60_000 => format!("{:.1} s", ms as f64 / 1000.0),
        _ => format!("{} min {} s", ms / 60_000, ms / 1000 % 60),
    }
}

/// A unified diff without the names of its file, which the call has.
fn diff_lines(diff: &str) -> Vec<(String, Role)> {
    sanitize::text(diff)
        .lines()
        .filter(|l| !l.starts_with("--- ") && !l.starts_with("+++ "))
        .map(|l| {
            let role = match l.as_bytes().first() {
                Some(b'+') => Role::Added,
                Some(b'-') => Role::Removed,
                Some(b'@') => Role::Accent,
                _ => Role::Dim,
            };
            (l.to_owned(), role)
        })
        .collect()
}

//! What is live: what goes on, widgets, the editor or what stands in its place, the status line.

use super::{App, input::TWICE};
use crate::{screen::Screen, status::Seen, styled, theme::Role};
use atomic_agent::surface::Placement;
use ratatui::text::Line;
use std::io::{self, Write};

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// Rows of the editor.
const EDITOR: usize = 10;
/// Rows of a list.
const LIST: usize = 8;

impl App {
    pub(super) fn draw<W: Write>(&mut self, screen: &mut Screen<W>) -> io::Result<()> {
        let finished = self.transcript.take_finished();
        if !self.bytes.is_empty() {
            screen.raw(&std::mem::take(&mut self.bytes))?;
        }
        let (live, cursor) = self.live();
        screen.draw(&finished, live, cursor)
    }

    fn frame(&self) -> String {
        match &self.surfaces.frames {
            Some((frames, interval)) => {
                let at = self.frame as u64 * 100 / interval;
                crate::sanitize::line(&frames[usize::try_from(at).unwrap_or(0) % frames.len()], 12)
            }
            None => FRAMES[self.frame % FRAMES.len()].to_owned(),
        }
    }

    /// Rows, lower than the screen, and the cursor.
    pub(super) fn live(&mut self) -> (Vec<Line<'static>>, Option<(u16, u16)>) {
        let columns = self.transcript.columns;
        let theme = self.transcript.theme.clone();
        // One row stays for what is above, so that the first live row is never out of reach.
        let most = self.rows.saturating_sub(1).max(1);
        let frame = self.frame();

        let mut below = self.surfaces.widgets(Placement::BelowEditor, columns, &theme);
        below.extend(match self.surfaces.footer(columns, &theme) {
            Some(rows) => rows,
            None => {
                let seen = self.seen();
                self.status.rows(&seen, columns, &theme)
            }
        });
        below.truncate(most.saturating_sub(2));
        let room = most.saturating_sub(below.len()).max(1);
        let (middle, cursor) = self.middle(columns, room);

        let mut above = self.surfaces.header(columns, &theme);
        above.extend(self.transcript.live(&frame));
        above.extend(self.working(&frame, columns));
        above.extend(self.queued(columns));
        above.extend(self.surfaces.widgets(Placement::AboveEditor, columns, &theme));
        // Of what goes on, the end is what matters.
        let room = most.saturating_sub(below.len() + middle.len() + 1);
        let hidden = above.len().saturating_sub(room);
        above.drain(..hidden);

        let mut rows = above;
        if rows.len() + middle.len() + below.len() < most {
            rows.push(styled::line("─".repeat(columns), theme.style(Role::Border)));
        }
        let first = rows.len();
        rows.extend(middle);
        rows.extend(below);
        rows.truncate(most);
        let last = rows.len().saturating_sub(1);
        let cursor = cursor.map(|(x, y)| {
            let row = (first + usize::from(y)).min(last);
            let column = usize::from(x).min(columns.saturating_sub(1));
            (u16::try_from(column).unwrap_or(0), u16::try_from(row).unwrap_or(0))
        });
        (rows, cursor)
    }

    fn seen(&self) -> Seen {
        self.handle.view(|v| Seen {
            cwd: v.cwd.clone(),
            model: v.model.clone(),
            thinking: serde_json::to_value(v.thinking)
                .ok()
                .and_then(|l| l.as_str().map(str::to_owned))
                .unwrap_or_default(),
            session: v.session_name.clone(),
        })
    }

    /// The editor, or what stands in its place.
    fn middle(&mut self, columns: usize, room: usize) -> (Vec<Line<'static>>, Option<(u16, u16)>) {
        let theme = self.transcript.theme.clone();
        if let Some((provider, typed)) = &self.secret {
            let provider = crate::sanitize::line(provider, 60);
            let dots = "•".repeat(typed.chars().count().min(columns / 2));
            let rows = vec![
                styled::line(format!("key for {provider} (it is not shown):"), theme.style(Role::Accent)),
                styled::line(format!("  {dots}"), theme.style(Role::Text)),
                styled::line("  Enter stores it, Escape gives up", theme.style(Role::Dim)),
            ];
            let at = u16::try_from(2 + styled::width(&dots)).unwrap_or(u16::MAX);
            return (rows, Some((at, 1)));
        }
        if let Some(open) = self.dialogs.front_mut() {
            let (mut rows, cursor) = open.rows(columns, room, &theme);
            rows.truncate(room);
            return (rows, cursor);
        }
        if let Some(picker) = &self.picker {
            return picker.rows(columns, room, &theme);
        }
        let most = EDITOR.min(room.saturating_sub(1)).max(1);
        let (mut rows, cursor) = self.composer.rows(columns, most, &theme);
        if let Some(palette) = &self.palette {
            let room = room.saturating_sub(rows.len() + 1).clamp(1, LIST);
            rows.extend(palette.list.rows(columns, room, &theme));
        }
        (rows, Some(cursor))
    }

    fn working(&self, frame: &str, columns: usize) -> Option<Line<'static>> {
        if self.interrupted.is_some_and(|at| at.elapsed() < TWICE) {
            let hint = styled::line("Ctrl+C again, or Ctrl+D, quits", self.transcript.theme.style(Role::Dim));
            return Some(styled::cut(&hint, columns));
        }
        if self.surfaces.hide_working && self.ready {
            return None;
        }
        let theme = &self.transcript.theme;
        let stop = self.settings.keys.key_of(crate::keys::Action::Abort).unwrap_or_default();
        let text = match () {
            () if !self.ready && self.dialogs.is_empty() => "starting".to_owned(),
            () if self.aborting.is_some() => "aborting".to_owned(),
            () if self.compacting => format!("shortening the conversation · {stop} stops it"),
            () if self.bash => format!("running · {stop} stops it"),
            () if self.handle.view(|v| v.idle) => return None,
            () => {
                let time = self.running_since.map(|s| s.elapsed().as_secs()).unwrap_or_default();
                let what = self.surfaces.working.as_deref().unwrap_or("working");
                format!("{} · {time} s · {stop} stops it", crate::sanitize::line(what, 80))
            }
        };
        Some(styled::cut(&styled::line(format!("{frame} {text}"), theme.style(Role::Accent)), columns))
    }

    fn queued(&self, columns: usize) -> Vec<Line<'static>> {
        let style = self.transcript.theme.style(Role::Dim);
        let row = |kind: &str, text: &String| {
            let text = crate::sanitize::line(text, columns.max(4));
            styled::cut(&styled::line(format!("{kind}: {text}"), style), columns)
        };
        let steering = self.queue.0.iter().map(|t| row("next", t));
        let mut rows: Vec<_> = steering.chain(self.queue.1.iter().map(|t| row("after", t))).collect();
        if let (false, Some(key)) =
            (rows.is_empty(), self.settings.keys.key_of(crate::keys::Action::TakeBack))
        {
            rows.truncate(4);
            rows.push(styled::cut(&styled::line(format!("  {key} takes them back"), style), columns));
        }
        rows
    }
}

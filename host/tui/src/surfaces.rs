//! What extensions put around the transcript and the editor. The last lines they gave are
//! drawn; nobody is waited for.

use crate::{styled, theme::Theme};
use atomic_agent::surface::{Line as Foreign, Placement, Update};
use ratatui::text::Line;
use std::collections::BTreeMap;

/// Rows of one widget, and of a header or footer.
const MOST: usize = 12;

#[derive(Default)]
pub struct Surfaces {
    widgets: BTreeMap<(String, String), (Placement, Vec<Foreign>)>,
    header: Option<Vec<Foreign>>,
    footer: Option<Vec<Foreign>>,
    pub working: Option<String>,
    pub hide_working: bool,
    pub frames: Option<(Vec<String>, u64)>,
}

/// What an update asks of others.
pub enum Wish {
    Nothing,
    Title(String),
    EditorText(String),
    Paste(String),
    ToolsExpanded(bool),
    ThinkingLabel(Option<String>),
}

impl Surfaces {
    pub fn take(&mut self, update: &Update, extension: &str) -> Wish {
        match update {
            Update::SetWidget { key, lines, placement } => {
                let slot = (extension.to_owned(), key.clone());
                match lines {
                    Some(lines) => drop(self.widgets.insert(slot, (*placement, lines.clone()))),
                    None => drop(self.widgets.remove(&slot)),
                }
            }
            Update::SetFooter { lines } => self.footer.clone_from(lines),
            Update::SetHeader { lines } => self.header.clone_from(lines),
            Update::SetTitle { title } => return Wish::Title(title.clone()),
            Update::SetEditorText { text } => return Wish::EditorText(text.clone()),
            Update::PasteToEditor { text } => return Wish::Paste(text.clone()),
            Update::SetWorkingMessage { message } => self.working.clone_from(message),
            Update::SetWorkingVisible { visible } => self.hide_working = !visible,
            Update::SetWorkingIndicator { frames, interval_ms } => {
                self.frames =
                    frames.clone().filter(|f| !f.is_empty()).map(|f| (f, interval_ms.unwrap_or(100).max(50)));
            }
            Update::SetHiddenThinkingLabel { label } => return Wish::ThinkingLabel(label.clone()),
            Update::SetToolsExpanded { expanded } => return Wish::ToolsExpanded(*expanded),
            Update::RequestRender {} => {}
        }
        Wish::Nothing
    }

    pub fn widgets(&self, placement: Placement, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
        let of_place = self.widgets.values().filter(|(p, _)| *p == placement);
        of_place.flat_map(|(_, lines)| rows(lines, columns, theme)).collect()
    }

    pub fn header(&self, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
        self.header.as_deref().map(|l| rows(l, columns, theme)).unwrap_or_default()
    }

    /// In the place of the status line.
    pub fn footer(&self, columns: usize, theme: &Theme) -> Option<Vec<Line<'static>>> {
        self.footer.as_deref().map(|l| rows(l, columns, theme))
    }

    /// Nothing of an engine that is gone is left.
    pub fn clear(&mut self) {
        *self = Surfaces::default();
    }
}

fn rows(lines: &[Foreign], columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    lines.iter().take(MOST).map(|l| styled::cut(&styled::of_extension(l, theme), columns)).collect()
}

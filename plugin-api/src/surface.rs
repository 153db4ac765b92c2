//! What an extension puts around the transcript (events.md E.7). All of it is told, nothing is
//! waited for; without a user it does nothing. What stays is cleared when the generation ends.

use crate::{error::Result, protocol::render::Line, ui::Ui};
use serde::Serialize;

/// Where a widget is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Placement {
    /// Over the editor.
    #[default]
    AboveEditor,
    /// Under it.
    BelowEditor,
}

#[derive(Serialize)]
struct Widget<'a> {
    key: &'a str,
    lines: Option<Vec<Line>>,
    placement: Placement,
}

#[derive(Serialize)]
struct Lines {
    lines: Option<Vec<Line>>,
}

#[derive(Serialize)]
struct Text<'a> {
    text: &'a str,
}

#[derive(Serialize)]
struct Message<'a> {
    message: Option<&'a str>,
}

#[derive(Serialize)]
struct Label<'a> {
    label: Option<&'a str>,
}

#[derive(Serialize)]
struct Visible {
    visible: bool,
}

#[derive(Serialize)]
struct Expanded {
    expanded: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Indicator {
    frames: Option<Vec<String>>,
    interval_ms: Option<u64>,
}

fn collected<I: IntoIterator<Item = L>, L: Into<Line>>(lines: I) -> Option<Vec<Line>> {
    Some(lines.into_iter().map(Into::into).collect())
}

/// Each fails with `stale_context` alone.
#[allow(clippy::missing_errors_doc)]
impl Ui {
    /// Lines beside the editor. Keys are shared by all extensions; the last writer wins.
    pub fn set_widget<I: IntoIterator<Item = L>, L: Into<Line>>(&self, key: &str, lines: I) -> Result<()> {
        self.set_widget_at(key, lines, Placement::AboveEditor)
    }
    /// The same, where it is said.
    pub fn set_widget_at<I: IntoIterator<Item = L>, L: Into<Line>>(
        &self,
        key: &str,
        lines: I,
        placement: Placement,
    ) -> Result<()> {
        self.call.tell("ui.setWidget", &Widget { key, lines: collected(lines), placement })
    }
    /// Takes it away.
    pub fn clear_widget(&self, key: &str) -> Result<()> {
        self.call.tell("ui.setWidget", &Widget { key, lines: None, placement: Placement::default() })
    }
    /// Instead of the program's own lines at the bottom.
    pub fn set_footer<I: IntoIterator<Item = L>, L: Into<Line>>(&self, lines: I) -> Result<()> {
        self.call.tell("ui.setFooter", &Lines { lines: collected(lines) })
    }
    /// The program's own again.
    pub fn clear_footer(&self) -> Result<()> {
        self.call.tell("ui.setFooter", &Lines { lines: None })
    }
    /// Instead of the program's own lines at the top.
    pub fn set_header<I: IntoIterator<Item = L>, L: Into<Line>>(&self, lines: I) -> Result<()> {
        self.call.tell("ui.setHeader", &Lines { lines: collected(lines) })
    }
    /// The program's own again.
    pub fn clear_header(&self) -> Result<()> {
        self.call.tell("ui.setHeader", &Lines { lines: None })
    }
    /// Replaces what the user has typed.
    pub fn set_editor_text(&self, text: impl AsRef<str>) -> Result<()> {
        self.call.tell("ui.setEditorText", &Text { text: text.as_ref() })
    }
    /// As if the user had pasted it.
    pub fn paste_to_editor(&self, text: impl AsRef<str>) -> Result<()> {
        self.call.tell("ui.pasteToEditor", &Text { text: text.as_ref() })
    }
    /// What the user has typed so far; empty where there is no editor.
    pub fn get_editor_text(&self) -> Result<String> {
        self.call.get("ui.getEditorText", &crate::call::Empty {})
    }
    /// What is said while the model works; `None`: the program's own words.
    pub fn set_working_message(&self, message: Option<&str>) -> Result<()> {
        self.call.tell("ui.setWorkingMessage", &Message { message })
    }
    /// Whether it is said at all.
    pub fn set_working_visible(&self, visible: bool) -> Result<()> {
        self.call.tell("ui.setWorkingVisible", &Visible { visible })
    }
    /// What turns meanwhile, and how fast; `None`: the program's own.
    pub fn set_working_indicator(&self, frames: Option<Vec<String>>, interval_ms: Option<u64>) -> Result<()> {
        self.call.tell("ui.setWorkingIndicator", &Indicator { frames, interval_ms })
    }
    /// What stands for a hidden thought; `None`: the program's own words.
    pub fn set_hidden_thinking_label(&self, label: Option<&str>) -> Result<()> {
        self.call.tell("ui.setHiddenThinkingLabel", &Label { label })
    }
    /// Shows results of tools whole or in short.
    pub fn set_tools_expanded(&self, expanded: bool) -> Result<()> {
        self.call.tell("ui.setToolsExpanded", &Expanded { expanded })
    }
    /// Whether they are; false where nothing is drawn.
    pub fn get_tools_expanded(&self) -> Result<bool> {
        self.call.get("ui.getToolsExpanded", &crate::call::Empty {})
    }
    /// Draws anew, for what changed without being told.
    pub fn request_render(&self) -> Result<()> {
        self.call.tell("ui.requestRender", &crate::call::Empty {})
    }
}

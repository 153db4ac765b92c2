//! Styled lines: what renderers, widgets and components of an extension make. Text without
//! terminal bytes; the front end decides what a style looks like (boundary.md 12).

use serde::{Deserialize, Serialize};

/// A run of text in one style. Colours are names of the theme (`accent`, `muted`, `error`, …)
/// or `#rrggbb`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Span {
    /// Without line breaks; control characters are dropped by the host.
    pub text: String,
    /// Colour of the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fg: Option<String>,
    /// Colour behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bg: Option<String>,
    /// Bold.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub bold: bool,
    /// Fainter.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dim: bool,
    /// Slanted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub italic: bool,
    /// Underlined.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub underline: bool,
    /// Struck through.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub strikethrough: bool,
}

impl Span {
    /// Without a style.
    pub fn new(text: impl Into<String>) -> Self {
        Span { text: text.into(), ..Self::default() }
    }
    /// In this colour.
    #[must_use]
    pub fn fg(mut self, colour: impl Into<String>) -> Self {
        self.fg = Some(colour.into());
        self
    }
    /// On this colour.
    #[must_use]
    pub fn bg(mut self, colour: impl Into<String>) -> Self {
        self.bg = Some(colour.into());
        self
    }
    /// Bold.
    #[must_use]
    pub fn bold(mut self) -> Self {
        self.bold = true;
        self
    }
    /// Fainter.
    #[must_use]
    pub fn dim(mut self) -> Self {
        self.dim = true;
        self
    }
    /// Slanted.
    #[must_use]
    pub fn italic(mut self) -> Self {
        self.italic = true;
        self
    }
}

impl From<&str> for Span {
    fn from(text: &str) -> Self {
        Span::new(text)
    }
}

impl From<String> for Span {
    fn from(text: String) -> Self {
        Span::new(text)
    }
}

/// One line of spans.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Line(
    /// From left to right.
    pub Vec<Span>,
);

impl<S: Into<Span>> From<S> for Line {
    fn from(span: S) -> Self {
        Line(vec![span.into()])
    }
}

impl From<Vec<Span>> for Line {
    fn from(spans: Vec<Span>) -> Self {
        Line(spans)
    }
}

/// What a renderer makes of a message or an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "kind", content = "lines")]
#[non_exhaustive]
pub enum Rendering {
    /// As if there were no renderer.
    #[default]
    Default,
    /// Not shown.
    Hidden,
    /// These lines.
    Lines(Vec<Line>),
}

impl Rendering {
    /// Lines.
    pub fn lines<I: IntoIterator<Item = L>, L: Into<Line>>(lines: I) -> Self {
        Rendering::Lines(lines.into_iter().map(Into::into).collect())
    }
}

/// How it will be shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct RenderOptions {
    /// The user wants to see all of it.
    pub expanded: bool,
    /// Columns left free at the side.
    pub output_pad: u16,
    /// Columns there are; 0: not known.
    pub width: u16,
}

wire_enum! {
    /// Whose text a markdown transformer is given.
    MarkdownOf { User = "user", Assistant = "assistant", AssistantThinking = "assistant-thinking" }
}

/// What a markdown transformer is told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct MarkdownOptions {
    /// Whose text it is.
    pub message_type: MarkdownOf,
    /// More of it is coming.
    pub is_streaming: bool,
    /// Columns.
    pub available_width: u16,
}

/// What a tool's own renderers are told.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ToolView {
    /// The model's id for the call.
    pub tool_call_id: String,
    /// Its arguments, as far as they have come.
    pub args: serde_json::Value,
    /// What there is of a result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<super::tool::ToolResult>,
    /// The arguments are whole.
    pub args_complete: bool,
    /// It runs, or has run.
    pub execution_started: bool,
    /// More of the result is coming.
    pub is_partial: bool,
    /// It failed.
    pub is_error: bool,
}

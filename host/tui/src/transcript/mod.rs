//! What was said and done. What is finished becomes rows and leaves for the scrollback; what
//! still goes on is drawn anew each time.

mod notes;
mod stream;
mod tool_row;

use crate::{
    sanitize, styled,
    theme::{Role, Theme},
};
use atomic_agent::{
    message::{AssistantEvent, AssistantMessage, Content, Message, StopReason},
    tool::ToolOutput,
};
use ratatui::text::Line;
use serde_json::Value;
use std::time::Instant;
use stream::Stream;
use tool_row::Tool;

/// Characters of one line that quotes somebody.
pub(crate) const QUOTE: usize = 400;

pub struct Transcript {
    pub theme: Theme,
    pub columns: usize,
    /// Results are shown whole.
    pub expanded: bool,
    pub hide_thinking: bool,
    pub thinking_label: Option<String>,
    finished: Vec<Line<'static>>,
    /// Something was finished since the last empty row.
    dense: bool,
    text: Option<Stream>,
    thinking: Option<Stream>,
    /// Text of the assistant's message as it was streamed.
    streamed: String,
    tools: Vec<Tool>,
    /// The user's own command and what it has said.
    bash: Option<(String, sanitize::Sanitizer)>,
    /// Said by the user here, and not yet come back as a message.
    said: Vec<String>,
    last_answer: Option<String>,
    last_result: Option<(String, String)>,
}

impl Transcript {
    pub fn new(theme: Theme, columns: usize) -> Self {
        Transcript {
            theme,
            columns,
            expanded: false,
            hide_thinking: false,
            thinking_label: None,
            finished: Vec::new(),
            dense: false,
            text: None,
            thinking: None,
            streamed: String::new(),
            tools: Vec::new(),
            bash: None,
            said: Vec::new(),
            last_answer: None,
            last_result: None,
        }
    }

    /// Rows that go to the scrollback now.
    pub fn take_finished(&mut self) -> Vec<Line<'static>> {
        std::mem::take(&mut self.finished)
    }

    /// Rows of what goes on.
    pub fn live(&mut self, frame: &str) -> Vec<Line<'static>> {
        let mut rows = Vec::new();
        if let Some(thinking) = &mut self.thinking {
            rows.extend(thinking.rows(self.columns, &self.theme));
        }
        if let Some(text) = &mut self.text {
            rows.extend(text.rows(self.columns, &self.theme));
        }
        for tool in &self.tools {
            rows.extend(tool.live_rows(self.columns, &self.theme, frame));
        }
        if let Some((output, _)) = &self.bash {
            let lines: Vec<&str> = output.lines().collect();
            for line in &lines[lines.len().saturating_sub(10)..] {
                let line = styled::line(format!("  {line}"), self.theme.style(Role::Dim));
                rows.push(styled::cut(&line, self.columns));
            }
        }
        rows
    }

    pub fn last_answer(&self) -> Option<&str> {
        self.last_answer.as_deref()
    }

    /// The whole of the last result of a tool, for who wants more than its beginning.
    pub fn show_last_result(&mut self) {
        let Some((name, text)) = self.last_result.clone() else { return };
        self.gap();
        self.push(&name, Role::Tool);
        for line in text.lines() {
            self.push(&format!("  {line}"), Role::Dim);
        }
    }

    // ---- pieces

    fn gap(&mut self) {
        if std::mem::take(&mut self.dense) {
            self.finished.push(Line::default());
        }
    }

    fn rows(&mut self, rows: Vec<Line<'static>>) {
        self.dense |= !rows.is_empty();
        self.finished.extend(rows);
    }

    /// One line of foreign or own text, broken at words.
    fn push(&mut self, text: &str, role: Role) {
        let style = self.theme.style(role);
        for line in sanitize::text(text).lines() {
            let indent: String = line.chars().take_while(|c| *c == ' ').collect();
            let rows = styled::wrap(&styled::line(line, style), self.columns, &Line::from(indent));
            self.rows(rows);
        }
    }

    /// A remark of the program.
    pub fn remark(&mut self, text: &str) {
        self.settle();
        self.push(text, Role::Dim);
    }

    pub fn warning(&mut self, text: &str) {
        self.settle();
        self.push(text, Role::Warning);
    }

    pub fn error(&mut self, text: &str) {
        self.settle();
        self.push(text, Role::Error);
    }

    /// What a command says.
    pub fn plain(&mut self, text: &str) {
        self.settle();
        self.gap();
        self.push(text, Role::Text);
    }

    pub fn line(&mut self, line: Line<'static>) {
        let rows = styled::wrap(&line, self.columns, &Line::default());
        self.rows(rows);
    }

    /// What is being streamed and can be told by now goes first: order is what was heard.
    fn settle(&mut self) {
        for stream in [&mut self.thinking, &mut self.text].into_iter().flatten() {
            let rows = stream.settle(self.columns, &self.theme);
            self.dense |= !rows.is_empty();
            self.finished.extend(rows);
        }
    }

    // ---- messages

    pub fn said(&mut self, text: &str) {
        self.said.push(text.to_owned());
    }

    /// It was taken back before it was delivered.
    pub fn unsaid(&mut self, text: &str) {
        if let Some(at) = self.said.iter().position(|s| s == text) {
            self.said.remove(at);
        }
    }

    pub fn message_start(&mut self, message: &Message) {
        match message {
            Message::Assistant(_) => {
                self.streamed.clear();
                (self.text, self.thinking) = (None, None);
            }
            Message::User(m) => {
                let text = m.content.plain_text();
                self.unsaid(&text);
                let images = m.content.blocks().iter().filter(|c| matches!(c, Content::Image(_))).count();
                self.user(&text, images);
            }
            _ => {}
        }
    }

    pub fn user(&mut self, text: &str, images: usize) {
        self.end_streams();
        self.gap();
        let style = self.theme.style(Role::User);
        let mark = styled::line("› ", self.theme.style(Role::Accent));
        let mut first = true;
        for line in sanitize::text(text).lines() {
            let mut spans = if first { mark.spans.clone() } else { vec!["  ".into()] };
            first = false;
            spans.push(styled::span(line, style));
            let rows = styled::wrap(&Line::from(spans), self.columns, &Line::from("  "));
            self.rows(rows);
        }
        if images > 0 {
            self.push(&format!("  ({images} image{})", if images == 1 { "" } else { "s" }), Role::Dim);
        }
        self.gap();
    }

    pub fn delta(&mut self, event: &AssistantEvent) {
        match event {
            AssistantEvent::TextStart { .. } => {
                self.end_streams();
                self.text = Some(Stream::new(false));
            }
            AssistantEvent::TextDelta { delta, .. } => {
                self.streamed.push_str(delta);
                self.text.get_or_insert_with(|| Stream::new(false)).push(delta);
                if self.text.as_ref().is_some_and(Stream::has_settled) {
                    self.settle();
                }
            }
            AssistantEvent::TextEnd { .. } | AssistantEvent::ThinkingEnd { .. } => self.end_streams(),
            AssistantEvent::ThinkingStart { .. } => {
                self.end_streams();
                if self.hide_thinking {
                    let label = self.thinking_label.clone().unwrap_or_else(|| "Thinking…".to_owned());
                    self.push(&label, Role::Thinking);
                } else {
                    self.thinking = Some(Stream::new(true));
                }
            }
            AssistantEvent::ThinkingDelta { delta, .. } if !self.hide_thinking => {
                self.thinking.get_or_insert_with(|| Stream::new(true)).push(delta);
                if self.thinking.as_ref().is_some_and(Stream::has_settled) {
                    self.settle();
                }
            }
            _ => {}
        }
    }

    fn end_streams(&mut self) {
        for stream in [self.thinking.take(), self.text.take()].into_iter().flatten() {
            let rows = stream.finish(self.columns, &self.theme);
            if !rows.is_empty() {
                self.rows(rows);
                self.gap();
            }
        }
    }

    pub fn message_end(&mut self, message: &Message) {
        match message {
            Message::Assistant(m) => self.answered(m),
            Message::Custom(m) if m.display => {
                self.end_streams();
                self.gap();
                self.push(&format!("[{}]", sanitize::line(&m.custom_type, 40)), Role::Accent);
                let rows = crate::markdown::rows(
                    &sanitize::text(&m.content.plain_text()),
                    self.columns,
                    &self.theme,
                );
                self.rows(rows);
            }
            _ => {}
        }
    }

    fn answered(&mut self, m: &AssistantMessage) {
        let text: String = m.content.iter().filter_map(Content::as_text).collect();
        let as_streamed = text == self.streamed;
        if !as_streamed {
            // What an extension made of it is what the session holds.
            (self.text, self.thinking) = (None, None);
        }
        self.end_streams();
        if !as_streamed && !text.is_empty() {
            let rows = crate::markdown::rows(&sanitize::text(&text), self.columns, &self.theme);
            self.rows(rows);
            self.gap();
        }
        if !text.is_empty() {
            self.last_answer = Some(text);
        }
        let why = m.error_message.as_deref().unwrap_or("aborted");
        match m.stop_reason {
            Some(StopReason::Error) => self.push(&format!("✗ {why}"), Role::Error),
            Some(StopReason::Aborted) => self.push(&format!("✗ {why}"), Role::Dim),
            Some(StopReason::Length) => {
                self.push("(the answer was cut: it reached its limit)", Role::Warning)
            }
            _ => {}
        }
    }

    /// Messages of a session that goes on.
    pub fn replay(&mut self, message: &Message) {
        match message {
            Message::User(_) => self.message_start(message),
            Message::Assistant(m) => {
                self.streamed.clear();
                self.answered(m);
                for call in m.content.iter().filter_map(Content::as_tool_call) {
                    self.tool_started(&call.id, &call.name, &call.arguments);
                }
            }
            Message::ToolResult(m) => {
                let output = ToolOutput {
                    content: m.content.clone(),
                    details: m.details.clone(),
                    ..ToolOutput::default()
                };
                self.tool_ended(&m.tool_call_id, &output, m.is_error, None, None);
            }
            Message::Custom(_) => self.message_end(message),
            Message::BashExecution(_) => self.bash_ended(message),
            _ => {}
        }
    }

    /// A call that its session has no result of is not one that runs.
    pub fn replayed(&mut self) {
        self.cut_off();
        self.gap();
    }

    // ---- tools and commands

    pub fn tool_started(&mut self, id: &str, name: &str, args: &Value) {
        self.end_streams();
        self.tools.push(Tool::new(id, name, args, Instant::now()));
    }

    pub fn tool_updated(&mut self, id: &str, content: &[Content]) {
        if let Some(tool) = self.tools.iter_mut().find(|t| t.id == id) {
            tool.update(content);
        }
    }

    pub fn tool_ended(
        &mut self,
        id: &str,
        result: &ToolOutput,
        is_error: bool,
        duration_ms: Option<u64>,
        effective: Option<&Value>,
    ) {
        let tool = match self.tools.iter().position(|t| t.id == id) {
            Some(at) => self.tools.remove(at),
            None => Tool::new(id, "tool", &Value::Null, Instant::now()),
        };
        self.gap();
        let rows = tool.ended_rows(
            result,
            is_error,
            duration_ms,
            effective,
            (self.columns, self.expanded),
            &self.theme,
        );
        self.last_result = Some((tool.title(), tool_row::text_of(&result.content)));
        self.rows(rows);
        self.gap();
    }

    /// Nothing that ran here will be heard of again.
    pub fn cut_off(&mut self) {
        self.end_streams();
        for tool in std::mem::take(&mut self.tools) {
            self.push(&format!("● {} (no result)", tool.title()), Role::Warning);
        }
        self.bash = None;
    }

    pub fn running(&self) -> bool {
        !self.tools.is_empty() || self.bash.is_some()
    }

    pub fn bash_started(&mut self, command: &str) {
        self.gap();
        self.push(&format!("! {command}"), Role::Tool);
        self.bash = Some(Default::default());
    }

    pub fn bash_output(&mut self, delta: &str) {
        let (text, clean) = self.bash.get_or_insert_with(Default::default);
        text.push_str(&clean.push(delta));
        // Only the end is shown meanwhile; the message at its end has what is kept.
        if text.len() > 64_000 {
            let from = text.len() - 32_000;
            let from = (from..text.len()).find(|i| text.is_char_boundary(*i)).unwrap_or(0);
            text.drain(..from);
        }
    }

    pub fn bash_ended(&mut self, message: &Message) {
        let shown = self.bash.take().is_some();
        let Message::BashExecution(m) = message else { return };
        if !shown {
            self.gap();
            self.push(&format!("! {}", m.command), Role::Tool);
        }
        for line in m.output.trim_end().lines() {
            self.push(&format!("  {line}"), Role::Text);
        }
        if let Some(path) = &m.full_output_path {
            self.push(&format!("  all of it: {path}"), Role::Dim);
        }
        match (m.cancelled, m.exit_code) {
            (true, _) => self.push("  (cancelled)", Role::Warning),
            (false, Some(0) | None) => {}
            (false, Some(code)) => self.push(&format!("  exit code {code}"), Role::Error),
        }
        self.gap();
    }
}

#[cfg(test)]
mod tests;

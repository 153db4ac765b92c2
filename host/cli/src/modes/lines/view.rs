//! How events look at the plain prompt. Everything that is not the host's own text is
//! sanitised here, on its way out.

use super::{input, reload_lines, tool_lines, wrap::Wrap};
use crate::{
    card::Card,
    sanitize::{self, Sanitizer},
    stdio,
    supervise::wire::Resumed,
};
use atomic_agent::{
    event::Event,
    hooks::{CommandInfo, StartReason},
    message::{AssistantEvent, Content, Message, StopReason},
    model::ModelInfo,
};
use atomic_tui::words;
use serde_json::Value;
use std::io::Write;
use tool_lines::name;

/// Characters of what was said before, when a session goes on.
const RECALLED: usize = 200;

pub struct View<W> {
    out: W,
    /// Somebody types here and sees it: a prompt is shown.
    interactive: bool,
    columns: fn() -> Option<usize>,
    wrap: Wrap,
    /// Rows of what a running tool says, which the next output replaces.
    progress: Vec<String>,
    /// Told at the start, and not again at each reload.
    told: Vec<Card>,
    at_start: bool,
    prompted: bool,
    stream: Sanitizer,
    /// Text of the assistant's message as it was streamed.
    streamed: String,
    thinking: bool,
    /// Output of the user's command so far.
    bash: String,
    typed: Vec<String>,
}

impl<W: Write> View<W> {
    pub fn new(out: W, interactive: bool) -> Self {
        View {
            out,
            interactive,
            columns: stdio::columns,
            wrap: Wrap::default(),
            progress: Vec::new(),
            told: Vec::new(),
            at_start: true,
            prompted: false,
            stream: Sanitizer::default(),
            streamed: String::new(),
            thinking: false,
            bash: String::new(),
            typed: Vec::new(),
        }
    }

    /// A terminal that has gone is noticed by its hang-up, not here.
    fn put(&mut self, text: &str) {
        self.stream_words(text);
        let rest = self.wrap.flush(self.width());
        self.write(&rest);
    }

    /// As `put`, but the last word may go on.
    fn stream_words(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.make_room();
        let shown = self.wrap.push(text, self.width());
        self.write(&shown);
        self.at_start = text.ends_with('\n');
    }

    /// As it is, to the character.
    fn put_raw(&mut self, text: &str) {
        if !text.is_empty() {
            self.make_room();
            let held = self.wrap.flush(self.width());
            self.write(&held);
            self.write(text);
            self.wrap.reset();
            self.at_start = text.ends_with('\n');
        }
    }

    fn write(&mut self, text: &str) {
        let _ = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
    }

    fn width(&self) -> Option<usize> {
        if self.interactive { (self.columns)() } else { None }
    }

    /// Takes the prompt and what a tool said so far off the screen.
    fn make_room(&mut self) {
        if std::mem::take(&mut self.prompted) {
            self.write("\r\x1b[K");
            self.at_start = true;
            self.wrap.reset();
        }
        let rows = std::mem::take(&mut self.progress).len();
        if rows > 0 {
            self.write(&format!("\x1b[{rows}A\r\x1b[J"));
            self.at_start = true;
            self.wrap.reset();
        }
    }

    /// What a running tool says: its last lines, dim, each in the place of the ones before.
    fn show_progress(&mut self, content: &[Content]) {
        let Some(columns) = self.width() else { return };
        let rows = tool_lines::progress(content, columns);
        // What is being typed stays where it is.
        if rows.is_empty() || rows == self.progress || self.prompted {
            return;
        }
        self.make_room();
        if !self.at_start {
            self.put("\n");
        }
        for row in &rows {
            self.write(&format!("\x1b[2m{row}\x1b[22m\n"));
        }
        self.progress = rows;
    }

    /// What was shown before the first prompt.
    pub fn already_told(&mut self, cards: &[Card]) {
        self.told = cards.to_vec();
    }

    /// A session that goes on: which one, how long it is, where it stopped.
    pub fn goes_on(&mut self, session: &Resumed) {
        let plural = if session.messages == 1 { "" } else { "s" };
        let title = session.name.as_ref().map(|n| format!(" \"{}\"", name(n))).unwrap_or_default();
        self.line(&format!("· session{title} goes on · {} message{plural}", session.messages));
        if let Some(last) = &session.last {
            self.line(&format!("» {}", sanitize::line(last, RECALLED)));
        }
    }

    /// A command of an extension that came to nothing.
    pub fn command_failed(&mut self, extension: &str, command: &str, error: &str) {
        self.line(&format!("✗ {}: /{}: {error}", name(extension), name(command)));
    }

    /// A line of its own.
    fn line(&mut self, text: &str) {
        let gap = if self.at_start || self.prompted { "" } else { "\n" };
        self.put(&format!("{gap}{}\n", sanitize::text(text).trim_end()));
    }

    pub fn greet(&mut self, model: &Option<ModelInfo>, extensions: usize) {
        let model = model.as_ref().map(|m| format!("{}/{}", m.provider, m.id)).unwrap_or_default();
        let plural = if extensions == 1 { "" } else { "s" };
        let version = env!("CARGO_PKG_VERSION");
        self.line(&format!("atomic {version} · {model} · {extensions} extension{plural} · /help"));
    }

    pub fn prompt(&mut self) {
        if self.interactive && !self.prompted {
            if !self.at_start {
                self.put("\n");
            }
            self.put("> ");
            self.prompted = true;
        }
    }

    /// The terminal has echoed it, newline included.
    pub fn line_was_typed(&mut self) {
        self.prompted = false;
        self.progress.clear();
        self.wrap.reset();
        self.at_start |= self.interactive;
    }

    pub fn typed(&mut self, text: &str) {
        self.typed.push(text.to_owned());
    }

    /// The answer of `Op::ClearQueue`; of another op it says nothing.
    pub fn taken_back(&mut self, queue: &Value) {
        let texts = ["steering", "followUp"].into_iter().filter_map(|k| queue.get(k)?.as_array()).flatten();
        let texts: Vec<&str> = texts.filter_map(Value::as_str).collect();
        match texts.len() {
            0 => return,
            1 => self.line("· 1 queued message was taken back:"),
            n => self.line(&format!("· {n} queued messages were taken back:")),
        }
        for text in texts {
            self.typed.retain(|t| t != text);
            for line in text.lines() {
                self.line(&format!("    {line}"));
            }
        }
    }

    pub fn close(&mut self) {
        if !self.at_start {
            self.put("\n");
        }
    }

    pub fn remark(&mut self, text: &str) {
        self.line(&format!("({text})"));
    }

    pub fn card(&mut self, card: &Card) {
        self.line(&card.to_string());
    }

    pub fn warning(&mut self, card: &Card) {
        self.line(&card.warning());
    }

    pub fn question(&mut self, text: &str) {
        let gap = if self.at_start || self.prompted { "" } else { "\n" };
        let text = sanitize::text(text);
        self.put(&format!("{gap}{text}"));
        if !self.interactive {
            self.put("\n");
        }
    }

    pub fn help(&mut self, commands: &[CommandInfo]) {
        for (command, what) in input::OWN {
            self.line(&format!("  {command:<28}{what}"));
        }
        if !commands.is_empty() {
            self.line("Of extensions, prompt templates and skills:");
        }
        for c in commands {
            let what = sanitize::line(c.description.as_deref().unwrap_or_default(), RECALLED);
            let gap = if what.is_empty() { "" } else { " " };
            self.line(&format!(
                "  {:<28}{what}{gap}(from {})",
                format!("/{}", name(&c.name)),
                name(&c.extension)
            ));
        }
    }

    /// What a command of the program says.
    pub fn text(&mut self, text: &str) {
        text.lines().for_each(|line| self.line(line));
    }

    pub fn event(&mut self, event: &Event) {
        match event {
            Event::MessageStart { message } => self.message_start(message),
            Event::MessageUpdate { assistant_message_event, .. } => self.delta(assistant_message_event),
            Event::MessageEnd { message } => self.message_end(message),
            Event::ToolExecutionStart { tool_name, args, .. } => {
                self.line(&tool_lines::begun(tool_name, args));
            }
            Event::ToolExecutionUpdate { partial_result, .. } => self.show_progress(&partial_result.content),
            Event::ToolExecutionEnd { tool_name, result, is_error, duration_ms, effective_args, .. } => {
                if let Some(args) = effective_args {
                    self.line(&tool_lines::rewritten(args));
                }
                self.line(&tool_lines::ended(tool_name, result, *is_error, *duration_ms));
            }
            Event::BashExecutionUpdate { delta, .. } => {
                self.bash.push_str(delta);
                let shown = self.stream.push(delta);
                self.put_raw(&shown);
            }
            Event::BashExecuted { message } => self.bash_end(message),
            Event::ExtensionError { extension_path, event, error } => {
                let (path, event) = (sanitize::line(extension_path, RECALLED), name(event));
                self.line(&format!("✗ extension {path}, {event}: {error}"));
            }
            Event::Notify { message, level, extension } => {
                let mark = if level == "info" { "·" } else { "✗" };
                let by = extension.as_ref().map(|e| format!("{}: ", name(e))).unwrap_or_default();
                self.line(&format!("{mark} {by}{message}"));
            }
            Event::CompactionStart { reason, .. } => self.remark(words::compacting(*reason)),
            Event::CompactionEnd { result: Some(result), .. } => self.line(&words::compacted(result)),
            Event::CompactionEnd { aborted, error_message, .. } => {
                self.line(&words::not_compacted(*aborted, error_message.as_deref()));
            }
            Event::SummarizationRetryScheduled { attempt, max_attempts, delay_ms, error_message }
            | Event::AutoRetryStart { attempt, max_attempts, delay_ms, error_message } => {
                let text = words::asked_again(*attempt, *max_attempts, *delay_ms, error_message);
                self.remark(&sanitize::line(&text, RECALLED));
            }
            Event::ModelFallbackStart { from, to, reason, .. } => {
                let text = words::stands_in(from, to, reason);
                self.remark(&sanitize::line(&text, RECALLED));
            }
            Event::EngineLost { what, unanswered, .. } => {
                self.line(&format!("! {what}"));
                for call in unanswered {
                    self.line(&sanitize::line(&words::no_result(call), 200));
                }
            }
            Event::EngineRestarted { without, planned, resumed } => {
                self.remark(&words::restarted(without, *planned, *resumed));
            }
            Event::EngineHeld { extension, event, held_ms } if *held_ms >= 1000 => {
                self.remark(&words::held(extension, event, *held_ms, self.interactive));
            }
            Event::Reloaded { report } => {
                for line in reload_lines::lines(report) {
                    self.line(&line);
                }
                for card in report.notes.iter().map(|n| reload_lines::card(n)) {
                    if !self.told.contains(&card) {
                        self.line(&card.warning());
                    }
                }
            }
            Event::SessionReady { reason, session_id, .. } => {
                let what = match reason {
                    StartReason::New => "new session",
                    StartReason::Fork => "forked: session",
                    StartReason::Resume => "session",
                    StartReason::Startup | StartReason::Reload => return,
                };
                self.line(&format!("· {what} {session_id}"));
            }
            Event::TreeMoved { .. } => self.line("· the session is at another place of its tree"),
            Event::QueueUpdate { steering, follow_up } if !(steering.is_empty() && follow_up.is_empty()) => {
                self.line(&format!("· {} queued", steering.len() + follow_up.len()));
            }
            _ => {}
        }
    }

    fn message_start(&mut self, message: &Message) {
        match message {
            Message::Assistant(_) => {
                self.stream = Sanitizer::default();
                self.streamed.clear();
                self.thinking = false;
            }
            Message::User(m) => {
                let text = m.content.plain_text();
                match self.typed.iter().position(|t| *t == text) {
                    Some(at) => drop(self.typed.remove(at)),
                    None => self.line(&format!("» {text}")),
                }
            }
            _ => {}
        }
    }

    fn delta(&mut self, event: &AssistantEvent) {
        match event {
            AssistantEvent::TextStart { .. } if !self.at_start => self.put("\n"),
            AssistantEvent::TextDelta { delta, .. } => {
                self.streamed.push_str(delta);
                let shown = self.stream.push(delta);
                self.stream_words(&shown);
            }
            AssistantEvent::TextEnd { .. } => {
                let rest = self.wrap.flush(self.width());
                self.write(&rest);
            }
            AssistantEvent::ThinkingStart { .. } if !std::mem::replace(&mut self.thinking, true) => {
                self.remark("thinking");
            }
            _ => {}
        }
    }

    fn message_end(&mut self, message: &Message) {
        match message {
            Message::Assistant(m) => {
                let text: String = m.content.iter().filter_map(Content::as_text).collect();
                // What an extension made of it is what the session holds.
                if text != self.streamed && !text.is_empty() {
                    self.line(&text);
                }
                if m.stop_reason == Some(StopReason::Error) {
                    self.card(&Card::of_answer(m));
                } else if m.failed() {
                    self.line(&format!("✗ {}", m.error_message.as_deref().unwrap_or("aborted")));
                } else if !self.at_start {
                    self.put("\n");
                }
            }
            Message::Custom(m) if m.display => self.line(&m.content.plain_text()),
            _ => {}
        }
    }

    fn bash_end(&mut self, message: &Message) {
        let Message::BashExecution(m) = message else { return };
        let shown = std::mem::take(&mut self.bash);
        let rest = unshown(&shown, &m.output);
        if !rest.is_empty() {
            let gap = if self.at_start || self.prompted { "" } else { "\n" };
            self.put_raw(&format!("{gap}{}\n", sanitize::text(rest).trim_end()));
        }
        if !self.at_start {
            self.put("\n");
        }
        self.stream = Sanitizer::default();
        // The tool itself says how a command failed.
        if m.cancelled {
            self.remark("cancelled");
        }
    }
}

/// What the whole output says beyond what was streamed: the remarks of the tool at its end, or
/// lines that came after the last update. The beginning of a long one has been cut away.
fn unshown<'a>(streamed: &str, output: &'a str) -> &'a str {
    let streamed = streamed.trim_end();
    let last = streamed.lines().next_back().unwrap_or_default();
    if last.is_empty() {
        return output;
    }
    let ends = output.rmatch_indices(last).map(|(at, _)| at + last.len());
    let end = ends.into_iter().find(|&end| streamed.ends_with(&output[..end]));
    output[end.unwrap_or(0)..].trim_matches(['\n', '\r'])
}

#[cfg(test)]
mod tests;

//! How events look at the plain prompt. Everything that is not the host's own text is
//! sanitised here, on its way out.

use super::input;
use crate::{
    card::Card,
    sanitize::{self, Sanitizer},
};
use atomic_agent::{
    event::Event,
    hooks::{CommandInfo, ExtensionChange, ReplaceReport, ReplacedExtension},
    message::{AssistantEvent, Content, Message},
    model::ModelInfo,
    tool::ToolOutput,
};
use serde_json::Value;
use std::io::Write;

const WIDTH: usize = 100;

pub struct View<W> {
    out: W,
    /// Somebody types here and sees it: a prompt is shown.
    interactive: bool,
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
        if text.is_empty() {
            return;
        }
        if std::mem::take(&mut self.prompted) {
            let _ = self.out.write_all(b"\r\x1b[K");
            self.at_start = true;
        }
        let _ = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
        self.at_start = text.ends_with('\n');
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
        self.at_start |= self.interactive;
    }

    pub fn typed(&mut self, text: &str) {
        self.typed.push(text.to_owned());
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

    pub fn question(&mut self, text: &str) {
        let gap = if self.at_start { "" } else { "\n" };
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
        for c in commands {
            let what = c.description.as_deref().unwrap_or_default();
            self.line(&format!("  {:<28}{what} [{}]", format!("/{}", c.name), c.extension));
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
                self.line(&format!("● {tool_name} {}", sanitize::line(&argument(args), WIDTH)));
            }
            Event::ToolExecutionEnd { tool_name, result, is_error, duration_ms, .. } => {
                self.line(&tool_end(tool_name, result, *is_error, *duration_ms));
            }
            Event::BashExecutionUpdate { delta, .. } => {
                self.bash.push_str(delta);
                let shown = self.stream.push(delta);
                self.put(&shown);
            }
            Event::BashExecuted { message } => self.bash_end(message),
            Event::ExtensionError { extension_path, event, error } => {
                self.line(&format!("✗ extension {extension_path}, {event}: {error}"));
            }
            Event::Notify { message, level, extension } => {
                let mark = if level == "info" { "·" } else { "✗" };
                let by = extension.as_ref().map(|e| format!("{e}: ")).unwrap_or_default();
                self.line(&format!("{mark} {by}{message}"));
            }
            Event::Reloaded { report } => {
                for line in reload_lines(report) {
                    self.line(&line);
                }
            }
            Event::SessionReady { reason: atomic_agent::hooks::StartReason::New, session_id, .. } => {
                self.line(&format!("· new session {session_id}"));
            }
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
                self.put(&shown);
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
                if m.failed() {
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
            self.line(rest);
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

/// The argument that tells a call from others of its tool.
fn argument(args: &Value) -> String {
    let telling = ["command", "path", "pattern", "name"];
    match telling.iter().find_map(|key| args.get(key)?.as_str()) {
        Some(text) => text.to_owned(),
        None => args.to_string(),
    }
}

fn tool_end(name: &str, result: &ToolOutput, is_error: bool, duration_ms: u64) -> String {
    let text: Vec<&str> = result.content.iter().filter_map(Content::as_text).collect();
    let text = text.join("\n");
    let text = text.trim();
    if is_error {
        let by = result.details.as_ref().and_then(|d| d.get("blockedBy")?.as_str());
        // Many a gate says it itself, for the model.
        let by =
            by.filter(|by| !text.to_lowercase().starts_with(&format!("blocked by {}", by.to_lowercase())));
        let mark = by.map(|by| format!("blocked by {by}: ")).unwrap_or_default();
        return format!("  ✗ {name}: {}", sanitize::line(&format!("{mark}{text}"), WIDTH));
    }
    let lines = text.lines().count();
    let summary = match lines {
        0 => "no output".to_owned(),
        1 => sanitize::line(text, WIDTH),
        _ => format!(
            "{} (+{} lines)",
            sanitize::line(text.lines().next().unwrap_or_default(), WIDTH),
            lines - 1
        ),
    };
    format!("  ✓ {name}: {summary} · {duration_ms} ms")
}

/// `reload: greet 0.1.0 -> 0.2.0`, and what else a reload did.
pub fn reload_lines(report: &ReplaceReport) -> Vec<String> {
    let mut lines: Vec<String> = report.extensions.iter().map(reload_line).collect();
    if lines.is_empty() && report.notes.is_empty() {
        lines.push("reload: there are no extensions".to_owned());
    }
    lines.extend(report.notes.iter().cloned());
    lines
}

fn reload_line(e: &ReplacedExtension) -> String {
    let name = &e.name;
    let version = |v: &Option<String>| v.clone().unwrap_or_else(|| "?".into());
    let (from, to) = (version(&e.from_version), version(&e.to_version));
    let what = match e.change {
        ExtensionChange::Added => format!("{name} {to} (new)"),
        ExtensionChange::Reloaded => format!("{name} {from} -> {to}"),
        ExtensionChange::Unchanged => format!("{name} unchanged"),
        ExtensionChange::Kept => format!("{name} keeps {from}"),
        ExtensionChange::Removed => format!("{name} {from} (gone)"),
    };
    let reason = e.reason.as_ref().map(|r| format!(": {r}")).unwrap_or_default();
    format!("reload: {what}{reason}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use atomic_agent::message::Usage;

    fn shown(events: &[Event]) -> String {
        let mut out = Vec::new();
        let mut view = View::new(&mut out, false);
        for e in events {
            view.event(e);
        }
        String::from_utf8(out).unwrap()
    }

    fn delta(text: &str) -> Event {
        Event::MessageUpdate {
            usage: Usage::default(),
            assistant_message_event: AssistantEvent::TextDelta { content_index: 0, delta: text.into() },
        }
    }

    #[test]
    fn nothing_an_extension_or_a_model_says_reaches_the_screen_raw() {
        let evil = "a\u{1b}[2J\u{1b}]0;t\u{7}\u{202e}b";
        let text = shown(&[
            delta(evil),
            Event::Notify { message: evil.into(), level: "info".into(), extension: Some(evil.into()) },
            Event::ExtensionError { extension_path: evil.into(), event: evil.into(), error: evil.into() },
            Event::ToolExecutionStart {
                tool_call_id: "1".into(),
                tool_name: evil.into(),
                args: serde_json::json!({"command": evil}),
            },
            Event::ToolExecutionEnd {
                tool_call_id: "1".into(),
                tool_name: evil.into(),
                result: ToolOutput::error(evil),
                is_error: true,
                duration_ms: 0,
                effective_args: None,
            },
        ]);
        let raw = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
        assert!(!text.chars().any(raw), "{text:?}");
        assert!(text.contains("● ab ab"), "{text:?}");
    }

    #[test]
    fn streamed_text_stands_as_it_came_and_a_tool_is_two_lines() {
        let text = shown(&[
            delta("Hel"),
            delta("lo"),
            Event::ToolExecutionStart {
                tool_call_id: "1".into(),
                tool_name: "bash".into(),
                args: serde_json::json!({"command": "ls"}),
            },
            Event::ToolExecutionEnd {
                tool_call_id: "1".into(),
                tool_name: "bash".into(),
                result: ToolOutput::text("a\nb\nc"),
                is_error: false,
                duration_ms: 4,
                effective_args: None,
            },
        ]);
        assert_eq!(text, "Hello\n● bash ls\n  ✓ bash: a (+2 lines) · 4 ms\n");
    }

    fn ended(output: &str) -> Event {
        let message = serde_json::json!({"role": "bashExecution", "command": "x", "output": output,
            "cancelled": false, "truncated": false, "timestamp": 0});
        Event::BashExecuted { message: serde_json::from_value(message).unwrap() }
    }

    #[test]
    fn the_output_of_a_command_is_shown_once_and_its_end_told() {
        let update =
            |delta: &str| Event::BashExecutionUpdate { channel: "stdout".into(), delta: delta.into() };
        for (streamed, output, seen) in [
            (&["hi\n"][..], "hi", "hi\n"),
            (&["a\n", "b"], "a\nb", "a\nb\n"),
            (&["a\n"], "a\nlate", "a\nlate\n"),
            (&[], "(no output)", "(no output)\n"),
            (&["y\ny\n"], "y\ny\n\nThe command exited with code 1", "y\ny\nThe command exited with code 1\n"),
            (&["1\n2\n", "3\n"], "2\n3\n\n[The last 2 of 3 lines]", "1\n2\n3\n[The last 2 of 3 lines]\n"),
        ] {
            let mut events: Vec<Event> = streamed.iter().map(|d| update(d)).collect();
            events.push(ended(output));
            assert_eq!(shown(&events), seen, "{streamed:?} {output:?}");
        }
    }

    #[test]
    fn a_blocked_call_names_who_blocked_it() {
        for (reason, shown) in
            [("not now", "blocked by gate: not now"), ("Blocked by gate: no", "Blocked by gate: no")]
        {
            let details = Some(serde_json::json!({"blockedBy": "gate"}));
            let output = ToolOutput { details, ..ToolOutput::error(reason) };
            assert_eq!(tool_end("bash", &output, true, 0), format!("  ✗ bash: {shown}"));
        }
        assert_eq!(tool_end("bash", &ToolOutput::error("broke"), true, 0), "  ✗ bash: broke");
    }

    #[test]
    fn a_reload_says_both_versions_or_why_the_old_one_stays() {
        let one = |change, reason: Option<&str>| ReplacedExtension {
            name: "greet".into(),
            change,
            from_version: Some("1.0.0".into()),
            to_version: Some("2.0.0".into()),
            reason: reason.map(str::to_owned),
        };
        assert_eq!(reload_line(&one(ExtensionChange::Reloaded, None)), "reload: greet 1.0.0 -> 2.0.0");
        assert_eq!(
            reload_line(&one(ExtensionChange::Kept, Some("no manifest"))),
            "reload: greet keeps 1.0.0: no manifest"
        );
    }
}

//! What is told beside the conversation: reloads, losses, retries, compactions.

use super::{QUOTE, Transcript};
use crate::{
    sanitize, styled,
    theme::{Role, Theme},
};
use atomic_agent::{
    event::{Event, UnansweredCall},
    hooks::{ExtensionChange, ReplaceReport, ReplacedExtension},
};
use ratatui::text::{Line, Span};

impl Transcript {
    pub fn note(&mut self, event: &Event) {
        match event {
            Event::Notify { message, level, extension } => {
                let by =
                    extension.as_ref().map(|e| format!("{}: ", sanitize::line(e, 40))).unwrap_or_default();
                let text = format!("{by}{message}");
                match level.as_str() {
                    "error" => self.error(&text),
                    "warning" => self.warning(&text),
                    _ => self.remark(&text),
                }
            }
            Event::ExtensionError { extension_path, event, error } => {
                let who = sanitize::line(extension_path, QUOTE);
                self.error(&match who.strip_prefix("command:") {
                    Some(command) => format!("✗ /{command}: {error}"),
                    None => format!("✗ extension {who}, {}: {error}", sanitize::line(event, 40)),
                });
            }
            Event::AutoRetryStart { attempt, max_attempts, delay_ms, error_message } => {
                let wait = *delay_ms as f64 / 1000.0;
                let why = sanitize::line(error_message, QUOTE);
                self.warning(&format!("asked again in {wait:.1} s ({attempt} of {max_attempts}): {why}"));
            }
            Event::ModelFallbackStart { from, to, reason, .. } => {
                self.warning(&sanitize::line(&format!("{to} stands in for {from}: {reason}"), QUOTE));
            }
            Event::CompactionEnd { result, aborted, error_message, .. } => {
                match (result, error_message) {
                    (Some(result), _) => {
                        let tokens = |key: &str| result.get(key).and_then(serde_json::Value::as_u64);
                        let numbers = match (tokens("tokensBefore"), tokens("tokensAfter")) {
                            (Some(before), Some(after)) => format!(": {before} tokens, now {after}"),
                            _ => String::new(),
                        };
                        self.remark(&format!("the conversation was shortened{numbers}"));
                    }
                    (None, Some(error)) => self.error(&format!("✗ not shortened: {error}")),
                    (None, None) if *aborted => self.remark("shortening was stopped"),
                    (None, None) => {}
                };
            }
            Event::EngineLost { what, unanswered, .. } => self.lost(what, unanswered),
            Event::EngineRestarted { without, planned, resumed } => {
                let left_out = match without.as_slice() {
                    [] => String::new(),
                    names => format!(" without {}; /reload loads it again", names.join(", ")),
                };
                let why = match (planned, resumed) {
                    (true, _) => "the engine was replaced",
                    (false, true) => "the session goes on",
                    (false, false) => "a new session begins",
                };
                self.remark(&format!("{why}{left_out}"));
            }
            Event::EngineHeld { extension, event, held_ms } if *held_ms >= 1000 => {
                let who = match extension.is_empty() {
                    true => "the engine has not answered".to_owned(),
                    false => format!("{extension} has held the engine in {event}"),
                };
                let time = *held_ms as f64 / 1000.0;
                self.warning(&format!("{who} for {time:.1} s; Ctrl+C twice goes on without it"));
            }
            Event::Reloaded { report } => self.reloaded(report),
            _ => {}
        }
    }

    fn lost(&mut self, what: &str, unanswered: &[UnansweredCall]) {
        self.cut_off();
        self.gap();
        self.error(&format!("! {what}"));
        for call in unanswered {
            let call = sanitize::line(&format!("{} {}", call.tool_name, call.args), QUOTE);
            self.warning(&format!("! {call} has no result: it may have run, and had effects"));
        }
    }

    fn reloaded(&mut self, report: &ReplaceReport) {
        self.settle();
        self.gap();
        if report.extensions.is_empty() && report.notes.is_empty() {
            self.remark("reload: there are no extensions");
        }
        for row in table(report, &self.theme) {
            self.line(row);
        }
        for note in &report.notes {
            self.warning(note);
        }
    }
}

/// What changed, a row an extension.
fn table(report: &ReplaceReport, theme: &Theme) -> Vec<Line<'static>> {
    let names: Vec<String> = report.extensions.iter().map(|e| sanitize::line(&e.name, 40)).collect();
    let widest = names.iter().map(|n| styled::width(n)).max().unwrap_or(0);
    let row = |e: &ReplacedExtension, name: &str| {
        let version = |v: &Option<String>| v.as_deref().map_or("?".into(), |v| sanitize::line(v, 40));
        let (from, to) = (version(&e.from_version), version(&e.to_version));
        let (what, role) = match e.change {
            ExtensionChange::Added => (format!("added    {to}"), Role::Success),
            ExtensionChange::Reloaded => (format!("updated  {from} -> {to}"), Role::Success),
            ExtensionChange::Unchanged => (format!("unchanged {to}"), Role::Dim),
            ExtensionChange::Kept => (format!("kept     {from}"), Role::Warning),
            ExtensionChange::Removed => (format!("retired  {from}"), Role::Warning),
        };
        let reason = e.reason.as_ref().map(|r| format!(": {}", sanitize::line(r, QUOTE)));
        let pad = " ".repeat(widest - styled::width(name));
        Line::from(vec![
            Span::styled(format!("reload: {name}{pad}  "), theme.style(Role::Tool)),
            Span::styled(format!("{what}{}", reason.unwrap_or_default()), theme.style(role)),
        ])
    };
    report.extensions.iter().zip(&names).map(|(e, name)| row(e, name)).collect()
}

//! What is told beside the conversation: reloads, losses, retries, compactions.

use super::{QUOTE, Transcript};
use crate::{
    sanitize, styled,
    theme::{Role, Theme},
    words,
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
            Event::SummarizationRetryScheduled { attempt, max_attempts, delay_ms, error_message }
            | Event::AutoRetryStart { attempt, max_attempts, delay_ms, error_message } => {
                let text = words::asked_again(*attempt, *max_attempts, *delay_ms, error_message);
                self.warning(&sanitize::line(&text, QUOTE));
            }
            Event::ModelFallbackStart { from, to, reason, .. } => {
                self.warning(&sanitize::line(&words::stands_in(from, to, reason), QUOTE));
            }
            Event::CompactionEnd { result: Some(result), .. } => self.remark(&words::compacted(result)),
            Event::CompactionEnd { aborted, error_message, .. } => {
                let text = words::not_compacted(*aborted, error_message.as_deref());
                if *aborted { self.remark(&text) } else { self.error(&text) }
            }
            Event::EngineLost { what, unanswered, .. } => self.lost(what, unanswered),
            Event::EngineRestarted { without, planned, resumed } => {
                self.remark(&words::restarted(without, *planned, *resumed));
            }
            Event::EngineHeld { extension, event, held_ms } if *held_ms >= 1000 => {
                self.warning(&words::held(extension, event, *held_ms, true));
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
            self.warning(&sanitize::line(&words::no_result(call), QUOTE));
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

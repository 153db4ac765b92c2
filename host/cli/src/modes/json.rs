//! `--mode json`: the session's header, then one event of events.md G.4 a line.

use super::{
    end,
    print::{Output, say_all},
};
use crate::{
    card::Card,
    launch::Launched,
    stdio::{self, Stdio},
};
use atomic_agent::event::Event;
use serde::Serialize;
use serde_json::Value;
use std::io::Write;

pub async fn run(mut launched: Launched, stdio: &mut Stdio) -> Result<u8, Card> {
    let header = launched.handle.view(|v| v.header.clone());
    let mut lines = Lines { out: &mut stdio.out, failed: None };
    if !header.is_null() && !lines.write(&header) {
        end::shut_down(&launched, false).await;
        return lines.end(0);
    }
    let outcome = say_all(&mut launched, &mut lines, &mut stdio.err).await?;
    end::shut_down(&launched, outcome.signal.is_some()).await;
    lines.end(if outcome.closed { 0 } else { outcome.exit_code() })
}

struct Lines<W> {
    out: W,
    failed: Option<std::io::Error>,
}

impl<W: Write> Lines<W> {
    /// In one write, so that a line is whole or absent.
    fn write(&mut self, value: &impl Serialize) -> bool {
        let Ok(mut line) = serde_json::to_vec(value) else { return true };
        line.push(b'\n');
        let written = self.out.write_all(&line).and_then(|()| self.out.flush());
        self.failed = self.failed.take().or(written.err());
        self.failed.is_none()
    }
    /// A reader that has gone is no error; a full disk is.
    fn end(self, code: u8) -> Result<u8, Card> {
        self.failed.and_then(stdio::lost).map_or(Ok(code), Err)
    }
}

impl<W: Write> Output for Lines<W> {
    fn event(&mut self, event: &Event) -> bool {
        if !is_public(event) {
            return true;
        }
        match serde_json::to_value(event) {
            Ok(mut value) => {
                name_roles(&mut value);
                self.write(&value)
            }
            Err(_) => true,
        }
    }
}

/// `turn_end` holds its messages by kind; on the stream a message says its role.
fn name_roles(value: &mut Value) {
    if value["type"] != "turn_end" {
        return;
    }
    let with_role = |message: &mut Value, role: &str| {
        if let Some(fields) = message.as_object_mut() {
            fields.entry("role").or_insert_with(|| role.into());
        }
    };
    with_role(&mut value["message"], "assistant");
    for result in value["toolResults"].as_array_mut().into_iter().flatten() {
        with_role(result, "toolResult");
    }
}

/// Rows of G.4. The others are the program's own, and `extension_error` is rpc's alone.
fn is_public(event: &Event) -> bool {
    match event {
        Event::AgentStart
        | Event::AgentEnd { .. }
        | Event::AgentSettled
        | Event::TurnStart
        | Event::TurnEnd { .. }
        | Event::MessageStart { .. }
        | Event::MessageUpdate { .. }
        | Event::MessageEnd { .. }
        | Event::ToolExecutionStart { .. }
        | Event::ToolExecutionUpdate { .. }
        | Event::ToolExecutionEnd { .. }
        | Event::BashExecutionUpdate { .. }
        | Event::QueueUpdate { .. }
        | Event::EntryAppended { .. }
        | Event::SessionInfoChanged { .. }
        | Event::ModelChanged { .. }
        | Event::ThinkingLevelChanged { .. }
        | Event::AutoRetryStart { .. }
        | Event::AutoRetryEnd { .. }
        | Event::ModelFallbackStart { .. }
        | Event::ModelFallbackEnd { .. }
        | Event::CompactionStart { .. }
        | Event::CompactionEnd { .. }
        | Event::SummarizationRetryScheduled { .. }
        | Event::SummarizationRetryAttemptStart { .. }
        | Event::SummarizationRetryFinished => true,
        Event::ExtensionError { .. }
        | Event::SessionReady { .. }
        | Event::TreeMoved { .. }
        | Event::DialogOpened { .. }
        | Event::DialogClosed { .. }
        | Event::Notify { .. }
        | Event::Status { .. }
        | Event::Surface { .. }
        | Event::Reloaded { .. }
        | Event::BashExecuted { .. }
        | Event::EngineLost { .. }
        | Event::EngineRestarted { .. }
        | Event::EngineHeld { .. }
        | Event::Stopped => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line_and_the_programs_own_are_none() {
        let mut lines = Lines { out: Vec::new(), failed: None };
        assert!(lines.event(&Event::AgentStart));
        assert!(lines.event(&Event::DialogClosed { id: 1 }));
        assert!(lines.event(&Event::SessionInfoChanged { name: Some("a\nb\u{1b}".into()) }));
        let text = String::from_utf8(lines.out).unwrap();
        let rows: Vec<serde_json::Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0]["type"], "agent_start");
        assert_eq!(rows[1]["name"], "a\nb\u{1b}", "data is kept, escaped");
    }

    #[test]
    fn a_reader_that_is_gone_ends_the_stream_quietly() {
        struct Gone;
        impl Write for Gone {
            fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
                Err(std::io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        assert!(!Lines { out: Gone, failed: None }.event(&Event::AgentStart));
    }
}

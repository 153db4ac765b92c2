//! What the engine tells and answers.

use super::{App, Ended, Want};
use crate::{bell, dialog::Open, surfaces::Wish};
use atomic_agent::{
    event::Event,
    hooks::StartReason,
    message::Message,
    op::{Op, OpError},
};
use serde_json::Value;
use std::time::{Duration, Instant};

/// A run that took longer is told to who looks elsewhere.
const LONG_RUN: Duration = Duration::from_secs(20);

impl App {
    pub(super) fn event(&mut self, event: &Event) {
        match event {
            Event::AgentStart => self.running_since = Some(Instant::now()),
            Event::AgentSettled => {
                if self.running_since.take().is_some_and(|s| s.elapsed() > LONG_RUN) {
                    self.tell_elsewhere("the agent has finished");
                }
                self.aborting = None;
            }
            Event::MessageStart { message } => self.transcript.message_start(message),
            // What still comes of an aborted answer would only keep the screen moving.
            Event::MessageUpdate { .. } if self.aborting.is_some() => {}
            Event::MessageUpdate { assistant_message_event, .. } => {
                self.transcript.delta(assistant_message_event);
            }
            Event::MessageEnd { message } => {
                if let Message::Assistant(m) = &**message {
                    self.status.used(&m.usage);
                }
                self.transcript.message_end(message);
            }
            Event::ToolExecutionStart { tool_call_id, tool_name, args } => {
                self.transcript.tool_started(tool_call_id, tool_name, args);
            }
            Event::ToolExecutionUpdate { tool_call_id, partial_result, .. } => {
                self.transcript.tool_updated(tool_call_id, &partial_result.content);
            }
            Event::ToolExecutionEnd {
                tool_call_id, result, is_error, duration_ms, effective_args, ..
            } => {
                let effective = effective_args.as_ref();
                self.transcript.tool_ended(tool_call_id, result, *is_error, Some(*duration_ms), effective);
            }
            Event::BashExecutionUpdate { delta, .. } => self.transcript.bash_output(delta),
            Event::BashExecuted { message } => {
                self.bash = false;
                self.transcript.bash_ended(message);
            }
            Event::QueueUpdate { steering, follow_up } => {
                self.queue = (steering.clone(), follow_up.clone());
            }
            Event::SessionReady { reason, session_id, .. } => self.session_is_ready(*reason, session_id),
            Event::TreeMoved { editor_text, .. } => {
                self.status.forget(false);
                self.transcript.remark("the session is at another place");
                if let Some(text) = editor_text
                    && self.composer.is_empty()
                {
                    self.composer.set(text);
                }
                self.ask(Op::SessionMessages, Want::Replay);
            }
            Event::DialogOpened { id, dialog, extension } => {
                self.dialogs.push_back(Open::new(*id, dialog.clone(), extension));
                self.tell_elsewhere(dialog.title());
            }
            Event::DialogClosed { id } => self.dialogs.retain(|d| d.id != *id),
            Event::Status { key, text, extension } => self.status.set(extension, key, text.as_deref()),
            Event::Surface { update, extension } => match self.surfaces.take(update, extension) {
                Wish::Nothing => {}
                Wish::Title(title) => self.bytes += &bell::title(&title),
                Wish::EditorText(text) => self.composer.set(&crate::sanitize::text(&text)),
                Wish::Paste(text) => self.composer.paste(&crate::sanitize::text(&text)),
                Wish::ToolsExpanded(on) => self.transcript.expanded = on,
                Wish::ThinkingLabel(label) => self.transcript.thinking_label = label,
            },
            Event::CompactionStart { .. } => self.compacting = true,
            Event::CompactionEnd { result, .. } => {
                self.compacting = false;
                if result.is_some() {
                    self.status.forget(false);
                }
                self.transcript.note(event);
            }
            Event::EngineLost { .. } => {
                (self.ready, self.bash, self.compacting) = (false, false, false);
                (self.aborting, self.running_since) = (None, None);
                self.queue = Default::default();
                self.surfaces.clear();
                self.transcript.note(event);
                self.tell_elsewhere("the engine was lost");
            }
            Event::Stopped => self.end = Some(Ended::Quit { from_signal: false }),
            _ => self.transcript.note(event),
        }
    }

    fn session_is_ready(&mut self, reason: StartReason, id: &str) {
        self.ready = true;
        match reason {
            StartReason::New => {
                self.status.forget(true);
                self.transcript.remark(&format!("· new session {id}"));
            }
            // The one that is shown goes on: in another engine.
            StartReason::Resume | StartReason::Fork if self.shown == id => {}
            StartReason::Resume | StartReason::Fork => {
                self.status.forget(true);
                self.ask(Op::SessionMessages, Want::Replay);
            }
            StartReason::Startup | StartReason::Reload => {}
        }
        id.clone_into(&mut self.shown);
        let name = self.handle.view(|v| v.session_name.clone());
        let folder = self.handle.view(|v| v.cwd.file_name().map(|n| n.to_string_lossy().into_owned()));
        let title = name.or(folder).unwrap_or_default();
        self.bytes += &bell::title(&format!("atomic · {title}"));
    }

    pub(super) fn answer(&mut self, want: Want, answer: Result<Value, OpError>) {
        self.waiting = self.waiting.saturating_sub(1);
        let answer = match answer {
            Ok(answer) => answer,
            Err(e) => {
                if want == Want::Bash {
                    self.bash = false;
                }
                // What a lost engine owed was told with its loss, and a compaction has its own events.
                if !matches!(e.code.as_str(), "engine_lost" | "compact_failed" | "compact_cancelled") {
                    let card = self.program.card(&e.code, &e.message);
                    self.transcript.error(card.trim_end());
                }
                if let Want::Prompt(text) = want {
                    self.give_back(&text, &e.code);
                }
                return;
            }
        };
        match want {
            Want::Other | Want::Bash | Want::Prompt(_) => {
                if let Some(text) = answer.get("text").and_then(Value::as_str) {
                    self.transcript.plain(text);
                }
                self.taken_back(&answer);
            }
            Want::Done(what) => {
                if answer.get("cancelled") != Some(&Value::Bool(true)) {
                    self.transcript.remark(what);
                }
            }
            Want::Follow(id) => {
                if let Some(follow) = self.follows.remove(&id) {
                    let step = (follow.0)(&answer);
                    self.step(step, false);
                }
            }
            Want::Replay => self.replay(&answer),
            Want::Model | Want::Level => self.chosen(&want, &answer),
            _ => self.picked_or_listed(want, &answer),
        }
    }

    /// What could not be delivered is in the editor again, if nothing else is.
    fn give_back(&mut self, text: &str, code: &str) {
        self.transcript.unsaid(text);
        if self.composer.is_empty() && code != "engine_lost" {
            self.composer.set(text);
        }
    }

    /// The answer of `Op::ClearQueue`.
    fn taken_back(&mut self, queue: &Value) {
        let texts = ["steering", "followUp"].into_iter().filter_map(|k| queue.get(k)?.as_array()).flatten();
        let texts: Vec<String> = texts.filter_map(Value::as_str).map(str::to_owned).collect();
        if texts.is_empty() {
            return;
        }
        for text in &texts {
            self.transcript.unsaid(text);
        }
        let mut all = texts;
        if !self.composer.is_empty() {
            all.push(self.composer.text());
        }
        self.composer.set(&all.join("\n\n"));
    }

    fn replay(&mut self, answer: &Value) {
        let Some(messages) = answer.get("messages").and_then(Value::as_array) else { return };
        // What is further up is in its file, and in /tree.
        const SHOWN: usize = 200;
        let left_out = messages.len().saturating_sub(SHOWN);
        if left_out > 0 {
            self.transcript.remark(&format!("… {left_out} earlier messages"));
        }
        for message in &messages[left_out..] {
            if let Ok(message) = serde_json::from_value::<Message>(message.clone()) {
                if let Message::Assistant(m) = &message {
                    self.status.used(&m.usage);
                }
                self.transcript.replay(&message);
            }
        }
        self.transcript.replayed();
    }

    fn chosen(&mut self, want: &Want, answer: &Value) {
        if answer.is_null() {
            return self.transcript.remark(match want {
                Want::Model => "there is no other model",
                _ => "this model has no other level of thinking",
            });
        }
        if *want == Want::Level
            && let Some(level) = answer.get("level").and_then(Value::as_str)
        {
            self.transcript.remark(&format!("thinking: {level}"));
        }
        if *want == Want::Model {
            let model = &answer["model"];
            let (provider, id) = (model["provider"].as_str(), model["id"].as_str());
            self.transcript.remark(&format!(
                "model: {}/{}",
                provider.unwrap_or_default(),
                id.unwrap_or_default()
            ));
        }
    }
}

//! `atomic -p`: the last answer's text on stdout, everything else on stderr (events.md G.7).

use super::end;
use crate::{
    card::Card,
    launch::Launched,
    sanitize,
    signals::{self, Signal},
    stdio::{self, Stdio},
};
use atomic_agent::{
    event::Event,
    hooks::InputSource,
    message::{Content, Message},
    op::{Op, OpError},
};
use serde_json::Value;
use std::{io::Write, sync::Arc};
use tokio::sync::mpsc;

/// What a headless session does with its events.
pub trait Output {
    /// In order. `false`: nobody reads any more.
    fn event(&mut self, event: &Event) -> bool;
}

/// How a headless session went.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The last message of the transcript.
    pub last: Option<Message>,
    /// The last data that a tool ended a run with, and the tool.
    structured: Option<(String, Value)>,
    /// A prompt was refused, or its command failed.
    pub failed: bool,
    /// The last prompt was one of those: its output is suppressed.
    pub last_failed: bool,
    pub signal: Option<Signal>,
    pub closed: bool,
}

impl Outcome {
    pub fn exit_code(&self) -> u8 {
        match self.signal {
            Some(signal) => signal.exit_code(),
            None => u8::from(self.failed || self.error().is_some()),
        }
    }

    /// What a tool with structured output ended the run with (events.md E.2): nothing was said
    /// after it.
    fn data(&self, launched: &Launched) -> Option<&Value> {
        let (tool, data) = self.structured.as_ref()?;
        let meant = launched.handle.view(|v| v.tools.iter().any(|t| t.name == *tool && t.structured_output));
        (meant && matches!(self.last, Some(Message::ToolResult(_)))).then_some(data)
    }
    /// Why the last answer is none.
    pub fn error(&self) -> Option<Card> {
        let message = self.last.as_ref()?.as_assistant().filter(|m| m.failed())?;
        Some(Card::of_answer(message))
    }
}

struct Silent;

impl Output for Silent {
    fn event(&mut self, _: &Event) -> bool {
        true
    }
}

pub async fn run(mut launched: Launched, stdio: &mut Stdio) -> Result<u8, Card> {
    let outcome = say_all(&mut launched, &mut Silent, &mut stdio.err).await?;
    if outcome.signal.is_none() && !outcome.last_failed {
        match outcome.error() {
            Some(card) => drop(write!(stdio.err, "{card}")),
            None => {
                let text = match outcome.data(&launched) {
                    Some(data) => format!("{data}\n"),
                    None => outcome.last.as_ref().map(|m| answer(m, stdio.screen)).unwrap_or_default(),
                };
                let written = stdio.out.write_all(text.as_bytes()).and_then(|()| stdio.out.flush());
                if let Some(lost) = written.err().and_then(stdio::lost) {
                    end::shut_down(&launched, false).await;
                    return Err(lost);
                }
            }
        }
    }
    end::shut_down(&launched, outcome.signal.is_some()).await;
    Ok(outcome.exit_code())
}

/// Each message to settlement, the next one after.
pub async fn say_all(
    launched: &mut Launched,
    output: &mut dyn Output,
    err: &mut dyn Write,
) -> Result<Outcome, Card> {
    let mut signals = signals::listen(false)
        .map_err(|e| Card::new("cli::signals", "signals cannot be listened to").why(e.to_string()))?;
    let mut outcome = Outcome::default();
    for said in std::mem::take(&mut launched.messages) {
        let handle = launched.handle.clone();
        let turn = async {
            let prompt = Op::Prompt {
                text: said.text,
                images: said.images,
                streaming_behavior: None,
                source: InputSource::Interactive,
            };
            let answer = handle.request(prompt).await;
            let settled = handle.request(Op::WaitForIdle).await;
            answer.and_then(|a| settled.map(|_| a))
        };
        tokio::pin!(turn);
        let answer = loop {
            tokio::select! {
                biased;
                Some(event) = launched.events.recv() => take(&event, output, err, &mut outcome),
                signal = signals.recv() => {
                    outcome.signal = signal;
                    return Ok(outcome);
                }
                answer = &mut turn => break answer,
            }
            if outcome.closed {
                return Ok(outcome);
            }
        };
        drain(&mut launched.events, output, err, &mut outcome);
        outcome.last_failed = report(answer, err);
        outcome.failed |= outcome.last_failed;
    }
    Ok(outcome)
}

/// Everything that was told before the answer is in the channel by now.
fn drain(
    events: &mut mpsc::UnboundedReceiver<Arc<Event>>,
    output: &mut dyn Output,
    err: &mut dyn Write,
    outcome: &mut Outcome,
) {
    while let Ok(event) = events.try_recv() {
        take(&event, output, err, outcome);
    }
}

fn take(event: &Event, output: &mut dyn Output, err: &mut dyn Write, outcome: &mut Outcome) {
    match event {
        Event::MessageEnd { message } => outcome.last = Some((**message).clone()),
        Event::ToolExecutionEnd { tool_name, result, is_error: false, .. } if result.terminate => {
            outcome.structured = result.structured_content.clone().map(|data| (tool_name.clone(), data));
        }
        Event::ExtensionError { extension_path, event, error } => {
            let text = format!("extension {extension_path}: {event}: {error}");
            let _ = writeln!(err, "{}", sanitize::text(&text));
        }
        Event::Notify { message, level, extension } if level != "info" => {
            // An error of the host's own: the run came to nothing, whatever the last message says.
            outcome.failed |= level == "error" && extension.is_none();
            let by = extension.as_ref().map(|e| format!("{e}: ")).unwrap_or_default();
            let _ = writeln!(err, "{level}: {}", sanitize::text(&format!("{by}{message}")));
        }
        _ => {}
    }
    outcome.closed |= !output.event(event);
}

/// Whether the prompt came to nothing.
fn report(answer: Result<Value, OpError>, err: &mut dyn Write) -> bool {
    match answer {
        // What a command threw was told as an event of the extension.
        Ok(answer) => answer.get("error").is_some(),
        Err(e) => {
            let _ = write!(err, "{}", Card::told(&e.code, &e.message));
            true
        }
    }
}

/// What print mode shows of the last message. As data it is left as it is; a screen gets it clean.
fn answer(message: &Message, screen: bool) -> String {
    let shown = |text: &str| if screen { sanitize::text(text) } else { text.to_owned() } + "\n";
    match message {
        Message::Assistant(m) => m.content.iter().filter_map(Content::as_text).map(shown).collect(),
        Message::Custom(m) if m.display => shown(&m.content.plain_text()),
        _ => String::new(),
    }
}

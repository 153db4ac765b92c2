//! What front ends ask extensions for: lines of their renderers, text of their markdown
//! transformers, their keys (events.md E.1, boundary.md 12). Handlers run on a thread that may
//! be lost, and whatever goes wrong is the default.

use crate::{
    breadcrumb::{self, kind},
    dispatch::{Asked, ask_entry},
    generation::Generation,
    host::Extensions,
    load::{EventState, Live},
    registry::{Of, RendererKind, ShortcutEntry},
};
use atomic_agent::{
    event::Event,
    surface::{Line, Span},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};

/// Whoever draws slower than this is passed over and named.
const LIMIT: Duration = Duration::from_secs(5);

/// What a renderer made of a message or an entry.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "kind", content = "lines")]
pub enum Rendering {
    /// As if there were no renderer.
    #[default]
    Default,
    Hidden,
    Lines(Vec<Line>),
}

/// A key an extension takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShortcutInfo {
    pub key: String,
    pub description: Option<String>,
    pub prefer_editor: bool,
    pub keybinding: Option<String>,
    pub extension: String,
}

#[derive(Deserialize)]
struct Out<T> {
    result: T,
}

/// No terminal bytes, whatever an extension writes: control characters and those that change
/// the direction of text.
pub(crate) fn clean(lines: &mut [Line]) {
    let bad = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    for span in lines.iter_mut().flatten() {
        let Span { text, fg, bg, .. } = span;
        text.retain(|c| !bad(c));
        for colour in [fg, bg] {
            *colour = colour.take().filter(|c| !c.contains(bad));
        }
    }
}

impl Extensions {
    /// A synchronous handler on a thread of its own.
    async fn drawn<T: for<'de> Deserialize<'de>, E>(
        &self,
        of: &Of<E>,
        handler: u64,
        event: &Value,
    ) -> Option<T> {
        self.drawn_by(&of.generation, &of.live, handler, event).await
    }

    async fn drawn_by<T: for<'de> Deserialize<'de>>(
        &self,
        generation: &Arc<Generation>,
        live: &Arc<Live>,
        handler: u64,
        event: &Value,
    ) -> Option<T> {
        let owner = generation.owner();
        let (generation, live) = (generation.clone(), live.clone());
        let state = EventState::ready(serde_json::to_vec(event).unwrap_or_default());
        let task = self.runtime().spawn_blocking(move || here(&generation, &live, handler, &state));
        let place = event.get("type").and_then(Value::as_str).unwrap_or_default();
        let error = match tokio::time::timeout(LIMIT, task).await {
            Ok(Ok(Some(Ok(bytes)))) => match serde_json::from_slice::<Out<T>>(&bytes) {
                Ok(out) => return Some(out.result),
                Err(e) => format!("malformed result: {e}"),
            },
            Ok(Ok(Some(Err(text)))) => text,
            // Reloaded meanwhile.
            Ok(Ok(None)) => return None,
            Ok(Err(e)) => e.to_string(),
            Err(_) => format!("no lines within {} s", LIMIT.as_secs()),
        };
        self.diagnose(owner, place, &error);
        None
    }

    async fn render(&self, which: RendererKind, value: &Value, options: Value) -> Rendering {
        let Some(custom_type) = value.get("customType").and_then(Value::as_str) else {
            return Rendering::Default;
        };
        let Some(renderer) = self.published().renderer(which, custom_type).cloned() else {
            return Rendering::Default;
        };
        let event = json!({"type": which.event(), "value": value, "options": options});
        match self.drawn(&renderer, renderer.entry.handler, &event).await {
            Some(Rendering::Lines(mut lines)) => {
                clean(&mut lines);
                Rendering::Lines(lines)
            }
            other => other.unwrap_or_default(),
        }
    }

    /// A `custom` message, by the renderer of its type.
    pub async fn render_message(&self, message: &Value, expanded: bool, width: u16) -> Rendering {
        let options = json!({"expanded": expanded, "width": width});
        self.render(RendererKind::Message, message, options).await
    }

    /// A call of an extension's tool, or what there is of its result, by the tool's own renderer.
    /// `view`: `{toolCallId, args, result?, argsComplete, executionStarted, isPartial, isError}`.
    pub async fn render_tool(&self, tool: &str, view: &Value, expanded: bool, width: u16) -> Rendering {
        let published = self.published();
        let Some(t) = published.tools.iter().find(|t| t.entry.spec.name == tool) else {
            return Rendering::Default;
        };
        let of_result = view.get("result").is_some_and(|r| !r.is_null());
        let handler = if of_result { t.entry.render_result } else { t.entry.render_call };
        let Some(handler) = handler else { return Rendering::Default };
        let event = json!({
            "type": "render_tool", "value": view, "options": {"expanded": expanded, "width": width},
        });
        match self.drawn_by(&t.generation, &t.live, handler, &event).await {
            Some(Rendering::Lines(mut lines)) => {
                clean(&mut lines);
                Rendering::Lines(lines)
            }
            other => other.unwrap_or_default(),
        }
    }

    /// A `custom` entry, by the renderer of its type; without one it is not shown.
    pub async fn render_entry(&self, entry: &Value, expanded: bool, width: u16) -> Rendering {
        let options = json!({"expanded": expanded, "width": width});
        self.render(RendererKind::Entry, entry, options).await
    }

    /// Markdown as it is to be shown, through all transformers in load order. `message_type`:
    /// `user`, `assistant`, `assistant-thinking`.
    pub async fn transform_markdown(
        &self,
        mut markdown: String,
        message_type: &str,
        is_streaming: bool,
        available_width: u16,
    ) -> String {
        let published = self.published();
        for transformer in &published.transformers {
            let event = json!({
                "type": "markdown", "markdown": markdown,
                "options": {
                    "messageType": message_type, "isStreaming": is_streaming, "availableWidth": available_width,
                },
            });
            if let Some(text) = self.drawn::<String, _>(transformer, transformer.entry, &event).await {
                markdown = text;
            }
        }
        markdown
    }

    /// The keys that extensions take, conflicts settled.
    pub fn shortcuts(&self) -> Vec<ShortcutInfo> {
        let info = |s: &Of<ShortcutEntry>| ShortcutInfo {
            key: s.entry.key.clone(),
            description: s.entry.description.clone(),
            prefer_editor: s.entry.prefer_editor,
            keybinding: s.entry.keybinding.clone(),
            extension: s.registered.name.clone(),
        };
        self.published().shortcuts.iter().map(info).collect()
    }

    /// What a key does. `None`: no extension takes it. A fault is one diagnostic.
    pub async fn run_shortcut(&self, key: &str) -> Option<Result<(), String>> {
        let key = key.to_lowercase();
        let shortcut = self.published().shortcuts.iter().find(|s| s.entry.key == key)?.clone();
        let event = json!({"type": "shortcut", "key": key});
        let state = EventState::ready(serde_json::to_vec(&event).unwrap_or_default());
        let asked = ask_entry(
            &shortcut.generation,
            &shortcut.live,
            shortcut.entry.handler,
            kind::COMMAND,
            &state,
            |_| {},
        )
        .await;
        let error = match asked {
            Asked::Answered(_) => return Some(Ok(())),
            Asked::Failed(e) => e.message,
            Asked::Reloaded => "the extension was reloaded while it ran".to_owned(),
            Asked::Overran(t) => format!("no answer within {} s", t.as_secs()),
        };
        self.tell(Event::ExtensionError {
            extension_path: format!("shortcut:{key}"),
            event: "shortcut".to_owned(),
            error: format!("{}: {error}", shortcut.registered.name),
        });
        Some(Err(error))
    }
}

/// `None`: its generation is over.
pub(crate) fn here(
    generation: &Arc<Generation>,
    live: &Live,
    handler: u64,
    state: &Arc<EventState>,
) -> Option<Result<Vec<u8>, String>> {
    let call = generation.enter(kind::TASK)?;
    let frame = breadcrumb::push(generation.owner(), kind::TASK);
    let outcome = live.sync(handler, call.id(), state);
    breadcrumb::pop(frame);
    Some(outcome.map_err(|e| e.message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_would_obey_is_left_in_a_line() {
        let span =
            |text: &str| Span { text: text.into(), fg: Some("acc\u{1b}ent".into()), ..Span::default() };
        let mut lines = vec![vec![span("a\u{1b}[31mb\u{9b}c\u{202e}d\ne")]];
        clean(&mut lines);
        assert_eq!(lines[0][0].text, "a[31mbcde");
        assert_eq!(lines[0][0].fg, None);
    }
}

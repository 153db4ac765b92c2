//! Commands of extensions: the list, and running one.

use crate::{
    breadcrumb::kind,
    dispatch::{Asked, ask_entry},
    host::Extensions,
    load::EventState,
};
use atomic_agent::{event::Event, hooks::CommandInfo};
use serde_json::json;

impl Extensions {
    pub(crate) fn command_list(&self) -> Vec<CommandInfo> {
        let published = self.published();
        let info = |c: &crate::registry::PublishedCommand| CommandInfo {
            name: c.name.clone(),
            description: c.entry.description.clone(),
            extension: c.registered.name.clone(),
            path: c.registered.path.clone(),
        };
        published.commands.iter().map(info).collect()
    }

    /// A fault is one diagnostic of `command:<name>` (events.md E.1) that names the extension, and
    /// the command's error.
    pub(crate) async fn run_command(&self, name: &str, args: &str) -> Option<Result<(), String>> {
        let command = self.published().commands.iter().find(|c| c.name == name)?.clone();
        let event = json!({"type": "command", "name": name, "args": args});
        let state = EventState::ready(serde_json::to_vec(&event).unwrap_or_default());
        let asked = ask_entry(
            &command.generation,
            &command.live,
            command.entry.handler,
            kind::COMMAND,
            &state,
            |_| {},
        )
        .await;
        let error = match asked {
            Asked::Answered(_) => return Some(Ok(())),
            Asked::Failed(e) => e.message,
            Asked::Reloaded => format!("extension {} was reloaded while it ran", command.registered.name),
            Asked::Overran(t) => format!("no answer within {} s", t.as_secs()),
        };
        tracing::warn!(extension = command.registered.name, name, error, "a command failed");
        self.tell(Event::ExtensionError {
            extension_path: format!("command:{name}"),
            event: "command".to_owned(),
            error: format!("{}: {error}", command.registered.name),
        });
        Some(Err(error))
    }

    /// Completions of a command's arguments; `None`: it has none.
    pub async fn complete_command(&self, name: &str, prefix: &str) -> Option<serde_json::Value> {
        let command = self.published().commands.iter().find(|c| c.name == name)?.clone();
        let handler = command.entry.completions?;
        let event = json!({"type": "completions", "prefix": prefix});
        let state = EventState::ready(serde_json::to_vec(&event).unwrap_or_default());
        match ask_entry(&command.generation, &command.live, handler, kind::COMMAND, &state, |_| {}).await {
            Asked::Answered(bytes) => {
                serde_json::from_slice::<serde_json::Value>(&bytes).ok()?.get("result").cloned()
            }
            _ => None,
        }
    }
}

//! Lists that take the editor's place, and the commands that open them.

use super::{App, Want};
use crate::{
    bell,
    keys::Action,
    list::{Item, List},
    styled,
    theme::{Role, Theme},
};
use atomic_agent::{
    model::ThinkingLevel,
    op::{ForkPosition, Op},
};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::text::Line;
use serde_json::Value;
use std::path::PathBuf;

/// What a choice does.
#[derive(Clone, Debug)]
pub(super) enum Choice {
    Session(PathBuf),
    Fork(String),
    Tree(String),
    Model(String),
    Level(ThinkingLevel),
    Theme(String),
}

pub(super) struct Picker {
    title: String,
    list: List<Choice>,
}

impl Picker {
    fn new(title: &str, items: Vec<Item<Choice>>) -> Self {
        Picker { title: title.to_owned(), list: List::new(items) }
    }

    pub(super) fn push(&mut self, c: char) {
        self.list.push(c);
    }

    pub(super) fn rows(
        &self,
        columns: usize,
        room: usize,
        theme: &Theme,
    ) -> (Vec<Line<'static>>, Option<(u16, u16)>) {
        let head = format!("{} {}", self.title, self.list.filter());
        let head = styled::cut(&styled::line(&head, theme.style(Role::Accent)), columns);
        let at = u16::try_from(styled::width(&self.title) + 1 + styled::width(self.list.filter()));
        let mut rows = vec![head];
        rows.extend(self.list.rows(columns, room.saturating_sub(4).clamp(1, 15), theme));
        let hint = styled::line("  Enter chooses, typing narrows, Escape closes", theme.style(Role::Dim));
        rows.push(styled::cut(&hint, columns));
        rows.truncate(room);
        (rows, at.ok().map(|x| (x, 0)))
    }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// How long ago, for a list.
fn ago(ms: u64) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let seconds = u64::try_from(now.as_millis()).unwrap_or(0).saturating_sub(ms) / 1000;
    match seconds {
        0..60 => "now".to_owned(),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{} KB", bytes / 1024),
        _ => format!("{:.1} MB", bytes as f64 / 1_048_576.0),
    }
}

impl App {
    /// Commands that this face has a list or a row for. `false`: the program's.
    pub(super) fn own_command(&mut self, line: &str) -> bool {
        let Some(command) = line.strip_prefix('/') else { return false };
        let (name, args) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        let args = args.trim();
        match (name, args) {
            ("resume", "") => {
                self.ask(
                    Op::ListSessions { all: false, search: None, offset: 0, limit: 500 },
                    Want::Sessions,
                );
            }
            ("fork", "") => self.ask(Op::ForkMessages, Want::Messages),
            ("tree", "") => self.ask(Op::SessionTree, Want::Tree),
            ("session", "") => self.ask(Op::SessionStats, Want::Stats),
            ("model", "") => self.ask(Op::ListModels, Want::Models),
            ("model", pattern) => self.ask(Op::ChooseModel { pattern: pattern.to_owned() }, Want::Model),
            ("thinking", "") => self.pick_level(),
            ("theme", "") => self.pick_theme(),
            ("theme", name) => self.use_theme(name),
            ("settings", "") => {
                let text = self.program.settings();
                self.transcript.plain(&text);
            }
            ("hotkeys", "") => self.show_keys(),
            ("copy", "") => match self.transcript.last_answer() {
                Some(answer) => {
                    self.bytes += &bell::copy(answer);
                    self.transcript.remark("the last answer is in the clipboard, if the terminal lets it in");
                }
                None => self.transcript.remark("there is no answer yet"),
            },
            _ => return false,
        }
        true
    }

    fn show_keys(&mut self) {
        let table = self.settings.keys.table();
        let widest = table.iter().map(|(keys, _)| styled::width(keys)).max().unwrap_or(0);
        let lines: Vec<String> = table
            .iter()
            .filter(|(keys, _)| !keys.is_empty())
            .map(|(keys, what)| format!("  {keys}{}  {what}", " ".repeat(widest - styled::width(keys))))
            .collect();
        self.transcript.plain(&lines.join("\n"));
    }

    fn pick_level(&mut self) {
        let now = self.handle.view(|v| v.thinking);
        let items = ThinkingLevel::ALL
            .into_iter()
            .map(|level| {
                let name = serde_json::to_value(level).ok();
                let name = name.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
                Item::new(name, if level == now { "now" } else { "" }, Choice::Level(level))
            })
            .collect();
        let mut picker = Picker::new("how much the model thinks:", items);
        picker.list.select(ThinkingLevel::ALL.iter().position(|l| *l == now).unwrap_or(0));
        self.picker = Some(picker);
    }

    fn pick_theme(&mut self) {
        let now = self.transcript.theme.name.clone();
        let names = self.program.themes();
        let items = names
            .iter()
            .map(|n| Item::new(n, if *n == now { "now" } else { "" }, Choice::Theme(n.clone())))
            .collect();
        self.picker = Some(Picker::new("theme:", items));
    }

    fn use_theme(&mut self, name: &str) {
        match self.program.theme(name) {
            Ok(theme) => {
                self.transcript.theme = theme;
                let kept = self.program.keep_theme(name);
                self.transcript.remark(&format!("theme: {name}"));
                if let Err(card) = kept {
                    self.transcript.warning(card.trim_end());
                }
            }
            Err(card) => self.transcript.error(card.trim_end()),
        }
    }

    pub(super) fn picked_or_listed(&mut self, want: Want, answer: &Value) {
        let list = |key: &str| answer.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
        let (title, nothing, items) = match want {
            Want::Sessions => {
                let items: Vec<_> = list("sessions").iter().map(session).collect();
                ("session:", "no session of this folder matches", items)
            }
            Want::Messages => {
                let items = list("messages")
                    .iter()
                    .rev()
                    .map(|m| Item::new(text(m, "text"), "", Choice::Fork(text(m, "entryId").to_owned())))
                    .collect();
                ("begin anew before:", "there is nothing to begin anew from", items)
            }
            Want::Tree => ("go to:", "the session is empty", list("nodes").iter().map(node).collect()),
            Want::Models => {
                let items = list("models").iter().map(model).collect();
                ("model:", "no model has a key; `atomic auth login PROVIDER` stores one", items)
            }
            Want::Stats => return self.show_stats(answer),
            Want::Moved => {
                for key in ["text", "editorText"] {
                    if let Some(said) = answer.get(key).and_then(Value::as_str) {
                        self.composer.set(said);
                    }
                }
                if answer.get("cancelled") == Some(&Value::Bool(true)) {
                    self.transcript.remark("an extension keeps this session");
                }
                return;
            }
            _ => return,
        };
        if items.is_empty() {
            return self.transcript.remark(nothing);
        }
        let mut picker = Picker::new(title, items);
        if want == Want::Tree {
            // Where the session is comes last, most of the time.
            picker.list.select(usize::MAX);
        }
        self.picker = Some(picker);
    }

    fn show_stats(&mut self, stats: &Value) {
        let number = |path: &str| stats.pointer(path).and_then(Value::as_u64).unwrap_or(0);
        let cost = stats.get("cost").and_then(Value::as_f64).unwrap_or(0.0);
        let file = match text(stats, "sessionFile") {
            "" => "in no file",
            file => file,
        };
        let lines = [
            format!("session   {}", text(stats, "sessionId")),
            format!("name      {}", text(stats, "sessionName")),
            format!("file      {file} ({})", size(number("/fileSize"))),
            format!(
                "messages  {} of yours, {} answers",
                number("/userMessages"),
                number("/assistantMessages")
            ),
            format!("tools     {} calls", number("/toolCalls")),
            format!(
                "tokens    {} in, {} out, {} from the cache, ${cost:.3}",
                number("/tokens/input"),
                number("/tokens/output"),
                number("/tokens/cacheRead")
            ),
        ];
        self.transcript.plain(&lines.join("\n"));
    }

    pub(super) fn picker_key(&mut self, key: KeyEvent, action: Option<Action>) {
        let Some(picker) = &mut self.picker else { return };
        match (key.code, action) {
            (_, Some(Action::Abort | Action::Clear)) => self.picker = None,
            (_, Some(Action::Submit)) => {
                let chosen = picker.list.chosen().map(|i| i.value.clone());
                if let Some(choice) = chosen {
                    self.picker = None;
                    self.choose(choice);
                }
            }
            (_, Some(Action::Up)) => picker.list.step(-1),
            (_, Some(Action::Down)) => picker.list.step(1),
            (_, Some(Action::PageUp)) => picker.list.step(-10),
            (_, Some(Action::PageDown)) => picker.list.step(10),
            (KeyCode::Backspace, _) => picker.list.pop(),
            (KeyCode::Char(c), _) if !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) => {
                picker.list.push(c);
            }
            _ => {}
        }
    }

    fn choose(&mut self, choice: Choice) {
        match choice {
            Choice::Session(path) => self.ask(Op::SwitchSession { path, origin: None }, Want::Moved),
            Choice::Fork(entry_id) => {
                let position = ForkPosition::Before;
                self.ask(Op::Fork { entry_id, position, origin: None }, Want::Moved);
            }
            Choice::Tree(target_id) => self.ask(
                Op::NavigateTree {
                    target_id,
                    summarize: false,
                    custom_instructions: None,
                    replace_instructions: false,
                    label: None,
                },
                Want::Moved,
            ),
            Choice::Model(pattern) => self.ask(Op::ChooseModel { pattern }, Want::Model),
            Choice::Level(level) => {
                self.ask(Op::SetThinkingLevel { level }, Want::Done("the model thinks as chosen"));
            }
            Choice::Theme(name) => self.use_theme(&name),
        }
    }
}

fn session(s: &Value) -> Item<Choice> {
    let number = |key: &str| s.get(key).and_then(Value::as_u64).unwrap_or(0);
    let name = match (text(s, "name"), text(s, "firstMessage")) {
        ("", "") => text(s, "id"),
        ("", first) => first,
        (name, _) => name,
    };
    let now = if s.get("current") == Some(&Value::Bool(true)) { " · this one" } else { "" };
    let detail = format!("{} · {}{now}", ago(number("modified")), size(number("size")));
    Item::new(name, detail, Choice::Session(text(s, "path").into()))
}

fn node(n: &Value) -> Item<Choice> {
    let depth = n.get("depth").and_then(Value::as_u64).unwrap_or(0).min(12);
    let kind = match text(n, "role") {
        "" => text(n, "type"),
        role => role,
    };
    let mark = if n.get("onPath") == Some(&Value::Bool(true)) { "•" } else { " " };
    let indent = "  ".repeat(usize::try_from(depth).unwrap_or(0));
    let mut item = Item::new("", text(n, "label"), Choice::Tree(text(n, "id").to_owned()));
    let said = crate::sanitize::line(text(n, "text"), 200);
    item.label = format!("{mark} {indent}{}: {said}", crate::sanitize::line(kind, 30));
    item
}

fn model(m: &Value) -> Item<Choice> {
    let name = format!("{}/{}", text(m, "provider"), text(m, "id"));
    let now = if m.get("current") == Some(&Value::Bool(true)) { " · now" } else { "" };
    let window = m.get("contextWindow").and_then(Value::as_u64).unwrap_or(0) / 1000;
    Item::new(&name, format!("{} · {window}k{now}", text(m, "name")), Choice::Model(name.clone()))
}

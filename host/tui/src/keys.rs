//! Which key does what. `keybindings.json` gives an action other keys: `{"action": "ctrl+x"}` or a
//! list of keys; an empty list takes it off the keyboard.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::Value;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Submit,
    NewLine,
    FollowUp,
    Abort,
    Clear,
    Quit,
    Suspend,
    Complete,
    Up,
    Down,
    PageUp,
    PageDown,
    CycleModel,
    CycleModelBack,
    SelectModel,
    CycleThinking,
    ToggleThinking,
    ExpandTools,
    ShowResult,
    ExternalEditor,
    TakeBack,
}

/// Every action: its name in the file, its keys, what it does.
pub const ACTIONS: [(Action, &str, &[&str], &str); 21] = [
    (Action::Submit, "app.submit", &["enter"], "send; while the agent works, it is told at its next step"),
    (Action::NewLine, "app.newLine", &["shift+enter", "ctrl+j"], "another line"),
    (Action::FollowUp, "app.followUp", &["alt+enter"], "send once the agent has finished"),
    (Action::Abort, "app.interrupt", &["escape"], "stop the agent, close a list, refuse a question"),
    (Action::Clear, "app.clear", &["ctrl+c"], "empty the editor, stop the agent; twice leaves"),
    (Action::Quit, "app.exit", &["ctrl+d"], "leave, when nothing is typed"),
    (Action::Suspend, "app.suspend", &["ctrl+z"], "to the shell; `fg` comes back"),
    (Action::Complete, "app.complete", &["tab"], "take what is offered"),
    (Action::Up, "app.up", &["up"], "in a list; what was said before"),
    (Action::Down, "app.down", &["down"], "in a list; what was said after"),
    (Action::PageUp, "app.pageUp", &["pageup"], "in a list"),
    (Action::PageDown, "app.pageDown", &["pagedown"], "in a list"),
    (Action::CycleModel, "app.model.cycleForward", &["ctrl+p"], "the next model"),
    (Action::CycleModelBack, "app.model.cycleBackward", &["shift+ctrl+p"], "the model before"),
    (Action::SelectModel, "app.model.select", &["ctrl+l"], "choose a model"),
    (Action::CycleThinking, "app.thinking.cycle", &["shift+tab"], "how much the model thinks"),
    (Action::ToggleThinking, "app.thinking.toggle", &["ctrl+t"], "hide or show what the model thinks"),
    (Action::ExpandTools, "app.tools.expand", &["ctrl+r"], "show results of tools whole, or short"),
    (Action::ShowResult, "app.tools.show", &["ctrl+o"], "the whole of the last result"),
    (Action::ExternalEditor, "app.editor.external", &["ctrl+g"], "write in $VISUAL or $EDITOR"),
    (Action::TakeBack, "app.message.dequeue", &["alt+up"], "take what is queued back into the editor"),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Chord {
    code: KeyCode,
    modifiers: KeyModifiers,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Keymap(Vec<(Chord, Action)>);

impl Default for Keymap {
    fn default() -> Self {
        let of = |(action, _, keys, _): &(Action, &str, &[&str], &str)| {
            keys.iter().filter_map(|k| Some((chord(k)?, *action))).collect::<Vec<_>>()
        };
        Keymap(ACTIONS.iter().flat_map(of).collect())
    }
}

impl Keymap {
    /// With what the file says. What it does not understand is answered beside it.
    pub fn read(json: &Value) -> (Self, Vec<String>) {
        let (mut map, mut problems) = (Keymap::default(), Vec::new());
        let Some(object) = json.as_object() else {
            return (map, vec!["it is no object of actions and keys".to_owned()]);
        };
        for (name, value) in object {
            let Some((action, ..)) = ACTIONS.iter().find(|(_, n, ..)| n == name) else {
                problems.push(format!("there is no action {name}"));
                continue;
            };
            let keys: Option<Vec<&str>> = match value {
                Value::String(key) => Some(vec![key]),
                Value::Array(keys) => keys.iter().map(Value::as_str).collect(),
                _ => None,
            };
            let Some(keys) = keys else {
                problems.push(format!("{name}: keys are a text or a list of texts"));
                continue;
            };
            map.0.retain(|(_, a)| a != action);
            for key in keys {
                match chord(key) {
                    // The later word wins: one key does one thing.
                    Some(chord) => {
                        map.0.retain(|(c, _)| *c != chord);
                        map.0.push((chord, *action));
                    }
                    None => problems.push(format!("{name}: {key} is no key")),
                }
            }
        }
        (map, problems)
    }

    pub fn action(&self, key: &KeyEvent) -> Option<Action> {
        let pressed = normal(key.code, key.modifiers);
        self.0.iter().find(|(c, _)| *c == pressed).map(|(_, a)| *a)
    }

    /// The first key of an action, as a person reads it.
    pub fn key_of(&self, action: Action) -> Option<String> {
        self.0.iter().find(|(_, a)| *a == action).map(|(c, _)| shown(*c))
    }

    /// Every action with its keys and what it does.
    pub fn table(&self) -> Vec<(String, &'static str)> {
        ACTIONS
            .iter()
            .map(|(action, _, _, what)| {
                let keys: Vec<String> =
                    self.0.iter().filter(|(_, a)| a == action).map(|(c, _)| shown(*c)).collect();
                (keys.join(", "), *what)
            })
            .collect()
    }
}

/// Terminals tell the same key in several ways.
fn normal(code: KeyCode, modifiers: KeyModifiers) -> Chord {
    let keep = KeyModifiers::CONTROL | KeyModifiers::ALT | KeyModifiers::SHIFT;
    let mut modifiers = modifiers & keep;
    let code = match code {
        KeyCode::BackTab => {
            modifiers |= KeyModifiers::SHIFT;
            KeyCode::Tab
        }
        KeyCode::Char(c) if c.is_ascii_uppercase() => {
            modifiers |= KeyModifiers::SHIFT;
            KeyCode::Char(c.to_ascii_lowercase())
        }
        other => other,
    };
    Chord { code, modifiers }
}

fn chord(text: &str) -> Option<Chord> {
    let mut modifiers = KeyModifiers::NONE;
    let mut code = None;
    for part in text.to_lowercase().split('+') {
        match part.trim() {
            "ctrl" | "control" => modifiers |= KeyModifiers::CONTROL,
            "alt" | "option" | "meta" => modifiers |= KeyModifiers::ALT,
            "shift" => modifiers |= KeyModifiers::SHIFT,
            key if code.is_none() => code = Some(key_code(key)?),
            _ => return None,
        }
    }
    Some(normal(code?, modifiers))
}

fn key_code(name: &str) -> Option<KeyCode> {
    Some(match name {
        "enter" | "return" => KeyCode::Enter,
        "escape" | "esc" => KeyCode::Esc,
        "tab" => KeyCode::Tab,
        "space" => KeyCode::Char(' '),
        "backspace" => KeyCode::Backspace,
        "delete" => KeyCode::Delete,
        "insert" => KeyCode::Insert,
        "up" => KeyCode::Up,
        "down" => KeyCode::Down,
        "left" => KeyCode::Left,
        "right" => KeyCode::Right,
        "home" => KeyCode::Home,
        "end" => KeyCode::End,
        "pageup" => KeyCode::PageUp,
        "pagedown" => KeyCode::PageDown,
        _ => match (name.strip_prefix('f').and_then(|n| n.parse().ok()), name.chars().count()) {
            (Some(n @ 1..=24), _) => KeyCode::F(n),
            (_, 1) => KeyCode::Char(name.chars().next()?),
            _ => return None,
        },
    })
}

fn shown(chord: Chord) -> String {
    let mut out = String::new();
    for (modifier, name) in
        [(KeyModifiers::CONTROL, "Ctrl+"), (KeyModifiers::ALT, "Alt+"), (KeyModifiers::SHIFT, "Shift+")]
    {
        if chord.modifiers.contains(modifier) {
            out += name;
        }
    }
    out + &match chord.code {
        KeyCode::Char(' ') => "Space".to_owned(),
        KeyCode::Char(c) => c.to_uppercase().to_string(),
        KeyCode::Esc => "Escape".to_owned(),
        KeyCode::F(n) => format!("F{n}"),
        other => format!("{other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn press(code: KeyCode, modifiers: KeyModifiers) -> KeyEvent {
        KeyEvent::new(code, modifiers)
    }

    #[test]
    fn every_action_has_a_key_and_no_key_has_two() {
        let map = Keymap::default();
        for (action, name, ..) in ACTIONS {
            assert!(map.key_of(action).is_some(), "{name}");
        }
        for (n, (chord, _)) in map.0.iter().enumerate() {
            assert!(map.0[n + 1..].iter().all(|(c, _)| c != chord), "{chord:?}");
        }
    }

    #[test]
    fn the_file_gives_an_action_other_keys_and_what_it_cannot_mean_is_said() {
        let (map, problems) = Keymap::read(&json!({"app.submit": ["ctrl+s", "hyper+x"], "app.nope": "a",
            "app.exit": [], "app.clear": 5}));
        assert_eq!(map.action(&press(KeyCode::Char('s'), KeyModifiers::CONTROL)), Some(Action::Submit));
        assert_eq!(map.action(&press(KeyCode::Enter, KeyModifiers::NONE)), None);
        assert_eq!(map.action(&press(KeyCode::Char('d'), KeyModifiers::CONTROL)), None);
        assert_eq!(map.action(&press(KeyCode::Char('c'), KeyModifiers::CONTROL)), Some(Action::Clear));
        assert_eq!(problems.len(), 3, "{problems:?}");
    }

    #[test]
    fn shift_tab_is_one_key_however_it_is_told() {
        let map = Keymap::default();
        for key in [press(KeyCode::BackTab, KeyModifiers::SHIFT), press(KeyCode::BackTab, KeyModifiers::NONE)]
        {
            assert_eq!(map.action(&key), Some(Action::CycleThinking));
        }
    }
}

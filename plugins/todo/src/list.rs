//! The list itself: what each action does to it. Knows no host.

use crate::TodoParams;
use atomic_plugin_api::prelude::*;
use std::fmt;

/// What can be done with the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(crate = "atomic_plugin_api::schemars")]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// One more.
    Add,
    /// Shows all.
    List,
    /// Done, or open again.
    Toggle,
    /// Takes one off.
    Remove,
    /// Takes all off.
    Clear,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Todo {
    /// Never used twice in a session.
    pub id: u64,
    pub text: String,
    #[serde(default)]
    pub done: bool,
}

/// All of them, as a session entry holds them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Todos {
    pub todos: Vec<Todo>,
    /// The last id that was given out.
    pub last_id: u64,
}

impl Todos {
    /// The list afterwards, and what the model is told.
    ///
    /// # Errors
    /// What is missing or unknown.
    pub fn apply(mut self, params: &TodoParams) -> Result<(Self, String)> {
        let said = match params.action {
            Action::List => self.to_string(),
            Action::Add => {
                let text = params.text.as_deref().map(str::trim).filter(|t| !t.is_empty());
                let text = text.ok_or_else(|| Error::new("bad_request", "add needs `text`"))?.to_owned();
                self.last_id += 1;
                let said = format!("Added #{}: {text}", self.last_id);
                self.todos.push(Todo { id: self.last_id, text, done: false });
                said
            }
            Action::Toggle => {
                let at = self.position(params)?;
                let todo = &mut self.todos[at];
                todo.done = !todo.done;
                format!("#{} is {}", todo.id, if todo.done { "done" } else { "open again" })
            }
            Action::Remove => {
                let gone = self.position(params).map(|at| self.todos.remove(at))?;
                format!("Removed #{}: {}", gone.id, gone.text)
            }
            Action::Clear => {
                let n = self.todos.len();
                self.todos.clear();
                format!("Removed {n}")
            }
        };
        Ok((self, said))
    }

    fn position(&self, params: &TodoParams) -> Result<usize> {
        let id = params.id.ok_or_else(|| Error::new("bad_request", "toggle and remove need `id`"))?;
        let at = self.todos.iter().position(|t| t.id == id);
        at.ok_or_else(|| Error::new("bad_request", format!("there is no #{id}; `list` shows the numbers")))
    }
}

impl fmt::Display for Todos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.todos.is_empty() {
            return f.write_str("Nothing to do.");
        }
        for (n, t) in self.todos.iter().enumerate() {
            let line_break = if n > 0 { "\n" } else { "" };
            write!(f, "{line_break}[{}] #{} {}", if t.done { 'x' } else { ' ' }, t.id, t.text)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(list: Todos, action: Action, text: Option<&str>, id: Option<u64>) -> Result<(Todos, String)> {
        list.apply(&TodoParams { action, text: text.map(str::to_owned), id })
    }

    #[test]
    fn a_list_is_added_to_toggled_and_emptied() {
        let (list, _) = step(Todos::default(), Action::Add, Some("a"), None).unwrap();
        let (list, said) = step(list, Action::Add, Some(" b "), None).unwrap();
        assert_eq!(said, "Added #2: b");
        let (list, _) = step(list, Action::Toggle, None, Some(1)).unwrap();
        assert_eq!(list.to_string(), "[x] #1 a\n[ ] #2 b");
        let (list, _) = step(list, Action::Remove, None, Some(1)).unwrap();
        let (list, _) = step(list, Action::Add, Some("c"), None).unwrap();
        assert_eq!(list.to_string(), "[ ] #2 b\n[ ] #3 c", "no number is used twice");
        let (list, _) = step(list, Action::Clear, None, None).unwrap();
        assert_eq!(list.to_string(), "Nothing to do.");
    }

    #[test]
    fn what_is_missing_is_said_and_nothing_changes() {
        for (action, text, id) in [
            (Action::Add, None, None),
            (Action::Add, Some("  "), None),
            (Action::Toggle, None, None),
            (Action::Remove, None, Some(9)),
        ] {
            assert!(step(Todos::default(), action, text, id).is_err(), "{action:?}");
        }
    }

    #[test]
    fn an_entry_of_an_older_or_newer_version_is_still_read() {
        let entry = r#"{"todos":[{"id":1,"text":"a","colour":"red"}],"more":1}"#;
        let list: Todos = serde_json::from_str(entry).unwrap();
        assert_eq!(list.to_string(), "[ ] #1 a");
    }
}

//! What can be completed where the cursor is: commands behind a slash, files behind an `@`.

use crate::list::{Item, List};

/// What the list stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Command,
    File,
}

pub struct Palette {
    pub kind: Kind,
    pub list: List<String>,
    /// Characters before the cursor that a choice takes the place of.
    pub typed: usize,
    word: String,
    /// The user went to the marked one.
    pub moved: bool,
}

/// The word that is being typed, if it is one to complete: its kind and what is typed of it.
pub fn wanted(before_cursor: &str, first_line: bool) -> Option<(Kind, &str)> {
    if first_line
        && let Some(command) = before_cursor.strip_prefix('/')
        && !command.contains([' ', '/'])
    {
        return Some((Kind::Command, command));
    }
    let at = before_cursor.rfind('@')?;
    let path = &before_cursor[at + 1..];
    let begins_a_word = before_cursor[..at].chars().next_back().is_none_or(char::is_whitespace);
    (begins_a_word && !path.contains(char::is_whitespace)).then_some((Kind::File, path))
}

impl Palette {
    pub fn new(kind: Kind, typed: &str, items: Vec<Item<String>>) -> Option<Self> {
        let mut list = List::new(items);
        list.set_filter(typed);
        if list.is_empty() {
            return None;
        }
        Some(Palette { kind, list, typed: typed.chars().count(), word: typed.to_owned(), moved: false })
    }

    pub fn step(&mut self, by: isize) {
        self.moved = true;
        self.list.step(by);
    }

    /// Enter means the marked one: the user went there, or began to type its name. What only looks
    /// like it is not run; what is typed whole is.
    pub fn meant(&self) -> bool {
        let begun = self.list.chosen().is_some_and(|i| i.value.starts_with(&self.word));
        self.moved || begun && !self.list.has(&self.word)
    }

    /// What a choice puts into the editor.
    pub fn text(&self) -> Option<String> {
        let chosen = &self.list.chosen()?.value;
        let folder = self.kind == Kind::File && chosen.ends_with('/');
        Some(if folder { chosen.clone() } else { format!("{chosen} ") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enter_runs_what_was_begun_or_chosen_and_nothing_that_only_looks_like_it() {
        let items =
            || ["tree", "reload", "name", "names"].map(|n| Item::new(n, "nope", n.to_owned())).to_vec();
        let palette = |typed: &str| Palette::new(Kind::Command, typed, items()).unwrap();
        assert!(!palette("nope").meant());
        assert!(palette("relo").meant());
        assert!(!palette("name").meant(), "it is typed whole");
        let mut chosen = palette("nope");
        chosen.step(1);
        assert!(chosen.meant());
    }

    #[test]
    fn commands_begin_the_text_and_files_begin_a_word() {
        assert_eq!(wanted("/re", true), Some((Kind::Command, "re")));
        assert_eq!(wanted("/", true), Some((Kind::Command, "")));
        assert_eq!(wanted("/re", false), None);
        assert_eq!(wanted("/reload x", true), None);
        assert_eq!(wanted("/etc/hosts", true), None);
        assert_eq!(wanted("look at @src/ma", true), Some((Kind::File, "src/ma")));
        assert_eq!(wanted("me@home", true), None);
        assert_eq!(wanted("@a b", true), None);
    }
}

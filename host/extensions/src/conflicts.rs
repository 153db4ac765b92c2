//! Names that two extensions share, as a person should read it: one line for two files and one
//! kind, however many names they share (decisions.md "Conflicts and errors").

use crate::registry::Source;
use std::path::PathBuf;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conflict {
    Tool,
    /// Of the program itself; both files are the one that replaces it.
    Builtin,
    Flag,
    Command,
}

struct Group {
    kind: Conflict,
    first: PathBuf,
    second: PathBuf,
    names: Vec<String>,
}

#[derive(Default)]
pub(crate) struct Conflicts(Vec<Group>);

/// More names than these are counted.
const SHOWN: usize = 5;

impl Conflicts {
    pub(crate) fn add(&mut self, kind: Conflict, first: &Source, second: &Source, name: &str) {
        let (first, second) = (&first.registered.path, &second.registered.path);
        let group = self.0.iter_mut().find(|g| g.kind == kind && g.first == *first && g.second == *second);
        match group {
            Some(g) => g.names.push(name.to_owned()),
            None => self.0.push(Group {
                kind,
                first: first.clone(),
                second: second.clone(),
                names: vec![name.to_owned()],
            }),
        }
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.iter().map(Group::line).collect()
    }
}

impl Group {
    fn line(&self) -> String {
        let (first, second) = (self.first.display(), self.second.display());
        let many = self.names.len() > 1;
        let names = |prefix: &str| {
            let mut text: Vec<String> =
                self.names.iter().take(SHOWN).map(|n| format!("{prefix}{}", n.escape_debug())).collect();
            if self.names.len() > SHOWN {
                text.push(format!("{} more", self.names.len() - SHOWN));
            }
            text.join(", ")
        };
        let s = if many { "s" } else { "" };
        match self.kind {
            Conflict::Tool => format!(
                "tool{s} {}: {first} keeps {}, {} of {second} {} dropped; the rest of that extension works",
                names(""),
                if many { "them" } else { "it" },
                if many { "those" } else { "the one" },
                if many { "are" } else { "is" },
            ),
            Conflict::Builtin => format!("tool{s} {}: {first} replaces the program's own", names("")),
            Conflict::Flag => format!(
                "flag{s} {}: {first} says what {} is, {second} reads the same value",
                names("--"),
                if many { "each" } else { "it" },
            ),
            Conflict::Command => format!(
                "command{s} {}: in both {first} and {second}; each got a number, /NAME:1 and so on (/help lists them)",
                names("/"),
            ),
        }
    }
}

//! What a typed line means.

use super::sessions::Wish;
use crate::{card::Card, nearest::nearest};
use atomic_agent::hooks::CommandInfo;

#[derive(Debug, PartialEq)]
pub enum Line {
    Nothing,
    Quit,
    Help,
    /// A command of the program that the engine's side answers.
    Host {
        name: String,
        args: String,
    },
    Reload {
        names: Vec<String>,
        now: bool,
    },
    New,
    Login(String),
    Logout(String),
    /// With what matters, in the user's words.
    Compact(Option<String>),
    Session(Wish),
    Bash {
        command: String,
        hidden: bool,
    },
    /// Looks like a command, and nobody has it.
    Unknown(Card),
    /// For the agent, or for an extension's command.
    Say(String),
}

/// The program's own commands, with what they do.
pub const OWN: [(&str, &str); 19] = [
    ("/reload [NAME]... [--now]", "take in changed extensions; --now aborts the run first"),
    ("/extensions [disable|enable NAME]", "what is loaded; switch one off or on"),
    ("/model [NAME]", "which model answers; NAME chooses another, :LEVEL sets how much it thinks"),
    ("/thinking [LEVEL]", "how much the model thinks"),
    ("/login PROVIDER", "store a key; it is not shown"),
    ("/logout PROVIDER", "remove a stored key"),
    ("/trust", "whether this folder is trusted, and another answer"),
    ("/new", "another session"),
    ("/compact [WHAT MATTERS]", "shorten the conversation: lines go, none is written"),
    ("/resume [NUMBER|WORDS|FILE]", "go on with an earlier session"),
    ("/fork [NUMBER]", "begin anew before one of your messages, in a session of its own"),
    ("/clone", "another session that begins as this one"),
    ("/tree [NUMBER] [--summarize] [--label TEXT]", "go to another place of this session"),
    ("/name [TEXT]", "what this session is called"),
    ("/session", "its file and its numbers"),
    ("/import FILE", "go on with a copy of a session file from elsewhere"),
    ("/help", "this list"),
    ("/quit", "leave; Ctrl+D does the same"),
    ("!COMMAND", "run a shell command; with !! the agent does not see it"),
];

pub fn parse(line: &str, commands: &[CommandInfo]) -> Line {
    let line = line.trim();
    if line.is_empty() {
        return Line::Nothing;
    }
    if let Some(rest) = line.strip_prefix('!') {
        let (command, hidden) = match rest.strip_prefix('!') {
            Some(rest) => (rest.trim(), true),
            None => (rest.trim(), false),
        };
        if command.is_empty() {
            return Line::Nothing;
        }
        return Line::Bash { command: command.to_owned(), hidden };
    }
    let Some(command) = line.strip_prefix('/') else { return Line::Say(line.to_owned()) };
    let mut words = command.split_whitespace();
    let name = words.next().unwrap_or_default();
    match name {
        "quit" => Line::Quit,
        "exit" if !commands.iter().any(|c| c.name == name) => Line::Quit,
        "help" => Line::Help,
        "login" | "logout" => {
            let provider = words.next().unwrap_or_default().to_owned();
            match (provider.is_empty(), name) {
                (true, _) => Line::Unknown(
                    Card::new("cli::no_provider", format!("/{name} needs the name of a provider"))
                        .help("`atomic auth list` shows the providers"),
                ),
                (false, "login") => Line::Login(provider),
                (false, _) => Line::Logout(provider),
            }
        }
        "extensions" | "trust" | "model" | "thinking" => {
            Line::Host { name: name.to_owned(), args: words.collect::<Vec<_>>().join(" ") }
        }
        "new" => Line::New,
        "compact" => {
            let wish = command["compact".len()..].trim();
            Line::Compact((!wish.is_empty()).then(|| wish.to_owned()))
        }
        _ if let Some(wish) = Wish::parse(name, command.strip_prefix(name).unwrap_or_default()) => {
            wish.map_or_else(Line::Unknown, Line::Session)
        }
        "reload" => {
            let (options, names): (Vec<&str>, Vec<&str>) = words.partition(|w| w.starts_with("--"));
            match options.iter().find(|o| **o != "--now") {
                Some(other) => Line::Unknown(
                    Card::new("lines::unknown_option", format!("/reload has no option {other}"))
                        .help("/reload [NAME]... [--now]"),
                ),
                None => Line::Reload {
                    names: names.into_iter().map(str::to_owned).collect(),
                    now: !options.is_empty(),
                },
            }
        }
        _ if commands.iter().any(|c| c.name == name) => Line::Say(line.to_owned()),
        // A path at the beginning of a message is no command.
        _ if name.contains('/') || name.is_empty() => Line::Say(line.to_owned()),
        _ => Line::Unknown(unknown(name, commands)),
    }
}

fn unknown(name: &str, commands: &[CommandInfo]) -> Card {
    let own = OWN.iter().filter_map(|(c, _)| c.strip_prefix('/')?.split(' ').next()).map(str::to_owned);
    let all = commands.iter().map(|c| c.name.clone()).chain(own);
    let card = Card::new("lines::unknown_command", format!("there is no command /{name}"));
    // Of several extensions with a command of one name, each has its own with a number.
    let numbered = |c: &&CommandInfo| c.name.split_once(':').is_some_and(|(bare, _)| bare == name);
    let owners: Vec<String> =
        commands.iter().filter(numbered).map(|c| format!("/{} ({})", c.name, c.extension)).collect();
    if !owners.is_empty() {
        return Card::new("lines::ambiguous_command", format!("several extensions have a command /{name}"))
            .help(format!("say which: {}", owners.join(", ")));
    }
    match nearest(name, all) {
        Some(near) => card.help(format!("did you mean /{near}?")),
        _ => card.help("/help lists the commands"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands() -> Vec<CommandInfo> {
        vec![CommandInfo {
            name: "todo".into(),
            description: None,
            extension: "todo".into(),
            path: "/x/libtodo.so".into(),
        }]
    }

    #[test]
    fn lines_are_told_apart() {
        let parse = |line| super::parse(line, &commands());
        assert_eq!(parse("  "), Line::Nothing);
        assert_eq!(parse("/quit"), Line::Quit);
        assert_eq!(parse("/reload greet --now"), Line::Reload { names: vec!["greet".into()], now: true });
        assert_eq!(parse("!ls -l"), Line::Bash { command: "ls -l".into(), hidden: false });
        assert_eq!(parse("!! env"), Line::Bash { command: "env".into(), hidden: true });
        assert_eq!(parse("/compact"), Line::Compact(None));
        assert_eq!(parse("/compact  the  parser "), Line::Compact(Some("the  parser".into())));
        assert_eq!(parse("/todo add x"), Line::Say("/todo add x".into()));
        assert_eq!(parse("/etc/hosts is what?"), Line::Say("/etc/hosts is what?".into()));
        assert_eq!(parse("fix it"), Line::Say("fix it".into()));
    }

    #[test]
    fn a_name_with_two_owners_is_answered_with_both() {
        let of = |name: &str, extension: &str| CommandInfo {
            name: name.into(),
            description: None,
            extension: extension.into(),
            path: "/x".into(),
        };
        let commands = [of("n:1", "a"), of("n:2", "b")];
        let Line::Unknown(card) = super::parse("/n", &commands) else { panic!("it was taken") };
        assert_eq!(card.code, "lines::ambiguous_command");
        assert!(card.to_string().contains("/n:1 (a), /n:2 (b)"), "{card}");
    }

    #[test]
    fn a_command_nobody_has_is_not_sent_to_the_model() {
        let Line::Unknown(card) = parse("/todos", &commands()) else { panic!("it was taken") };
        assert!(card.to_string().contains("/todo"), "{card}");
    }
}

//! Flags that extensions register. Nobody knows them before the extensions are loaded, so the
//! command line is read twice: what clap does not know is set aside first, and settled after.

use crate::{card::Card, nearest::nearest};
use clap::Command;
use serde_json::Value;
use std::{collections::BTreeMap, ffi::OsString};

/// A `--name` that is not the program's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsettled {
    pub name: String,
    /// `--name=value`.
    pub inline: Option<String>,
    /// Index, among the messages, of the word that follows: its value, if it takes one.
    pub follower: Option<usize>,
}

/// The part of an extension's flag that reading it needs.
#[derive(Debug, Clone)]
pub struct Declared {
    pub name: String,
    pub takes_value: bool,
}

/// Splits `args` (without the program's name) into clap's part and what is left over.
pub fn set_aside(command: &Command, args: Vec<OsString>) -> (Vec<OsString>, Vec<Unsettled>) {
    let mut own = Vec::new();
    let mut unsettled = Vec::new();
    let mut messages = 0;
    let mut args = args.into_iter().peekable();
    while let Some(arg) = args.next() {
        let Some(text) = arg.to_str().map(str::to_owned) else {
            own.push(arg);
            messages += 1;
            continue;
        };
        if text == "--" {
            own.push(arg);
            own.extend(args);
            break;
        }
        if let Some(long) = text.strip_prefix("--") {
            let (name, inline) = match long.split_once('=') {
                Some((n, v)) => (n, Some(v.to_owned())),
                None => (long, None),
            };
            match command.get_arguments().find(|a| a.get_long() == Some(name)) {
                Some(known) => {
                    own.push(arg);
                    if inline.is_none() && known.get_action().takes_values() {
                        own.extend(args.next());
                    }
                }
                None => {
                    let is_word = |a: &OsString| !a.to_string_lossy().starts_with('-');
                    let follower = (inline.is_none() && args.peek().is_some_and(is_word)).then_some(messages);
                    unsettled.push(Unsettled { name: name.to_owned(), inline, follower });
                }
            }
            continue;
        }
        if text.len() > 1 && text.starts_with('-') {
            let takes = |c: char| {
                command.get_arguments().any(|a| a.get_short() == Some(c) && a.get_action().takes_values())
            };
            // `-e PATH`, but not `-ePATH`: only the last letter's value is a word of its own.
            let value_follows = text.chars().next_back().is_some_and(takes)
                && text.chars().skip(1).position(takes) == Some(text.chars().count() - 2);
            own.push(arg);
            if value_follows {
                own.extend(args.next());
            }
            continue;
        }
        if messages == 0 && unsettled.is_empty() && command.find_subcommand(&text).is_some() {
            own.push(arg);
            own.extend(args);
            break;
        }
        own.push(arg);
        messages += 1;
    }
    (own, unsettled)
}

/// Gives each flag its value; a value that followed as a word leaves the messages.
pub fn settle(
    unsettled: Vec<Unsettled>,
    declared: &[Declared],
    own: &Command,
    messages: &mut Vec<String>,
) -> Result<BTreeMap<String, Value>, Card> {
    let mut values = BTreeMap::new();
    let mut taken = Vec::new();
    for flag in unsettled {
        let Some(known) = declared.iter().find(|d| d.name == flag.name) else {
            return Err(unknown(&flag.name, declared, own));
        };
        let value = if known.takes_value {
            let word = flag.follower.and_then(|i| {
                taken.push(i);
                messages.get(i).cloned()
            });
            match flag.inline.or(word) {
                Some(text) => Value::String(text),
                None => {
                    return Err(Card::new("cli::flag_value", format!("--{} needs a value", flag.name))
                        .help(format!("write --{} VALUE or --{}=VALUE", flag.name, flag.name)));
                }
            }
        } else {
            match flag.inline.as_deref() {
                None | Some("true") => Value::Bool(true),
                Some("false") => Value::Bool(false),
                Some(other) => {
                    return Err(Card::new(
                        "cli::flag_value",
                        format!("--{} is either given or not; '{other}' is no value of it", flag.name),
                    )
                    .help(format!("write --{0} or --{0}=false", flag.name)));
                }
            }
        };
        values.insert(flag.name, value);
    }
    taken.sort_unstable();
    for index in taken.into_iter().rev() {
        messages.remove(index);
    }
    Ok(values)
}

fn unknown(name: &str, declared: &[Declared], own: &Command) -> Card {
    let all = declared
        .iter()
        .map(|d| d.name.clone())
        .chain(own.get_arguments().filter_map(|a| a.get_long().map(str::to_owned)));
    let card =
        Card::new("cli::unknown_flag", format!("--{name} is not a flag of atomic or of a loaded extension"));
    match nearest(name, all) {
        Some(near) => card.help(format!("did you mean --{near}?")),
        _ => card.help("atomic --help-all lists the flags; a flag of an extension exists once it is loaded"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Args;
    use clap::CommandFactory;

    fn split(line: &str) -> (Vec<String>, Vec<Unsettled>) {
        let args = line.split_whitespace().map(OsString::from).collect();
        let mut command = Args::command();
        command.build();
        let (own, rest) = set_aside(&command, args);
        (own.into_iter().map(|a| a.into_string().unwrap()).collect(), rest)
    }

    fn declared() -> Vec<Declared> {
        vec![
            Declared { name: "event-log".into(), takes_value: true },
            Declared { name: "plan".into(), takes_value: false },
        ]
    }

    #[test]
    fn the_programs_own_flags_stay_with_clap() {
        let (own, rest) = split("-p --model offline/scripted -e lib.so --offline hi");
        assert_eq!(own, ["-p", "--model", "offline/scripted", "-e", "lib.so", "--offline", "hi"]);
        assert!(rest.is_empty());
        assert!(split("--version").1.is_empty(), "clap adds it while it builds");
    }

    #[test]
    fn the_flags_that_clap_adds_are_the_programs_own() {
        for flag in ["--version", "-V", "--help", "--help-all"] {
            assert_eq!(split(flag), (vec![flag.to_owned()], vec![]));
        }
    }

    #[test]
    fn a_string_flag_takes_the_word_that_follows_and_a_boolean_one_leaves_it_to_the_prompt() {
        let (own, rest) = split("-p --event-log out.jsonl --plan hello");
        let mut messages: Vec<String> = own[1..].to_vec();
        assert_eq!(messages, ["out.jsonl", "hello"]);
        let values = settle(rest, &declared(), &Args::command(), &mut messages).unwrap();
        assert_eq!(values["event-log"], "out.jsonl");
        assert_eq!(values["plan"], true);
        assert_eq!(messages, ["hello"]);
    }

    #[test]
    fn an_unknown_flag_is_an_error_that_names_the_nearest() {
        let (_, rest) = split("--evnt-log=x hi");
        let card = settle(rest, &declared(), &Args::command(), &mut vec!["hi".into()]).unwrap_err();
        assert_eq!(card.code, "cli::unknown_flag");
        assert!(card.to_string().contains("--event-log"), "{card}");
    }

    #[test]
    fn a_string_flag_without_a_value_is_an_error() {
        let (_, rest) = split("--event-log");
        let card = settle(rest, &declared(), &Args::command(), &mut Vec::new()).unwrap_err();
        assert_eq!(card.code, "cli::flag_value");
    }

    #[test]
    fn nothing_is_set_aside_after_a_double_dash_or_a_subcommand() {
        assert!(split("extension run x -- --flag").1.is_empty());
        assert!(split("-- --flag").1.is_empty());
        assert!(split("demo --what").1.is_empty());
    }
}

//! `atomic explain CODE`: the long text of a card's code.

use crate::{card::Card, nearest::nearest, stdio};

const TEXTS: &str = include_str!("../templates/explain.md");

pub fn run(code: Option<&str>) -> Result<u8, Card> {
    let Some(code) = code else { return Ok(stdio::say(&list())) };
    match text(code) {
        Some(text) => Ok(stdio::say(&format!("{text}\n"))),
        None => {
            let card = Card::new("cli::unknown_code", format!("there is nothing more to say about '{code}'"));
            Err(match nearest(code, codes().map(str::to_owned)) {
                Some(near) => card.help(format!("did you mean {near}?")),
                None => card.help("`atomic explain` lists the codes"),
            })
        }
    }
}

/// Every code, those that share a text on one line.
fn list() -> String {
    let mut out = String::new();
    for (codes, _) in sections() {
        out += &format!("{codes}\n");
    }
    out + "\natomic explain CODE says more. Codes without `::` are what an author of an extension, or a program, reads.\n"
}

fn sections() -> impl Iterator<Item = (&'static str, &'static str)> {
    TEXTS.split("\n## ").skip(1).filter_map(|s| s.split_once('\n'))
}

fn codes() -> impl Iterator<Item = &'static str> {
    sections().flat_map(|(codes, _)| codes.split(", "))
}

fn text(code: &str) -> Option<&'static str> {
    sections().find(|(codes, _)| codes.split(", ").any(|c| c == code)).map(|(_, text)| text.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        collections::BTreeSet,
        fs,
        path::{Path, PathBuf},
    };

    #[test]
    fn every_code_is_explained_once() {
        let all: Vec<&str> = codes().collect();
        for code in &all {
            assert_eq!(all.iter().filter(|c| c == &code).count(), 1, "{code}");
            assert!(text(code).is_some_and(|t| t.len() > 40), "{code}");
        }
    }

    /// Codes are string literals in the rooms that make them.
    #[test]
    fn every_code_of_the_program_is_explained() {
        let mut sources = Vec::new();
        collect(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")), &mut sources);
        assert!(sources.len() > 20);
        let rooms = ["cli", "lines", "demo", "extension", "program", "models", "tools"];
        let mut unexplained = BTreeSet::new();
        for source in sources {
            let text = fs::read_to_string(source).unwrap();
            for room in rooms {
                for (at, _) in text.match_indices(&format!("\"{room}::")) {
                    let code = text[at + 1..].split('"').next().unwrap();
                    let name = &code[room.len() + 2..];
                    let is_code =
                        !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
                    if is_code && super::text(code).is_none() {
                        unexplained.insert(code.to_owned());
                    }
                }
            }
        }
        assert!(unexplained.is_empty(), "add to templates/explain.md: {unexplained:?}");
    }

    /// So are those that an extension, or a client of the engine, reads in an error.
    #[test]
    fn every_code_an_author_meets_is_explained() {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let mut sources = Vec::new();
        for room in ["plugin-api", "host/extensions", "host/agent"] {
            collect(&root.join(room), &mut sources);
        }
        sources.retain(|s| !s.to_string_lossy().contains("test"));
        let mut unexplained = BTreeSet::new();
        for source in sources {
            let text = fs::read_to_string(&source).unwrap();
            let text = text.split("#[cfg(test)]").next().unwrap();
            for made in ["Error::new(", "Failure::new(", ".err("] {
                for (at, _) in text.match_indices(made) {
                    let Some(rest) = text[at + made.len()..].trim_start().strip_prefix('"') else { continue };
                    let code = rest.split('"').next().unwrap();
                    if super::text(code).is_none() {
                        unexplained.insert(format!("{code} ({})", source.display()));
                    }
                }
            }
        }
        assert!(unexplained.is_empty(), "add to templates/explain.md: {unexplained:#?}");
    }

    fn collect(dir: &Path, files: &mut Vec<PathBuf>) {
        for path in fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()) {
            if path.is_dir() {
                collect(&path, files);
            } else if path.extension().is_some_and(|e| e == "rs") && path.to_string_lossy().contains("/src/")
            {
                files.push(path);
            }
        }
    }
}

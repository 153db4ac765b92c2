//! `atomic explain CODE`: the long text of a card's code.

use crate::{card::Card, extension_flags::distance, stdio};

const TEXTS: &str = include_str!("../templates/explain.md");

pub fn run(code: &str) -> Result<u8, Card> {
    match text(code) {
        Some(text) => Ok(stdio::say(&format!("{text}\n"))),
        None => {
            let nearest = codes().map(|c| (distance(code, c), c)).min();
            let help = nearest.map(|(_, near)| format!("the nearest is {near}")).unwrap_or_default();
            Err(Card::new("cli::unknown_code", format!("there is nothing more to say about '{code}'"))
                .help(help))
        }
    }
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

    #[test]
    fn every_code_is_explained_once() {
        let all: Vec<&str> = codes().collect();
        for code in &all {
            assert_eq!(all.iter().filter(|c| c == &code).count(), 1, "{code}");
            assert!(text(code).is_some_and(|t| t.len() > 40), "{code}");
        }
        assert!(all.contains(&"cli::unknown_flag"));
    }
}

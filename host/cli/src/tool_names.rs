//! `--tools`: a name that nobody has is said before the model misses it. Known are the built-in
//! tools and those that extensions had registered when they were loaded.

use crate::{card::Card, nearest::nearest};

/// A card for each name that is no tool; an error if nothing of what was asked for is there.
pub fn check(asked: &[String], known: &[String]) -> Result<Vec<Card>, Card> {
    let asked: Vec<&String> = asked.iter().filter(|a| !a.is_empty()).collect();
    let unknown: Vec<&String> = asked.iter().filter(|a| !known.contains(a)).copied().collect();
    let mut cards = unknown.iter().map(|name| {
        let near = nearest(name, known.to_vec()).map(|n| format!("did you mean {n}? ")).unwrap_or_default();
        Card::new("cli::unknown_tool", format!("there is no tool '{name}'"))
            .help(format!("{near}There are {}", known.join(", ")))
    });
    if !unknown.is_empty()
        && unknown.len() == asked.len()
        && let Some(card) = cards.next()
    {
        return Err(card.why("so the model would have no tools at all"));
    }
    Ok(cards.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &str) -> Vec<String> {
        list.split(',').map(str::to_owned).collect()
    }

    #[test]
    fn a_tool_nobody_has_is_named_with_the_nearest_and_is_fatal_only_if_no_other_is_left() {
        let known = names("read,bash,greet");
        assert_eq!(check(&names("read,greet"), &known), Ok(Vec::new()));
        let cards = check(&names("raed,bash"), &known).unwrap();
        assert_eq!(cards.len(), 1);
        let text = cards[0].warning();
        for part in ["cli::unknown_tool", "'raed'", "did you mean read?", "read, bash, greet"] {
            assert!(text.contains(part), "{text}");
        }
        assert_eq!(check(&names("raed"), &known).unwrap_err().code, "cli::unknown_tool");
        assert_eq!(check(&names(""), &known), Ok(Vec::new()), "no tools is a wish, no mistake");
    }
}

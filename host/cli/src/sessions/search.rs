//! `atomic sessions search`: which sessions say something, and where.

use crate::{card::Card, sanitize, session_choice, stdio};
use atomic_agent::session::{self, Entry, Query};
use std::fmt::Write as _;

/// Places that are shown of one session.
const SHOWN: usize = 3;
/// Characters around a place.
const AROUND: usize = 50;

pub fn run(query: &Query, words: &str) -> Result<u8, Card> {
    let needle = words.trim().to_lowercase();
    if needle.is_empty() {
        return Err(
            Card::new("cli::no_words", "there is nothing to search for").help("atomic sessions search WORDS")
        );
    }
    let page = session::list(query).map_err(|e| session_choice::refused(&e))?;
    let mut text = String::new();
    for row in &page.sessions {
        let mut places = Vec::new();
        let mut more = 0;
        let read = session::each_line(&row.path, |_, line, _| {
            let Some(entry) = std::str::from_utf8(line).ok().and_then(Entry::parse) else { return };
            let said = entry.said();
            let Some(place) = around(&said, &needle) else { return };
            match places.len() < SHOWN {
                true => places.push(format!("    {}: {place}", entry.role().unwrap_or(entry.kind()))),
                false => more += 1,
            }
        });
        if let Err(e) = read {
            eprintln!("{}", sanitize::line(&e.to_string(), 300));
        }
        if places.is_empty() {
            continue;
        }
        let _ = writeln!(text, "{}", super::line(row, query.cwd.is_none()));
        for place in places {
            let _ = writeln!(text, "{}", sanitize::text(&place));
        }
        if more > 0 {
            let _ = writeln!(text, "    and {more} more");
        }
    }
    let found = !text.is_empty();
    if !found {
        text = "nothing of it was said\n".into();
    }
    Ok(stdio::say(&text).max(u8::from(!found)))
}

/// The first place where it is said, on one line.
fn around(text: &str, needle: &str) -> Option<String> {
    let lower = text.to_lowercase();
    let at = lower.find(needle)?;
    // Lower case may have another length; near is near enough.
    let before = lower.get(..at)?.chars().count();
    let from = before.saturating_sub(AROUND);
    let length = needle.chars().count() + 2 * AROUND;
    let part: String = text.chars().skip(from).take(length).collect();
    Some(part.split_whitespace().collect::<Vec<_>>().join(" "))
}

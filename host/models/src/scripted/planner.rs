//! What the offline model answers as a planner of a compaction: the oldest lines go, all but
//! those of the user and those that are protected, until as many are left as were asked for.

use atomic_agent::{
    compact::planner::{KEEP, NUMBERED, PROTECTED, SYSTEM},
    message::Message,
    model::ModelRequest,
};

/// `None`: it is asked something else.
pub(super) fn answer(request: &ModelRequest) -> Option<String> {
    if request.system_prompt != SYSTEM {
        return None;
    }
    let Message::User(question) = request.messages.first()? else { return None };
    let question = question.content.plain_text();
    let (head, numbered) = question.split_once(&format!("\n{NUMBERED}\n"))?;
    let of = |key: &str| head.lines().find_map(|l| l.strip_prefix(key));
    let keep: usize = of(KEEP)?.split_whitespace().next()?.parse().ok()?;
    let protected: Vec<(usize, usize)> = of(PROTECTED)?
        .split_whitespace()
        .filter_map(|run| run.split_once('-').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?))))
        .collect();
    let lines: Vec<(usize, &str)> = numbered
        .lines()
        .map_while(|l| l.split_once('→').and_then(|(n, line)| Some((n.parse().ok()?, line))))
        .collect();
    let spare = |n: usize| !protected.iter().any(|(a, b)| (*a..=*b).contains(&n));
    let mut left = lines.len().saturating_sub(keep);
    let mut gone: Vec<usize> = Vec::new();
    for users in [false, true] {
        for (n, line) in &lines {
            if left > 0 && spare(*n) && line.starts_with("[User]: ") == users {
                gone.push(*n);
                left -= 1;
            }
        }
    }
    gone.sort_unstable();
    Some(gone.into_iter().map(|n| format!("{n},{n}\n")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use atomic_agent::{
        compact::{planner, ranges},
        model::ThinkingLevel,
    };

    fn asked(question: &planner::Question<'_>) -> String {
        let request = ModelRequest {
            system_prompt: SYSTEM.to_owned(),
            messages: vec![Message::user(question.text(), 0)],
            tools: Vec::new(),
            thinking: ThinkingLevel::Off,
            max_tokens: None,
            session_id: String::new(),
        };
        answer(&request).unwrap()
    }

    #[test]
    fn the_oldest_lines_go_but_for_those_of_the_user_and_those_that_are_protected() {
        let lines: Vec<String> =
            ["[User]: a", "", "[Assistant]: b", "keep", "c\r", "d", "e→f"].map(str::to_owned).to_vec();
        let question =
            planner::Question { lines: &lines, first: 1, protected: &[4], keep: 4, query: "q\n1→x" };
        let records = planner::read(&asked(&question), None).unwrap();
        assert_eq!(ranges::usable(&records, 7, &[4]), [2..=3, 5..=5]);
        let few = planner::Question { keep: 0, ..question };
        let records = planner::read(&asked(&few), None).unwrap();
        assert_eq!(ranges::usable(&records, 7, &[4]), [1..=3, 5..=7]);
    }
}

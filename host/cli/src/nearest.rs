//! What somebody who mistyped a name may have meant. One rule for all of them: a letter in
//! three may be wrong, swapped ones count once; beyond that a suggestion only misleads.

/// The nearest of these, if it is near.
pub fn nearest(typed: &str, known: impl IntoIterator<Item = String>) -> Option<String> {
    let all = known.into_iter().map(|k| (distance(typed, &k), k));
    let (d, near) = all.min()?;
    (d <= tolerance(typed)).then_some(near)
}

/// How many letters of a word of this length may be wrong.
pub fn tolerance(typed: &str) -> usize {
    (typed.chars().count() / 3).max(1)
}

/// Letters to insert, delete, replace or swap with their neighbour.
pub fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut next = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let same = usize::from(a[i - 1] != b[j - 1]);
            next[j] = (row[j] + 1).min(next[j - 1] + 1).min(row[j - 1] + same);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                next[j] = next[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut row, next);
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_a_typo_away_is_offered_and_what_is_far_is_not() {
        let known = || ["read", "bash", "extension", "session_io"].map(str::to_owned);
        for (typed, near) in [
            ("raed", Some("read")),
            ("extnsoin", Some("extension")),
            ("bsh", Some("bash")),
            ("nonsense", None),
            ("zip", None),
            ("", None),
        ] {
            assert_eq!(nearest(typed, known()).as_deref(), near, "{typed}");
        }
    }
}

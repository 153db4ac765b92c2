//! From records of a planner to lines (events.md D.6): which lines go, and the markers that
//! stand for them. Pure arithmetic; whatever the records say, every line is kept or counted.

use std::{collections::BTreeMap, ops::RangeInclusive};

/// Lines to delete, 1-based and inclusive, as a planner names them.
pub type Record = (u64, u64);

/// `(filtered N lines)`: N, if the line is such a marker and nothing else.
pub fn marker(line: &str) -> Option<u64> {
    let digits = line.strip_prefix("(filtered ")?.strip_suffix(" lines)")?;
    let canonical = !digits.is_empty() && digits.len() <= 12 && !digits.starts_with('0');
    if !canonical || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

pub fn marker_line(n: u64) -> String {
    format!("(filtered {n} lines)")
}

/// Swapped if reversed, cut to `1..=lines`, sorted, merged, without protected lines. Empty:
/// nothing of the records can be used.
pub fn usable(records: &[Record], lines: usize, protected: &[usize]) -> Vec<RangeInclusive<usize>> {
    let last = lines as u64;
    let mut cut: Vec<(usize, usize)> = records
        .iter()
        .map(|&(a, b)| (a.min(b).max(1), a.max(b).min(last)))
        .filter(|(start, end)| start <= end)
        // Not larger than `lines`.
        .map(|(start, end)| (start as usize, end as usize))
        .collect();
    cut.sort_unstable();
    let mut merged: Vec<(usize, usize)> = Vec::new();
    for (start, end) in cut {
        match merged.last_mut() {
            Some(before) if start <= before.1 + 1 => before.1 = before.1.max(end),
            _ => merged.push((start, end)),
        }
    }
    let mut protected = protected.to_vec();
    protected.sort_unstable();
    let mut out = Vec::new();
    let mut next = 0;
    for (mut start, end) in merged {
        while protected.get(next).is_some_and(|p| *p < start) {
            next += 1;
        }
        while let Some(&p) = protected.get(next).filter(|p| **p <= end) {
            if start < p {
                out.push(start..=p - 1);
            }
            start = p + 1;
            next += 1;
        }
        if start <= end {
            out.push(start..=end);
        }
    }
    out
}

/// What is left of a region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reconstructed {
    pub text: String,
    /// Lines of the region that are gone, old markers among them.
    pub lines_deleted: usize,
    /// Markers that were made.
    pub range_count: usize,
}

/// Each run of deleted lines becomes one marker. An old marker beside a run joins it and counts
/// for what it stood for, unless it is protected.
pub fn reconstruct(
    lines: &[String],
    deleted: &[RangeInclusive<usize>],
    markers: &BTreeMap<usize, u64>,
    protected: &[usize],
) -> Reconstructed {
    let mut gone = vec![false; lines.len()];
    for range in deleted {
        for at in range.clone() {
            if let Some(slot) = gone.get_mut(at.wrapping_sub(1)) {
                *slot = true;
            }
        }
    }
    grow(&mut gone, markers, protected);
    let mut text = String::with_capacity(lines.iter().map(|l| l.len() + 1).sum());
    let (mut lines_deleted, mut range_count) = (0, 0);
    // How much the run that is open stands for.
    let mut run: Option<u64> = None;
    let mut close = |run: &mut Option<u64>, text: &mut String| {
        if let Some(n) = run.take() {
            range_count += 1;
            text.push_str(&marker_line(n));
            text.push('\n');
        }
    };
    for (at, line) in lines.iter().enumerate() {
        if gone[at] {
            lines_deleted += 1;
            let stands_for = markers.get(&(at + 1)).copied().unwrap_or(1);
            run = Some(run.unwrap_or(0).saturating_add(stands_for));
        } else {
            close(&mut run, &mut text);
            text.push_str(line);
            text.push('\n');
        }
    }
    close(&mut run, &mut text);
    text.pop();
    Reconstructed { text, lines_deleted, range_count }
}

/// One walk each way reaches the fixed point: a marker that joins passes it on to the next.
fn grow(gone: &mut [bool], markers: &BTreeMap<usize, u64>, protected: &[usize]) {
    let joins: Vec<usize> = markers.keys().copied().filter(|n| !protected.contains(n)).collect();
    let mut touch = |line: usize| {
        let at = line.wrapping_sub(1);
        let before = at.checked_sub(1).and_then(|b| gone.get(b)).copied().unwrap_or(false);
        let after = gone.get(at + 1).copied().unwrap_or(false);
        if (before || after)
            && let Some(slot) = gone.get_mut(at)
        {
            *slot = true;
        }
    };
    joins.iter().copied().for_each(&mut touch);
    joins.iter().rev().copied().for_each(&mut touch);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines(text: &[&str]) -> Vec<String> {
        text.iter().map(|l| (*l).to_owned()).collect()
    }

    fn markers(lines: &[String]) -> BTreeMap<usize, u64> {
        lines.iter().enumerate().filter_map(|(at, l)| Some((at + 1, marker(l)?))).collect()
    }

    #[test]
    fn only_a_whole_line_in_its_one_spelling_is_a_marker() {
        assert_eq!(marker("(filtered 12 lines)"), Some(12));
        for other in [
            "(filtered 0 lines)",
            "(filtered 012 lines)",
            "(filtered +1 lines)",
            "(filtered  lines)",
            " (filtered 1 lines)",
            "(filtered 1 lines)\r",
            "(filtered 9999999999999 lines)",
            "(filtered 1 line)",
            "(filtered ١ lines)",
        ] {
            assert_eq!(marker(other), None, "{other:?}");
        }
        assert_eq!(marker(&marker_line(7)), Some(7));
    }

    #[test]
    fn records_are_swapped_cut_merged_and_split_at_what_is_protected() {
        let got = usable(&[(9, 7), (3, 4), (5, 6), (0, 0), (90, 99), (18, u64::MAX)], 20, &[8, 19]);
        assert_eq!(got, [3..=7, 9..=9, 18..=18, 20..=20]);
        assert!(usable(&[(0, 0), (21, 30)], 20, &[]).is_empty());
        assert!(usable(&[(1, 3)], 20, &[3, 2, 1]).is_empty());
        assert!(usable(&[(1, 3)], 0, &[]).is_empty());
    }

    #[test]
    fn a_marker_beside_what_goes_joins_it_with_what_it_stood_for() {
        let all =
            lines(&["a", "(filtered 5 lines)", "(filtered 2 lines)", "b", "c", "(filtered 3 lines)", "d"]);
        let got = reconstruct(&all, &[4..=4], &markers(&all), &[]);
        assert_eq!(got.text, "a\n(filtered 8 lines)\nc\n(filtered 3 lines)\nd");
        assert_eq!((got.lines_deleted, got.range_count), (3, 1));
        let kept = reconstruct(&all, &[4..=4], &markers(&all), &[3]);
        assert_eq!(
            kept.text,
            "a\n(filtered 5 lines)\n(filtered 2 lines)\n(filtered 1 lines)\nc\n(filtered 3 lines)\nd"
        );
    }

    #[test]
    fn one_line_and_all_lines_are_cases_like_others() {
        let one = lines(&["x"]);
        let got = reconstruct(&one, &[1..=1], &BTreeMap::new(), &[]);
        assert_eq!(got.text, "(filtered 1 lines)");
        assert_eq!(reconstruct(&one, &[], &BTreeMap::new(), &[]).text, "x");
        let crlf = lines(&["a\r", "", "日本語", "b"]);
        assert_eq!(
            reconstruct(&crlf, &[2..=2], &BTreeMap::new(), &[]).text,
            "a\r\n(filtered 1 lines)\n日本語\nb"
        );
    }

    fn any_line() -> impl Strategy<Value = String> {
        prop_oneof![
            3 => "[a-zé日\\[\\]: \r]{0,6}",
            1 => Just(String::new()),
            1 => (1u64..1000).prop_map(marker_line),
        ]
    }

    /// What lines stand for: a marker for its N, any other for itself.
    fn weight<'a>(lines: impl Iterator<Item = &'a str>) -> u64 {
        lines.map(|l| marker(l).unwrap_or(1)).sum()
    }

    proptest! {
        #[test]
        fn every_line_is_kept_in_its_place_or_counted_in_a_marker(
            all in proptest::collection::vec(any_line(), 1..40),
            records in proptest::collection::vec((0u64..60, 0u64..60), 0..12),
            protected in proptest::collection::vec(1usize..45, 0..6),
        ) {
            let old = markers(&all);
            let deleted = usable(&records, all.len(), &protected);
            for (at, range) in deleted.iter().enumerate() {
                prop_assert!(1 <= *range.start() && range.start() <= range.end() && *range.end() <= all.len());
                prop_assert!(!protected.iter().any(|p| range.contains(p)), "a protected line goes");
                prop_assert!(at == 0 || *deleted[at - 1].end() < *range.start());
            }
            // Each line a record names is deleted or protected, and none but those.
            for line in 1..=all.len() {
                let named = records.iter().any(|&(a, b)| (a.min(b)..=a.max(b)).contains(&(line as u64)));
                let goes = deleted.iter().any(|r| r.contains(&line));
                prop_assert_eq!(goes, named && !protected.contains(&line));
            }
            let got = reconstruct(&all, &deleted, &old, &protected);
            let out: Vec<&str> = got.text.split('\n').collect();
            prop_assert_eq!(weight(out.iter().copied()), weight(all.iter().map(String::as_str)), "{:?}", out);
            prop_assert_eq!(out.len(), all.len() - got.lines_deleted + got.range_count);
            // What is no marker comes through in its order.
            let mut rest = all.iter();
            for line in out.iter().filter(|l| marker(l).is_none()) {
                prop_assert!(rest.any(|l| l == line), "{:?} was not there, or not there", line);
            }
            // Protected lines are all there.
            for p in protected.iter().filter_map(|p| all.get(p - 1)) {
                prop_assert!(out.contains(&p.as_str()));
            }
            // A made marker never stands beside one that was free to join it.
            if protected.is_empty() && got.range_count > 0 {
                let touching = out.windows(2).filter(|w| w.iter().all(|l| marker(l).is_some())).count();
                let before = all.windows(2).filter(|w| w.iter().all(|l| marker(l).is_some())).count();
                prop_assert!(touching <= before);
            }
        }
    }
}

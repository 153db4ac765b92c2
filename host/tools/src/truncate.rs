//! How much text a result may hold (decisions.md "Limits", events.md H.3): whole lines, 50 KB or 2,000 of
//! them, whichever comes first. Pure text; writes no file.

use serde::Serialize;

pub const MAX_BYTES: usize = 50 * 1024;
pub const MAX_LINES: usize = 2000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub lines: usize,
    pub bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { lines: MAX_LINES, bytes: MAX_BYTES }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TruncatedBy {
    Lines,
    Bytes,
}

/// `details.truncation`; the kept text itself is the result's content and not repeated here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Truncation {
    pub truncated: bool,
    pub truncated_by: Option<TruncatedBy>,
    pub total_lines: usize,
    pub total_bytes: usize,
    pub output_lines: usize,
    pub output_bytes: usize,
    /// Tail only: the last line alone was too long and lost its beginning.
    pub last_line_partial: bool,
    /// Head only: the first line alone is too long; nothing was kept.
    pub first_line_exceeds_limit: bool,
    pub max_lines: usize,
    pub max_bytes: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Truncated {
    pub content: String,
    pub info: Truncation,
}

/// Lines of a text; the newline at its end opens no further line.
pub fn count_lines(text: &str) -> usize {
    let newlines = text.bytes().filter(|&b| b == b'\n').count();
    newlines + usize::from(!text.is_empty() && !text.ends_with('\n'))
}

/// Keeps the beginning.
pub fn truncate_head(text: &str, limits: Limits) -> Truncated {
    let (mut end, mut lines, mut by) = (0, 0, None);
    for line in text.split_inclusive('\n') {
        // A newline that would only just not fit is no reason to lose its line.
        if end + line.trim_end_matches('\n').len() > limits.bytes {
            by = Some(TruncatedBy::Bytes);
            break;
        }
        if lines == limits.lines {
            by = Some(TruncatedBy::Lines);
            break;
        }
        end += line.len();
        lines += 1;
    }
    let content = if by.is_some() { text[..end].trim_end_matches('\n') } else { text };
    Truncated {
        content: content.to_owned(),
        info: Truncation {
            first_line_exceeds_limit: by.is_some() && lines == 0,
            output_lines: lines,
            output_bytes: content.len(),
            ..info(text, by, limits)
        },
    }
}

/// Keeps the end; a last line that is too long alone keeps its own end.
pub fn truncate_tail(text: &str, limits: Limits) -> Truncated {
    let (mut start, mut lines, mut by) = (text.len(), 0, None);
    for line in text.split_inclusive('\n').rev() {
        if text.len() - start + line.len() > limits.bytes {
            by = Some(TruncatedBy::Bytes);
            break;
        }
        if lines == limits.lines {
            by = Some(TruncatedBy::Lines);
            break;
        }
        start -= line.len();
        lines += 1;
    }
    let partial = by == Some(TruncatedBy::Bytes) && lines == 0;
    if partial {
        start = text.len() - limits.bytes.min(text.len());
        while !text.is_char_boundary(start) {
            start += 1;
        }
        lines = 1;
    }
    Truncated {
        content: text[start..].to_owned(),
        info: Truncation {
            last_line_partial: partial,
            output_lines: lines,
            output_bytes: text.len() - start,
            ..info(text, by, limits)
        },
    }
}

fn info(text: &str, by: Option<TruncatedBy>, limits: Limits) -> Truncation {
    Truncation {
        truncated: by.is_some(),
        truncated_by: by,
        total_lines: count_lines(text),
        total_bytes: text.len(),
        max_lines: limits.lines,
        max_bytes: limits.bytes,
        ..Truncation::default()
    }
}

/// One line of at most `max` characters; what is cut shows as `…`.
pub fn truncate_line(line: &str, max: usize) -> String {
    match line.char_indices().nth(max) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

/// `512 B`, `50.0 KB`, `1.5 MB`.
pub fn format_size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{:.1} KB", bytes as f64 / 1024.0),
        1_048_576..1_073_741_824 => format!("{:.1} MB", bytes as f64 / 1_048_576.0),
        _ => format!("{:.1} GB", bytes as f64 / 1_073_741_824.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn short_text_is_left_alone() {
        for cut in [truncate_head, truncate_tail] {
            let kept = cut("a\nb\n", Limits::default());
            assert_eq!((kept.content.as_str(), kept.info.truncated), ("a\nb\n", false));
            assert_eq!(kept.info.total_lines, 2);
        }
    }

    #[test]
    fn head_keeps_the_first_whole_lines_and_tail_the_last() {
        let limits = Limits { lines: 2, bytes: 1000 };
        assert_eq!(truncate_head("1\n2\n3\n", limits).content, "1\n2");
        let tail = truncate_tail("1\n2\n3\n", limits);
        assert_eq!(tail.content, "2\n3\n");
        assert_eq!(tail.info.truncated_by, Some(TruncatedBy::Lines));
    }

    #[test]
    fn a_first_line_too_long_for_the_head_is_said_to_be() {
        let kept = truncate_head("ééééé\nx", Limits { lines: 9, bytes: 5 });
        assert_eq!(kept.content, "");
        assert!(kept.info.first_line_exceeds_limit);
    }

    #[test]
    fn a_last_line_too_long_for_the_tail_is_cut_between_characters() {
        let kept = truncate_tail("x\néééé", Limits { lines: 9, bytes: 5 });
        assert_eq!(kept.content, "éé");
        assert!(kept.info.last_line_partial);
    }

    proptest! {
        #[test]
        fn what_is_kept_is_within_limits_and_part_of_the_text(
            text in "[aé\n]{0,80}", lines in 0usize..6, bytes in 0usize..30
        ) {
            let limits = Limits { lines, bytes };
            let (head, tail) = (truncate_head(&text, limits), truncate_tail(&text, limits));
            prop_assert!(text.starts_with(&head.content));
            prop_assert!(text.ends_with(&tail.content));
            if head.info.truncated { prop_assert!(head.content.len() <= bytes); }
            prop_assert!(tail.content.len() <= bytes || !tail.info.truncated);
            prop_assert!(count_lines(&tail.content) <= lines.max(1));
        }
    }
}

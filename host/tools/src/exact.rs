//! The rule of `edit`: each old text stands exactly once in the original, no two overlap, and either all
//! are replaced or none. Line ends and a byte order mark are the file's, not the model's (field case B80):
//! bytes outside the replaced ones never change. Works on bytes; touches no file.

use crate::near;
use std::ops::Range;

#[derive(Clone, Debug)]
pub struct Replacement {
    pub old: String,
    pub new: String,
}

/// Each names the edit by its place in the arguments.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    #[error("`{field}` must not be empty; use write to create a file")]
    Empty { field: String },
    #[error(
        "`{field}` was not found in {file}. It must match exactly, white space and line breaks included.{hint}"
    )]
    NotFound { field: String, file: String, hint: String },
    #[error(
        "`{field}` was found {count} times in {file} (lines {lines}), and must be unique: \
         give it more of the surrounding text"
    )]
    Ambiguous { field: String, file: String, count: usize, lines: String },
    #[error(
        "`edits[{first}].oldText` and `edits[{second}].oldText` overlap in {file}: merge them into one edit"
    )]
    Overlap { first: usize, second: usize, file: String },
    #[error("the edits leave {file} as it is")]
    Unchanged { file: String },
}

#[derive(Debug, PartialEq, Eq)]
pub struct Edited {
    pub bytes: Vec<u8>,
    /// Both sides with `\n` line ends, for a diff.
    pub old_text: String,
    pub new_text: String,
    /// Of the first change, from 1.
    pub first_line: usize,
}

/// `file` only names the file in errors.
pub fn apply(file: &str, original: &[u8], edits: &[Replacement]) -> Result<Edited, EditError> {
    let bom = if original.starts_with(BOM) { BOM.len() } else { 0 };
    let body = View::of(&original[bom..]);
    let mut found: Vec<(Range<usize>, usize)> = Vec::with_capacity(edits.len());
    for (index, edit) in edits.iter().enumerate() {
        let field = format!("edits[{index}].oldText");
        let old = unix(edit.old.strip_prefix('\u{feff}').unwrap_or(&edit.old));
        if old.is_empty() {
            return Err(EditError::Empty { field });
        }
        match occurrences(&body.text, old.as_bytes()).as_slice() {
            [at] => found.push((*at..*at + old.len(), index)),
            [] => {
                let (hint, file) = (near::hint(&body.text, &old), file.into());
                return Err(EditError::NotFound { field, file, hint });
            }
            many => {
                let mut lines: Vec<String> =
                    many.iter().take(5).map(|&at| line_of(&body.text, at).to_string()).collect();
                if many.len() > 5 {
                    lines.push("…".into());
                }
                let (count, lines, file) = (many.len(), lines.join(", "), file.into());
                return Err(EditError::Ambiguous { field, file, count, lines });
            }
        }
    }
    found.sort_by_key(|(range, _)| range.start);
    for pair in found.windows(2) {
        if pair[1].0.start < pair[0].0.end {
            let (a, b) = (pair[0].1, pair[1].1);
            return Err(EditError::Overlap { first: a.min(b), second: a.max(b), file: file.into() });
        }
    }

    let source = &original[bom..];
    let mut bytes = original[..bom].to_vec();
    let mut done = 0;
    for (range, index) in &found {
        let (start, end) = (body.origin(range.start), body.origin(range.end));
        bytes.extend_from_slice(&source[done..start]);
        bytes.extend_from_slice(body.line_ends(&source[start..end], &edits[*index]).as_bytes());
        done = end;
    }
    bytes.extend_from_slice(&source[done..]);
    if bytes == original {
        return Err(EditError::Unchanged { file: file.into() });
    }
    Ok(Edited {
        old_text: String::from_utf8_lossy(&body.text).into_owned(),
        new_text: unix(&String::from_utf8_lossy(&bytes[bom..])),
        first_line: found.first().map_or(1, |(range, _)| line_of(&body.text, range.start)),
        bytes,
    })
}

const BOM: &[u8] = b"\xef\xbb\xbf";

fn unix(text: &str) -> String {
    text.replace("\r\n", "\n")
}

/// A file with `\n` line ends only, and the way back.
struct View {
    text: Vec<u8>,
    /// Where a `\r` was left out, in positions of `text`, ascending.
    removed: Vec<usize>,
    mostly_crlf: bool,
}

impl View {
    fn of(body: &[u8]) -> Self {
        let (mut text, mut removed, mut newlines) = (Vec::with_capacity(body.len()), Vec::new(), 0usize);
        for (i, &byte) in body.iter().enumerate() {
            match byte {
                b'\r' if body.get(i + 1) == Some(&b'\n') => removed.push(text.len()),
                _ => {
                    newlines += usize::from(byte == b'\n');
                    text.push(byte);
                }
            }
        }
        let mostly_crlf = removed.len() * 2 > newlines;
        View { text, removed, mostly_crlf }
    }

    /// A position before a shortened line end is the one before its `\r`.
    fn origin(&self, at: usize) -> usize {
        at + self.removed.partition_point(|&r| r < at)
    }

    /// The new text with the line ends of what it replaces, or else of the file.
    fn line_ends(&self, replaced: &[u8], edit: &Replacement) -> String {
        let crlf = replaced.windows(2).any(|w| w == b"\r\n");
        if crlf || (self.mostly_crlf && !replaced.contains(&b'\n')) {
            return unix(&edit.new).replace('\n', "\r\n");
        }
        // In a file without any `\r\n`, one in the new text is meant, unless the old text had them too.
        if self.removed.is_empty() && !edit.old.contains("\r\n") {
            return edit.new.clone();
        }
        unix(&edit.new)
    }
}

/// Also those that overlap: `aa` stands twice in `aaa`.
fn occurrences(text: &[u8], wanted: &[u8]) -> Vec<usize> {
    let Some(&first) = wanted.first() else { return Vec::new() };
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = text[from..].iter().position(|&b| b == first) {
        let at = from + at;
        if text[at..].starts_with(wanted) {
            found.push(at);
        }
        from = at + 1;
    }
    found
}

fn line_of(text: &[u8], at: usize) -> usize {
    1 + text[..at].iter().filter(|&&b| b == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn edits(pairs: &[(&str, &str)]) -> Vec<Replacement> {
        pairs.iter().map(|&(o, n)| Replacement { old: o.into(), new: n.into() }).collect()
    }

    fn edited(original: &str, pairs: &[(&str, &str)]) -> String {
        String::from_utf8(apply("f", original.as_bytes(), &edits(pairs)).unwrap().bytes).unwrap()
    }

    fn refused(original: &str, pairs: &[(&str, &str)]) -> String {
        apply("f", original.as_bytes(), &edits(pairs)).unwrap_err().to_string()
    }

    #[test]
    fn all_edits_are_matched_against_the_original() {
        // "b" appears only through the first edit, and is not found by the second.
        assert_eq!(edited("a c", &[("c", "d"), ("a", "c")]), "c d");
        assert!(refused("a", &[("a", "b"), ("b", "c")]).contains("`edits[1].oldText` was not found"));
    }

    #[test]
    fn b80_a_crlf_file_with_a_byte_order_mark_keeps_both() {
        let original = "\u{feff}one\r\ntwo\r\nthree\r\n";
        assert_eq!(
            edited(original, &[("two\nthree", "2\n2b\n3"), ("one", "1\n1b")]),
            "\u{feff}1\r\n1b\r\n2\r\n2b\r\n3\r\n"
        );
    }

    #[test]
    fn mixed_line_ends_outside_the_edit_stay_as_they_are() {
        assert_eq!(edited("a\nb\r\nc\nd\r\n", &[("c", "C")]), "a\nb\r\nC\nd\r\n");
        assert_eq!(edited("a\nb\r\nc\nd", &[("a\nb", "x\ny")]), "x\ny\r\nc\nd");
    }

    #[test]
    fn a_windows_old_text_matches_a_unix_file() {
        assert_eq!(edited("a\nb\n", &[("a\r\nb", "x\r\ny")]), "x\ny\n");
    }

    #[test]
    fn a_line_end_alone_can_be_replaced() {
        assert_eq!(edited("a\r\nb", &[("\n", "; ")]), "a; b");
    }

    #[test]
    fn bytes_that_are_not_utf8_survive_beside_an_edit() {
        let done = apply("f", b"caf\xe9 x \xff", &edits(&[("x", "y")])).unwrap();
        assert_eq!(done.bytes, b"caf\xe9 y \xff");
    }

    #[test]
    fn a_text_found_more_than_once_is_refused_with_its_lines() {
        let error = refused("x\ny\nx\n", &[("y", "z"), ("x", "w")]);
        assert!(error.contains("`edits[1].oldText` was found 2 times in f (lines 1, 3)"), "{error}");
        assert!(refused("aaa", &[("aa", "b")]).contains("2 times"));
    }

    #[test]
    fn other_white_space_is_pointed_at() {
        let error = refused("x\n\tif a {\n\t}\n", &[("  if a {\n  }", "y")]);
        assert!(error.contains("Line 2 has it with other white space"), "{error}");
    }

    #[test]
    fn overlapping_empty_and_idle_edits_are_refused() {
        assert!(refused("abc", &[("bc", "x"), ("ab", "y")]).contains("overlap"));
        assert!(refused("abc", &[("", "x")]).contains("`edits[0].oldText` must not be empty"));
        assert_eq!(refused("abc", &[("b", "b")]), "the edits leave f as it is");
        assert_eq!(edited("abc", &[("a", "x"), ("b", "y")]), "xyc", "touching is not overlapping");
    }

    proptest! {
        /// Whatever the line ends: cut one piece out of a file, and its neighbourhood stays byte for byte.
        #[test]
        fn bytes_outside_the_edit_never_change(
            before in "(\u{feff})?([ab]|\n|\r\n){0,20}", after in "([ab]|\n|\r\n){0,20}"
        ) {
            let original = format!("{before}KEY{after}");
            prop_assert_eq!(edited(&original, &[("KEY", "new")]), format!("{before}new{after}"));
        }

        #[test]
        fn no_input_panics(original in prop::collection::vec(any::<u8>(), 0..60), old in "[a\r\n\u{feff}]{0,3}", new in ".*") {
            let _ = apply("f", &original, &[Replacement { old, new }]);
        }
    }
}

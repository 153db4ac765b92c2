//! Why an old text is not in a file, as the model can use it: what it took with it from `read`,
//! white space, or the lines that are nearest. Looks at text; never decides an edit.

use similar::TextDiff;

/// Lines of a file that are compared one by one.
const COMPARED: usize = 5_000;
/// Lines of the old text, and of what is shown.
const SHOWN: usize = 12;
/// How alike a single line must be to be called near.
const ALIKE: f32 = 0.7;
/// Bytes of a line that is compared letter by letter.
const LONG: f32 = 400.0;

/// A sentence, with a space before it; empty when there is nothing to say.
pub fn hint(text: &[u8], old: &str) -> String {
    let text = String::from_utf8_lossy(text);
    let lines: Vec<&str> = text.lines().collect();
    if let Some(plain) = without_numbers(old)
        && text.contains(&plain)
    {
        return " The line numbers that read shows are no part of the file: leave them out.".into();
    }
    let wanted: Vec<&str> = old.trim().lines().map(str::trim).collect();
    if wanted.is_empty() {
        return String::new();
    }
    let trimmed: Vec<&str> = lines.iter().map(|l| l.trim()).collect();
    if let Some(at) = trimmed.windows(wanted.len()).position(|w| w == wanted) {
        return format!(" Line {} has it with other white space: read the file again.", at + 1);
    }
    match nearest(&trimmed, &wanted) {
        Some(at) => {
            let end = (at + wanted.len().min(SHOWN)).min(lines.len());
            let shown = lines[at..end].join("\n");
            format!(" The nearest is at line {}:\n{shown}\nRead the file again before you edit it.", at + 1)
        }
        None => String::new(),
    }
}

/// The old text as it is when it was taken from `read` with its line numbers.
fn without_numbers(old: &str) -> Option<String> {
    let plain: Option<Vec<&str>> = old
        .lines()
        .map(|line| {
            let (number, rest) = line.split_once('\t')?;
            (!number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())).then_some(rest)
        })
        .collect();
    plain.filter(|lines| !lines.is_empty()).map(|lines| lines.join("\n"))
}

/// Where at least half of the lines stand in their places; of a single line, where it is alike.
fn nearest(lines: &[&str], wanted: &[&str]) -> Option<usize> {
    if lines.len() > COMPARED || wanted.len() > 4 * SHOWN || wanted.iter().all(|l| l.is_empty()) {
        return None;
    }
    if let [line] = wanted {
        // A line of quite another length cannot be that alike, and is not compared; nor is a long one.
        let alike = |other: &str| {
            let (a, b) = (line.len() as f32, other.len() as f32);
            let worth = a.max(b) <= LONG && a.min(b) >= ALIKE * a.max(b) / 2.0;
            if worth { TextDiff::from_chars(*line, other).ratio() } else { 0.0 }
        };
        let scored = lines.iter().enumerate().map(|(at, other)| (at, alike(other)));
        return scored
            .max_by(|a, b| a.1.total_cmp(&b.1))
            .filter(|(_, ratio)| *ratio >= ALIKE)
            .map(|(at, _)| at);
    }
    let score = |window: &[&str]| window.iter().zip(wanted).filter(|(a, b)| a == b && !b.is_empty()).count();
    let best =
        lines.windows(wanted.len()).map(score).enumerate().max_by_key(|(at, n)| (*n, usize::MAX - at))?;
    let full = wanted.iter().filter(|l| !l.is_empty()).count();
    (best.1 * 2 >= full && best.1 > 0).then_some(best.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FILE: &str = "fn main() {\n    let total = count(&words);\n    println!(\"{total}\");\n}\n";

    #[test]
    fn a_near_miss_is_shown_where_it_is() {
        let one = hint(FILE.as_bytes(), "    let total = count(words);");
        assert!(one.starts_with(" The nearest is at line 2:\n    let total = count(&words);\n"), "{one}");
        let three = hint(FILE.as_bytes(), "    let total = count(&words);\n    println!(\"{}\", total);\n}");
        assert!(
            three.starts_with(" The nearest is at line 2:") && three.contains("println!(\"{total}\")"),
            "{three}"
        );
        assert_eq!(hint(FILE.as_bytes(), "nothing of the kind"), "");
    }

    #[test]
    fn line_numbers_that_were_taken_along_are_named() {
        let taken = "2\t    let total = count(&words);\n3\t    println!(\"{total}\");";
        assert!(hint(FILE.as_bytes(), taken).contains("leave them out"));
    }

    proptest! {
        #[test]
        fn any_text_is_looked_at(file in "[ab \\n\\t1]{0,80}", old in "[ab \\n\\t1]{0,30}") {
            let _ = hint(file.as_bytes(), &old);
        }
    }
}

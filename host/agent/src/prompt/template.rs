//! Filling in a template: `$1` … `$99`, `$@` and `$ARGUMENTS` (all of them), `${@:2}` (from the
//! second on), `${@:2:3}` (three of them), `${1:-else}`. One pass from left to right: what an
//! argument brings is never looked at again.

/// Words; quotes keep spaces together and are dropped.
pub fn words(args: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in args.chars() {
        match (c, quote) {
            (c, Some(q)) if c == q => quote = None,
            (c, Some(_)) => word.get_or_insert_default().push(c),
            // In the middle of a word it is an apostrophe.
            ('"' | '\'', None) if word.as_ref().is_none_or(|w| w.is_empty() || w.ends_with('=')) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (c, None) if c.is_whitespace() => words.extend(word.take()),
            (c, None) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

pub fn fill(body: &str, args: &str) -> String {
    let words = words(args);
    let mut out = String::with_capacity(body.len());
    let mut rest = body;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        match place(after, &words) {
            Some((text, used)) => {
                out.push_str(&text);
                rest = &after[used..];
            }
            None => {
                out.push('$');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

/// What stands behind a `$`, and how many bytes it is.
fn place(after: &str, words: &[String]) -> Option<(String, usize)> {
    let all = || words.join(" ");
    if after.starts_with('@') {
        return Some((all(), 1));
    }
    const ALL: &str = "ARGUMENTS";
    if let Some(behind) = after.strip_prefix(ALL) {
        let longer = behind.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        return (!longer).then(|| (all(), ALL.len()));
    }
    let digits = after.bytes().take_while(u8::is_ascii_digit).count().min(2);
    if digits > 0 {
        return Some((nth(&after[..digits], words)?.to_owned(), digits));
    }
    let inside = after.strip_prefix('{')?;
    let end = inside.find('}')?;
    Some((braces(&inside[..end], words)?, end + 2))
}

/// `$0` is no argument.
fn nth<'w>(number: &str, words: &'w [String]) -> Option<&'w str> {
    let n: usize = number.parse().ok()?;
    Some(words.get(n.checked_sub(1)?).map_or("", String::as_str))
}

fn braces(inside: &str, words: &[String]) -> Option<String> {
    if inside == "@" || inside == "ARGUMENTS" {
        return Some(words.join(" "));
    }
    if let Some(slice) = inside.strip_prefix("@:") {
        let (from, count) = match slice.split_once(':') {
            Some((from, count)) => (from, count.parse().ok()?),
            None => (slice, usize::MAX),
        };
        let from = from.parse::<usize>().ok()?.max(1) - 1;
        return Some(words.iter().skip(from).take(count).cloned().collect::<Vec<_>>().join(" "));
    }
    let (number, otherwise) = inside.split_once(":-").unwrap_or((inside, ""));
    if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let word = nth(number, words)?;
    Some(if word.is_empty() { otherwise.to_owned() } else { word.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_place_is_filled_and_what_is_none_stays() {
        for (body, args, filled) in [
            ("a $1 b $2 c $3", "x 'y z'", "a x b y z c "),
            ("$@ and $ARGUMENTS", "x \"y z\"", "x y z and x y z"),
            ("${@:2} | ${@:2:1} | ${@:9}", "a b c", "b c | b | "),
            ("${1:-main} ${2:-none}", "x", "x none"),
            ("$10 ${11}", "1 2 3 4 5 6 7 8 9 ten eleven", "ten eleven"),
            (
                "costs $ 5, $x, $0, ${x}, ${1, $ARGUMENTSX, ${@:x}, $",
                "a",
                "costs $ 5, $x, $0, ${x}, ${1, $ARGUMENTSX, ${@:x}, $",
            ),
            ("it's $1", "don't a='b c'", "it's don't"),
        ] {
            assert_eq!(fill(body, args), filled, "{body}");
        }
    }

    #[test]
    fn what_an_argument_brings_is_not_filled_again() {
        assert_eq!(fill("$1 $2 $@", "'$2' '${1}'"), "$2 ${1} $2 ${1}");
    }

    proptest! {
        #[test]
        fn any_text_is_filled_and_one_without_places_stays(body in ".{0,200}", args in ".{0,80}") {
            let filled = fill(&body, &args);
            if !body.contains('$') {
                prop_assert_eq!(filled, body);
            }
        }
    }
}

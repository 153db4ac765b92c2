//! The lines between two `---` at the beginning of a file: YAML, or what people write for it.
//! `description: use when: x` is no YAML, and a file that holds it is meant all the same.

use gray_matter::{Matter, Pod, engine::YAML};
use std::collections::BTreeMap;

/// More than this is no front matter.
const MOST: usize = 16 * 1024;
/// Brackets and list marks in it; a parser that recurses must not be led deeper.
const NESTING: usize = 200;

#[derive(Debug, Default, PartialEq)]
pub struct Parsed<'t> {
    pub fields: BTreeMap<String, Value>,
    pub body: &'t str,
    /// There were fences.
    pub fenced: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Text(String),
    List(Vec<String>),
    /// A map, or a list of other things.
    Other,
}

impl Value {
    pub fn text(&self) -> Option<&str> {
        match self {
            Value::Text(t) => Some(t),
            _ => None,
        }
    }
}

/// Where in the file, from 1.
#[derive(Debug, PartialEq, Eq)]
pub struct Broken {
    pub line: usize,
    pub column: usize,
    pub why: String,
}

/// # Errors
/// What stands between the fences cannot be understood, or the second is missing.
pub fn parse(text: &str) -> Result<Parsed<'_>, Broken> {
    let unfenced = || Parsed { body: text, ..Parsed::default() };
    let Some(first) = text.lines().next().filter(|l| l.trim_end() == "---") else { return Ok(unfenced()) };
    let start = text.len().min(first.len() + text[first.len()..].find('\n').map_or(0, |at| at + 1));
    let mut at = start;
    let end = text[start..].split_inclusive('\n').find_map(|line| {
        let here = at;
        at += line.len();
        (line.trim_end() == "---").then_some((here, at))
    });
    let Some((end, body)) = end else {
        return Err(Broken { line: 1, column: 1, why: "the closing --- is missing".into() });
    };
    let front = &text[start..end];
    if front.len() > MOST {
        return Err(Broken {
            line: 1,
            column: 1,
            why: "what stands between the --- is longer than 16 KB".into(),
        });
    }
    let fields = match yaml(front) {
        Ok(fields) => fields,
        Err(broken) => plain(front).ok_or(broken)?,
    };
    Ok(Parsed { fields, body: &text[body..], fenced: true })
}

fn yaml(front: &str) -> Result<BTreeMap<String, Value>, Broken> {
    let broken = |why: &str| Broken { line: 2, column: 1, why: why.to_owned() };
    // Anchors can be made to grow without end.
    let deep = front.matches(['[', '{']).count() + front.matches("- ").count() > NESTING;
    if deep || (front.contains('&') && front.contains('*')) {
        return Err(broken("it is nested too deeply, or uses anchors"));
    }
    let whole = format!("---\n{front}\n---\n");
    let parsed = Matter::<YAML>::new().parse::<Pod>(&whole).map_err(|e| located(&e.to_string()))?;
    match parsed.data {
        None | Some(Pod::Null) => Ok(BTreeMap::new()),
        Some(Pod::Hash(map)) => Ok(map.into_iter().map(|(k, v)| (k, value(&v))).collect()),
        Some(_) => Err(broken("it is no list of `key: value`")),
    }
}

fn value(pod: &Pod) -> Value {
    match scalar(pod) {
        Some(text) => Value::Text(text),
        None => match pod {
            Pod::Array(items) => match items.iter().map(scalar).collect() {
                Some(texts) => Value::List(texts),
                None => Value::Other,
            },
            Pod::Null => Value::Text(String::new()),
            _ => Value::Other,
        },
    }
}

fn scalar(pod: &Pod) -> Option<String> {
    Some(match pod {
        Pod::String(text) => text.clone(),
        Pod::Integer(n) => n.to_string(),
        Pod::Float(n) => n.to_string(),
        Pod::Boolean(yes) => yes.to_string(),
        _ => return None,
    })
}

/// The parser says `… line 2 column 30`; the fence above is one line more.
fn located(said: &str) -> Broken {
    let number = |after: &str| {
        let digits = said.rsplit_once(after)?.1;
        digits.split(|c: char| !c.is_ascii_digit()).next()?.parse::<usize>().ok()
    };
    let why = said.split(" at byte").next().unwrap_or(said).trim_start_matches("Deserialize error: ");
    Broken {
        line: number("line ").unwrap_or(1) + 1,
        column: number("column ").unwrap_or(0) + 1,
        why: why.into(),
    }
}

/// `key: the rest of the line`, items below it as `- item`, longer texts as indented lines.
fn plain(front: &str) -> Option<BTreeMap<String, Value>> {
    let mut fields: BTreeMap<String, Value> = BTreeMap::new();
    let mut last: Option<String> = None;
    for line in front.lines().filter(|l| !l.trim().is_empty() && !l.starts_with('#')) {
        if !line.starts_with([' ', '\t', '-']) {
            let (key, rest) = line.split_once(':')?;
            let word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            if key.is_empty()
                || !key.chars().all(word)
                || !(rest.is_empty() || rest.starts_with([' ', '\t', '\r']))
            {
                return None;
            }
            fields.insert(key.to_owned(), Value::Text(unquoted(rest.trim()).to_owned()));
            last = Some(key.to_owned());
            continue;
        }
        let value = fields.get_mut(last.as_ref()?)?;
        let line = line.trim();
        match (line.strip_prefix("- "), &mut *value) {
            (Some(item), Value::List(items)) => items.push(unquoted(item.trim()).to_owned()),
            (Some(item), Value::Text(text)) if text.is_empty() => {
                *value = Value::List(vec![unquoted(item.trim()).to_owned()]);
            }
            (_, Value::Text(text)) => {
                if matches!(text.as_str(), ">" | "|" | ">-" | "|-") {
                    text.clear();
                }
                if !text.is_empty() {
                    text.push(' ');
                }
                text.push_str(line);
            }
            _ => return None,
        }
    }
    Some(fields)
}

fn unquoted(text: &str) -> &str {
    for quote in ['"', '\''] {
        if let Some(inner) = text.strip_prefix(quote).and_then(|t| t.strip_suffix(quote)) {
            return inner;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(of: &Parsed<'_>, key: &str) -> String {
        of.fields[key].text().unwrap().to_owned()
    }

    #[test]
    fn yaml_is_read_and_the_body_is_what_follows() {
        let parsed = parse(
            "---\r\nname: a\r\ndescription: >\r\n  long\r\n  text\r\ntools: [x, 1]\r\n---\r\nbody\n---\nmore\n",
        );
        let parsed = parsed.unwrap();
        assert_eq!((text(&parsed, "name"), text(&parsed, "description").trim()), ("a".into(), "long text"));
        assert_eq!(parsed.fields["tools"], Value::List(vec!["x".into(), "1".into()]));
        assert_eq!(parsed.body, "body\n---\nmore\n");
        let none = parse("no fence\n---\n").unwrap();
        assert!(!none.fenced && none.body == "no fence\n---\n");
    }

    #[test]
    fn b13_a_colon_in_a_text_is_part_of_it() {
        let source = "---\nname: code-review\ndescription: Review along two axes: Standards and Spec\nallowed-tools: Read\n---\nx";
        let parsed = parse(source).unwrap();
        assert_eq!(text(&parsed, "description"), "Review along two axes: Standards and Spec");
        assert_eq!(text(&parsed, "allowed-tools"), "Read");
        let quoted = parse("---\na: 'it''s: so'\nb: \"x: y\" z: q\n  and more\nc:\n- one: 1\n---\n").unwrap();
        assert_eq!(text(&quoted, "b"), "\"x: y\" z: q and more");
        assert_eq!(quoted.fields["c"], Value::List(vec!["one: 1".into()]));
    }

    #[test]
    fn what_is_neither_is_refused_with_its_place() {
        let broken = parse("---\nname: x\n{ not: [closed\n---\n").unwrap_err();
        assert!(broken.line >= 3, "{broken:?}");
        assert!(parse("---\nname: x\nbody").unwrap_err().why.contains("closing ---"));
    }

    #[test]
    fn a_front_matter_made_to_explode_is_not_given_to_the_parser() {
        let anchors = "---\na: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n---\n";
        assert!(parse(anchors).is_ok(), "read as plain lines");
        let deep = format!("---\n{}\n---\n", "- ".repeat(4000));
        assert!(parse(&deep).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed_or_refused(front in "[ -~\\n\\t\u{85}é]{0,300}", body in ".{0,50}") {
            let _ = parse(&format!("---\n{front}\n---\n{body}"));
            let _ = parse(&front);
        }
        #[test]
        fn yaml_like_bytes_too(front in "[\\-:\\[\\]{}>|*&!%@#'\",? a\\n\\t]{0,200}") {
            let _ = parse(&format!("---\n{front}\n---\n"));
        }
    }
}

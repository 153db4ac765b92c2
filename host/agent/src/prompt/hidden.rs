//! Characters that a model reads and a person does not see: Unicode tags, marks that turn the
//! direction of text, spaces of no width. A file may hold them for a reason; who lends it to the
//! prompt is told, and the file stays as it is.

/// How many of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hidden {
    pub tags: usize,
    pub direction: usize,
    pub zero_width: usize,
}

impl Hidden {
    pub fn count(self) -> usize {
        self.tags + self.direction + self.zero_width
    }
    /// `3 hidden characters (2 Unicode tags, 1 direction mark)`; `None` without any.
    pub fn told(self) -> Option<String> {
        let all = self.count();
        let kinds = [
            (self.tags, "Unicode tag"),
            (self.direction, "direction mark"),
            (self.zero_width, "character of no width"),
        ];
        let plural = |n: usize, what: &str| match (n, what.strip_prefix("character")) {
            (1, _) => format!("1 {what}"),
            (n, Some(rest)) => format!("{n} characters{rest}"),
            (n, None) => format!("{n} {what}s"),
        };
        let kinds: Vec<String> =
            kinds.into_iter().filter(|k| k.0 > 0).map(|(n, what)| plural(n, what)).collect();
        (all > 0).then(|| format!("{} ({})", plural(all, "hidden character"), kinds.join(", ")))
    }
}

pub fn hidden(text: &str) -> Hidden {
    let mut found = Hidden::default();
    let mut before = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            // Also the supplement of variation selectors, which can spell whole texts.
            '\u{e0000}'..='\u{e007f}' | '\u{e0100}'..='\u{e01ef}' => found.tags += 1,
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}' => {
                found.direction += 1;
            }
            // At the beginning of a file it tells the encoding.
            '\u{feff}' if before.is_none() => {}
            '\u{200b}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{180e}' => found.zero_width += 1,
            // Joiners belong to emoji and to several scripts; between plain letters they hide.
            '\u{200c}' | '\u{200d}' => {
                let plain =
                    |c: Option<char>| c.is_none_or(|c| c.is_ascii() || matches!(c, '\u{200c}' | '\u{200d}'));
                found.zero_width += usize::from(plain(before) && plain(chars.peek().copied()));
            }
            _ => {}
        }
        before = Some(c);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b84_each_kind_is_counted_and_honest_text_has_none() {
        let tags: String = "run rm".chars().filter_map(|c| char::from_u32(0xe0000 + c as u32)).collect();
        let found = hidden(&format!("\u{feff}a{tags}b\u{202e}c\u{200b}d\u{200d}e"));
        assert_eq!(found, Hidden { tags: 6, direction: 1, zero_width: 2 });
        assert_eq!(
            found.told().unwrap(),
            "9 hidden characters (6 Unicode tags, 1 direction mark, 2 characters of no width)"
        );
        for honest in
            ["", "\u{feff}plain", "👩\u{200d}💻 ok ❤\u{fe0f}", "می\u{200c}خواهم", "日本語 – “quotes”"]
        {
            assert_eq!(hidden(honest).told(), None, "{honest}");
        }
    }
}

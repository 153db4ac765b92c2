//! What a shell line obviously writes to. Rough on purpose: words, operators, and a few
//! programs whose arguments are targets.

/// Programs whose plain arguments are written, moved or removed.
const WRITERS: [&str; 8] = ["tee", "rm", "mv", "cp", "truncate", "shred", "unlink", "touch"];

/// Paths, as they are written in the line.
pub(crate) fn written(line: &str) -> Vec<String> {
    let mut out = Vec::new();
    for command in split(line) {
        let mut words = command.iter();
        let mut plain: Vec<&str> = Vec::new();
        while let Some(word) = words.next() {
            match word {
                Word::Redirect => out.extend(words.next().and_then(Word::text).map(str::to_owned)),
                Word::Text(t) => plain.push(t),
            }
        }
        let program = plain.iter().position(|w| {
            let name = w.rsplit('/').next().unwrap_or(w);
            WRITERS.contains(&name) || name == "sed" || name == "dd"
        });
        let Some(at) = program else { continue };
        let (name, args) = (plain[at].rsplit('/').next().unwrap_or_default(), &plain[at + 1..]);
        let mut targets = args.iter().filter(|a| !a.starts_with('-'));
        match name {
            "sed" if !args.iter().any(|a| a.starts_with("-i") || a.starts_with("--in-place")) => {}
            "dd" => out.extend(args.iter().filter_map(|a| a.strip_prefix("of=")).map(str::to_owned)),
            // The last one is where it goes; the others are only read.
            "cp" => out.extend(targets.next_back().map(|t| (*t).to_owned())),
            _ => out.extend(targets.map(|t| (*t).to_owned())),
        }
    }
    out
}

#[derive(Debug, PartialEq)]
enum Word {
    Text(String),
    /// `>`, `>>`, `>|`, `&>`.
    Redirect,
}

impl Word {
    fn text(&self) -> Option<&str> {
        match self {
            Word::Text(t) => Some(t),
            Word::Redirect => None,
        }
    }
}

fn split(line: &str) -> Vec<Vec<Word>> {
    let mut commands = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut chars = line.chars().peekable();
    let end = |word: &mut Option<String>, commands: &mut Vec<Vec<Word>>| {
        if let (Some(w), Some(now)) = (word.take(), commands.last_mut()) {
            now.push(Word::Text(w));
        }
    };
    while let Some(c) = chars.next() {
        match c {
            '\\' => word.get_or_insert_default().extend(chars.next()),
            '\'' | '"' => {
                let inside: String = chars.by_ref().take_while(|x| *x != c).collect();
                // A script in quotes is looked at as a line of its own.
                if inside.contains('>') || inside.contains(' ') {
                    let inner = split(&inside);
                    let at = commands.len() - 1;
                    commands.splice(at..at, inner);
                }
                word.get_or_insert_default().push_str(&inside);
            }
            '>' => {
                end(&mut word, &mut commands);
                let _ = chars.next_if(|c| matches!(c, '>' | '|'));
                if chars.next_if_eq(&'&').is_none()
                    && let Some(now) = commands.last_mut()
                {
                    now.push(Word::Redirect);
                }
            }
            ';' | '\n' | '|' | '&' | '(' | ')' | '`' => {
                end(&mut word, &mut commands);
                // `&>` belongs to what stands before it.
                if c != '&' || chars.peek() != Some(&'>') {
                    commands.push(Vec::new());
                }
            }
            c if c.is_whitespace() => end(&mut word, &mut commands),
            c => word.get_or_insert_default().push(c),
        }
    }
    end(&mut word, &mut commands);
    commands
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_of_redirections_and_writers_are_found() {
        for (line, targets) in [
            ("echo A=1 > .env", vec![".env"]),
            ("echo A=1 >>.env", vec![".env"]),
            ("make &> log", vec!["log"]),
            ("echo x | tee -a .env b", vec![".env", "b"]),
            ("sudo rm -f .git/index", vec![".git/index"]),
            ("mv a .env && ls", vec!["a", ".env"]),
            ("cp .env backup", vec!["backup"]),
            ("sed -i s/a/b/ .env", vec!["s/a/b/", ".env"]),
            ("sed s/a/b/ .env", vec![]),
            ("dd if=a of=.env", vec![".env"]),
            ("cat .env", vec![]),
            ("make 2>&1", vec![]),
            ("bash -c 'echo x > .env'", vec![".env"]),
        ] {
            assert_eq!(written(line), targets, "{line}");
        }
    }

    #[test]
    fn no_line_makes_it_panic() {
        for line in ["'", "\"", "\\", ">", "a >", "sed", "cp", "dd", "|", "'>"] {
            let _ = written(line);
        }
    }
}

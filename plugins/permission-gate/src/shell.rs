//! A command line as the simple commands in it: enough of a shell's grammar to see past
//! quotes, lists, pipes, substitutions and wrappers. Runs nothing, expands nothing.

/// One program and its arguments, and whether it reads the output of the one before.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Simple {
    pub(crate) words: Vec<String>,
    pub(crate) piped: bool,
    /// Targets of `>` and `>>`.
    pub(crate) writes: Vec<String>,
}

impl Simple {
    /// The program, without its folder.
    pub(crate) fn program(&self) -> &str {
        self.words.first().map_or("", |w| w.rsplit('/').next().unwrap_or(w))
    }
    pub(crate) fn args(&self) -> &[String] {
        self.words.get(1..).unwrap_or_default()
    }
    /// `-rf` has `r` and `f`; so have `--recursive` and `--force`.
    pub(crate) fn has(&self, short: char, long: &str) -> bool {
        self.args().iter().any(|a| match a.strip_prefix("--") {
            Some(name) => name.split('=').next() == Some(long),
            None => a.starts_with('-') && a.len() > 1 && a[1..].contains(short),
        })
    }
}

/// Programs that run another one: what follows their own options counts as a command too.
const WRAPPERS: [&str; 14] = [
    "sudo", "doas", "env", "nohup", "time", "nice", "ionice", "command", "exec", "xargs", "timeout",
    "stdbuf", "setsid", "then",
];

/// Programs whose `-c` argument is a command line.
pub(crate) const SHELLS: [&str; 6] = ["sh", "bash", "zsh", "dash", "ksh", "fish"];

/// Every simple command, those inside substitutions, wrappers and `sh -c` included.
pub(crate) fn commands(line: &str) -> Vec<Simple> {
    let mut out = Vec::new();
    collect(line, 0, &mut out);
    out
}

fn collect(line: &str, depth: usize, out: &mut Vec<Simple>) {
    // Deeper than anyone nests by hand.
    if depth > 8 {
        return;
    }
    let (simple, inner) = split(line);
    for command in simple {
        if SHELLS.contains(&command.program())
            && let Some(at) = command.args().iter().position(|a| a.starts_with('-') && a.ends_with('c'))
            && let Some(script) = command.args().get(at + 1)
        {
            collect(script, depth + 1, out);
        }
        if command.program() == "eval" {
            collect(&command.args().join(" "), depth + 1, out);
        }
        unwrap(&command, out);
        out.push(command);
    }
    for line in inner {
        collect(&line, depth + 1, out);
    }
}

/// `sudo -u x env A=1 rm -rf y` is also `env A=1 rm -rf y` and `rm -rf y`. Which word after a
/// wrapper's options is the program cannot be known without knowing every option, so each
/// later word is tried: a gate may ask once too often.
fn unwrap(command: &Simple, out: &mut Vec<Simple>) {
    let assigned =
        |w: &String| w.split('=').next().is_some_and(|n| !n.is_empty() && n.len() < w.len() && name(n));
    let skip = command.words.iter().take_while(|w| assigned(w)).count();
    if skip > 0 {
        let bare = tail(command, skip);
        unwrap(&bare, out);
        out.push(bare);
    } else if WRAPPERS.contains(&command.program()) {
        for at in 1..command.words.len() {
            if !command.words[at].starts_with('-') {
                out.push(tail(command, at));
            }
        }
    }
}

fn tail(command: &Simple, from: usize) -> Simple {
    Simple { words: command.words[from..].to_vec(), piped: command.piped, writes: Vec::new() }
}

fn name(s: &str) -> bool {
    s.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Simple commands of one line, and the lines inside its substitutions.
fn split(line: &str) -> (Vec<Simple>, Vec<String>) {
    let mut s = Split::default();
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                // A line continued is one line.
                match chars.next() {
                    Some('\n') | None => {}
                    Some(c) => s.push(c),
                }
            }
            '\'' => {
                s.open = true;
                s.word.extend(chars.by_ref().take_while(|c| *c != '\''));
            }
            '"' => {
                s.open = true;
                while let Some(c) = chars.next() {
                    match c {
                        '"' => break,
                        '\\' => s.word.extend(chars.next()),
                        '`' => s.inner.push(chars.by_ref().take_while(|c| *c != '`').collect()),
                        '$' if chars.peek() == Some(&'(') => {
                            chars.next();
                            s.inner.push(parenthesised(&mut chars));
                        }
                        c => s.word.push(c),
                    }
                }
            }
            '`' => {
                s.open = true;
                s.inner.push(chars.by_ref().take_while(|c| *c != '`').collect());
            }
            '$' | '<' if chars.peek() == Some(&'(') => {
                chars.next();
                s.open = true;
                s.inner.push(parenthesised(&mut chars));
            }
            '#' if !s.open => while chars.next_if(|c| *c != '\n').is_some() {},
            '>' => {
                s.end_word();
                let _ = chars.next_if(|c| matches!(c, '>' | '|'));
                // `2>&1` names a stream, not a file.
                if chars.next_if_eq(&'&').is_none() {
                    s.redirect = true;
                }
            }
            ';' | '\n' | '(' | ')' | '{' | '}' => s.end_command(false),
            '&' => {
                let _ = chars.next_if_eq(&'&');
                s.end_command(false);
            }
            '|' => {
                let or = chars.next_if_eq(&'|').is_some();
                let _ = chars.next_if_eq(&'&');
                s.end_command(!or);
            }
            c if c.is_whitespace() => s.end_word(),
            c => s.push(c),
        }
    }
    s.end_command(false);
    (s.done, s.inner)
}

fn parenthesised(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> String {
    let mut depth = 1;
    let inside = |c: &char| {
        depth += i32::from(*c == '(') - i32::from(*c == ')');
        depth > 0
    };
    chars.by_ref().take_while(inside).collect()
}

#[derive(Default)]
struct Split {
    done: Vec<Simple>,
    inner: Vec<String>,
    now: Simple,
    word: String,
    /// A word has begun, maybe an empty one.
    open: bool,
    /// The next word is the target of a `>`.
    redirect: bool,
}

impl Split {
    fn push(&mut self, c: char) {
        self.open = true;
        self.word.push(c);
    }
    fn end_word(&mut self) {
        if std::mem::take(&mut self.open) {
            let word = std::mem::take(&mut self.word);
            if std::mem::take(&mut self.redirect) {
                self.now.writes.push(word);
            } else {
                self.now.words.push(word);
            }
        }
    }
    fn end_command(&mut self, pipes: bool) {
        self.end_word();
        self.redirect = false;
        let next = Simple { piped: pipes, ..Simple::default() };
        let now = std::mem::replace(&mut self.now, next);
        if !now.words.is_empty() || !now.writes.is_empty() {
            self.done.push(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        commands(line).iter().map(|c| c.words.join(" ")).collect()
    }

    #[test]
    fn lists_pipes_and_groups_are_taken_apart() {
        assert_eq!(words("a 1; b && c || (d | e) & f"), ["a 1", "b", "c", "d", "e", "f"]);
        let piped: Vec<bool> = commands("a | b || c").iter().map(|c| c.piped).collect();
        assert_eq!(piped, [false, true, false]);
    }

    #[test]
    fn quotes_hold_words_together_and_hide_operators() {
        assert_eq!(words("echo 'a; b' \"c | d\" e\\ f # g"), ["echo a; b c | d e f"]);
    }

    #[test]
    fn substitutions_and_inner_shells_are_looked_into() {
        assert_eq!(words("echo a$(x 1) \"`y`\""), ["echo a ", "x 1", "y"]);
        assert!(words("bash -lc 'rm a; ls'").contains(&"rm a".to_owned()));
        assert!(words("eval \"rm a\"").contains(&"rm a".to_owned()));
    }

    #[test]
    fn wrappers_and_assignments_do_not_hide_the_program() {
        assert!(words("sudo -u me env A=1 rm x").contains(&"rm x".to_owned()));
        assert!(words("A=1 B=2 rm x").contains(&"rm x".to_owned()));
    }

    #[test]
    fn redirections_are_targets_and_not_words() {
        let c = commands("cat a >b 2>&1 >> c");
        assert_eq!(c[0].writes, ["b", "c"]);
        assert_eq!(c[0].words[..2], ["cat", "a"]);
    }
}

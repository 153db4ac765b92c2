//! A shell function that starts itself over and over: `name(){ name|name& };name`, under any
//! name. Not a command in the grammar of `shell`, so it is looked for in the text.

/// Whether a function is defined here that calls itself in a pipe or in the background.
pub(crate) fn in_line(line: &str) -> bool {
    let chars: Vec<char> = line.chars().collect();
    (0..chars.len()).filter(|&at| chars[at] == '{').any(|brace| {
        let end = closing(&chars, brace);
        defined(&chars[..brace]).is_some_and(|name| starts_itself(&chars[brace + 1..end], &name))
    })
}

/// The name before `() {`, or behind `function`.
fn defined(before: &[char]) -> Option<Vec<char>> {
    let mut rest = trim(before);
    let mut keyword = true;
    if let [head @ .., ')'] = rest
        && let [head @ .., '('] = trim(head)
    {
        rest = trim(head);
        keyword = false;
    }
    let start = rest.iter().rposition(|c| !in_name(*c)).map_or(0, |at| at + 1);
    let name = rest[start..].to_vec();
    let behind: String = trim(&rest[..start]).iter().collect();
    (!name.is_empty() && (!keyword || behind.ends_with("function"))).then_some(name)
}

fn starts_itself(body: &[char], name: &[char]) -> bool {
    let word = |at: usize| {
        body[at..].starts_with(name)
            && !(at > 0 && in_name(body[at - 1]))
            && !body.get(at + name.len()).is_some_and(|c| in_name(*c))
    };
    (0..body.len()).filter(|&at| word(at)).any(|at| {
        let before: String = trim(&body[..at]).iter().collect();
        let after: String = body[at + name.len()..].iter().collect();
        let after = after.trim_start();
        let single = |text: &str, sign: &str| text.starts_with(sign) && !text.starts_with(&sign.repeat(2));
        (before.ends_with('|') && !before.ends_with("||")) || single(after, "|") || single(after, "&")
    })
}

fn closing(chars: &[char], brace: usize) -> usize {
    let mut depth = 0;
    for (at, c) in chars.iter().enumerate().skip(brace) {
        depth += i32::from(*c == '{') - i32::from(*c == '}');
        if depth == 0 {
            return at;
        }
    }
    chars.len()
}

fn trim(chars: &[char]) -> &[char] {
    let end = chars.iter().rposition(|c| !c.is_whitespace()).map_or(0, |at| at + 1);
    &chars[..end]
}

/// `:` and the like are names too.
fn in_name(c: char) -> bool {
    !c.is_whitespace() && !"|&;(){}<>\"'`$\\".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Only read here, never run.
    #[test]
    fn a_function_that_starts_itself_is_found_under_any_name_and_in_any_layout() {
        for line in [
            ":(){ :|:& };:",
            ":(){:|:&};:",
            ": ( ) { : | : & } ; :",
            "bomb(){ bomb|bomb& };bomb",
            "b() {\n  b | b &\n}\nb",
            "f(){ f & f & }; f",
            "f(){ f|f; }; f",
            "function boom { boom | boom & }; boom",
            "function boom() { boom | boom & }; boom",
            "cd /tmp && x(){ x|x& };x",
            "bash -c ':(){ :|:& };:'",
        ] {
            assert!(in_line(line), "not caught: {line}");
        }
    }

    #[test]
    fn functions_that_do_work_are_left_alone() {
        for line in [
            "f(){ ls | wc -l & }; f",
            "walk(){ for x in \"$1\"/*; do [ -d \"$x\" ] && walk \"$x\"; done; }; walk .",
            "retry(){ make || retry; }",
            "a(){ b | c & }; b(){ a; }",
            "echo {a,b} | cat &",
            "awk '{ print $1 | \"sort\" }'",
            "test(){ testing | tests & }",
            "curl x | jq '{a}' &",
        ] {
            assert!(!in_line(line), "caught: {line}");
        }
    }
}

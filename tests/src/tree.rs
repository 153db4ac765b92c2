//! The repository as files: what is in it, and what a Rust file says beside its comments.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The root of the repository.
pub fn repo() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Every file of the tree, relative, with `/`, sorted; no build output, nothing of git.
pub fn files() -> Vec<String> {
    fn walk(dir: &Path, out: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
            let name = entry.file_name();
            let kind = entry.file_type().unwrap();
            if kind.is_dir() && name != "target" && name != ".git" {
                walk(&entry.path(), out);
            } else if kind.is_file() && name != ".git" {
                out.push(entry.path());
            }
        }
    }
    let mut out = Vec::new();
    walk(repo(), &mut out);
    let relative = |p: &PathBuf| p.strip_prefix(repo()).unwrap().to_string_lossy().replace('\\', "/");
    let mut names: Vec<String> = out.iter().map(relative).collect();
    names.sort();
    names
}

/// By its name: something a person reads.
pub fn is_text(path: &str) -> bool {
    let binary = [".so", ".dylib", ".dll", ".png", ".gif", ".jpg", ".webp", ".gz", ".bin"];
    !binary.iter().any(|end| path.ends_with(end))
}

/// Rust source with comments, strings and character literals blanked, line breaks kept.
pub fn code_only(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(c) = rest.chars().next() {
        let len = token(rest);
        let piece = &rest[..len.max(c.len_utf8())];
        if len > 0 {
            out.extend(piece.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        } else {
            out.push(c);
        }
        rest = &rest[piece.len()..];
    }
    out
}

/// Length of the comment or literal that `s` begins with, 0 for code.
fn token(s: &str) -> usize {
    if s.starts_with("//") {
        return s.find('\n').unwrap_or(s.len());
    }
    if s.starts_with("/*") {
        let (mut depth, mut at) = (0_usize, 0);
        while at < s.len() {
            match s.as_bytes().get(at..at + 2) {
                Some(b"/*") => (depth, at) = (depth + 1, at + 2),
                Some(b"*/") => (depth, at) = (depth - 1, at + 2),
                _ => at += 1,
            }
            if depth == 0 {
                return at;
            }
        }
        return s.len();
    }
    if s.starts_with('"') {
        return quoted(s, '"');
    }
    if let Some(raw) = s.strip_prefix('r') {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        if raw[hashes..].starts_with('"') {
            let close = format!("\"{}", "#".repeat(hashes));
            let body = 1 + hashes + 1;
            return s[body..].find(&close).map_or(s.len(), |at| body + at + close.len());
        }
    }
    // A lifetime has no closing quote right behind its first character.
    if let Some(inner) = s.strip_prefix('\'') {
        let mut chars = inner.chars();
        let first = chars.next();
        if first == Some('\\') || chars.next() == Some('\'') {
            return quoted(s, '\'');
        }
    }
    0
}

fn quoted(s: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in s.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    s.len()
}

/// The two commands of the README that set a checkout up: the lines of the fenced block
/// between `<!-- setup -->` and `<!-- /setup -->`. `.ci/run` reads them the same way.
pub fn setup_commands(readme: &str) -> Vec<String> {
    let inside = readme.split("<!-- setup -->").nth(1).and_then(|r| r.split("<!-- /setup -->").next());
    let lines = inside.unwrap_or("").lines().map(str::trim);
    lines.filter(|l| !l.is_empty() && !l.starts_with("```")).map(str::to_owned).collect()
}

/// Every other fenced shell block of a page, in order.
pub fn shell_blocks(page: &str) -> Vec<String> {
    let after = page.split("<!-- /setup -->").nth(1).unwrap_or(page);
    let before = page.split("<!-- setup -->").next().filter(|b| b.len() < page.len()).unwrap_or("");
    let fences = |text: &str| {
        let blocks = text.split("```sh\n").skip(1).map(|b| b.split("```").next().unwrap_or("").to_owned());
        blocks.collect::<Vec<_>>()
    };
    [fences(before), fences(after)].concat()
}

/// Commands of this project that a page names between back-ticks.
pub fn named_commands(page: &str) -> Vec<String> {
    let mut fenced = false;
    let mut out = Vec::new();
    for line in page.lines() {
        if line.starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            let parts = line.split('`').skip(1).step_by(2);
            out.extend(
                parts.filter(|p| p.starts_with("atomic ") || p.starts_with("cargo ")).map(str::to_owned),
            );
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked_and_lines_stay() {
        let source = "a /* unsafe /* x */ */ b // unsafe\n\"un\\\"safe\" r#\"unsafe\"# '\"' 'a fn<'a>() c";
        let code = code_only(source);
        assert_eq!(code.split_whitespace().collect::<Vec<_>>(), ["a", "b", "'a", "fn<'a>()", "c"]);
        assert_eq!(code.lines().count(), 2);
    }

    #[test]
    fn set_up_commands_are_the_lines_between_the_markers() {
        let page = "x\n<!-- setup -->\n```sh\ncargo a\ncargo b\n```\n<!-- /setup -->\ncargo c\n";
        assert_eq!(setup_commands(page), ["cargo a", "cargo b"]);
    }

    #[test]
    fn other_shell_blocks_and_named_commands_are_found() {
        let page = "`atomic x` and `y`\n<!-- setup -->\n```sh\ncargo a\n```\n<!-- /setup -->\n```sh\nb\nc\n```\n```rust\n`atomic no`\n```\n`cargo z`";
        assert_eq!(shell_blocks(page), ["b\nc\n"]);
        assert_eq!(named_commands(page), ["atomic x", "cargo z"]);
    }
}

//! `search`: lines that match a regular expression, a page of files at a time.

use crate::{
    aborted,
    args::Args,
    blocking, path, spec,
    truncate::{Limits, truncate_head, truncate_line},
    walk::{Filter, Root, Walked},
};
use async_trait::async_trait;
use atomic_agent::tool::{Tool, ToolError, ToolInvocation, ToolOutput, ToolSpec};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, sinks::Lossy};
use serde_json::json;
use std::{
    collections::HashSet,
    ops::ControlFlow,
    path::Path,
    time::{Duration, Instant},
};
use tokio_util::sync::CancellationToken;

const FILES_PER_PAGE: usize = 20;
const MATCHES_PER_FILE: usize = 20;
const MATCHES_OF_ONE_FILE: usize = 200;
const LINE_CHARS: usize = 512;
const MAX_FILE: u64 = 4 * 1024 * 1024;
const TIMEOUT: Duration = Duration::from_secs(60);

pub struct Search {
    spec: ToolSpec,
}

impl Search {
    pub fn new() -> Self {
        let parameters = json!({
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "description": "Regular expression (Rust syntax); \\n in it lets it match across lines"},
                "paths": {
                    "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
                    "description": "Files, directories or globs to search (default: the working directory)"
                },
                "i": {"type": "boolean", "description": "Ignore case (default false)"},
                "case": {"type": "boolean", "description": "Mind case (default true); the opposite of i"},
                "gitignore": {"type": "boolean", "description": "Leave out what .gitignore excludes (default true)"},
                "skip": {"type": ["integer", "null"], "minimum": 0, "description": "Matching files to skip, to get the next page (default 0)"}
            },
            "required": ["pattern"],
            "additionalProperties": false
        });
        let spec = spec(
            "search",
            "Search file contents with a regular expression. Shows 20 files a page with up to 20 matching lines each \
             (200 when one file is searched); skip turns the page. Files over 4 MB and binary files are left out.",
            parameters,
            "Search file contents with a regular expression",
            &[],
        );
        Search { spec }
    }
}

struct Query {
    matcher: RegexMatcher,
    multi_line: bool,
    filter: Filter,
    skip: usize,
}

#[async_trait]
impl Tool for Search {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn execute(&self, call: ToolInvocation) -> Result<ToolOutput, ToolError> {
        let args = Args::new("search", &call.args)?;
        let pattern = args.str("pattern")?;
        if pattern.trim().is_empty() {
            return Err(args.error("pattern", "must not be blank"));
        }
        let (i, case) = (args.opt_bool("i")?, args.opt_bool("case")?);
        if i.is_some() && i == case {
            return Err(args.error("case", "contradicts `i`: give one of them"));
        }
        let multi_line = pattern.contains("\\n") || pattern.contains('\n');
        let matcher = RegexMatcherBuilder::new()
            .case_insensitive(i.or(case.map(|c| !c)).unwrap_or(false))
            .multi_line(true)
            .build(pattern)
            .map_err(|e| args.error("pattern", format!("is no valid regular expression: {e}")))?;
        let query = Query {
            matcher,
            multi_line,
            filter: Filter { hidden: true, gitignore: args.opt_bool("gitignore")?.unwrap_or(true) },
            skip: args.opt_whole("skip", 0, u64::from(u32::MAX))?.unwrap_or(0) as usize,
        };
        let mut given = args.opt_strings("paths", true)?.unwrap_or_default();
        if given.is_empty() {
            given.push(".");
        }
        let roots = given
            .iter()
            .map(|g| Root::parse(&args, "paths", &call.cwd, g, false))
            .collect::<Result<Vec<_>, _>>()?;
        let (cwd, cancel) = (call.cwd.clone(), call.cancel.clone());
        blocking(&call.cancel, move || search(&cwd, &roots, &query, &cancel)).await
    }
}

fn search(
    cwd: &Path,
    roots: &[Root],
    query: &Query,
    cancel: &CancellationToken,
) -> Result<ToolOutput, ToolError> {
    let deadline = Instant::now() + TIMEOUT;
    let single = matches!(roots, [root] if root.is_file());
    let per_file = if single { MATCHES_OF_ONE_FILE } else { MATCHES_PER_FILE };
    let mut searcher = SearcherBuilder::new()
        .line_number(true)
        .multi_line(query.multi_line)
        .binary_detection(BinaryDetection::quit(0))
        .build();
    let (mut seen, mut blocks, mut matched, mut large) = (HashSet::new(), Vec::new(), 0, Vec::new());
    let mut ended = Walked::All;
    for root in roots {
        ended = root.walk(query.filter, deadline, cancel, |found| {
            let size = std::fs::symlink_metadata(&found.path).map(|m| (m.is_file(), m.len()));
            // A link is searched when it is named, not when it is met: what it points at is met itself.
            let wanted = root.is_file() || matches!(size, Ok((true, _)));
            if !wanted || !seen.insert(found.path.clone()) {
                return ControlFlow::Continue(());
            }
            if matches!(size, Ok((_, len)) if len > MAX_FILE) {
                large.push(path::shown(cwd, &found.path));
                return ControlFlow::Continue(());
            }
            let lines = matches_in(&mut searcher, &query.matcher, &found.path, per_file);
            if lines.is_empty() {
                return ControlFlow::Continue(());
            }
            matched += 1;
            if matched > query.skip + FILES_PER_PAGE {
                return ControlFlow::Break(());
            }
            if matched > query.skip {
                blocks.push(format!("{}\n{}", path::shown(cwd, &found.path), lines.join("\n")));
            }
            ControlFlow::Continue(())
        });
        match ended {
            Walked::All => {}
            Walked::Cancelled => return Err(aborted()),
            Walked::Stopped | Walked::TimedOut => break,
        }
    }
    let mut notes = Vec::new();
    if blocks.is_empty() {
        notes.push(match query.skip {
            0 => "[No matches]".to_owned(),
            skip => format!("[No matches beyond the first {skip} files]"),
        });
    }
    let mut cut = truncate_head(&blocks.join("\n\n"), Limits { lines: usize::MAX, ..Limits::default() });
    let mut next = (ended == Walked::Stopped).then_some(query.skip + FILES_PER_PAGE);
    if cut.info.truncated {
        // The page turns at the first file that is not shown whole; the first is never asked for again.
        let whole = whole_blocks(&blocks, cut.content.len());
        if whole > 0 {
            cut.content = blocks[..whole].join("\n\n");
        } else {
            notes.push("[Cut at 50 KB: narrow the pattern]".to_owned());
        }
        if whole.max(1) < blocks.len() {
            next = Some(query.skip + whole.max(1));
        } else if next.is_some() {
            next = Some(query.skip + 1);
        }
    }
    if let Some(next) = next {
        notes.push(format!("[More files match. Next page: skip={next}]"));
    }
    if ended == Walked::TimedOut {
        notes.push(format!("[Not finished within {} s: narrow the paths]", TIMEOUT.as_secs()));
    }
    if !large.is_empty() {
        let names = large.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
        notes.push(format!("[{} files over 4 MB were left out: {names}]", large.len()));
    }
    let text = [vec![cut.content], vec![notes.join("\n")]].concat();
    let text = text.into_iter().filter(|t| !t.is_empty()).collect::<Vec<_>>().join("\n\n");
    let details = cut.info.truncated.then(|| json!({"truncation": cut.info}));
    Ok(ToolOutput { details, ..ToolOutput::text(text) })
}

/// How many of the blocks lie whole within the first `bytes` of their joined text.
fn whole_blocks(blocks: &[String], bytes: usize) -> usize {
    let mut end = 0;
    blocks
        .iter()
        .take_while(|block| {
            end += block.len() + 2;
            end - 2 <= bytes
        })
        .count()
}

/// `12: text`, and a note when there are more than `most`. What cannot be read has no matches.
fn matches_in(searcher: &mut Searcher, matcher: &RegexMatcher, file: &Path, most: usize) -> Vec<String> {
    let (mut lines, mut more) = (Vec::new(), false);
    let sink = Lossy(|first, text| {
        for (number, line) in (first..).zip(text.lines()) {
            if lines.len() == most {
                more = true;
                return Ok(false);
            }
            lines.push(format!("{number}: {}", truncate_line(line, LINE_CHARS)));
        }
        Ok(true)
    });
    if searcher.search_path(matcher, file, sink).is_err() {
        return Vec::new();
    }
    if more {
        lines.push(format!("… more than {most} matching lines in this file"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn with(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let file = dir.path().join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, content).unwrap();
        }
        dir
    }

    #[tokio::test]
    async fn matching_lines_come_with_their_file_and_number() {
        let dir = with(&[("a.rs", "fn one\nlet x\nfn two\n"), ("d/b.rs", "FN three\n"), (".h", "fn h")]);
        let search = |args| testing::text("search", dir.path(), args);
        assert_eq!(
            search(json!({"pattern": "^fn \\w+$"})).await,
            ".h\n1: fn h\n\na.rs\n1: fn one\n3: fn two"
        );
        assert_eq!(search(json!({"pattern": "fn t", "i": true, "paths": "d"})).await, "d/b.rs\n1: FN three");
        let globbed = search(json!({"pattern": "fn", "case": false, "paths": ["*/*.rs"]})).await;
        assert_eq!(globbed, "d/b.rs\n1: FN three");
        assert_eq!(search(json!({"pattern": "nowhere"})).await, "[No matches]");
        assert_eq!(search(json!({"pattern": "one\\nlet"})).await, "a.rs\n1: fn one\n2: let x");
    }

    #[tokio::test]
    async fn ignored_binary_and_huge_files_are_left_out() {
        let huge = "needle\n".repeat(700_000);
        let dir = with(&[(".gitignore", "out\n"), ("out", "needle"), ("bin", "needle\0"), ("huge", &huge)]);
        let text = testing::text("search", dir.path(), json!({"pattern": "needle"})).await;
        assert_eq!(text, "[No matches]\n[1 files over 4 MB were left out: huge]");
        let text =
            testing::text("search", dir.path(), json!({"pattern": "needle", "gitignore": false})).await;
        assert!(text.starts_with("out\n1: needle"), "{text}");
    }

    #[tokio::test]
    async fn pages_of_twenty_files_join_without_gaps() {
        let dir = tempfile::tempdir().unwrap();
        for n in 0..45 {
            std::fs::write(dir.path().join(format!("f{n:02}")), "hit").unwrap();
        }
        let mut files = Vec::new();
        for skip in [0, 20, 40] {
            let text = testing::text("search", dir.path(), json!({"pattern": "hit", "skip": skip})).await;
            assert_eq!(text.contains(&format!("skip={}", skip + 20)), skip < 40, "{text}");
            files.extend(text.lines().filter(|l| l.starts_with('f')).map(str::to_owned));
        }
        assert_eq!(files.len(), 45);
        assert!(files.is_sorted());
    }

    #[tokio::test]
    async fn a_page_over_50_kb_ends_at_a_whole_file_and_the_next_goes_on_there() {
        let dir = tempfile::tempdir().unwrap();
        for n in 0..9 {
            let content = format!("hit {}\n", "x".repeat(500)).repeat(19);
            std::fs::write(dir.path().join(format!("f{n}")), content).unwrap();
        }
        let text = testing::text("search", dir.path(), json!({"pattern": "hit"})).await;
        assert!(text.ends_with("[More files match. Next page: skip=5]"), "{}", &text[text.len() - 100..]);
        let next = testing::text("search", dir.path(), json!({"pattern": "hit", "skip": 5})).await;
        assert!(next.starts_with("f5\n1: hit"));
    }

    #[tokio::test]
    async fn long_lines_and_many_matches_are_cut() {
        let content = format!("{}\n", "y".repeat(600)).repeat(250);
        let dir = with(&[("f", &content), ("g", "z")]);
        let text = testing::text("search", dir.path(), json!({"pattern": "y"})).await;
        assert!(text.contains("more than 20 matching lines") && !text.contains("21:"), "{text}");
        assert!(text.lines().all(|l| l.chars().count() < 520));
        let content = "y\n".repeat(250);
        let dir = with(&[("f", &content)]);
        let text = testing::text("search", dir.path(), json!({"pattern": "y", "paths": "f"})).await;
        assert!(text.contains("200: y") && !text.contains("201: y"));
    }
}

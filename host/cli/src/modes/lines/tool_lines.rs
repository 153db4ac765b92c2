//! A tool at the prompt: the line of its call, what it says meanwhile, and how it ended.

use crate::sanitize;
use atomic_agent::{message::Content, tool::ToolOutput};
use serde_json::Value;

/// Characters of a line that quotes.
pub const WIDTH: usize = 100;
/// Of a name: a long one floods the screen, one of several lines draws lines of its own.
pub const NAME: usize = 40;
/// Lines of what a running tool says.
const PROGRESS: usize = 5;
/// Lines of a failure.
const FAILURE: usize = 12;

/// A name that somebody else chose, on one line.
pub fn name(text: &str) -> String {
    sanitize::line(text, NAME)
}

pub fn begun(tool: &str, args: &Value) -> String {
    format!("● {} {}", name(tool), sanitize::line(&argument(args), WIDTH))
}

/// What ran is not what the model asked for.
pub fn rewritten(args: &Value) -> String {
    format!("  · an extension changed it to: {}", sanitize::line(&argument(args), WIDTH))
}

/// The argument that tells a call from others of its tool.
fn argument(args: &Value) -> String {
    let telling = ["command", "path", "pattern", "name"];
    match telling.iter().find_map(|key| args.get(key)?.as_str()) {
        Some(text) => text.to_owned(),
        None => args.to_string(),
    }
}

fn text_of(content: &[Content]) -> String {
    content.iter().filter_map(Content::as_text).collect::<Vec<_>>().join("\n")
}

/// The last lines of what came so far, each fit for a row of so many columns.
pub fn progress(content: &[Content], columns: usize) -> Vec<String> {
    let text = sanitize::text(&text_of(content));
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|l| !l.is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(PROGRESS)..];
    // Wide characters take two columns, so half of them fit for certain.
    let fits =
        |l: &&str| sanitize::line(l, if l.is_ascii() { columns } else { columns / 2 }.saturating_sub(6));
    last.iter().map(|l| format!("    {}", fits(l))).collect()
}

pub fn ended(tool: &str, result: &ToolOutput, is_error: bool, duration_ms: u64) -> String {
    let tool = name(tool);
    let text = text_of(&result.content);
    let text = text.trim();
    if is_error {
        let by = result.details.as_ref().and_then(|d| d.get("blockedBy")?.as_str());
        // Many a gate says it itself, for the model.
        let by =
            by.filter(|by| !text.to_lowercase().starts_with(&format!("blocked by {}", by.to_lowercase())));
        let mark = by.map(|by| format!("blocked by {}: ", name(by))).unwrap_or_default();
        let mut lines = text.lines().filter(|l| !l.trim().is_empty());
        let mut out =
            format!("  ✗ {tool}: {mark}{}", sanitize::line(lines.next().unwrap_or_default(), WIDTH));
        // Why it failed is said at the beginning or at the end.
        let rest: Vec<&str> = lines.collect();
        let left_out = rest.len().saturating_sub(FAILURE);
        if left_out > 0 {
            out += &format!("\n    (+{left_out} lines)");
        }
        for line in &rest[left_out..] {
            let line = sanitize::text(line).replace('\n', " ");
            let short: String = line.trim_end().chars().take(WIDTH).collect();
            out += &format!("\n    {short}");
        }
        return out;
    }
    let lines = text.lines().count();
    let summary = match lines {
        0 => "no output".to_owned(),
        1 => sanitize::line(text, WIDTH),
        _ => format!(
            "{} (+{} lines)",
            sanitize::line(text.lines().next().unwrap_or_default(), WIDTH),
            lines - 1
        ),
    };
    format!("  ✓ {tool}: {summary} · {duration_ms} ms")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_blocked_call_names_who_blocked_it() {
        for (reason, shown) in
            [("not now", "blocked by gate: not now"), ("Blocked by gate: no", "Blocked by gate: no")]
        {
            let details = Some(json!({"blockedBy": "gate"}));
            let output = ToolOutput { details, ..ToolOutput::error(reason) };
            assert_eq!(ended("bash", &output, true, 0), format!("  ✗ bash: {shown}"));
        }
        assert_eq!(ended("bash", &ToolOutput::error("broke"), true, 0), "  ✗ bash: broke");
    }

    #[test]
    fn a_failure_of_several_lines_keeps_them() {
        let output =
            ToolOutput::error("Validation failed:\n  - edits: missing\n\nReceived:\n{ \"path\": 1 }");
        assert_eq!(
            ended("edit", &output, true, 0),
            "  ✗ edit: Validation failed:\n      - edits: missing\n    Received:\n    { \"path\": 1 }"
        );
        let long = ToolOutput::error("x\n".repeat(40));
        assert_eq!(ended("t", &long, true, 0).lines().nth(1), Some("    (+27 lines)"));
    }

    #[test]
    fn a_name_cannot_draw_a_line_of_its_own_or_flood_the_screen() {
        let line = begun(&format!("b\n✓ ash{}", "x".repeat(10_000)), &json!({"command": "a\n> rm"}));
        assert_eq!(line.lines().count(), 1);
        assert!(line.chars().count() < 200 && line.contains("a > rm"), "{line}");
    }

    #[test]
    fn of_what_a_running_tool_says_the_last_rows_are_shown() {
        let content = [Content::text("1\n2\n3\n\n4\n5\n6 is a long one that does not fit\n")];
        let rows = progress(&content, 20);
        assert_eq!(rows, ["    2", "    3", "    4", "    5", "    6 is a long o…"]);
    }
}

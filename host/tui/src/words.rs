//! What every face says of the same event, in the same words. Foreign parts are made one line of;
//! who shows them cleans them.

use atomic_agent::{compact::CompactReason, event::UnansweredCall};
use serde_json::Value;

pub fn asked_again(attempt: u32, most: u32, delay_ms: u64, why: &str) -> String {
    let wait = delay_ms as f64 / 1000.0;
    format!("asked again in {wait:.1} s ({attempt} of {most}): {why}")
}

pub fn stands_in(from: &str, to: &str, why: &str) -> String {
    format!("{to} stands in for {from}: {why}")
}

/// Of a call whose engine was lost.
pub fn no_result(call: &UnansweredCall) -> String {
    format!("! {} {} has no result: it may have run, and had effects", call.tool_name, call.args)
}

/// Another engine goes on; see `Event::EngineRestarted`.
pub fn restarted(without: &[String], planned: bool, resumed: bool) -> String {
    let left_out = match without {
        [] => String::new(),
        names => format!(" without {}; /reload loads it again", names.join(", ")),
    };
    let why = match (planned, resumed) {
        (true, _) => "the engine was replaced",
        (false, true) => "the session goes on",
        (false, false) => "a new session begins",
    };
    format!("{why}{left_out}")
}

/// `keys`: somebody can press Ctrl+C.
pub fn held(extension: &str, event: &str, held_ms: u64, keys: bool) -> String {
    let who = match extension.is_empty() {
        true => "the engine has not answered".to_owned(),
        false => format!("{extension} has held the engine in {event}"),
    };
    let how = if keys { "; Ctrl+C twice goes on without it" } else { "" };
    format!("{who} for {:.1} s{how}", held_ms as f64 / 1000.0)
}

pub fn compacting(reason: CompactReason) -> &'static str {
    match reason {
        CompactReason::Manual => "shortening the conversation",
        CompactReason::Threshold => "the context is nearly full: shortening the conversation",
        CompactReason::Overflow => "the context is more than the model takes: shortening the conversation",
    }
}

pub fn compacted(result: &Value) -> String {
    let stat = |key: &str| result["stats"][key].as_u64().unwrap_or_default();
    let how = match result["rung"].as_str() {
        Some("extension") => "an extension gave what is left".to_owned(),
        Some("fresh") => format!("no planner could be asked: {} lines went", stat("linesDeleted")),
        _ => format!("{} of {} lines went, the rest is as it was", stat("linesDeleted"), stat("linesBefore")),
    };
    let (before, after) = (stat("tokensBefore"), stat("tokensAfter"));
    let backup = result["backupPath"].as_str().map(|p| format!(" · before: {p}")).unwrap_or_default();
    format!("· compacted: {how} · about {before} → {after} tokens{backup}")
}

pub fn not_compacted(aborted: bool, why: Option<&str>) -> String {
    match why {
        Some(why) if !aborted => format!("✗ not compacted: {why}"),
        _ => "✗ not compacted: it was cancelled".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_went_and_what_is_left_is_said_in_numbers() {
        let result = json!({"rung": "planned", "stats": {"linesDeleted": 18, "linesBefore": 33,
            "tokensBefore": 900, "tokensAfter": 400}});
        assert_eq!(
            compacted(&result),
            "· compacted: 18 of 33 lines went, the rest is as it was · about 900 → 400 tokens"
        );
    }
}

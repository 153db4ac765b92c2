//! How a compaction looks at the plain prompt: a line when it begins, a line when it ends.

use atomic_agent::compact::CompactReason;
use serde_json::Value;

pub fn begun(reason: CompactReason) -> &'static str {
    match reason {
        CompactReason::Manual => "shortening the conversation",
        CompactReason::Threshold => "the context is nearly full: shortening the conversation",
        CompactReason::Overflow => "the context is more than the model takes: shortening the conversation",
    }
}

pub fn done(result: &Value) -> String {
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

pub fn ended(aborted: bool, why: Option<&str>) -> String {
    match why {
        Some(why) if !aborted => format!("✗ not compacted: {why}"),
        _ => "✗ not compacted: it was cancelled".to_owned(),
    }
}

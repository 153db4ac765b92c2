//! What the demo believes: not what it did, but what the event log of an extension and the
//! session file say happened.

use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
};

pub struct Evidence {
    /// Written by the extension event-log.
    pub events: PathBuf,
    /// Written by the engine.
    pub sessions: PathBuf,
}

/// How a call of a tool ended, as the session tells it.
#[derive(Debug, Clone, PartialEq)]
pub struct CallResult {
    pub id: String,
    pub text: String,
    pub is_error: bool,
}

impl Evidence {
    /// Every event in the order it was logged.
    pub fn events(&self) -> Vec<Value> {
        lines(&self.events)
    }

    pub fn names(&self) -> Vec<String> {
        self.events().iter().filter_map(|e| name(e).map(str::to_owned)).collect()
    }

    /// Whether these were logged in this order, others between them or not.
    pub fn in_order(&self, wanted: &[&str]) -> Result<(), String> {
        let names = self.names();
        let mut rest = names.iter();
        for name in wanted {
            if !rest.any(|n| n == name) {
                return Err(format!("the event log has no {name} after {}", before(wanted, name)));
            }
        }
        Ok(())
    }

    /// Whether an event of that name is about that call.
    pub fn has_event_of(&self, event: &str, call: &str) -> bool {
        self.events().iter().any(|e| name(e) == Some(event) && e.to_string().contains(&format!("\"{call}\"")))
    }

    /// The results of a tool, in the session's order.
    pub fn results(&self, tool: &str) -> Vec<CallResult> {
        let files = fs::read_dir(&self.sessions).into_iter().flatten().flatten().map(|e| e.path());
        let mut files: Vec<PathBuf> = files.filter(|p| p.extension().is_some_and(|x| x == "jsonl")).collect();
        files.sort();
        let entries = files.iter().flat_map(|f| lines(f));
        let messages = entries.filter(|e| e["type"] == "message").map(|e| e["message"].clone());
        messages.filter(|m| m["role"] == "toolResult" && m["toolName"] == tool).map(|m| result(&m)).collect()
    }
}

fn result(message: &Value) -> CallResult {
    let blocks = message["content"].as_array();
    let text = blocks.into_iter().flatten().filter_map(|b| b["text"].as_str()).collect::<Vec<_>>().join("\n");
    CallResult {
        id: message["toolCallId"].as_str().unwrap_or_default().to_owned(),
        text,
        is_error: message["isError"] == true,
    }
}

fn name(event: &Value) -> Option<&str> {
    event["event"].as_str()
}

fn before<'a>(wanted: &[&'a str], name: &str) -> &'a str {
    let at = wanted.iter().position(|w| *w == name).unwrap_or(0);
    at.checked_sub(1).map_or("its beginning", |i| wanted[i])
}

/// Whole lines that are JSON; a file that is not there has none.
fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(|l| serde_json::from_str(l).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(dir: &Path, log: &str, session: &str) -> Evidence {
        fs::create_dir_all(dir.join("sessions")).unwrap();
        fs::write(dir.join("events.jsonl"), log).unwrap();
        fs::write(dir.join("sessions/a.jsonl"), session).unwrap();
        Evidence { events: dir.join("events.jsonl"), sessions: dir.join("sessions") }
    }

    #[test]
    fn events_out_of_order_are_no_evidence() {
        let dir = tempfile::tempdir().unwrap();
        let e = evidence(dir.path(), "{\"event\":\"agent_start\"}\n{\"event\":\"session_start\"}\n", "");
        assert!(e.in_order(&["agent_start"]).is_ok());
        assert!(e.in_order(&["session_start", "agent_start"]).unwrap_err().contains("agent_start"));
    }

    #[test]
    fn results_are_read_from_the_session_file() {
        let dir = tempfile::tempdir().unwrap();
        let session = r#"{"type":"session"}
{"type":"message","message":{"role":"toolResult","toolCallId":"c1","toolName":"bash","isError":true,"content":[{"type":"text","text":"no"}]}}
"#;
        let e = evidence(dir.path(), "", session);
        assert_eq!(e.results("bash"), [CallResult { id: "c1".into(), text: "no".into(), is_error: true }]);
        assert!(e.results("greet").is_empty());
    }
}

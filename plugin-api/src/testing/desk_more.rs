//! Operations that a test needs only to see, and the few of them that answer something.

use super::desk::{Inner, bytes, text};
use crate::{abi::instance::Outcome, error::Error};
use serde_json::{Value, json};

impl Inner {
    pub(super) fn more(&mut self, op: &str, v: Value) -> Outcome {
        let seen = matches!(
            op.split_once('.').map(|(room, _)| room),
            Some("shortcuts" | "renderers" | "markdown" | "providers" | "keepAlive" | "ui" | "workflow")
        );
        match op {
            "state.get" => {
                let (revision, value) = self.state.get(&text(&v, "key")).cloned().unwrap_or_default();
                return bytes(&json!({"revision": revision, "value": value}));
            }
            "state.put" => {
                let key = text(&v, "key");
                let now = self.state.get(&key).map_or(0, |(revision, _)| *revision);
                let fits = v["revision"].as_u64() == Some(now);
                if fits {
                    self.state.insert(key, (now + 1, v["value"].clone()));
                }
                return bytes(&json!(fits));
            }
            "tables.list" => {
                let of = |s: &&super::desk::Provided| {
                    Some(s.key.as_str()) == v["key"].as_str()
                        && Some(u64::from(s.major)) == v["major"].as_u64()
                };
                let rows = self.services.iter().filter(of);
                let row = |s: &super::desk::Provided| json!({"provider": "test", "version": s.version, "generation": 1, "scope": s.scope});
                return bytes(&rows.map(row).collect());
            }
            "models.list" => return bytes(self.ctx.get("models").unwrap_or(&json!([]))),
            "ui.getEditorText" => return bytes(&json!("")),
            "ui.getToolsExpanded" => return bytes(&json!(false)),
            _ if seen => {}
            _ => return Err(Error::new("unsupported", format!("no operation `{op}` in the test host"))),
        }
        self.record.calls.push((op.to_owned(), v));
        match op {
            "keepAlive.hold" | "workflow.publisher" | "workflow.observe" => {
                let id = self.number();
                bytes(&json!({"id": id}))
            }
            _ => Ok(Vec::new()),
        }
    }

    pub(super) fn more_requests(&mut self, op: &str, v: Value) -> Outcome {
        if op != "sendMessages" {
            return Err(Error::new("unsupported", format!("no request `{op}` in the test host")));
        }
        self.record.calls.push((op.to_owned(), v));
        Ok(Vec::new())
    }
}

//! Reads what the event-log extension wrote, and folds it as the recorded logs of the
//! TypeScript peer are folded.

use crate::env::PATIENCE;
use serde_json::Value;
use std::{fs, path::Path, time::Instant};

/// One line of the log.
#[derive(Clone, Debug)]
pub struct Logged {
    pub event: String,
    pub generation: u64,
    pub payload: Value,
}

/// All complete lines so far; none while there is no file.
pub fn read(log: &Path) -> Vec<Logged> {
    let text = fs::read_to_string(log).unwrap_or_default();
    let complete = text.rfind('\n').map_or("", |end| &text[..end]);
    let parse = |line: &str| {
        let v: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("torn line ({e}): {line}"));
        Logged {
            event: v["event"].as_str().unwrap().to_owned(),
            generation: v["generation"].as_u64().unwrap(),
            payload: v["payload"].clone(),
        }
    };
    complete.lines().map(parse).collect()
}

/// The names, in order.
pub fn names(log: &[Logged]) -> Vec<&str> {
    log.iter().map(|l| l.event.as_str()).collect()
}

/// Waits until the log holds, and answers it.
pub fn wait_for(log: &Path, what: &str, holds: impl Fn(&[Logged]) -> bool) -> Vec<Logged> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let lines = read(log);
        if holds(&lines) {
            return lines;
        }
        assert!(Instant::now() < deadline, "waiting for {what}; the log: {:#?}", names(&lines));
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// One line an event, as the recorded logs of the peer are written.
pub fn peer_lines(log: &[Logged]) -> Vec<String> {
    let mut raw_before = false;
    // Raw events of the provider come between those that are made of them: once a message.
    let first_raw = |l: &&Logged| {
        let raw = l.event == "provider_stream_event";
        let repeated = raw && raw_before;
        raw_before = raw || (raw_before && l.event == "message_update");
        !repeated
    };
    let mut lines: Vec<String> = log.iter().filter(first_raw).map(peer_line).collect();
    lines.dedup_by(|a, b| a == b && a.contains("_update "));
    lines
}

fn peer_line(l: &Logged) -> String {
    let p = &l.payload;
    let mut line = l.event.clone();
    let mut say = |name: &str, value: String| line.push_str(&format!(" {name}={value}"));
    let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
    let message = |m: &Value| {
        let mut out = vec![("role", text(&m["role"]))];
        if m["role"] == "assistant" {
            // Absent or `pending` while it streams: the contract allows either.
            let stop = m["stopReason"].as_str().unwrap_or("pending");
            out.push(("stopReason", stop.to_owned()));
        }
        out.push(("content", content(&m["content"])));
        out
    };
    match l.event.as_str() {
        "session_start"
        | "resources_discover"
        | "session_shutdown"
        | "session_before_switch"
        | "session_compact_failed" => say("reason", text(&p["reason"])),
        "session_info_changed" => say("name", text(&p["name"])),
        "model_select" => say("source", text(&p["source"])),
        "user_bash" => {
            say("command", text(&p["command"]));
            say("excludeFromContext", p["excludeFromContext"].to_string());
        }
        "input" => say("source", text(&p["source"])),
        "before_agent_start" => say("prompt", text(&p["prompt"])),
        "turn_start" => say("turnIndex", p["turnIndex"].to_string()),
        "message_start" | "message_end" => {
            for (name, value) in message(&p["message"]) {
                say(name, value);
            }
            if p["message"]["role"] == "toolResult" {
                say("msgIsError", p["message"]["isError"].to_string());
            }
        }
        "context" | "context_with_system" => say("roles", roles(&p["messages"])),
        "agent_before_settle" => proposal(p, &mut say),
        "agent_end" => say("roles", roles(&p["messages"])),
        "after_provider_response" => say("status", p["status"].to_string()),
        "message_update" => say("sub", text(&p["assistantMessageEvent"]["type"])),
        "tool_execution_start" | "tool_execution_update" => {
            say("toolName", text(&p["toolName"]));
            say("args", p["args"].to_string());
        }
        "tool_call" => {
            say("toolName", text(&p["toolName"]));
            say("input", p["input"].to_string());
        }
        "tool_result" => {
            say("content", content(&p["content"]));
            say("toolName", text(&p["toolName"]));
            say("isError", p["isError"].to_string());
            say("input", p["input"].to_string());
        }
        "tool_execution_end" => {
            say("toolName", text(&p["toolName"]));
            say("isError", p["isError"].to_string());
        }
        "turn_end" => {
            say("turnIndex", p["turnIndex"].to_string());
            for (name, value) in message(&p["message"]) {
                say(name, value);
            }
            let results = p["toolResults"].as_array().cloned().unwrap_or_default();
            let mark = |r: &Value| {
                format!("{}{}", text(&r["toolName"]), if r["isError"] == true { "!" } else { "" })
            };
            say("toolResults", Value::from(results.iter().map(mark).collect::<Vec<_>>()).to_string());
            proposal(p, &mut say);
        }
        _ => {}
    }
    line
}

fn proposal(p: &Value, say: &mut impl FnMut(&str, String)) {
    say("outcome", p["outcome"].as_str().unwrap_or_default().to_owned());
    say("entries", p["entries"].to_string());
    say("continue", p["continue"].to_string());
}

fn roles(messages: &Value) -> String {
    let all = messages.as_array().cloned().unwrap_or_default();
    Value::from(all.iter().map(|m| m["role"].clone()).collect::<Vec<_>>()).to_string()
}

/// Text, or `call:NAME` for each tool call; one line of at most 60 characters.
fn content(content: &Value) -> String {
    let text = match content {
        Value::String(s) => s.clone(),
        blocks => {
            let block = |b: &Value| match b["type"].as_str() {
                Some("toolCall") => format!("call:{}", b["name"].as_str().unwrap_or_default()),
                _ => b["text"].as_str().unwrap_or_default().to_owned(),
            };
            blocks.as_array().into_iter().flatten().map(block).collect::<Vec<_>>().join(",")
        }
    };
    text.chars().take(60).collect::<String>().replace('\n', "\\n")
}

//! The table of events is whole: every name has its row, its type, its section on the page and
//! a test, and the real program fires it, but for those whose source is to come.

use atomic_extensions::{EVENTS, Fired};
use atomic_plugin_api::protocol::EVENT_NAMES;
use atomic_tests::{
    env::Home,
    events, events_page,
    libs::first_party,
    model_server::{Answer, ModelServer},
    patch::{misbehaving, misbehaving_project},
};
use serde_json::{Value, json};
use std::{collections::BTreeSet, fs, path::Path};

/// Every name of the two pages of events.
const NAMES: [&str; 49] = [
    "project_trust",
    "resources_discover",
    "session_start",
    "session_recovery_restore",
    "session_recovery_replay",
    "session_info_changed",
    "session_before_switch",
    "session_before_fork",
    "session_before_compact",
    "session_compact",
    "session_compact_failed",
    "compaction_start",
    "compaction_end",
    "session_before_tree",
    "session_tree",
    "session_shutdown",
    "before_agent_start",
    "agent_start",
    "agent_end",
    "agent_before_settle",
    "agent_settled",
    "ui_prompt_start",
    "ui_prompt_end",
    "turn_start",
    "turn_end",
    "message_start",
    "message_update",
    "message_end",
    "tool_execution_start",
    "tool_execution_update",
    "tool_execution_end",
    "context",
    "context_with_system",
    "before_provider_headers",
    "before_provider_request",
    "after_provider_response",
    "provider_stream_event",
    "model_select",
    "thinking_level_select",
    "cache_warming_decision",
    "tool_call",
    "tool_result",
    "user_bash",
    "input",
    "entry_appended",
    "workflow_lifecycle",
    "workflow_activity_changed",
    "workflow_stage_completed",
    "workflow_heartbeat",
];

/// Nothing fires these yet. Who does shortens the list.
const NOT_FIRED: [&str; 0] = [];

/// Tested under another name than their own.
const TESTED_IN: [(&str, &str); 3] = [
    ("project_trust", "trust_order.rs"),
    ("ui_prompt_start", "trust_asking.rs"),
    ("ui_prompt_end", "trust_asking.rs"),
];

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn every_name_has_a_row_and_a_type_and_no_row_is_made_up() {
    let names = BTreeSet::from(NAMES);
    assert_eq!(EVENT_NAMES.iter().copied().collect::<BTreeSet<_>>(), names);
    assert_eq!(EVENTS.iter().map(|r| r.name).collect::<BTreeSet<_>>(), names);
    for row in EVENTS {
        if let Fired::In(file) = row.fired {
            assert!(
                here().join("..").join(file).is_file(),
                "{} is fired in {file}, which is not there",
                row.name
            );
        }
    }
}

#[test]
fn every_name_has_a_test() {
    let mut stories = String::new();
    for dir in ["suite", "golden/pi-1.6.0", "../host/agent/tests/suite"] {
        for file in fs::read_dir(here().join(dir)).unwrap() {
            let path = file.unwrap().path();
            if path.is_file() && !path.ends_with("events_table.rs") && !path.ends_with("payload-keys.json") {
                stories.push_str(&fs::read_to_string(path).unwrap());
            }
        }
    }
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words: BTreeSet<&str> = stories.split(|c| !word(c)).collect();
    let elsewhere = |name: &str| {
        TESTED_IN.iter().any(|(n, file)| *n == name && here().join("suite").join(file).is_file())
    };
    let untested: Vec<&str> = NAMES.into_iter().filter(|n| !words.contains(n) && !elsewhere(n)).collect();
    assert!(untested.is_empty(), "{untested:?}");
}

#[test]
fn the_page_of_events_is_the_one_the_table_makes() {
    let repository = here().join("..");
    let committed = fs::read_to_string(repository.join("docs/events.md")).unwrap_or_default();
    assert!(
        committed == events_page::page(&repository),
        "docs/events.md is old: cargo run -p atomic-tests --example events-page"
    );
    for name in NAMES {
        assert!(committed.contains(&format!("\n### {name}\n")), "{name}");
    }
}

#[test]
fn the_program_fires_every_event_but_those_whose_source_is_to_come() {
    let home = Home::new();
    home.install(&first_party("event-log"));
    misbehaving(&home, "x", "act");
    // Something to be asked about.
    misbehaving_project(&home, "mine", "none");
    let server = ModelServer::start([
        Answer::calls([("bash", json!({"command": "echo one"}))]),
        Answer::text("done"),
        Answer::text(&"again\n".repeat(30)),
        Answer::text("more"),
        // What the planner of the compaction names.
        Answer::text("3,20\n"),
    ]);
    let mut models: Value = serde_json::from_str(&server.models_json()).unwrap();
    // A cache that would be forgotten at once: each answer is followed by the decision about it.
    models["providers"]["fake-openai"]["compat"] = json!({"cacheTtlSeconds": 10});
    models["providers"]["fake-anthropic"]["compat"] = json!({"cacheTtlSeconds": 10});
    home.models_json(&models);
    let settings = r#"{"cacheWarming": {"mode": "idle"}}"#;
    fs::write(home.atomic_home().join("agent/settings.json"), settings).unwrap();
    // A message that a crash kept from its run, and that nobody wants any more.
    let drops = r#"{"decisions":[{"entryId":"aaaaaaaa","action":"drop"}]}"#;
    misbehaving(&home, "y", &format!("replies:session_recovery_replay={drops}"));
    let header = json!({"type": "session", "version": 3, "id": "left", "cwd": home.cwd()});
    let pending = json!({
        "type": "custom_message", "id": "aaaaaaaa", "parentId": null, "timestamp": "2026-01-01T00:00:00.000Z",
        "customType": "late", "content": "late", "display": false, "excludeFromContext": true,
        "protectedReconciliation": {"delivery": "steer"},
    });
    let left = home.write("left.jsonl", format!("{header}\n{pending}\n"));
    let log = home.path("events.log");
    let lines = [
        "1",
        "/compact",
        "one tool",
        "/act name x",
        "/act level high",
        "/act entry y",
        "/act workflow",
        "/act model fake-anthropic/fake",
        "!echo hey",
        "/tree 3",
        "/fork 1",
        "/new",
        "hi",
        "more",
        "/compact",
    ];
    let run = home.atomic(["--mode", "lines", "--model", "fake-openai/fake", "--event-log"]).arg(&log);
    let run = run.arg("--session").arg(&left);
    run.run_with(&format!("{}\n", lines.join("\n"))).ok();
    server.assert_finished();

    let logged = events::read(&log);
    let seen: BTreeSet<&str> = events::names(&logged).into_iter().collect();
    let missing: Vec<&str> = BTreeSet::from(NAMES).into_iter().filter(|n| !seen.contains(n)).collect();
    assert_eq!(missing, NOT_FIRED);
    let later: BTreeSet<&str> =
        EVENTS.iter().filter(|r| matches!(r.fired, Fired::Later(_))).map(|r| r.name).collect();
    assert_eq!(later.into_iter().collect::<Vec<_>>(), NOT_FIRED, "the table says so too");
}

//! Real traffic recorded once, played back without network, without a key on the tape.

use atomic_tests::{
    env::Home,
    model_server::{Answer, ModelServer},
};
use serde_json::{Value, json};
use std::{fs, os::unix::fs::PermissionsExt as _};

const KEY: &str = "sk-real-key-of-a-person";

/// A home with one format's provider at this address, whose key is in a variable.
fn home(server: &str, provider: &str, models: &str) -> Home {
    let home = Home::new();
    let mut models: Value = serde_json::from_str(models).unwrap();
    models["providers"][provider]["apiKey"] = json!("$REAL_KEY");
    models["providers"][provider]["baseUrl"] = json!(server);
    models["providers"][provider]["headers"] = json!({"x-tenant-token": "tenant-secret"});
    home.models_json(&models);
    home
}

#[test]
fn a_recorded_tool_loop_plays_again_without_the_server_in_every_format() {
    for provider in ["fake-openai", "fake-anthropic", "fake-responses", "fake-google"] {
        let server = ModelServer::start([
            Answer::text("Looking.").call("bash", json!({"command": "echo found-it"})),
            Answer::text("It says: found it. Größe 🦀"),
        ]);
        let home = home(&server.url(), provider, &server.models_json());
        let model = format!("{provider}/fake");
        let args = ["-p", "look", "--no-session", "--model", &model];
        let recorded = home.atomic(args).args(["--record", "tape.jsonl"]).env("REAL_KEY", KEY).run().ok();
        server.assert_finished();
        let tape = home.cwd().join("tape.jsonl");
        let text = fs::read_to_string(&tape).unwrap();
        assert_eq!(text.lines().count(), 2, "{provider}: one line an exchange");
        assert!(
            !text.contains(KEY) && !text.contains("tenant-secret"),
            "{provider}: a secret is on the tape"
        );
        assert!(!text.to_lowercase().contains("authorization"), "no header that was sent is kept");
        assert_eq!(fs::metadata(&tape).unwrap().permissions().mode() & 0o777, 0o600);
        drop(server);

        let played = home.atomic(args).args(["--replay", "tape.jsonl"]).env("REAL_KEY", "any").run().ok();
        assert_eq!(played.stdout, recorded.stdout, "{provider}");
        assert!(played.stdout.contains("It says: found it. Größe 🦀"));

        let again = home.atomic(args).args(["--record", "tape.jsonl"]).env("REAL_KEY", KEY).run().exit(1);
        assert!(again.stderr.contains("models::tape_not_writable"), "{}", again.stderr);
        assert_eq!(fs::read_to_string(&tape).unwrap(), text, "a recording overwrites nothing");
        let other = ["-p", "look elsewhere", "--no-session", "--model", &model];
        let differs = home.atomic(other).args(["--replay", "tape.jsonl"]).env("REAL_KEY", "any").run();
        assert!(
            differs.stderr.contains("models::replay")
                && differs.stderr.contains("differs from the recorded one at /"),
            "{provider}: {}",
            differs.stderr
        );
    }
}

#[test]
fn a_file_that_is_no_recording_is_named_with_its_line() {
    let home = Home::new();
    home.write("tape.jsonl", "{\"request\": 1}\n");
    let run = home.atomic(["-p", "hi", "--offline", "--replay", "tape.jsonl"]).run().exit(1);
    assert!(
        run.stderr.contains("models::tape_unreadable") && run.stderr.contains("tape.jsonl:1"),
        "{}",
        run.stderr
    );
}

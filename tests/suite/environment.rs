//! What children see of the engine's environment: neither the variables by which the program
//! speaks to it, nor credentials unless the user allows it.

use atomic_tests::{
    env::Home,
    live::{bash, text},
    session,
};
use serde_json::json;

const LOOK: &str = "echo key=${OPENAI_API_KEY-none} own=${LOCAL_KEY-none} engine=${ATOMIC_ENGINE_TOKEN-none} other=${OTHER-none}";

fn seen(home: &Home) -> String {
    let script = home.script(&json!([bash(LOOK), text("done")]));
    let run = home.atomic(["-p", "hi", "--script"]).arg(script);
    let run = run.env("OPENAI_API_KEY", "k1").env("LOCAL_KEY", "k2").env("ATOMIC_ENGINE_TOKEN", "t");
    run.env("OTHER", "o").run().ok();
    let session = session::read(&home.sessions().pop().unwrap());
    session.of_role("toolResult").iter().map(|m| session::text(m)).collect()
}

#[test]
fn credentials_and_control_values_stay_with_the_program() {
    let home = Home::new();
    home.models_json(&json!({"providers": {"local": {
        "baseUrl": "http://127.0.0.1:9/v1", "api": "openai-completions", "apiKey": "$LOCAL_KEY",
        "models": [{"id": "m"}]
    }}}));
    let seen_first = seen(&home);
    assert!(seen_first.contains("key=none own=none engine=none other=o"), "{seen_first}");
    std::fs::write(home.atomic_home().join("agent/settings.json"), r#"{"shell":{"passCredentials":true}}"#)
        .unwrap();
    let allowed = seen(&home);
    assert!(allowed.contains("key=k1 own=k2 engine=none other=o"), "{allowed}");
}

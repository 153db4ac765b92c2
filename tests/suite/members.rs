//! Every member of `pi` may be awaited from any handler: a request resolves when it is
//! accepted, what it causes is queued (boundary.md 6).

use atomic_tests::{
    env::Home,
    live::{Setup, bash, line, lines, text},
    patch::misbehaving,
};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn every_member_is_awaited_from_handlers_without_a_deadlock() {
    for user in [false, true] {
        let home = Home::new();
        let out = misbehaving(&home, "members", "members");
        // Each place says something as the user; each of those is a run of its own.
        let turns: Vec<_> =
            std::iter::once(bash("echo 1")).chain((0..12).map(|n| text(&format!("answer {n}")))).collect();
        let turns = json!(turns);
        let setup = Setup::new(&home).turns(turns);
        let live = if user { setup.with_user() } else { setup }.start().await;
        // What session_start says as the user starts the run in which the others are reached.
        let mut seen = Vec::new();
        const PLACES: [&str; 7] = [
            "session_start",
            "input",
            "before_agent_start",
            "context",
            "message_end",
            "tool_call",
            "turn_end",
        ];
        for place in PLACES {
            let done = line(&out, place, |l| l.starts_with(&format!("{place} done"))).await;
            seen.push(done);
        }
        for place in PLACES {
            line(&out, "its task", |l| l == format!("{place} spawned")).await;
        }
        for done in seen {
            assert!(done.ends_with("failed []"), "with a user: {user}\n{done}");
        }
        assert!(live.faults().is_empty(), "{:?}\n{:#?}", live.faults(), lines(&out));
        live.close().await;
    }
}

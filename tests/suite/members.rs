//! Every member of `pi` may be awaited from any handler: a request resolves when it is
//! accepted, what it causes is queued (boundary.md 6).

use atomic_tests::{
    env::Home,
    live::{Setup, bash, line, lines, text},
    patch::misbehaving,
};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn every_member_that_exists_is_awaited_from_four_handlers_without_a_deadlock() {
    for user in [false, true] {
        let home = Home::new();
        let out = misbehaving(&home, "members", "members");
        // Each place says something as the user; each of those is a run of its own.
        let turns = json!([bash("echo 1"), text("a"), text("b"), text("c"), text("d"), text("e"), text("f")]);
        let setup = Setup::new(&home).turns(turns);
        let live = if user { setup.with_user() } else { setup }.start().await;
        // What session_start says as the user starts the run in which the others are reached.
        let mut seen = Vec::new();
        for place in ["session_start", "message_end", "tool_call", "turn_end"] {
            let done = line(&out, place, |l| l.starts_with(&format!("{place} done"))).await;
            seen.push(done);
        }
        for place in ["session_start", "message_end", "tool_call", "turn_end"] {
            line(&out, "its task", |l| l == format!("{place} spawned")).await;
        }
        for done in seen {
            assert!(done.ends_with("failed []"), "with a user: {user}\n{done}");
        }
        assert!(live.faults().is_empty(), "{:?}\n{:#?}", live.faults(), lines(&out));
        live.close().await;
    }
}

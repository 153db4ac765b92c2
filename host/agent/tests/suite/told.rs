//! What ops tell extensions: after the dispatch that is going on, in order, before a session ends.

use crate::doubles::*;
use atomic_agent::{model::ThinkingLevel, op::Op};
use serde_json::json;

fn of_interest(rig: &Rig) -> Vec<String> {
    let fits = |l: &String| {
        ["session_", "model_", "thinking_", "entry_", "tool_call ", "tool_result"]
            .iter()
            .any(|s| l.starts_with(s))
    };
    rig.log.lines().into_iter().filter(fits).collect()
}

#[tokio::test]
async fn a_name_is_told_with_its_entry_and_before_the_end() {
    let mut rig = build([]).start().await;
    rig.handle.request(Op::SetSessionName { name: Some("  my name ".into()) }).await.unwrap();
    rig.quit().await;
    assert_eq!(
        of_interest(&rig),
        [
            "session_start reason=startup",
            "entry_appended session_info",
            "session_info_changed name=my name",
            "session_shutdown reason=quit"
        ]
    );
}

#[tokio::test]
async fn a_level_is_told_when_it_really_changes() {
    let mut rig = build([]).start().await;
    for level in [ThinkingLevel::High, ThinkingLevel::High, ThinkingLevel::Low] {
        rig.handle.request(Op::SetThinkingLevel { level }).await.unwrap();
    }
    rig.quit().await;
    let levels: Vec<_> = of_interest(&rig).into_iter().filter(|l| l.starts_with("thinking")).collect();
    assert_eq!(levels, ["thinking_level_select high from off", "thinking_level_select low from high"]);
}

#[tokio::test]
async fn the_model_there_is_already_is_no_news() {
    let mut rig = build([]).start().await;
    let answer = rig.handle.request(Op::SetModel { provider: "p".into(), model: "m".into() }).await.unwrap();
    assert_eq!(answer, true);
    rig.quit().await;
    assert_eq!(rig.log.count("model_select"), 0);
}

#[tokio::test]
async fn an_entry_that_a_handler_appends_is_told_after_its_own_dispatch_and_before_the_call_runs() {
    let op = Op::AppendEntry { custom_type: "x".into(), data: Some(json!(1)) };
    let rig = build([Step::Calls(vec![call("c1", "echo one")]), Step::Text("done")])
        .log(|log| log.during.lock().unwrap().push(("tool_execution_start", op)))
        .start()
        .await;
    rig.run("go").await;
    let lines = of_interest(&rig);
    let at = |start: &str| lines.iter().position(|l| l.starts_with(start)).unwrap();
    assert!(at("entry_appended custom") < at("tool_call "), "{lines:?}");
}

#[tokio::test]
async fn a_session_that_a_handler_keeps_is_not_left() {
    for busy in [false, true] {
        let steps = if busy { vec![Step::UntilAborted("…")] } else { vec![] };
        let mut rig = build(steps).log(|log| log.stays = true).start().await;
        let id = rig.handle.view(|v| v.session_id.clone());
        if busy {
            rig.prompt("hi").await.unwrap();
            rig.model.speaking.notified().await;
        }
        let answer = rig
            .handle
            .request(Op::NewSession { parent_session: None, origin: None, setup: vec![] })
            .await
            .unwrap();
        assert_eq!(answer, json!({"cancelled": true}));
        assert_eq!(
            rig.handle.view(|v| (v.session_id.clone(), v.idle)),
            (id, !busy),
            "the run was not touched"
        );
        assert_eq!(rig.log.count("session_shutdown"), 0);
        rig.quit().await;
    }
}

#[tokio::test]
async fn a_session_that_nobody_keeps_is_left_in_order() {
    let mut rig = build([Step::Text("a"), Step::Text("b")]).start().await;
    rig.run("hi").await;
    rig.handle.request(Op::NewSession { parent_session: None, origin: None, setup: vec![] }).await.unwrap();
    rig.run("hi").await;
    rig.quit().await;
    let golden = include_str!("goldens/new_session.txt");
    let of =
        |l: &&str| l.starts_with("session_") || l.starts_with("resources") || l.starts_with("agent_settled");
    let expected: Vec<&str> = golden.lines().filter(of).collect();
    let lines = rig.log.lines();
    let got: Vec<&str> = lines.iter().map(String::as_str).filter(of).collect();
    assert_eq!(got, expected);
}

//! Events whose source is another room's, asked through the hooks as that room will: real
//! libraries, real dispatch, the merge rule of each.

use atomic_agent::{
    boundary::Boundary,
    decisions::{
        BeforeEvent, ReplayAction, RestoreReason, RoomEvent, SessionBefore, UserBash, UserBashOutcome, Veto,
        WarmingAction, WarmingDecision,
    },
    hooks::{Hooks as _, Notice},
    message::Message,
};
use atomic_tests::{
    env::Home,
    live::{Live, Setup, lines, text},
    patch::misbehaving,
};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Extensions `a`, `b`, … that do as they are told, in this order.
async fn session(home: &Home, modes: &[&str]) -> (Live, Vec<std::path::PathBuf>) {
    let outs = modes.iter().zip('a'..).map(|(mode, id)| misbehaving(home, &id.to_string(), mode)).collect();
    (Setup::new(home).turns(json!([text("hello")])).start().await, outs)
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

async fn before(live: &Live, event: BeforeEvent, fields: Value) -> Veto {
    live.extensions.session_before(SessionBefore::new(event, fields)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_room_tells_reaches_extensions_as_it_was_told() {
    let home = Home::new();
    let names = [
        "session_compact",
        "session_compact_failed",
        "compaction_start",
        "compaction_end",
        "session_tree",
        "workflow_lifecycle",
        "workflow_activity_changed",
        "workflow_stage_completed",
        "workflow_heartbeat",
    ];
    assert_eq!(RoomEvent::ALL.map(|(_, name)| name), names);
    let modes = RoomEvent::ALL.map(|(_, name)| format!("replies:{name}=null"));
    let (live, outs) = session(&home, &modes.each_ref().map(|m| m.as_str())).await;
    for (n, (event, name)) in RoomEvent::ALL.into_iter().enumerate() {
        let fields = object(json!({"cursor": {"epoch": "e", "revision": n}, "reason": "manual"}));
        let notice = Notice::Room { event, fields: &fields };
        assert!(live.extensions.hears(&notice), "{name}");
        live.extensions.notify(notice).await;
        let asked =
            format!(r#"asked {{"type":"{name}","cursor":{{"epoch":"e","revision":{n}}},"reason":"manual"}}"#);
        assert!(lines(&outs[n]).contains(&asked), "{name}: {:?}", lines(&outs[n]));
    }
    live.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_truthy_answer_a_fault_and_silence_cancel_nothing() {
    let home = Home::new();
    let event = "session_before_fork";
    let modes = [
        &format!("replies:{event}={{\"skipConversationRestore\":true}}")[..],
        &format!("fails:{event}"),
        "none",
    ];
    let (live, _) = session(&home, &modes).await;
    let veto = before(&live, BeforeEvent::Fork, json!({"entryId": "e1", "position": "before"})).await;
    assert_eq!(veto.cancelled_by, None);
    assert_eq!(veto.result, Some(object(json!({"skipConversationRestore": true}))));
    assert_eq!(live.faults(), [(event.to_owned(), "handler broke".to_owned())]);
    live.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_that_cancels_ends_the_question_and_its_answer_is_the_whole_answer() {
    let home = Home::new();
    let modes = [
        r#"replies:session_before_tree={"label":"old","summary":{"summary":"s"}}"#,
        r#"replies:session_before_tree={"cancel":true}"#,
        r#"replies:session_before_tree={"label":"never"}"#,
    ];
    let (live, outs) = session(&home, &modes).await;
    let veto = before(&live, BeforeEvent::Tree, json!({"preparation": {"targetId": "e1"}})).await;
    assert_eq!(veto, Veto { cancelled_by: Some("b".into()), result: Some(object(json!({"cancel": true}))) });
    let asked = |out: &std::path::Path| lines(out).iter().filter(|l| l.starts_with("asked")).count();
    assert_eq!([asked(&outs[0]), asked(&outs[1]), asked(&outs[2])], [1, 1, 0]);
    assert_eq!(
        lines(&outs[0]).iter().find(|l| l.starts_with("asked")).unwrap(),
        r#"asked {"type":"session_before_tree","preparation":{"targetId":"e1"}}"#
    );
    live.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_later_answer_replaces_an_earlier_one_and_one_without_a_known_key_does_not() {
    let home = Home::new();
    let event = "session_before_compact";
    let modes = [
        "compacts",
        &format!("replies:{event}={{\"other\":1}}"),
        &format!("replies:{event}={{\"cancel\":7}}"),
    ];
    let (live, _) = session(&home, &modes).await;
    let asked = json!({
        "reason": "manual", "parameters": {"compression_ratio": 0.5, "preserve_recent": 2, "query": ""},
        "preparation": {"firstKeptEntryId": null, "region": {"lines": ["first", "second"]}, "tokensBefore": 9},
        "branchEntries": [],
    });
    let veto = before(&live, BeforeEvent::Compact, asked).await;
    assert_eq!(veto.result, Some(object(json!({"compactedText": "first"}))));
    assert_eq!(veto.cancelled_by, None);
    assert!(live.faults()[0].1.contains("cancel is 7"), "{:?}", live.faults());
    live.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_crash_interrupted_is_restored_by_all_and_replayed_as_the_last_one_says() {
    let home = Home::new();
    let replay = r#"replies:session_recovery_replay={"decisions":[{"entryId":"e2","action":"deliver"},{"entryId":"lost","action":"drop"},{"entryId":"e1","action":"eat"}]}"#;
    let modes = ["recovery", replay, r#"replies:session_recovery_restore={"notices":["and",7,"more"]}"#];
    let (live, _) = session(&home, &modes).await;
    let notices = live.extensions.session_recovery_restore(RestoreReason::Resume).await;
    assert_eq!(notices, ["Worker reviewer could not be restored (resume) and is gone.", "and", "more"]);

    let pending = |id: &str, kind: &str| json!({"entryId": id, "customType": kind, "content": "x", "timestamp": 1, "delivery": "steer"});
    let note = "my-extension:worker-note";
    let pending = vec![pending("e1", note), pending("e2", note), pending("e3", "other")];
    let decisions = live.extensions.session_recovery_replay(pending).await;
    assert_eq!(decisions, [("e1".into(), ReplayAction::Drop), ("e2".into(), ReplayAction::Deliver)].into());
    let faults = live.faults();
    assert_eq!(faults.len(), 2, "one for the unknown entry, one for the unknown action: {faults:?}");
    live.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_valid_decision_about_the_cache_counts_and_each_handler_sees_the_one_before() {
    let home = Home::new();
    let event = "cache_warming_decision";
    let modes = [
        format!("replies:{event}={{\"action\":\"warm\"}}"),
        format!("replies:{event}={{\"action\":\"boil\"}}"),
        format!("fails:{event}"),
    ];
    let (live, outs) = session(&home, &modes.each_ref().map(|m| m.as_str())).await;
    let asked = WarmingDecision {
        warm_cost: 0.01,
        miss_cost: 0.5,
        continuation_probability: 0.15,
        action: WarmingAction::Stop,
    };
    assert_eq!(live.extensions.cache_warming_decision(asked).await, WarmingAction::Warm);
    let second = lines(&outs[1]).into_iter().find(|l| l.starts_with("asked")).unwrap();
    assert!(
        second.contains(r#""warmCost":0.01,"missCost":0.5,"continuationProbability":0.15,"action":"warm""#)
    );
    assert_eq!(live.faults().len(), 2);
    live.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_answer_runs_the_users_command_and_a_fault_keeps_it_from_running() {
    let asked =
        || UserBash { command: "echo hey".into(), exclude_from_context: true, cwd: "/somewhere".into() };
    let home = Home::new();
    let (live, outs) = session(&home, &["replies:user_bash={}", "shell", "fails:user_bash"]).await;
    let UserBashOutcome::Done(done) = live.extensions.user_bash(asked()).await else { panic!("not run") };
    assert_eq!((done.output.as_str(), done.exit_code), ("elsewhere: echo hey", Some(0)));
    assert!(
        lines(&outs[0])
            .iter()
            .any(|l| l.ends_with(r#""command":"echo hey","excludeFromContext":true,"cwd":"/somewhere"}"#))
    );
    live.close().await;

    for fault in
        ["fails:user_bash", r#"replies:user_bash={"result":{"output":7}}"#, r#"replies:user_bash="x""#]
    {
        let home = Home::new();
        let (live, _) = session(&home, &[fault, "shell"]).await;
        let UserBashOutcome::Failed { by, .. } = live.extensions.user_bash(asked()).await else {
            panic!("{fault} let it through")
        };
        assert_eq!(by, "a");
        assert_eq!(live.faults().len(), 1);
        live.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_context_that_nobody_changes_is_the_one_that_was_given() {
    let home = Home::new();
    let (live, outs) = session(&home, &["replies:context={}", "fails:context_with_system"]).await;
    let messages = Arc::new(vec![Message::user("hi", 1)]);
    assert!(Arc::ptr_eq(&messages, &live.extensions.context(messages.clone()).await));
    assert!(Arc::ptr_eq(&messages, &live.extensions.context_with_system(messages.clone()).await));
    assert!(lines(&outs[0]).iter().any(|l| l.starts_with("asked")));
    assert!(!live.extensions.hears_boundary(&Boundary::BeforeSettle { outcome: "completed" }));
    live.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_head_is_folded_with_a_cut_and_its_loss_is_told_and_honoured() {
    let home = Home::new();
    let (live, _) = session(&home, &["cut", r#"replies:context_with_system={"messages":[]}"#]).await;
    let system = |sections: Value| json!({"role": "system", "content": "", "sections": sections});
    let transcript: Vec<Message> = serde_json::from_value(json!([
        system(json!({"role": "A", "rules": "be kind"})), {"role": "user", "content": "one"},
        system(json!({"role": "B"})), {"role": "user", "content": "two"},
    ]))
    .unwrap();
    let folded = atomic_agent::session::fold_system(transcript.iter().filter_map(|m| match m {
        Message::System(m) => Some(m),
        _ => None,
    }));
    let sent = live.extensions.context_with_system(Arc::new(transcript)).await;
    assert!(sent.is_empty(), "the second handler's answer, as it is");
    let (event, why) = live.faults().pop().unwrap();
    assert_eq!(event, "context_with_system");
    assert!(why.contains("leading system message"), "{why}");
    assert_eq!(folded.unwrap().extra["sections"], json!({"role": "B", "rules": "be kind"}));
    live.close().await;
}

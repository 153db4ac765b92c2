//! The code samples of the pages about events, as an author writes and tests them.

use crate::{
    prelude::*,
    protocol::boundary::{EntryDraft, Replacement},
    testing::TestHost,
};
use serde_json::json;

fn boundary(extra: Value) -> Value {
    let mut event = json!({
        "outcome": "completed", "entries": [{"type": "custom", "customType": "first"}], "continue": false,
        "toolResults": [], "messageEntryId": "e7",
        "context": {"canContinue": true, "llmMessages": [{"role": "user", "content": "hi"}]},
    });
    event.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    event
}

#[test]
fn a_boundary_handler_adds_to_what_was_proposed_and_asks_to_go_on() {
    let host = TestHost::new(|pi: &Extension| {
        pi.on(TurnEnd, |event, _| async move {
            assert!(event.context()?.can_continue && !event.continues);
            let id = event.message_entry_id.clone().unwrap_or_default();
            let instruction = CustomMessage::new("replacement-instruction", "Answer again.").display(false);
            let answer = event.propose()?.entry(EntryDraft::remove(id));
            Ok(Some(answer.entry(EntryDraft::message(instruction)).go_on()))
        });
        Ok(())
    });
    let result = host.fire(TurnEnd, boundary(json!({"turnIndex": 0}))).wait().ok();
    assert_eq!(
        result.results,
        [json!({"entries": [
            {"type": "custom", "customType": "first"},
            {"type": "context_edit", "targetId": "e7", "replacement": null},
            {"type": "custom_message", "customType": "replacement-instruction", "content": "Answer again.", "display": false},
        ], "continue": true})]
    );
}

#[test]
fn a_later_boundary_handler_sees_what_an_earlier_one_left() {
    let host = TestHost::new(|pi: &Extension| {
        pi.on(AgentBeforeSettle, |_, _| async move {
            Ok(Some(BoundaryAnswer::new().entry(EntryDraft::custom("x", 1))))
        });
        pi.on(AgentBeforeSettle, |event, _| async move {
            assert_eq!(event.entries()?, [EntryDraft::custom("x", 1)]);
            assert_eq!(event.outcome.as_str(), "completed");
            Ok(None)
        });
        Ok(())
    });
    host.fire(AgentBeforeSettle, boundary(json!({}))).wait().ok();
}

#[test]
fn a_draft_of_a_later_version_is_kept_as_it_came() {
    let draft = json!({"type": "hologram", "photons": 3});
    let read: EntryDraft = serde_json::from_value(draft.clone()).unwrap();
    assert_eq!(serde_json::to_value(read).unwrap(), draft);
    let edit = EntryDraft::replace("e1", "short");
    let EntryDraft::ContextEdit { replacement: Some(Replacement { content, .. }), .. } = edit else {
        panic!()
    };
    assert_eq!(content.plain_text(), "short");
}

#[test]
fn messages_of_both_contexts_are_changed_in_place_and_cross_only_when_they_changed() {
    fn prune(messages: &mut Vec<AgentMessage>) {
        messages.retain(|m| m.plain_text() != "secret");
    }
    let host = TestHost::new(|pi: &Extension| {
        pi.on(Context, |event, _| async move {
            prune(&mut *event.messages_mut()?);
            Ok(None)
        });
        pi.on(ContextWithSystem, |event, _| async move {
            prune(&mut *event.messages_mut()?);
            Ok(None)
        });
        Ok(())
    });
    let user = |text: &str| json!({"role": "user", "content": text, "timestamp": 1});
    for (kind, with) in [("context", false), ("context_with_system", true)] {
        let fire = |messages: Value| match with {
            false => host.fire(Context, json!({"messages": messages})).wait().ok(),
            true => host.fire(ContextWithSystem, json!({"messages": messages})).wait().ok(),
        };
        let changed = fire(json!([user("a"), user("secret")]));
        assert_eq!(changed.field("messages"), &json!([user("a")]), "{kind}");
        // Sent back, it would have a key more than it came with.
        let bare = json!([{"role": "user", "content": "a"}]);
        assert_eq!(fire(bare.clone()).field("messages"), &bare, "{kind}");
    }
}

#[test]
fn a_transcript_is_cut_behind_a_folded_head() {
    let host = TestHost::new(|pi: &Extension| {
        pi.on(ContextWithSystem, |event, _| async move {
            let messages = event.messages()?;
            let cut = messages.len() - 1;
            let head = current_system_message(&messages[..cut]);
            Ok(Some(ContextAnswer::new(head.into_iter().chain(messages[cut..].to_vec()).collect())))
        });
        Ok(())
    });
    let messages = json!([
        {"role": "system", "content": "", "sections": {"role": "A"}},
        {"role": "user", "content": "old", "timestamp": 1}, {"role": "user", "content": "new", "timestamp": 2},
    ]);
    let result = host.fire(ContextWithSystem, json!({"messages": messages})).wait().ok();
    assert_eq!(
        result.field("messages"),
        &json!([
            {"role": "system", "content": "", "sections": {"role": "A"}},
            {"role": "user", "content": "new", "timestamp": 2},
        ])
    );
}

#[test]
fn headers_are_a_map_to_be_changed() {
    let host = TestHost::new(|pi: &Extension| {
        pi.on_sync(BeforeProviderHeaders, |event, ctx| {
            let mut headers = event.headers_mut()?;
            headers.insert("x-session-id".into(), Some(ctx.session_manager().get_session_id()?));
            headers.remove("x-remove-me");
            headers.insert("user-agent".into(), None);
            Ok(())
        });
        Ok(())
    });
    let result = host
        .fire(BeforeProviderHeaders, json!({"headers": {"x-remove-me": "1", "accept": "*/*"}}))
        .wait()
        .ok();
    assert_eq!(
        result.field("headers"),
        &json!({"accept": "*/*", "user-agent": null, "x-session-id": "test-session"})
    );
}

#[test]
fn a_veto_ends_the_question_and_a_first_answer_runs_the_users_command() {
    let host = TestHost::new(|pi: &Extension| {
        pi.on(SessionBeforeSwitch, |event, _| async move {
            Ok((event.reason.as_str() == "new").then(CancelAnswer::cancel))
        });
        pi.on(SessionBeforeSwitch, |_, _| async move { Err(Error::msg("never asked")) });
        pi.on(UserBash, |event, _| async move {
            Ok(Some(UserBashAnswer::result(format!("ran {}", event.command), 0)))
        });
        pi.on(UserBash, |_, _| async move { Err(Error::msg("never asked")) });
        Ok(())
    });
    assert!(host.fire(SessionBeforeSwitch, json!({"reason": "new"})).wait().ok().cancelled);
    let ran =
        host.fire(UserBash, json!({"command": "ls", "excludeFromContext": false, "cwd": "/"})).wait().ok();
    assert_eq!(ran.results[0]["result"]["output"], "ran ls");
}

#[test]
fn what_was_interrupted_is_dropped_by_whose_it_is() {
    let host = TestHost::new(|pi: &Extension| {
        pi.on(SessionRecoveryReplay, |event, _| async move {
            let mine = event.pending.iter().filter(|p| p.custom_type == "mine");
            Ok(Some(mine.fold(ReplayAnswer::new(), |answer, p| answer.drop_entry(&p.entry_id))))
        });
        Ok(())
    });
    let pending = json!([
        {"entryId": "e1", "customType": "mine", "content": "a", "timestamp": 1, "delivery": "steer"},
        {"entryId": "e2", "customType": "other", "content": [], "timestamp": "2026-01-01", "delivery": "followUp"},
    ]);
    let result = host.fire(SessionRecoveryReplay, json!({"pending": pending})).wait().ok();
    assert_eq!(result.results, [json!({"decisions": [{"entryId": "e1", "action": "drop"}]})]);
}

//! Subscribing, reading fields, answering; the merge of several answers.

use super::bash;
use crate::{prelude::*, testing::TestHost};
use serde_json::json;
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

#[test]
fn a_handler_may_be_written_in_any_of_the_usual_forms() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (a, b, c) = (seen.clone(), seen.clone(), seen.clone());
    async fn by_name(event: Event<ToolCall>, _ctx: crate::Context) -> Result<Option<ToolCallAnswer>> {
        Ok(Some(block(format!("{} refused", event.tool_name()))))
    }
    let host = TestHost::new(move |pi: &Extension| {
        let (a, b, c) = (a.clone(), b.clone(), c.clone());
        pi.on(TurnStart, move |event, _| async move {
            a.lock().unwrap().push(event.turn_index);
            Ok(())
        });
        pi.on(TurnStart, async move |event: Event<TurnStart>, _| {
            b.lock().unwrap().push(event.turn_index + 10);
            Ok(())
        });
        pi.on_sync(TurnStart, move |event, _| {
            c.lock().unwrap().push(event.turn_index + 20);
            Ok(())
        });
        pi.on(ToolCall, by_name);
        Ok(())
    });

    host.fire(TurnStart, json!({"turnIndex": 1})).wait().ok();
    host.fire(TurnStart, json!({"turnIndex": 2})).wait().ok();

    assert_eq!(*seen.lock().unwrap(), [1, 11, 21, 2, 12, 22]);
    let blocked = host.fire(ToolCall, bash("ls")).wait().blocked;
    assert_eq!(blocked.as_deref(), Some("bash refused"));
}

#[tokio::test]
async fn an_async_activate_runs_in_a_test_that_has_a_runtime_itself() {
    async fn activate(pi: &Extension) -> Result<()> {
        tokio::task::yield_now().await;
        pi.on(SessionStart, |event, ctx| async move {
            assert_eq!(event.reason.as_str(), "startup");
            ctx.ui().notify("hello", Level::Info)
        });
        Ok(())
    }
    let host = TestHost::new(activate);
    host.fire(SessionStart, json!({"reason": "startup"})).await.ok();
    assert_eq!(host.record().notices[0].message, "hello");
}

#[test]
fn phases_run_early_normal_late_and_a_late_gate_sees_the_final_arguments() {
    let host = TestHost::new(|pi: &Extension| {
        pi.on_with(Phase::Late, ToolCall, |event, _| async move {
            let command = event.input_as::<BashInput>().map(|b| b.command.clone()).unwrap_or_default();
            Ok(Some(block(command)))
        });
        pi.on(ToolCall, |event, _| async move {
            if let Some(mut b) = event.input_as::<BashInput>() {
                b.command.push_str(" normal");
            }
            Ok(None)
        });
        pi.on_with(Phase::Early, ToolCall, |event, _| async move {
            if let Some(mut b) = event.input_as::<BashInput>() {
                b.command.push_str(" early");
            }
            Ok(None)
        });
        Ok(())
    });
    let result = host.fire(ToolCall, bash("x")).wait();
    assert_eq!(result.blocked.as_deref(), Some("x early normal"));
}

#[test]
fn a_handler_that_reads_nothing_has_nothing_decoded() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let host = TestHost::new(move |pi: &Extension| {
        let counted = counted.clone();
        pi.on_sync(TurnStart, move |_, _| {
            counted.fetch_add(1, Ordering::SeqCst);
            Ok(())
        });
        pi.on_sync(TurnEnd, move |event, _| {
            event.turn_index.checked_add(1).map(|_| None).ok_or(Error::msg("never"))
        });
        Ok(())
    });

    // A field of the wrong type: whoever reads it fails, whoever does not is not concerned.
    let unread = host.fire(TurnStart, json!({"turnIndex": "no number"})).wait();
    assert!(unread.errors.is_empty());
    assert_eq!(calls.load(Ordering::SeqCst), 1);

    let read = host.fire(TurnEnd, json!({"turnIndex": "no number"})).wait();
    assert_eq!(read.errors[0].code, "malformed");
}

#[test]
fn an_unknown_event_name_is_accepted_and_never_fires_by_itself() {
    let host = TestHost::new(|pi: &Extension| {
        pi.on(Raw("model_dreams"), |event, _| async move { Ok(Some(json!({"of": event["of"]}))) });
        Ok(())
    });
    assert!(host.fire(AgentStart, json!({})).wait().results.is_empty());
    let fired = host.fire(Raw("model_dreams"), json!({"of": "sheep"})).wait();
    assert_eq!(fired.results, [json!({"of": "sheep"})]);
}

#[test]
fn input_transforms_chain_and_handled_ends_it() {
    let host = TestHost::new(|pi: &Extension| {
        pi.on(Input, |event, _| async move { Ok(Some(InputAnswer::transform(event.text.to_uppercase()))) });
        pi.on(Input, |event, _| async move { Ok((event.text == "STOP").then_some(InputAnswer::Handled)) });
        pi.on(Input, |event, _| async move { Ok(Some(InputAnswer::transform(format!("{}!", event.text)))) });
        Ok(())
    });
    let spoken = host.fire(Input, json!({"text": "go", "source": "interactive"})).wait().ok();
    assert_eq!((spoken.field("text"), spoken.handled), (&json!("GO!"), false));
    let stopped = host.fire(Input, json!({"text": "stop", "source": "rpc"})).wait().ok();
    assert_eq!((stopped.field("text"), stopped.handled), (&json!("STOP"), true));
}

#[test]
fn a_message_end_that_answers_another_role_is_ignored_and_reported() {
    let host = TestHost::new(|pi: &Extension| {
        pi.on(MessageEnd, |_, _| async move { Ok(Some(MessageEndAnswer::new(AgentMessage::user("x")))) });
        Ok(())
    });
    let message = json!({"role": "assistant", "content": [], "timestamp": 1});
    let result = host.fire(MessageEnd, json!({ "message": message })).wait();
    assert_eq!(result.errors[0].code, "role_mismatch");
    assert_eq!(result.field("message"), &message);
}

#[test]
fn a_tool_result_patch_replaces_what_it_names_and_keeps_the_rest() {
    let host = TestHost::new(|pi: &Extension| {
        pi.on(ToolResult, |event, _| async move {
            let Some(details) = event.details_as::<BashDetails>() else { return Ok(None) };
            let input = event.input_as::<BashInput>().map(|i| i.command).unwrap_or_default();
            Ok(Some(ToolResultPatch::new().text(format!("{input}: {:?}", details.exit_code))))
        });
        Ok(())
    });
    let fields = json!({
        "toolName": "bash", "toolCallId": "1", "input": {"command": "false"}, "isError": true,
        "content": [{"type": "text", "text": "old"}], "details": {"exitCode": 1},
    });
    let result = host.fire(ToolResult, fields).wait().ok();
    assert_eq!(result.field("content"), &json!([{"type": "text", "text": "false: Some(1)"}]));
    assert_eq!((result.field("isError"), result.field("details")), (&json!(true), &json!({"exitCode": 1})));
}

#[test]
fn context_messages_come_back_undecoded_as_they_were() {
    let host = TestHost::new(|pi: &Extension| {
        pi.on(Context, |event, _| async move {
            let mut messages = event.raw_messages()?;
            messages.remove(0);
            event.set_messages(&messages)?;
            Ok(None)
        });
        pi.on(Context, |event, _| async move {
            let mut messages = event.messages()?;
            messages.push(AgentMessage::user("more"));
            Ok(Some(ContextAnswer::new(messages)))
        });
        Ok(())
    });
    let kept = json!({"role": "assistant", "content": [], "timestamp": 5, "api": "a", "provider": "p",
        "model": "m", "usage": {"input": 1, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 1},
        "laterKey": {"kept": true}});
    let fields = json!({"messages": [{"role": "user", "content": "first"}, kept]});
    let result = host.fire(Context, fields).wait().ok();
    assert_eq!(result.field("messages")[0], kept);
    assert_eq!(result.field("messages")[1]["content"], json!("more"));
    assert_eq!(result.field("messages").as_array().unwrap().len(), 2);
}

#[test]
fn headers_are_set_without_minding_case_removed_and_suppressed() {
    let host = TestHost::new(|pi: &Extension| {
        pi.on(BeforeProviderHeaders, |event, _| async move {
            event.set("X-Team", "blue")?;
            event.remove("x-old")?;
            event.suppress("user-agent")
        });
        Ok(())
    });
    let headers = json!({"x-team": "red", "X-Old": "1", "accept": "*"});
    let result = host.fire(BeforeProviderHeaders, json!({ "headers": headers, "provider": "p" })).wait().ok();
    assert_eq!(result.field("headers"), &json!({"X-Team": "blue", "accept": "*", "user-agent": null}));
}

#[test]
fn a_provider_request_is_replaced_even_by_null() {
    let host = TestHost::new(|pi: &Extension| {
        pi.on(BeforeProviderRequest, |event, _| async move {
            let mut body = event.body()?;
            body["temperature"] = json!(0);
            Ok(Some(ReplacePayload::new(body)))
        });
        Ok(())
    });
    let result = host.fire(BeforeProviderRequest, json!({"payload": {"model": "m"}})).wait().ok();
    assert_eq!(result.field("payload"), &json!({"model": "m", "temperature": 0}));
}

#[test]
fn before_agent_start_chains_the_prompt_and_edits_its_options() {
    let host = TestHost::new(|pi: &Extension| {
        pi.on(BeforeAgentStart, |event, _| async move {
            let mut options = event.system_prompt_options()?;
            options.sections.insert("team".into(), "blue".into());
            let answer = BeforeAgentStartAnswer::message(CustomMessage::new("note", "hi"));
            Ok(Some(answer.with_system_prompt(format!("{} more", event.system_prompt))))
        });
        Ok(())
    });
    let fields = json!({"messageType": "user", "prompt": "p", "systemPrompt": "base",
        "systemPromptOptions": {"cwd": "/x", "laterKey": 1}});
    let result = host.fire(BeforeAgentStart, fields).wait().ok();
    assert_eq!(result.field("systemPrompt"), &json!("base more"));
    assert_eq!(
        result.field("systemPromptOptions"),
        &json!({"cwd": "/x", "sections": {"team": "blue"}, "laterKey": 1})
    );
    assert_eq!(result.results[0]["message"]["customType"], json!("note"));
}

#[test]
fn a_step_of_the_stream_is_read_as_its_type_also_one_of_a_later_version() {
    let text = Arc::new(Mutex::new(String::new()));
    let out = text.clone();
    let host = TestHost::new(move |pi: &Extension| {
        let out = out.clone();
        pi.on_sync(MessageUpdate, move |event, _| {
            out.lock().unwrap().push_str(event.text_delta().unwrap_or("-"));
            Ok(())
        });
        Ok(())
    });
    for step in [
        json!({"type": "text_delta", "contentIndex": 0, "delta": "hi"}),
        json!({"type": "hologram_delta", "photons": 3}),
        json!({"type": "toolcall_end", "contentIndex": 0, "toolCall": {"id": "1", "name": "ls", "arguments": {}}}),
    ] {
        host.fire(MessageUpdate, json!({ "assistantMessageEvent": step })).wait().ok();
    }
    assert_eq!(*text.lock().unwrap(), "hi--");
}

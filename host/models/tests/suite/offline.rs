//! The offline model, asked as the core asks any model.

use crate::common::{Recorder, Told, messages, prompt, request};
use atomic_agent::{
    message::{AssistantEvent, AssistantMessage, Content, StopReason},
    model::{Model, ModelRequest},
};
use atomic_models::{Script, ScriptedModel};
use serde_json::json;
use tokio_util::sync::CancellationToken;

fn scripted(script: serde_json::Value) -> ScriptedModel {
    ScriptedModel::new(Some(serde_json::from_value::<Script>(script).unwrap()))
}

async fn ask(model: &ScriptedModel, request: ModelRequest) -> (AssistantMessage, Recorder) {
    let mut sink = Recorder::default();
    let message = model.stream(request, &mut sink, &CancellationToken::new()).await;
    (message, sink)
}

fn text(message: &AssistantMessage) -> String {
    message.content.iter().filter_map(Content::as_text).collect()
}

#[tokio::test]
async fn each_request_takes_the_next_turn_and_beyond_the_last_it_says_so() {
    let model = scripted(json!({"turns": [
        {"thinking": "let me see", "text": "Running a command for you now.",
         "toolCalls": [{"name": "bash", "arguments": {"command": "ls"}}, {"name": "todo"}]},
        {"text": "Done.", "stopReason": "length"}
    ]}));
    let (first, sink) = ask(&model, prompt("hi")).await;
    assert_eq!(first.stop_reason, Some(StopReason::ToolUse));
    let calls: Vec<_> = first.tool_calls().map(|c| json!([c.id, c.name, c.arguments])).collect();
    assert_eq!(json!(calls), json!([["call_1", "bash", {"command": "ls"}], ["call_2", "todo", {}]]));
    assert_eq!(
        sink.steps(),
        [
            "start",
            "thinking_start",
            "thinking_delta",
            "thinking_end",
            "text_start",
            "text_delta",
            "text_end",
            "toolcall_start",
            "toolcall_delta",
            "toolcall_end",
            "toolcall_start",
            "toolcall_delta",
            "toolcall_end",
            "done"
        ]
    );
    let deltas = sink.events().iter().filter(|e| matches!(e, AssistantEvent::TextDelta { .. })).count();
    assert!(deltas > 1, "text comes in several deltas");
    assert!(first.usage.input > 0 && first.usage.output > 0 && first.usage.total_tokens > 0);

    let (second, _) = ask(&model, prompt("more")).await;
    assert_eq!((text(&second).as_str(), second.stop_reason), ("Done.", Some(StopReason::Length)));
    let (third, _) = ask(&model, prompt("more")).await;
    assert_eq!(text(&third), "The script is over: it has 2 turns, and this is request 3.");
    assert_eq!(third.stop_reason, Some(StopReason::Stop));
}

#[tokio::test]
async fn the_hooks_of_a_request_are_told_in_order_as_for_any_model() {
    let (_, sink) = ask(&scripted(json!({"turns": [{"text": "hi"}]})), prompt("hello")).await;
    assert_eq!(sink.told[..3], [Told::Headers, Told::Payload, Told::Response(200)]);
    assert!(matches!(&sink.told[3], Told::Event(AssistantEvent::Start)));
    assert!(matches!(sink.told.last(), Some(Told::Event(AssistantEvent::Done { .. }))));
    assert_eq!(sink.payload["messages"][0]["content"], "hello");
}

#[tokio::test]
async fn a_scripted_error_keeps_what_was_streamed_before_it() {
    let model = scripted(json!({"turns": [{"text": "half", "error": "overloaded"}]}));
    let (message, sink) = ask(&model, prompt("hi")).await;
    assert_eq!(message.stop_reason, Some(StopReason::Error));
    assert_eq!(message.error_message.as_deref(), Some("overloaded"));
    assert_eq!(text(&message), "half");
    assert_eq!(sink.steps().last().unwrap(), "error");
}

#[tokio::test(start_paused = true)]
async fn a_delay_ends_at_once_when_it_is_cancelled() {
    let model = scripted(json!({"turns": [{"text": "late", "delayMs": 3_600_000}]}));
    let cancel = CancellationToken::new();
    let asked = tokio::spawn({
        let cancel = cancel.clone();
        async move { model.stream(prompt("hi"), &mut Recorder::default(), &cancel).await }
    });
    tokio::task::yield_now().await;
    cancel.cancel();
    let before = tokio::time::Instant::now();
    let message = asked.await.unwrap();
    assert_eq!(message.stop_reason, Some(StopReason::Aborted));
    assert!(message.content.is_empty());
    assert_eq!(before.elapsed(), std::time::Duration::ZERO);
}

#[tokio::test]
async fn without_a_script_a_prompt_can_call_tools_and_then_hears_what_they_said() {
    let model = ScriptedModel::new(None);
    let (message, _) =
        ask(&model, prompt("call bash {\"command\":\"ls\"}\ncall read {\"path\":\"a\"}")).await;
    let calls: Vec<_> = message.tool_calls().map(|c| (c.id.clone(), c.name.clone())).collect();
    assert_eq!(calls, [("call_1".into(), "bash".into()), ("call_2".into(), "read".into())]);

    let (message, _) = ask(
        &model,
        request(messages(json!([
            {"role": "user", "content": "call bash {}"},
            {"role": "assistant", "content": [{"type": "toolCall", "id": "call_1", "name": "bash", "arguments": {}}], "stopReason": "toolUse"},
            {"role": "toolResult", "toolCallId": "call_1", "toolName": "bash", "content": [{"type": "text", "text": "a.txt"}]},
            {"role": "toolResult", "toolCallId": "call_2", "toolName": "read", "content": [{"type": "text", "text": "no such file"}], "isError": true}
        ]))),
    )
    .await;
    assert_eq!(text(&message), "bash answered: a.txt\nread failed: no such file");
    assert_eq!(message.stop_reason, Some(StopReason::Stop));
}

#[tokio::test]
async fn without_a_script_any_other_prompt_is_repeated_with_a_hint() {
    let (message, _) = ask(&ScriptedModel::new(None), prompt("good morning")).await;
    let said = text(&message);
    assert!(
        said.contains("good morning") && said.contains("call bash") && said.contains("Active tools: bash")
    );
}

#[tokio::test]
async fn call_ids_go_on_from_those_of_a_resumed_transcript() {
    let resumed = request(messages(json!([
        {"role": "user", "content": "call bash {}"},
        {"role": "assistant", "content": [{"type": "toolCall", "id": "call_1", "name": "bash", "arguments": {}}], "stopReason": "toolUse"},
        {"role": "toolResult", "toolCallId": "call_1", "toolName": "bash", "content": []},
        {"role": "user", "content": "call bash {}"}
    ])));
    let (message, _) = ask(&ScriptedModel::new(None), resumed).await;
    assert_eq!(message.tool_calls().next().unwrap().id, "call_2");
}

//! Streams as bytes: recorded answers cut everywhere, and garbage.

use super::*;
use atomic_agent::{
    message::{AssistantEvent, Content},
    model::ModelCost,
};
use proptest::prelude::*;
use serde_json::json;

const OPEN_AI: &str = include_str!("fixtures/openai_completions.sse");
const ANTHROPIC: &str = include_str!("fixtures/anthropic.sse");
const RESPONSES: &str = include_str!("fixtures/openai_responses.sse");
const GOOGLE: &str = include_str!("fixtures/google.sse");

struct Quiet(Vec<AssistantEvent>);

#[async_trait]
impl StreamSink for Quiet {
    async fn headers(&mut self, _: &mut BTreeMap<String, Option<String>>) {}
    async fn payload(&mut self, _: &mut Value) {}
    async fn response(&mut self, _: u16, _: BTreeMap<String, String>) {}
    async fn provider_event(&mut self, _: &Value) {}
    async fn event(&mut self, event: AssistantEvent) {
        self.0.push(event);
    }
}

fn info() -> ModelInfo {
    ModelInfo {
        id: "m".into(),
        name: "M".into(),
        provider: "p".into(),
        api: "a".into(),
        base_url: String::new(),
        reasoning: true,
        input: vec!["text".into()],
        cost: ModelCost { input: 1.0, output: 10.0, cache_read: 0.5, cache_write: 2.0 },
        context_window: 1000,
        max_tokens: 100,
        ..ModelInfo::default()
    }
}

/// The message, its time taken out, and the events told on the way.
fn read(wire: &dyn Wire, chunks: Vec<Vec<u8>>) -> (AssistantMessage, Vec<AssistantEvent>) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let mut draft = Draft::new(&info());
        let mut sink = Quiet(Vec::new());
        let bytes = futures_util::stream::iter(chunks.into_iter().map(Ok::<_, std::io::Error>));
        let mut reader = wire.reader();
        let (redactor, cancel) = (Redactor::default(), CancellationToken::new());
        let result = follow("p", bytes, reader.as_mut(), &mut draft, &redactor, &mut sink, &cancel).await;
        let (mut message, rest) = match result {
            Ok(reason) => draft.finish(reason),
            Err(Failure::Aborted) => draft.fail(StopReason::Aborted, "aborted".into()),
            Err(Failure::Told(fault)) => draft.fail(StopReason::Error, fault.what),
        };
        message.timestamp = 0;
        sink.0.extend(rest);
        (message, sink.0)
    })
}

fn formats() -> [(&'static str, Box<dyn Wire>); 4] {
    [
        (OPEN_AI, Box::new(OpenAiCompletions)),
        (ANTHROPIC, Box::new(Anthropic)),
        (RESPONSES, Box::new(OpenAiResponses)),
        (GOOGLE, Box::new(Google)),
    ]
}

#[test]
fn a_recorded_openai_answer_becomes_the_message_it_was() {
    let (message, _) = read(&OpenAiCompletions, vec![OPEN_AI.into()]);
    assert_eq!(message.stop_reason, Some(StopReason::ToolUse));
    assert_eq!(
        serde_json::to_value(&message.content).unwrap(),
        json!([
            {"type": "thinking", "thinking": "Größe? 🦀", "thinkingSignature": "reasoning_content"},
            {"type": "text", "text": "Ich schaue nach: 日本語."},
            {"type": "toolCall", "id": "call_a", "name": "bash", "arguments": {"command": "ls \"ä\""}},
            {"type": "toolCall", "id": "call_b", "name": "ls", "arguments": {}}
        ])
    );
    let usage = &message.usage;
    assert_eq!(
        (usage.input, usage.cache_read, usage.output, usage.total_tokens),
        (600_000, 400_000, 100_000, 1_100_000)
    );
    assert_eq!((usage.cost.input, usage.cost.cache_read, usage.cost.output), (0.6, 0.2, 1.0));
}

#[test]
fn a_recorded_anthropic_answer_becomes_the_message_it_was() {
    let (message, _) = read(&Anthropic, vec![ANTHROPIC.into()]);
    assert_eq!(message.stop_reason, Some(StopReason::ToolUse));
    assert_eq!(
        serde_json::to_value(&message.content).unwrap(),
        json!([
            {"type": "thinking", "thinking": "Größe? 🦀", "thinkingSignature": "sig-1sig-2"},
            {"type": "thinking", "thinking": "", "thinkingSignature": "encrypted", "redacted": true},
            {"type": "text", "text": "Ich schaue nach: 日本語."},
            {"type": "toolCall", "id": "toolu_a", "name": "bash", "arguments": {"command": "ls \"ä\""}},
            {"type": "toolCall", "id": "toolu_b", "name": "ls", "arguments": {}}
        ])
    );
    let usage = &message.usage;
    assert_eq!((usage.input, usage.cache_read, usage.cache_write, usage.output), (10, 20, 30, 99));
    assert_eq!(usage.total_tokens, 159);
}

#[test]
fn a_recorded_answer_of_the_responses_format_becomes_the_message_it_was() {
    let (message, _) = read(&OpenAiResponses, vec![RESPONSES.into()]);
    assert_eq!(message.stop_reason, Some(StopReason::ToolUse));
    let mut content = serde_json::to_value(&message.content).unwrap();
    let signature = content[0].as_object_mut().unwrap().remove("thinkingSignature").unwrap();
    let item: Value = serde_json::from_str(signature.as_str().unwrap()).unwrap();
    assert_eq!((&item["id"], &item["encrypted_content"]), (&json!("rs_1"), &json!("gAAA")));
    assert_eq!(
        content,
        json!([
            {"type": "thinking", "thinking": "Größe?\n\n🦀"},
            {"type": "text", "text": "Ich schaue nach: 日本語.", "textSignature": "msg_1"},
            {"type": "toolCall", "id": "call_a|fc_1", "name": "bash", "arguments": {"command": "ls \"ä\""}},
            {"type": "toolCall", "id": "call_b|fc_2", "name": "ls", "arguments": {}}
        ])
    );
    let usage = &message.usage;
    assert_eq!((usage.input, usage.cache_read, usage.output, usage.total_tokens), (40, 20, 99, 159));
}

#[test]
fn a_recorded_google_answer_becomes_the_message_it_was() {
    let (message, _) = read(&Google, vec![GOOGLE.into()]);
    assert_eq!(message.stop_reason, Some(StopReason::ToolUse));
    assert_eq!(
        serde_json::to_value(&message.content).unwrap(),
        json!([
            {"type": "thinking", "thinking": "Größe? 🦀"},
            {"type": "text", "text": "Ich schaue nach: 日本語.", "textSignature": "sig-t"},
            {"type": "toolCall", "id": "call_a", "name": "bash", "arguments": {"command": "ls \"ä\""}, "thoughtSignature": "sig-c"},
            {"type": "toolCall", "id": "call_b", "name": "ls", "arguments": {}}
        ])
    );
    let usage = &message.usage;
    assert_eq!((usage.input, usage.cache_read, usage.output, usage.total_tokens), (40, 20, 99, 159));
}

#[test]
fn an_answer_reads_the_same_wherever_the_network_cuts_it() {
    for (fixture, wire) in formats() {
        let bytes = fixture.as_bytes();
        let whole = read(wire.as_ref(), vec![bytes.to_vec()]).0;
        let single = read(wire.as_ref(), bytes.iter().map(|b| vec![*b]).collect()).0;
        assert_eq!(single, whole);
        for at in 0..bytes.len() {
            let (a, b) = bytes.split_at(at);
            assert_eq!(read(wire.as_ref(), vec![a.to_vec(), b.to_vec()]).0, whole, "cut at {at}");
        }
    }
}

#[test]
fn line_ends_and_byte_order_marks_of_any_kind_are_understood() {
    for (fixture, wire) in formats() {
        let whole = read(wire.as_ref(), vec![fixture.into()]).0;
        for other in [
            fixture.replace('\n', "\r\n"),
            format!("\u{feff}{fixture}"),
            format!("\u{feff}\u{feff}{fixture}"),
            format!(": a comment\n\n{fixture}"),
        ] {
            let bytes: Vec<Vec<u8>> = other.bytes().map(|b| vec![b]).collect();
            assert_eq!(read(wire.as_ref(), bytes).0, whole);
            assert_eq!(read(wire.as_ref(), vec![other.into()]).0, whole);
        }
    }
}

#[test]
fn the_steps_rebuild_the_message_and_end_once() {
    for (fixture, wire) in formats() {
        let (message, events) = read(wire.as_ref(), vec![fixture.into()]);
        let mut built: BTreeMap<usize, String> = BTreeMap::new();
        for event in &events {
            if let AssistantEvent::TextDelta { content_index, delta }
            | AssistantEvent::ThinkingDelta { content_index, delta } = event
            {
                built.entry(*content_index).or_default().push_str(delta);
            }
        }
        for (index, text) in built {
            match &message.content[index] {
                Content::Text(t) => assert_eq!(t.text, text),
                Content::Thinking(t) => assert_eq!(t.thinking, text),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(events.first(), Some(&AssistantEvent::Start));
        let ends =
            events.iter().filter(|e| matches!(e, AssistantEvent::Done { .. } | AssistantEvent::Error { .. }));
        assert_eq!(ends.count(), 1);
        assert!(matches!(events.last(), Some(AssistantEvent::Done { .. })));
    }
}

#[test]
fn an_answer_that_stops_before_its_end_is_an_error_that_keeps_what_came() {
    for (fixture, wire) in formats() {
        let upto = fixture.find("日").unwrap();
        let (message, events) = read(wire.as_ref(), vec![fixture.as_bytes()[..upto].to_vec()]);
        assert_eq!(message.stop_reason, Some(StopReason::Error));
        assert!(message.error_message.unwrap().contains("ended before the answer did"));
        assert!(!message.content.is_empty());
        assert!(matches!(events.last(), Some(AssistantEvent::Error { .. })));
    }
}

#[test]
fn reasons_why_an_answer_ended_are_told_apart() {
    let openai = |reason: &str| {
        format!(
            "data: {}\n\ndata: [DONE]\n\n",
            json!({"choices": [{"delta": {"content": "x"}, "finish_reason": reason}]})
        )
    };
    let anthropic = |reason: &str| {
        format!(
            "data: {}\n\ndata: {}\n\n",
            json!({"type": "message_delta", "delta": {"stop_reason": reason}}),
            json!({"type": "message_stop"})
        )
    };
    let responses = |kind: &str, status: &str, why: Value| {
        let response = json!({"status": status, "incomplete_details": why});
        format!("data: {}\n\n", json!({"type": kind, "response": response}))
    };
    let google = |reason: &str| {
        let candidate = json!({"content": {"parts": [{"text": "x"}]}, "finishReason": reason});
        format!("data: {}\n\n", json!({"candidates": [candidate]}))
    };
    let blocked = format!("data: {}\n\n", json!({"promptFeedback": {"blockReason": "SAFETY"}}));
    use StopReason::*;
    for (body, wire, want) in [
        (responses("response.completed", "completed", Value::Null), &OpenAiResponses as &dyn Wire, Stop),
        (
            responses("response.incomplete", "incomplete", json!({"reason": "max_output_tokens"})),
            &OpenAiResponses,
            Length,
        ),
        (
            responses("response.incomplete", "incomplete", json!({"reason": "content_filter"})),
            &OpenAiResponses,
            Error,
        ),
        (google("STOP"), &Google, Stop),
        (google("MAX_TOKENS"), &Google, Length),
        (google("SAFETY"), &Google, Error),
        (google("MALFORMED_FUNCTION_CALL"), &Google, Error),
        (google("SOMETHING_NEW"), &Google, Stop),
        (blocked, &Google, Error),
        (openai("stop"), &OpenAiCompletions as &dyn Wire, Stop),
        (openai("length"), &OpenAiCompletions, Length),
        (openai("tool_calls"), &OpenAiCompletions, Stop),
        (openai("content_filter"), &OpenAiCompletions, Error),
        (openai("something_new"), &OpenAiCompletions, Stop),
        (anthropic("end_turn"), &Anthropic, Stop),
        (anthropic("max_tokens"), &Anthropic, Length),
        (anthropic("refusal"), &Anthropic, Error),
        (anthropic("something_new"), &Anthropic, Stop),
    ] {
        assert_eq!(read(wire, vec![body.clone().into()]).0.stop_reason, Some(want), "{body}");
    }
}

#[test]
fn an_error_inside_the_stream_is_the_messages_error() {
    for (body, wire) in [
        (
            "data: {\"error\": {\"message\": \"over capacity\", \"code\": 529}}\n\n",
            &OpenAiCompletions as &dyn Wire,
        ),
        (
            "data: {\"type\": \"error\", \"code\": \"server_error\", \"message\": \"over capacity\"}\n\n",
            &OpenAiResponses,
        ),
        (
            "data: {\"type\": \"response.failed\", \"response\": {\"error\": {\"code\": \"rate_limit_exceeded\", \"message\": \"over capacity\"}}}\n\n",
            &OpenAiResponses,
        ),
        (
            "data: {\"error\": {\"code\": 503, \"message\": \"over capacity\", \"status\": \"UNAVAILABLE\"}}\n\n",
            &Google,
        ),
        (
            "event: error\ndata: {\"type\": \"error\", \"error\": {\"type\": \"overloaded_error\", \"message\": \"over capacity\"}}\n\n",
            &Anthropic,
        ),
    ] {
        let (message, _) = read(wire, vec![body.into()]);
        assert_eq!(message.stop_reason, Some(StopReason::Error));
        assert!(message.error_message.unwrap().contains("over capacity"));
    }
}

#[test]
fn calls_without_an_id_or_with_one_twice_get_ids_of_their_own() {
    let call = |id: Value| json!({"choices": [{"delta": {"tool_calls": [{"id": id, "function": {"name": "ls", "arguments": "{}"}}]}}]});
    let end = json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]});
    let events = [call(json!("same")), call(json!("same")), call(Value::Null), end];
    let body: String = events.iter().map(|e| format!("data: {e}\n\n")).collect();
    let (message, _) = read(&OpenAiCompletions, vec![body.into()]);
    let ids: std::collections::BTreeSet<_> = message.tool_calls().map(|c| c.id.clone()).collect();
    assert_eq!(ids.len(), 3, "{ids:?}");
    assert!(ids.contains("same") && !ids.contains(""));
}

#[test]
fn arguments_that_are_no_json_stay_as_text_and_say_why() {
    let call = json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "bash", "arguments": "{\"command\": \"rm"}}]}, "finish_reason": "length"}]});
    let (message, _) = read(&OpenAiCompletions, vec![format!("data: {call}\n\n").into()]);
    assert_eq!(message.stop_reason, Some(StopReason::Length));
    let call = message.tool_calls().next().unwrap();
    assert_eq!(call.arguments, json!("{\"command\": \"rm"));
    assert!(call.extra["argumentsError"].as_str().unwrap().contains("not valid JSON"));
}

#[test]
fn one_event_in_many_pieces_is_read_whole() {
    let text = "é".repeat(1 << 20);
    let event = json!({"choices": [{"delta": {"content": text}, "finish_reason": "stop"}]});
    let body = format!("data: {event}\n\n").into_bytes();
    let (message, _) = read(&OpenAiCompletions, body.chunks(1000).map(<[u8]>::to_vec).collect());
    assert_eq!(message.content[0].as_text().map(str::len), Some(text.len()));
}

#[test]
fn an_abort_is_heard_while_a_line_without_an_end_pours_in() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let result = runtime.block_on(async {
        let cancel = CancellationToken::new();
        let other = cancel.clone();
        tokio::spawn(async move { other.cancel() });
        let bytes = futures_util::stream::repeat_with(|| Ok::<_, std::io::Error>(b"x".to_vec()));
        let (mut draft, mut sink) = (Draft::new(&info()), Quiet(Vec::new()));
        let mut reader = OpenAiCompletions.reader();
        follow("p", bytes, reader.as_mut(), &mut draft, &Redactor::default(), &mut sink, &cancel).await
    });
    assert!(matches!(result, Err(Failure::Aborted)), "{result:?}");
}

/// JSON that looks like events, with anything in any place.
fn anything() -> impl Strategy<Value = Value> {
    let words = prop::sample::select(vec![
        "type",
        "index",
        "delta",
        "choices",
        "content",
        "tool_calls",
        "function",
        "name",
        "arguments",
        "id",
        "content_block",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "tool_use",
        "text",
        "thinking",
        "text_delta",
        "input_json_delta",
        "partial_json",
        "usage",
        "message",
        "message_start",
        "message_delta",
        "stop_reason",
        "finish_reason",
        "error",
        "input",
        "candidates",
        "parts",
        "functionCall",
        "args",
        "thought",
        "thoughtSignature",
        "finishReason",
        "usageMetadata",
        "item",
        "output_index",
        "response",
        "response.output_item.added",
        "response.output_item.done",
        "function_call",
        "reasoning",
        "summary",
        "é🦀",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (0u64..3).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        words.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((words.clone(), inner), 0..6)
                .prop_map(|pairs| Value::Object(pairs.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())),
        ]
    })
}

fn blocky() -> impl Strategy<Value = Value> {
    let kind = prop::sample::select(vec!["text", "thinking", "tool_use", "redacted_thinking", "later"]);
    let delta = prop::sample::select(vec![
        "text_delta",
        "thinking_delta",
        "input_json_delta",
        "signature_delta",
        "later",
    ]);
    let item = prop::sample::select(vec!["reasoning", "message", "function_call", "later"]);
    let told = prop::sample::select(vec![
        "response.output_text.delta",
        "response.reasoning_summary_text.delta",
        "response.function_call_arguments.delta",
        "response.reasoning_summary_part.added",
    ]);
    let index = 0u64..3;
    prop_oneof![
        (index.clone(), kind).prop_map(|(i, k)| json!({"type": "content_block_start", "index": i, "content_block": {"type": k, "id": "x", "name": "n", "input": {}}})),
        (index.clone(), delta, "[a{}\"é]{0,4}").prop_map(|(i, d, s)| json!({"type": "content_block_delta", "index": i, "delta": {"type": d, "text": s, "thinking": s, "partial_json": s, "signature": s}})),
        index.clone().prop_map(|i| json!({"type": "content_block_stop", "index": i})),
        (index.clone(), item.clone(), "[a{}\"é]{0,4}").prop_map(|(i, k, s)| json!({"type": "response.output_item.added", "output_index": i, "item": {"type": k, "id": s, "call_id": s, "name": s}})),
        (index.clone(), item, "[a{}\"é]{0,4}").prop_map(|(i, k, s)| json!({"type": "response.output_item.done", "output_index": i, "item": {"type": k, "id": s, "call_id": s, "arguments": s, "content": [{"text": s}], "summary": [{"text": s}]}})),
        (index.clone(), told, "[a{}\"é]{0,4}").prop_map(|(i, k, s)| json!({"type": k, "output_index": i, "delta": s})),
        (any::<bool>(), "[a{}\"é]{0,4}").prop_map(|(t, s)| json!({"candidates": [{"content": {"parts": [{"text": s, "thought": t, "thoughtSignature": s}, {"functionCall": {"id": s, "name": s, "args": {}}}]}}]})),
        (index, "[a{}\"é]{0,4}").prop_map(|(i, s)| json!({"choices": [{"delta": {"content": s, "reasoning": s, "tool_calls": [{"index": i, "id": s, "function": {"name": s, "arguments": s}}]}}]})),
        anything(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_bytes_make_a_reader_panic(chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..6)) {
        for (_, wire) in formats() {
            read(wire.as_ref(), chunks.clone());
        }
    }

    #[test]
    fn no_events_make_a_reader_panic_and_each_answer_ends_once(events in prop::collection::vec(blocky(), 0..12)) {
        let body: String = events.iter().map(|e| format!("data: {e}\n\n")).collect();
        for (_, wire) in formats() {
            let (message, told) = read(wire.as_ref(), vec![body.clone().into()]);
            prop_assert!(message.stop_reason.is_some());
            let ends = |e: &&AssistantEvent| matches!(e, AssistantEvent::Done { .. } | AssistantEvent::Error { .. });
            prop_assert_eq!(told.iter().filter(ends).count(), 1);
            prop_assert!(told.last().as_ref().is_some_and(ends));
        }
    }

    #[test]
    fn a_damaged_answer_never_panics(at in 0usize..4000, byte in any::<u8>()) {
        for (fixture, wire) in formats() {
            let mut bytes = fixture.as_bytes().to_vec();
            let at = at % bytes.len();
            bytes[at] = byte;
            read(wire.as_ref(), vec![bytes]);
        }
    }
}

//! Tools with all their fields (events.md E.2).

use super::{install, noticed};
use atomic_agent::{event::Event, hooks::Hooks as _, op::Op, surface::Span, tool::Concurrency};
use atomic_extensions::Rendering;
use atomic_tests::{
    env::Home,
    live::{Setup, patient, text},
};
use serde_json::{Value, json};

fn call(name: &str, arguments: Value) -> Value {
    json!({ "toolCalls": [{ "name": name, "arguments": arguments }] })
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_are_brought_into_form_before_they_are_checked_and_an_answer_is_data_too() {
    let home = Home::new();
    install(&home, "tools");
    let live = Setup::new(&home).turns(json!([call("tally", json!({"words": "a b c"}))])).start().await;
    live.run("count").await;
    assert_eq!(live.tool_results(), [("tally".into(), "3 words".into(), false)]);
    let data = live.events().iter().find_map(|e| match &**e {
        Event::ToolExecutionEnd { result, .. } => result.structured_content.clone(),
        _ => None,
    });
    assert_eq!(data, Some(json!({"count": 3})), "and the run ended with it: the script has no more turns");
    let spec = live.engine.view(|v| v.tools.iter().find(|t| t.name == "tally").cloned()).unwrap();
    assert_eq!(spec.constrained_sampling, Some(json!({"type": "json_schema", "strict": "prefer"})));
    assert!(spec.structured_output && spec.output_schema.is_some());
    live.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_that_cannot_be_brought_into_form_are_the_calls_result() {
    let home = Home::new();
    install(&home, "tools");
    let turns = json!([call("tally", json!({"words": "refuse"})), text("well then")]);
    let live = Setup::new(&home).turns(turns).start().await;
    live.run("count").await;
    assert_eq!(live.tool_results(), [("tally".into(), "these words are not counted".into(), true)]);
    live.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whether_a_call_runs_alone_is_asked_with_its_arguments() {
    let home = Home::new();
    install(&home, "tools");
    let live = Setup::new(&home).start().await;
    let tool = live.extensions.tools().into_iter().find(|t| t.spec().name == "tally").unwrap();
    let alone = |word: &str| tool.concurrency(&json!({"words": [word]}));
    assert_eq!(alone("beside"), Concurrency::Shared);
    assert_eq!(alone("alone"), Concurrency::Exclusive);
    assert_eq!(alone("odd"), Concurrency::Exclusive, "what fails is exclusive");
    live.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_signal_of_a_tool_is_raised_by_an_abort_and_the_tool_may_still_answer() {
    let home = Home::new();
    install(&home, "tools");
    let live = Setup::new(&home).turns(json!([call("linger", json!({})), text("no")])).start().await;
    live.say("wait").await.unwrap();
    noticed(&live, 0, "the tool", |m| m == "lingering").await;
    patient("the abort", live.engine.request(Op::Abort)).await.unwrap();
    live.wait("the end", |e| matches!(e, Event::AgentSettled)).await;
    assert_eq!(live.tool_results(), [("linger".into(), "stopped in time".into(), false)]);
    live.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_draws_its_call_and_its_result_and_what_it_leaves_out_is_the_programs() {
    let home = Home::new();
    install(&home, "tools");
    let live = Setup::new(&home).start().await;
    let draw = |tool: &'static str, view: Value, expanded: bool| {
        let live = &live;
        async move { live.extensions.render_tool(tool, &view, expanded, 80).await }
    };
    let lines = |text: &str| Rendering::Lines(vec![vec![Span { text: text.into(), ..Span::default() }]]);
    let call = json!({"toolCallId": "1", "args": {"words": ["a"]}, "argsComplete": true});
    assert_eq!(draw("tally", call.clone(), false).await, lines("counting [\"a\"]"));
    let mut done = call.clone();
    done["result"] = json!({"content": [{"type": "text", "text": "1 words"}]});
    assert_eq!(draw("tally", done.clone(), true).await, lines("1 words"));
    assert_eq!(draw("tally", done, false).await, Rendering::Hidden);
    assert_eq!(draw("linger", call.clone(), false).await, Rendering::Default);
    assert_eq!(draw("bash", call, false).await, Rendering::Default);
    live.close().await;
}

#[test]
fn print_mode_prints_the_data_that_a_tool_with_structured_output_ended_the_run_with() {
    let home = Home::new();
    install(&home, "tools");
    let script = home.script(&json!([call("tally", json!({"words": "a b"}))])).display().to_string();
    let done = home.atomic(["-p", "count", "--script", &script]).run().ok();
    assert_eq!(done.stdout, "{\"count\":2}\n");
}

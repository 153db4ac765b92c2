//! `#[tool]` and `#[params]`.

use crate::{
    prelude::{Context, *},
    testing::TestHost,
};

/// Two numbers.
#[params]
#[derive(Debug)]
pub struct AddParams {
    /// The one.
    a: i64,
    /// The other.
    #[serde(default)]
    b: i64,
}

/// Adds two numbers.
///
/// It never overflows.
#[tool(name = "sum", label = "Sum", prompt_snippet = "add numbers", sequential, exclusive = false, input)]
pub async fn add(params: AddParams, ctx: ToolContext) -> Result<ToolResult> {
    ctx.update("adding")?;
    let sum = params.a.checked_add(params.b).ok_or(Error::msg("that would overflow"))?;
    Ok(ToolResult::text(sum.to_string()).details(ctx.tool_call_id().is_empty()))
}

#[params(tool = "noop")]
struct Nothing {}

#[tool(description = "Does nothing")]
async fn noop(_: Nothing) -> Result<&'static str> {
    Ok("done")
}

fn host() -> TestHost {
    TestHost::new(|pi: &Extension| {
        pi.register_tool(add());
        pi.register_tool(noop());
        pi.on(ToolCall, |event, _| async move {
            if let Some(mut add) = event.input_as::<AddParams>() {
                add.b += 1;
            }
            Ok(event.input_as::<Nothing>().map(|_| block("nothing is done here")))
        });
        Ok(())
    })
}

#[test]
fn a_function_becomes_a_tool_with_its_name_documentation_and_schema() {
    let host = host();
    let tool = host.tool("sum").unwrap();
    assert_eq!(tool["description"], "Adds two numbers.\n\nIt never overflows.");
    assert_eq!((&tool["label"], &tool["executionMode"]), (&json!("Sum"), &json!("sequential")));
    assert_eq!(tool["parameters"]["properties"]["a"]["description"], "The one.");
    assert_eq!(tool["parameters"]["required"], json!(["a"]));
    assert!(tool.get("concurrency").is_none());
    assert_eq!(host.call_tool("sum", json!({"a": 40, "b": 2})).wait().unwrap().plain_text(), "42");
    let failed = host.call_tool("sum", json!({"a": i64::MAX, "b": 1})).wait();
    assert_eq!(failed.unwrap_err().message, "that would overflow");
    assert_eq!(host.call_tool("noop", json!({})).wait().unwrap().plain_text(), "done");
}

#[test]
fn its_parameters_narrow_the_calls_of_the_tool() {
    let host = host();
    let call = json!({"toolName": "sum", "toolCallId": "1", "input": {"a": 1}});
    assert_eq!(host.fire(ToolCall, call).wait().ok().input(), &json!({"a": 1, "b": 1}));
    let call = json!({"toolName": "noop", "toolCallId": "1", "input": {}});
    assert!(host.fire(ToolCall, call).wait().blocked.is_some());
}

#[test]
fn the_two_names_that_are_a_type_and_an_event_are_told_apart() {
    fn result(_: &Event<ToolResultEvent>, ctx: &Context) -> Result<Option<ToolResultPatch>> {
        let shown: ToolResult = ToolResult::text("shown");
        ctx.ui().set_title(shown.plain_text())?;
        Ok(None)
    }
    let host = TestHost::new(|pi: &Extension| {
        pi.on_sync(ToolResult, result);
        pi.on_sync(Context, |_, _| Ok(None));
        Ok(())
    });
    host.fire(ToolResult, json!({})).wait().ok();
    host.fire(ContextEvent, json!({"messages": []})).wait().ok();
    assert_eq!(host.record().title.as_deref(), Some("shown"));
}

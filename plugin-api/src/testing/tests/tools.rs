//! Tools: from a closure and from a function.

use crate::{prelude::*, testing::TestHost};
use serde_json::json;

/// Says hello to someone.
#[derive(Serialize, Deserialize, JsonSchema)]
struct GreetParams {
    /// Whom to greet.
    name: String,
    #[serde(default)]
    times: Option<u8>,
}

impl ToolInput for GreetParams {
    const TOOL: &'static str = "greet";
}

fn greeter() -> TestHost {
    TestHost::new(|pi: &Extension| {
        pi.register_tool(
            Tool::new("greet", "Greet someone")
                .label("Greeting")
                .params::<GreetParams>()
                .prompt_snippet("greet people")
                .prompt_guideline("Be nice.")
                .sequential()
                .exclusive()
                .run(|call, ctx| async move {
                    call.update(format!("greeting {}", call.params.name))?;
                    if call.params.name == "nobody" {
                        return Err(Error::msg("nobody is there"));
                    }
                    let cwd = ctx.cwd()?;
                    Ok(ToolResult::text(format!("Hello {}!", call.params.name)).details(json!({
                        "cwd": cwd, "same": call.cwd() == cwd, "id": call.id() == ctx.tool_call_id(),
                    })))
                }),
        );
        Ok(())
    })
}

#[test]
fn a_tool_answers_with_text_and_details_and_shows_what_it_has_so_far() {
    let host = greeter();
    let result = host.call_tool("greet", json!({"name": "Ada"})).wait().unwrap();
    assert_eq!(result.plain_text(), "Hello Ada!");
    assert_eq!(result.details, Some(json!({"cwd": "/project", "same": true, "id": true})));
    assert_eq!(host.record().updates[0].1.plain_text(), "greeting Ada");
}

#[test]
fn the_schema_is_an_object_that_needs_no_other_document() {
    let tool = greeter().tool("greet").unwrap();
    let schema = &tool["parameters"];
    assert_eq!(schema["type"], "object");
    assert_eq!(schema["required"], json!(["name"]));
    assert_eq!(schema["properties"]["name"]["description"], "Whom to greet.");
    assert!(schema.get("$defs").is_none() && schema.get("$schema").is_none());
    assert_eq!((&tool["label"], &tool["promptSnippet"]), (&json!("Greeting"), &json!("greet people")));
    assert_eq!((&tool["executionMode"], &tool["concurrency"]), (&json!("sequential"), &json!("exclusive")));
    assert_eq!(tool["promptGuidelines"], json!(["Be nice."]));
}

#[test]
fn nested_types_are_written_out_where_they_stand() {
    #[derive(Deserialize, JsonSchema)]
    struct Inner {
        #[allow(dead_code)]
        n: u8,
    }
    #[derive(Deserialize, JsonSchema)]
    struct Outer {
        #[allow(dead_code)]
        inner: Vec<Inner>,
    }
    let tool = Tool::new("t", "d").params::<Outer>().run_sync(|_, _| Ok("done"));
    assert_eq!(tool.parameters()["properties"]["inner"]["items"]["properties"]["n"]["type"], "integer");
}

#[test]
fn arguments_of_another_shape_give_an_error_result_that_names_the_field() {
    let host = greeter();
    let wrong = host.call_tool("greet", json!({"name": "Ada", "times": "three"})).wait().unwrap();
    assert!(wrong.is_error);
    assert!(wrong.plain_text().contains("greet: field `times`"), "{}", wrong.plain_text());
    let missing = host.call_tool("greet", json!({})).wait().unwrap();
    assert!(missing.is_error && missing.plain_text().contains("`name`"), "{}", missing.plain_text());
}

#[test]
fn a_whole_number_may_be_written_as_a_float() {
    let greeted = greeter().call_tool("greet", json!({"name": "Ada", "times": 3.0})).wait().unwrap();
    assert!(!greeted.is_error, "{}", greeted.plain_text());
    let half = greeter().call_tool("greet", json!({"name": "Ada", "times": 3.5})).wait().unwrap();
    assert!(half.is_error);
}

#[test]
fn an_error_of_the_tool_is_its_failure() {
    let failed = greeter().call_tool("greet", json!({"name": "nobody"})).wait();
    assert_eq!(failed.unwrap_err().message, "nobody is there");
}

#[test]
fn parameters_that_are_no_struct_fail_the_activation_and_say_so() {
    let error = TestHost::try_new(|pi: &Extension| {
        pi.register_tool(Tool::new("odd", "d").params::<Vec<u8>>().run_sync(|_, _| Ok("x")));
        Ok(())
    });
    let error = error.err().unwrap();
    assert_eq!(error.code, "bad_schema");
    assert!(error.message.contains("`odd`"));
}

#[test]
fn a_custom_input_type_narrows_calls_of_its_tool() {
    let host = TestHost::new(|pi: &Extension| {
        pi.on(ToolCall, |event, _| async move {
            if let Some(mut greet) = event.input_as::<GreetParams>() {
                greet.name.push_str(" the first");
            }
            Ok(None)
        });
        Ok(())
    });
    let call = json!({"toolName": "greet", "toolCallId": "1", "input": {"name": "Ada"}});
    assert_eq!(host.fire(ToolCall, call).wait().ok().input()["name"], "Ada the first");
}

#[test]
fn a_tool_without_a_runtime_answers_on_the_calling_thread() {
    let host = TestHost::new(|pi: &Extension| {
        pi.register_tool(Tool::new("now", "d").run_sync(|call, _| Ok(call.params["x"].to_string())));
        Ok(())
    });
    assert_eq!(host.call_tool("now", json!({"x": 3})).wait().unwrap().plain_text(), "3");
}

#[tokio::test]
async fn a_tool_sees_its_signal_when_the_user_stops_the_run() {
    let host = TestHost::new(|pi: &Extension| {
        pi.register_tool(Tool::new("wait", "d").run(|call, ctx| async move {
            ctx.ui().notify("waiting", Level::Info)?;
            call.signal().cancelled().await;
            Ok(if ctx.signal().is_cancelled() { "stopped" } else { "odd" })
        }));
        Ok(())
    });
    let step = host.call_tool("wait", json!({}));
    let stop = async {
        while host.record().notices.is_empty() {
            tokio::task::yield_now().await;
        }
        host.abort();
    };
    let (result, ()) = tokio::join!(step, stop);
    assert_eq!(result.unwrap().plain_text(), "stopped");
}

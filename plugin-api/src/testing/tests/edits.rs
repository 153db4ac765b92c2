//! The guard of an edit.

use super::bash;
use crate::{prelude::*, testing::TestHost};
use serde_json::{Value, json};

fn gate<F, Fut>(f: F) -> TestHost
where
    F: FnOnce(Event<ToolCall>, crate::Context) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<Option<ToolCallAnswer>>> + Send + 'static,
{
    TestHost::new(move |pi: &Extension| {
        pi.on(ToolCall, f.clone());
        Ok(())
    })
}

#[test]
fn what_is_changed_through_the_guard_runs_and_unknown_keys_stay() {
    let host = gate(|event, ctx| async move {
        let mut bash = event.input_as::<BashInput>().unwrap();
        bash.timeout = Some(5.0);
        ctx.sleep(std::time::Duration::from_millis(1)).await?;
        bash.command.push_str(" -la");
        Ok(None)
    });
    let fields = json!({"toolName": "bash", "toolCallId": "1", "input": {"command": "ls", "pty": true}});
    let result = host.fire(ToolCall, fields).wait().ok();
    assert_eq!(result.input(), &json!({"command": "ls -la", "timeout": 5.0, "pty": true}));
}

#[test]
fn reading_alone_leaves_no_patch() {
    let host = gate(|event, _| async move {
        let mut bash = event.input_as::<BashInput>().unwrap();
        let same = bash.command.clone();
        bash.command = same;
        Ok(None)
    });
    // `timeout` would come back as 5.0 if the value were written at all.
    let fields = json!({"toolName": "bash", "toolCallId": "1", "input": {"command": "ls", "timeout": 5}});
    assert_eq!(host.fire(ToolCall, fields).wait().ok().input(), &json!({"command": "ls", "timeout": 5}));
}

#[test]
fn the_input_of_another_tool_is_none() {
    let host = gate(|event, _| async move {
        assert!(event.input_as::<ReadInput>().is_none());
        Ok(None)
    });
    assert!(host.fire(ToolCall, bash("ls")).wait().ok().blocked.is_none());
}

#[test]
fn arguments_that_the_gate_cannot_read_block_the_call() {
    let host = gate(|event, _| async move {
        // A gate that only looks at what it can read must not let the rest pass.
        if let Some(bash) = event.input_as::<BashInput>() {
            assert!(!bash.command.is_empty());
        }
        Ok(None)
    });
    let fields = json!({"toolName": "bash", "toolCallId": "1", "input": {"command": ["rm", "-rf"]}});
    let result = host.fire(ToolCall, fields).wait();
    assert!(result.blocked.as_ref().unwrap().contains("bash"));
    assert_eq!(result.input(), &json!({"command": ["rm", "-rf"]}));
}

#[test]
fn a_second_guard_while_the_first_lives_fails_the_handler() {
    let host = gate(|event, _| async move {
        let mut first = event.input_as::<BashInput>().unwrap();
        first.command = "first".into();
        assert!(event.input_as::<BashInput>().is_none());
        assert_eq!(event.set_input(&json!({})).unwrap_err().code, "busy");
        Ok(None)
    });
    let result = host.fire(ToolCall, bash("ls")).wait();
    assert_eq!(result.errors[0].code, "busy");
    assert!(result.blocked.is_some());
    assert_eq!(result.input()["command"], json!("ls"));
}

#[test]
fn guards_one_after_the_other_see_each_others_edits() {
    let host = gate(|event, _| async move {
        event.input_as::<BashInput>().unwrap().command.push_str(" a");
        event.input_as::<BashInput>().unwrap().command.push_str(" b");
        assert_eq!(event.input()?["command"], json!("ls a b"));
        let again = event.clone();
        again.set_input(&json!({"command": "whole"}))?;
        Ok(None)
    });
    assert_eq!(host.fire(ToolCall, bash("ls")).wait().ok().input(), &json!({"command": "whole"}));
}

#[test]
fn a_guard_that_outlives_its_handler_fails_it() {
    let host = gate(|event, ctx| async move {
        let guard = event.input_as::<BashInput>().unwrap();
        ctx.pi().spawn(async move {
            std::future::pending::<()>().await;
            drop(guard);
            Ok(())
        });
        Ok(None)
    });
    assert_eq!(host.fire(ToolCall, bash("ls")).wait().errors[0].code, "busy");
}

#[test]
fn the_edits_of_a_handler_that_fails_are_discarded() {
    let host = gate(|event, _| async move {
        event.input_as::<BashInput>().unwrap().command = "changed".into();
        Err(Error::msg("no"))
    });
    let result = host.fire(ToolCall, bash("ls")).wait();
    assert_eq!(result.blocked.as_deref(), Some("no"));
    assert_eq!(result.input()["command"], json!("ls"));
}

#[test]
fn a_value_that_cannot_be_written_fails_the_handler() {
    #[derive(Deserialize)]
    struct Odd {
        command: String,
    }
    impl Serialize for Odd {
        fn serialize<S: serde::Serializer>(&self, s: S) -> std::result::Result<S::Ok, S::Error> {
            if self.command == "odd" {
                return Err(serde::ser::Error::custom("no words for it"));
            }
            s.serialize_str(&self.command)
        }
    }
    impl ToolInput for Odd {
        const TOOL: &'static str = "bash";
    }
    let host = gate(|event, _| async move {
        event.input_as::<Odd>().unwrap().command = "odd".into();
        Ok(None)
    });
    let result = host.fire(ToolCall, bash("ls")).wait();
    assert!(result.blocked.unwrap().contains("no words for it"));
}

#[test]
fn every_built_in_input_keeps_what_it_does_not_know() {
    fn keeps<T: ToolInput>(mut input: Value) {
        input["laterKey"] = json!([1]);
        let typed: T = serde_json::from_value(input.clone()).unwrap();
        assert_eq!(serde_json::to_value(&typed).unwrap(), input, "{}", T::TOOL);
    }
    keeps::<ReadInput>(json!({"path": "a", "offset": 2, "limit": 3}));
    keeps::<WriteInput>(json!({"path": "a", "content": "b"}));
    keeps::<EditInput>(json!({"path": "a", "edits": [{"oldText": "x", "newText": "y"}]}));
    keeps::<BashInput>(json!({"command": "a", "cwd": "/", "env": {"A": "b"}}));
    keeps::<FindInput>(json!({"paths": ["a"], "hidden": true, "gitignore": false, "limit": 1}));
    keeps::<SearchInput>(json!({"pattern": "a", "paths": "b", "i": true, "skip": 20}));
    keeps::<LsInput>(json!({"path": "a", "limit": 1}));
}

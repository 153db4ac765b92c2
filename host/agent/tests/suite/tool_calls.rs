//! Tool calls: what runs beside what, what refuses a call, and what the model is told.

use crate::doubles::*;
use atomic_agent::{
    event::Event,
    hooks::{ToolCallOutcome, ToolResultOutcome},
    message::{Content, Message},
    op::Op,
    tool::{Concurrency, ToolError, ToolOutput},
};
use serde_json::{Value, json};
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};
use tokio::sync::Notify;

/// The results a request carries, as `id: text`.
fn results(rig: &Rig, request: usize) -> Vec<String> {
    let messages = rig.model.request(request).messages;
    let shown = |m: &Message| match m {
        Message::ToolResult(r) => {
            let text = r.content.iter().filter_map(Content::as_text).collect::<String>();
            Some(format!("{}{}: {text}", r.tool_call_id, if r.is_error { "!" } else { "" }))
        }
        _ => None,
    };
    messages.iter().filter_map(shown).collect()
}

#[tokio::test]
async fn calls_of_a_batch_run_beside_each_other_and_are_answered_in_their_order() {
    // Given two calls, the first of which ends only once the second was told to have ended.
    let second_ended = Arc::new(Notify::new());
    let wait = second_ended.clone();
    let tool = Fake::new("meet", "who", move |call| {
        let wait = wait.clone();
        async move {
            let who = call.args["who"].as_str().unwrap_or_default().to_owned();
            if who == "first" {
                wait.notified().await;
            }
            Ok(ToolOutput::text(who))
        }
    });
    let calls = vec![("a", "meet", json!({"who": "first"})), ("b", "meet", json!({"who": "second"}))];
    let mut rig = build([Step::Calls(calls), Step::Text("done")]).tool(tool).start().await;
    rig.prompt("go").await.unwrap();
    let ended = rig.until(|e| matches!(e, Event::ToolExecutionEnd { .. })).await;
    assert!(matches!(&*ended, Event::ToolExecutionEnd { tool_call_id, .. } if tool_call_id == "b"));
    second_ended.notify_one();
    rig.idle().await;

    // Then they are answered in the order they were made.
    assert_eq!(results(&rig, 1), ["a: first", "b: second"]);
}

/// A tool that counts how many of its calls are under way, and the most there ever were.
fn counting(most: &Arc<AtomicUsize>) -> Fake {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), most.clone());
    Fake::new("count", "n", move |_| {
        let (now, most) = (now.clone(), most.clone());
        async move {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
            now.fetch_sub(1, Ordering::SeqCst);
            Ok(ToolOutput::text("ok"))
        }
    })
}

#[tokio::test]
async fn sequential_exclusive_and_same_file_calls_never_overlap() {
    let most = Arc::new(AtomicUsize::new(0));
    for tool in [
        counting(&most).sequential(),
        counting(&most).placed(Concurrency::Exclusive),
        counting(&most).placed(Concurrency::ExclusiveKey("/a".into())),
    ] {
        most.store(0, Ordering::SeqCst);
        let calls = ["a", "b", "c"].map(|id| (id, "count", json!({"n": "1"}))).to_vec();
        let rig = build([Step::Calls(calls), Step::Text("done")]).tool(tool).start().await;
        rig.run("go").await;
        assert_eq!(most.load(Ordering::SeqCst), 1);
        assert_eq!(results(&rig, 1), ["a: ok", "b: ok", "c: ok"]);
    }
}

#[tokio::test]
async fn in_a_sequential_batch_each_result_follows_its_own_end() {
    let calls = vec![("a", "count", json!({"n": "1"})), call("b", "echo x")];
    let most = Arc::new(AtomicUsize::new(0));
    let rig =
        build([Step::Calls(calls), Step::Text("done")]).tool(counting(&most).sequential()).start().await;
    rig.run("go").await;
    let lines = rig.log.lines();
    let at = |start: &str| lines.iter().position(|l| l.starts_with(start)).unwrap();
    assert!(at("message_end role=toolResult content=ok") < at("tool_execution_start toolName=bash"));
}

#[tokio::test]
async fn b34_a_gate_sees_the_message_that_makes_the_call() {
    let calls = vec![call("a", "echo 1"), call("b", "echo 2")];
    let rig = build([Step::Calls(calls), Step::Text("done")]).start().await;
    rig.run("go").await;
    for seen in rig.log.seen.lock().unwrap().iter() {
        let roles: Vec<&String> = seen.iter().filter(|r| !r.is_empty()).collect();
        assert_eq!(roles, ["system", "user", "assistant"]);
    }
}

#[tokio::test]
async fn b43_changed_arguments_run_as_they_are_and_the_file_keeps_the_models() {
    // Given gates that break the type, and one that changes the command.
    for (input, result) in [
        (json!({"command": 42}), "c1!: command: must be a string"),
        (json!({}), "c1!: command: must be a string"),
        (json!({"command": "echo other"}), "c1: other\n"),
    ] {
        let given = input.clone();
        let gate = move |log: &mut Log| {
            log.gate = Some(Box::new(move |_| ToolCallOutcome::Proceed { input: given.clone() }));
        };
        let steps = [Step::Calls(vec![call("c1", "echo model")]), Step::Text("done")];
        let mut rig = build(steps).log(gate).start().await;
        rig.run("go").await;

        // Then exactly that ran or was refused by field, and it is told what ran.
        assert_eq!(results(&rig, 1), [result]);
        let end = rig.until(|e| matches!(e, Event::ToolExecutionEnd { .. })).await;
        let Event::ToolExecutionEnd { effective_args, .. } = &*end else { unreachable!() };
        assert_eq!(*effective_args, Some(input));
        let file = rig.file();
        let assistant = file.iter().find(|l| l["message"]["role"] == "assistant").unwrap();
        assert_eq!(assistant["message"]["content"][0]["arguments"], json!({"command": "echo model"}));
    }
}

#[tokio::test]
async fn b44_one_terminating_block_does_not_end_a_run_that_all_would_end() {
    let gate = |only: Option<&'static str>| {
        move |log: &mut Log| {
            log.gate = Some(Box::new(move |call| match only.is_none_or(|id| call.tool_call_id == id) {
                true => ToolCallOutcome::Block { reason: "no".into(), terminate: true, by: "x".into() },
                false => ToolCallOutcome::Proceed { input: call.input.clone() },
            }));
        }
    };
    let calls = || Step::Calls(vec![call("a", "echo 1"), call("b", "echo 2")]);

    let rig = build([calls(), Step::Text("done")]).log(gate(Some("a"))).start().await;
    rig.run("go").await;
    assert_eq!(results(&rig, 1), ["a!: no", "b: 2\n"]);

    let rig = build([calls()]).log(gate(None)).start().await;
    rig.run("go").await;
    assert_eq!(rig.model.requests.lock().unwrap().len(), 1, "another request was made");
}

#[tokio::test]
async fn b45_names_that_only_look_like_a_tool_reach_none() {
    let long: &'static str = Box::leak("x".repeat(10 * 1024).into_boxed_str());
    let names = ["", " bash", "Bash", "bash\u{200b}", long, "unknown"];
    let ids = ["a", "b", "c", "d", "e", "f"];
    let calls = ids.into_iter().zip(names).map(|(id, n)| (id, n, json!({"command": "echo x"}))).collect();
    let rig = build([Step::Calls(calls), Step::Text("done")]).start().await;
    rig.run("go").await;
    for (result, id) in results(&rig, 1).iter().zip(ids) {
        assert!(result.starts_with(&format!("{id}!: Tool \"")) && result.ends_with("not found"), "{result}");
        assert!(result.len() < 300);
    }
    assert_eq!(rig.log.count("tool_call "), 0);
    assert_eq!(rig.log.count("tool_result "), 0);
    assert!(rig.log.lines().iter().any(|l| l.starts_with("tool_execution_start toolName=bash\u{200b} ")));
}

#[tokio::test]
async fn calls_of_a_truncated_message_are_not_executed() {
    let steps = [Step::Truncated(vec![call("a", "echo 1"), call("b", "echo 2")]), Step::Text("again")];
    let rig = build(steps).start().await;
    rig.run("go").await;
    let results = results(&rig, 1);
    assert_eq!(results.len(), 2);
    assert!(results.iter().all(|r| r.contains("!: ") && r.contains("Make the call again")), "{results:?}");
    assert_eq!(rig.log.count("tool_call "), 0);
}

#[tokio::test]
async fn one_id_for_two_calls_is_answered_twice() {
    let calls = vec![call("same", "echo 1"), call("same", "echo 2")];
    let rig = build([Step::Calls(calls), Step::Text("done")]).start().await;
    rig.run("go").await;
    assert_eq!(results(&rig, 1), ["same: 1\n", "same_2: 2\n"]);
}

#[tokio::test]
async fn a_tool_that_panics_or_fails_costs_its_own_call() {
    let panics = Fake::new("panics", "x", |call| async move {
        assert!(call.args.is_null(), "boom");
        Ok(ToolOutput::default())
    });
    let fails = Fake::new("fails", "x", |_| async { Err(ToolError("no luck".into())) });
    let calls =
        vec![("a", "panics", json!({"x": ""})), ("b", "fails", json!({"x": ""})), call("c", "echo fine")];
    let rig = build([Step::Calls(calls), Step::Text("done")]).tool(panics).tool(fails).start().await;
    rig.run("go").await;
    assert_eq!(results(&rig, 1), ["a!: The tool panicked: boom", "b!: no luck", "c: fine\n"]);
    assert_eq!(rig.log.count("tool_result "), 3, "calls that ran have a tool_result, failed or not");
}

#[tokio::test]
async fn result_hooks_change_what_is_told_stored_and_sent_but_not_whether_the_run_ends() {
    let ends = Fake::new("ends", "x", |_| async {
        Ok(ToolOutput { terminate: true, ..ToolOutput::error("failed") })
    });
    let recover = |log: &mut Log| {
        log.result = Some(Box::new(|r| ToolResultOutcome {
            content: vec![Content::text("recovered")],
            details: r.details,
            is_error: false,
        }));
    };
    let rig =
        build([Step::Calls(vec![("a", "ends", json!({"x": ""}))])]).tool(ends).log(recover).start().await;
    rig.run("go").await;
    let file = rig.file();
    let result = &file.iter().find(|l| l["message"]["role"] == "toolResult").unwrap()["message"];
    assert_eq!(result["content"][0]["text"], "recovered");
    assert_eq!(result["isError"], false);
}

#[tokio::test]
async fn a_result_over_the_limit_goes_to_a_file_after_the_hooks_saw_it() {
    let huge = "x".repeat(60_000);
    let seen = Arc::new(AtomicUsize::new(0));
    let (text, saw) = (huge.clone(), seen.clone());
    let tool = Fake::new("huge", "x", move |_| {
        let text = text.clone();
        async move { Ok(ToolOutput::text(text)) }
    });
    let hook = move |log: &mut Log| {
        log.result = Some(Box::new(move |r| {
            saw.store(r.content[0].as_text().unwrap().len(), Ordering::SeqCst);
            ToolResultOutcome { content: r.content, details: r.details, is_error: r.is_error }
        }));
    };
    let steps = [Step::Calls(vec![("a", "huge", json!({"x": ""}))]), Step::Text("done")];
    let rig = build(steps).tool(tool).log(hook).start().await;
    rig.run("go").await;
    assert_eq!(seen.load(Ordering::SeqCst), 60_000);
    assert!(results(&rig, 1)[0].starts_with("a: <persisted-output>"));
    let kept =
        std::fs::read_dir(rig.dir.path().join("sessions/tool-results")).unwrap().next().unwrap().unwrap();
    assert_eq!(std::fs::read_to_string(kept.path()).unwrap(), huge);
}

#[tokio::test]
async fn updates_come_before_the_result_and_never_after() {
    let late = Arc::new(Mutex::new(None));
    let keep = late.clone();
    let tool = Fake::new("slow", "x", move |call| {
        *keep.lock().unwrap() = Some(call.update.clone());
        async move {
            (call.update)(Default::default());
            Ok(ToolOutput::text("ok"))
        }
    });
    let steps = [
        Step::Calls(vec![("a", "slow", json!({"x": ""}))]),
        Step::Calls(vec![call("b", "echo 1")]),
        Step::Text("done"),
    ];
    let push = late.clone();
    let gate = move |log: &mut Log| {
        log.gate = Some(Box::new(move |call| {
            if let Some(update) = &*push.lock().unwrap() {
                update(Default::default());
            }
            ToolCallOutcome::Proceed { input: call.input.clone() }
        }));
    };
    let rig = build(steps).tool(tool).log(gate).start().await;
    rig.run("go").await;
    assert_eq!(rig.log.count("tool_execution_update toolName=slow"), 1);
}

#[tokio::test]
async fn a_tool_that_appears_is_active_and_one_that_guarded_a_built_in_takes_it_along() {
    // Given an extension that replaces bash and brings a tool of its own.
    let rig = build([Step::Text("1"), Step::Text("2"), Step::Text("3")]).start().await;
    let active = |rig: &Rig| rig.handle.view(|v| v.active_tools.clone());
    rig.run("go").await;
    assert_eq!(active(&rig), ["bash", "read"]);
    let own = Fake::new("own", "x", |_| async { Ok(ToolOutput::default()) }).of_extension();
    *rig.log.extra_tools.lock().unwrap() = vec![Arc::new(bash().of_extension()), Arc::new(own)];
    rig.handle.request(Op::Reload { names: vec![], now: false, origin: None }).await.unwrap();
    rig.run("go").await;
    assert_eq!(active(&rig), ["bash", "read", "own"]);

    // When it vanishes, then bash is not quietly the unguarded one.
    rig.log.extra_tools.lock().unwrap().clear();
    rig.handle.request(Op::Reload { names: vec![], now: false, origin: None }).await.unwrap();
    assert_eq!(active(&rig), ["read"]);
    rig.run("go").await;
    let names: Vec<String> = rig.model.request(2).tools.iter().map(|t| t.name.clone()).collect();
    assert_eq!(names, ["read"]);

    // And it is back with its guard, or when the user asks for it.
    *rig.log.extra_tools.lock().unwrap() = vec![Arc::new(bash().of_extension())];
    rig.handle.request(Op::Reload { names: vec![], now: false, origin: None }).await.unwrap();
    assert_eq!(active(&rig), ["read", "bash"]);
    rig.log.extra_tools.lock().unwrap().clear();
    rig.handle.request(Op::Reload { names: vec![], now: false, origin: None }).await.unwrap();
    assert_eq!(active(&rig), ["read"]);
    rig.handle.request(Op::SetActiveTools { names: vec!["bash".into(), "nope".into()] }).await.unwrap();
    assert_eq!(active(&rig), ["bash"]);
}

#[tokio::test]
async fn a_queued_question_does_not_part_a_call_from_its_result() {
    // Given a message put into the transcript while a tool runs.
    let go = Arc::new(Notify::new());
    let wait = go.clone();
    let tool = Fake::new("waits", "x", move |_| {
        let wait = wait.clone();
        async move {
            wait.notified().await;
            Ok(ToolOutput::text("ok"))
        }
    });
    let steps = [Step::Calls(vec![("a", "waits", json!({"x": ""}))]), Step::Text("done")];
    let mut rig = build(steps).tool(tool).start().await;
    rig.prompt("go").await.unwrap();
    rig.until(|e| matches!(e, Event::ToolExecutionStart { .. })).await;
    let message: Value = json!({"customType": "n", "content": "note", "display": true});
    let op = Op::SendMessage {
        message: serde_json::from_value(message).unwrap(),
        options: serde_json::from_value(json!({"triggerTurn": false})).unwrap(),
    };
    rig.handle.request(op).await.unwrap();
    go.notify_one();
    rig.idle().await;
    let roles: Vec<String> = rig.model.request(1).messages.iter().map(|m| m.role().to_owned()).collect();
    assert_eq!(roles, ["user", "assistant", "toolResult", "user"]);
}

//! No panic of an author leaves his extension (SAFETY.md 2), wherever it happens.

use super::bash;
use crate::{
    prelude::*,
    testing::{FireResult, TestHost},
};
use serde_json::json;
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

struct PanicsInDrop(&'static str);
impl Drop for PanicsInDrop {
    fn drop(&mut self) {
        panic!("{}", self.0)
    }
}

fn fire(f: impl Fn(&Extension) + Send) -> FireResult {
    let host = TestHost::new(move |pi: &Extension| {
        f(pi);
        // Registered after the one that panics: the next handler runs all the same.
        pi.on(TurnStart, |_, ctx| async move { ctx.ui().notify("next", Level::Info) });
        Ok(())
    });
    let result = host.fire(TurnStart, json!({"turnIndex": 0})).wait();
    assert_eq!(host.record().notices.len(), 1, "{:?}", result.errors);
    result
}

#[track_caller]
fn assert_panic(result: &FireResult, text: &str) {
    let error = &result.errors[0];
    assert_eq!(error.code, "panic");
    assert!(error.message.contains(text), "{}", error.message);
}

#[test]
fn in_the_first_poll_with_the_place_it_happened_at() {
    let result = fire(|pi| pi.on(TurnStart, |_, _| async { panic!("first poll") }));
    assert_panic(&result, "first poll");
    assert!(result.errors[0].message.contains("containment.rs:"));
}

#[test]
fn after_an_await() {
    assert_panic(
        &fire(|pi| {
            pi.on(TurnStart, |_, ctx| async move {
                ctx.sleep(Duration::ZERO).await?;
                tokio::time::sleep(Duration::from_millis(1)).await;
                panic!("after await")
            });
        }),
        "after await",
    );
}

#[test]
fn in_the_closure_before_there_is_a_future() {
    assert_panic(
        &fire(|pi| {
            pi.on(TurnStart, |event, _| {
                assert!(event.turn_index > 0, "in the closure");
                async { Ok(()) }
            });
        }),
        "in the closure",
    );
}

#[test]
fn in_a_synchronous_handler() {
    assert_panic(&fire(|pi| pi.on_sync(TurnStart, |_, _| panic!("sync"))), "sync");
}

#[test]
fn in_the_drop_of_a_local() {
    assert_panic(
        &fire(|pi| {
            pi.on(TurnStart, |_, _| async {
                let _local = PanicsInDrop("drop of a local");
                Ok(())
            });
        }),
        "drop of a local",
    );
}

#[test]
fn with_a_payload_whose_own_drop_panics() {
    let result = fire(|pi| {
        pi.on(TurnStart, |_, _| async { std::panic::panic_any(PanicsInDrop("payload")) });
        pi.on_sync(TurnStart, |_, _| std::panic::panic_any(PanicsInDrop("payload")));
    });
    assert_eq!(result.errors.iter().filter(|e| e.code == "panic").count(), 2);
}

#[test]
fn three_times_in_a_row_and_the_instance_still_answers() {
    let host = TestHost::new(|pi: &Extension| {
        pi.on(ToolCall, |event, _| async move {
            let command = event.input_as::<BashInput>().map(|b| b.command.clone());
            if command.as_deref() == Some("boom") {
                panic!("boom");
            }
            Ok(None)
        });
        Ok(())
    });
    for _ in 0..3 {
        assert!(host.fire(ToolCall, bash("boom")).wait().blocked.is_some(), "a gate that panics blocks");
    }
    assert!(host.fire(ToolCall, bash("ls")).wait().ok().blocked.is_none());
}

#[test]
fn in_activate_plain_and_async() {
    let plain = TestHost::try_new(|_: &Extension| -> Result<()> { panic!("in activate") });
    assert_eq!(plain.err().unwrap().code, "panic");
    async fn activate(_: &Extension) -> Result<()> {
        tokio::task::yield_now().await;
        panic!("in async activate")
    }
    let error = TestHost::try_new(activate).err().unwrap();
    assert!(error.message.contains("in async activate"));
}

#[test]
fn tokio_without_a_runtime_in_a_plain_activate_is_explained() {
    let host = TestHost::try_new(|_: &Extension| {
        tokio::spawn(async {});
        Ok(())
    });
    let error = host.err().unwrap();
    assert_eq!(error.code, "no_runtime");
    assert!(error.message.contains("pi.spawn"), "{}", error.message);
}

#[test]
fn in_a_task_a_thread_and_a_task_of_a_task_it_is_reported() {
    let host = TestHost::new(|pi: &Extension| {
        pi.on(SessionStart, |_, ctx| async move {
            let pi = ctx.pi();
            pi.spawn(async { panic!("in a task") });
            pi.spawn(async { Err(Error::msg("an error of a task")) });
            pi.spawn_thread("t", || panic!("in a thread"))?;
            tokio::spawn(async { panic!("in a bare task") }).await.unwrap_err();
            Ok(())
        });
        Ok(())
    });
    host.fire(SessionStart, json!({})).wait().ok();
    while host.record().faults.len() < 4 {
        std::thread::yield_now();
    }
    let mut texts: Vec<_> = host.record().faults.into_iter().map(|f| f.error).collect();
    texts.sort();
    for (text, want) in texts.iter().zip(["an error of a task", "in a bare task", "in a task", "in a thread"])
    {
        assert!(text.starts_with(want), "{text}");
    }
}

#[test]
fn in_the_drop_of_a_captured_value_at_the_end_it_is_noted() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("dropped with its closure")
        }
    }
    let host = TestHost::new(|pi: &Extension| {
        let bomb = Arc::new(Mutex::new(Bomb));
        pi.on_sync(TurnStart, move |_, _| {
            let _ = &bomb;
            Ok(())
        });
        Ok(())
    });
    let (_, report) = host.close(Duration::from_secs(5)).wait();
    assert!(report.clean);
    assert!(report.note.unwrap().contains("dropped with its closure"));
}

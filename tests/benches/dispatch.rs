//! What an event costs, from the seam of the engine to the author's closure and back.
//!
//! ```text
//! cargo bench -p atomic-tests                      all of it
//! cargo bench -p atomic-tests --bench dispatch     these
//! ```
//!
//! The extension is `tests/fixtures/bench`, a stripped release build. Goals (two cores): nobody
//! hears it 10 ns and nothing allocated; one synchronous handler 500 ns, each further one of the
//! same state 250 ns; an asynchronous observer that is ready at once 1 µs; a gate, which runs on
//! the extension's own thread, twice `round_trip`, the same machine's cheapest way to another
//! thread and back.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use atomic_agent::{
    hooks::{Hooks, Notice, ToolCallOutcome, ToolCallRequest, ToolExecutionEnd},
    message::{AssistantEvent, Extra, Message, MessageContent, UserMessage},
    tool::{PartialResult, ToolOutput},
};
use atomic_extensions::Extensions;
use atomic_tests::env::Home;
use divan::{Bencher, black_box};
use futures_util::FutureExt;
use serde_json::{Value, json};
use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};
use tokio::runtime::Runtime;

struct Setup {
    runtime: Runtime,
    hooks: Arc<Extensions>,
    /// 200 bytes of it make the payload.
    args: Value,
    _home: Home,
}

static SETUP: LazyLock<Setup> = LazyLock::new(|| {
    let home = Home::new();
    home.install(&support::fixture());
    let runtime = support::runtime();
    let (hooks, report) =
        runtime.block_on(Extensions::load(support::config(&home.atomic_home(), &home.cwd())));
    assert!(report.refused.is_empty(), "{:?}", report.refused);
    // The extension's own runtime starts with its first asynchronous handler: not measured.
    let hooks_ = hooks.clone();
    runtime.block_on(async move { assert!(blocked(hooks_.tool_call(call()).await).is_none()) });
    Setup { runtime, hooks, args: json!({"command": "x".repeat(100)}), _home: home }
});

fn main() {
    nobody_hears_it_and_nothing_is_allocated();
    divan::main();
}

fn nobody_hears_it_and_nothing_is_allocated() {
    let hooks: &dyn Hooks = &*SETUP.hooks;
    let notice = Notice::AgentSettled { aborted: false };
    let spent = allocation_counter::measure(|| assert!(!hooks.hears(black_box(&notice))));
    assert_eq!(spent.count_total, 0, "an event nobody hears allocated");
    let told = allocation_counter::measure(|| told(&SETUP, Notice::MessageUpdate { event: &delta() }));
    println!("allocations of a token delta with one synchronous handler: {}", told.count_total);
}

/// A dispatch that is over at its first poll, polled as the session's thread does.
fn told(setup: &Setup, notice: Notice<'_>) {
    setup.hooks.notify(notice).now_or_never().expect("a handler that is ready");
}

fn call() -> ToolCallRequest {
    ToolCallRequest {
        tool_name: "bash".into(),
        tool_call_id: "call_0123456789".into(),
        input: json!({"command": "x".repeat(100)}),
    }
}

fn blocked(outcome: ToolCallOutcome) -> Option<String> {
    match outcome {
        ToolCallOutcome::Block { reason, .. } => Some(reason),
        ToolCallOutcome::Proceed { .. } => None,
    }
}

fn delta() -> AssistantEvent {
    AssistantEvent::TextDelta { content_index: 0, delta: "word and a ".repeat(10) }
}

#[divan::bench]
fn no_handler(bencher: Bencher<'_, '_>) {
    let hooks: &dyn Hooks = &*SETUP.hooks;
    let notice = Notice::AgentSettled { aborted: false };
    bencher.bench_local(|| black_box(hooks).hears(black_box(&notice)));
}

#[divan::bench]
fn sync_no_op(bencher: Bencher<'_, '_>) {
    let setup = &*SETUP;
    let _entered = setup.runtime.enter();
    bencher.bench_local(|| {
        told(
            setup,
            Notice::ToolExecutionStart {
                tool_call_id: "call_0123456789",
                tool_name: "bash",
                args: &setup.args,
            },
        )
    });
}

#[divan::bench]
fn sync_one_field_read(bencher: Bencher<'_, '_>) {
    let setup = &*SETUP;
    let _entered = setup.runtime.enter();
    let partial = PartialResult::default();
    bencher.bench_local(|| {
        told(
            setup,
            Notice::ToolExecutionUpdate {
                tool_call_id: "call_0123456789",
                tool_name: "bash",
                args: &setup.args,
                partial: &partial,
            },
        )
    });
}

/// 2 MB of messages, 1 KB each.
fn transcript() -> Arc<Vec<Message>> {
    Arc::new((0..2_000).map(|i| Message::user("word ".repeat(200), i)).collect())
}

/// Goal: 2 ms.
#[divan::bench]
fn context_of_2_mb_whose_roles_are_read(bencher: Bencher<'_, '_>) {
    let (setup, messages) = (&*SETUP, transcript());
    let _entered = setup.runtime.enter();
    bencher.bench_local(|| {
        setup.hooks.context(messages.clone()).now_or_never().expect("a handler that is ready")
    });
}

/// Goal: 10 µs.
#[divan::bench]
fn context_of_2_mb_that_is_not_touched(bencher: Bencher<'_, '_>) {
    let (setup, messages) = (&*SETUP, transcript());
    let _entered = setup.runtime.enter();
    bencher.bench_local(|| {
        setup.hooks.context_with_system(messages.clone()).now_or_never().expect("a handler that is ready")
    });
}

#[divan::bench]
fn sync_token_delta(bencher: Bencher<'_, '_>) {
    let setup = &*SETUP;
    let _entered = setup.runtime.enter();
    let event = delta();
    bencher.bench_local(|| told(setup, Notice::MessageUpdate { event: &event }));
}

/// Divide by ten.
#[divan::bench]
fn sync_ten_handlers(bencher: Bencher<'_, '_>) {
    let setup = &*SETUP;
    let _entered = setup.runtime.enter();
    let message = Message::User(UserMessage {
        content: MessageContent::Text("x".repeat(120)),
        timestamp: 0,
        extra: Extra::new(),
    });
    bencher.bench_local(|| told(setup, Notice::MessageStart { message: &message }));
}

#[divan::bench]
fn async_observer_no_op(bencher: Bencher<'_, '_>) {
    let setup = &*SETUP;
    let _entered = setup.runtime.enter();
    let result = ToolOutput::text("x".repeat(120));
    bencher.bench_local(|| {
        told(
            setup,
            Notice::ToolExecutionEnd(ToolExecutionEnd {
                tool_call_id: "call_0123456789",
                tool_name: "bash",
                result: &result,
                is_error: false,
                duration_ms: 1,
                effective_args: None,
            }),
        )
    });
}

/// From a thread of its own, as the session's is.
#[divan::bench]
fn gate_no_op(bencher: Bencher<'_, '_>) {
    let setup = &*SETUP;
    bencher.with_inputs(call).bench_local_values(|call| {
        let outcome = setup.runtime.block_on(setup.hooks.tool_call(call));
        assert!(blocked(outcome).is_none());
    });
}

/// To a parked thread and back, with the standard library alone.
#[divan::bench]
fn round_trip_of_threads(bencher: Bencher<'_, '_>) {
    use std::{
        sync::atomic::{AtomicU32, Ordering::*},
        thread,
    };
    // 0 idle, 1 asked, 2 over.
    let ball = Arc::new(AtomicU32::new(0));
    let (me, theirs) = (thread::current(), ball.clone());
    let other = thread::spawn(move || {
        loop {
            match theirs.load(Acquire) {
                1 => {
                    theirs.store(0, Release);
                    me.unpark();
                }
                2 => return,
                _ => thread::park(),
            }
        }
    });
    bencher.bench_local(|| {
        ball.store(1, Release);
        other.thread().unpark();
        while ball.load(Acquire) != 0 {
            thread::park();
        }
    });
    ball.store(2, Release);
    other.thread().unpark();
    other.join().unwrap();
}

/// To a task on the one worker of another runtime and back: the least that a handler costs
/// which must not block its caller.
#[divan::bench]
fn round_trip_of_runtimes(bencher: Bencher<'_, '_>) {
    let setup = &*SETUP;
    let other = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    bencher.bench_local(|| {
        setup.runtime.block_on(async {
            let (tx, rx) = tokio::sync::oneshot::channel();
            other.spawn(async move { tx.send(()) });
            rx.await.unwrap();
        });
    });
    other.shutdown_timeout(Duration::from_secs(1));
}

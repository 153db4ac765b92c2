//! Cancelling, fencing, ending.

use super::bash;
use crate::{prelude::*, testing::TestHost};
use serde_json::json;
use std::{
    future::Future,
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    task::{Context as Cx, Poll, Waker},
    time::Duration,
};

/// Polls a step once, so that its handler runs, and waits for what it reports.
macro_rules! begin {
    ($step:expr, $reported:expr) => {{
        let mut step = Box::pin($step);
        assert!(step.as_mut().poll(&mut Cx::from_waker(Waker::noop())).is_pending());
        $reported.recv().unwrap();
        step
    }};
}

struct OnDrop<F: FnMut() + Send>(F);
impl<F: FnMut() + Send> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

#[test]
fn a_cancelled_handler_is_dropped_and_its_drops_see_the_runtime() {
    let (tx, rx) = mpsc::channel();
    let (dropped, was_dropped) = mpsc::channel();
    let (tx, dropped) = (Mutex::new(tx), Mutex::new(dropped));
    let shared = Arc::new((tx, dropped));
    let host = TestHost::new(move |pi: &Extension| {
        let shared = shared.clone();
        pi.on(ToolCall, move |event, _| async move {
            let to = shared.1.lock().unwrap().clone();
            let _guard = OnDrop(move || to.send(tokio::runtime::Handle::try_current().is_ok()).unwrap());
            event.input_as::<BashInput>().unwrap().command = "changed".into();
            shared.0.lock().unwrap().send(()).unwrap();
            std::future::pending().await
        });
        Ok(())
    });
    let step = begin!(host.fire(ToolCall, bash("ls")), rx);
    drop(step);
    assert!(was_dropped.recv().unwrap(), "the drop had no runtime");
}

#[test]
fn a_request_that_is_dropped_unanswered_is_cancelled_at_the_host() {
    let (tx, rx) = mpsc::channel();
    let tx = Arc::new(Mutex::new(tx));
    let host = TestHost::new(move |pi: &Extension| {
        let tx = tx.clone();
        pi.on(TurnStart, move |_, ctx| async move {
            let mut question = pin!(ctx.ui().confirm("?", ""));
            assert!(matches!(
                std::future::poll_fn(|cx| Poll::Ready(question.as_mut().poll(cx))).await,
                Poll::Pending
            ));
            tx.lock().unwrap().send(()).unwrap();
            tokio::task::yield_now().await;
            Ok(())
        });
        Ok(())
    });
    host.leave_dialogs_open();
    host.fire(TurnStart, json!({})).wait().ok();
    rx.recv().unwrap();
    assert_eq!(host.record().cancelled, ["ui.confirm"]);
}

#[test]
fn at_the_fence_an_open_dialog_answers_its_default_and_all_else_is_stale() {
    let (tx, rx) = mpsc::channel();
    let tx = Arc::new(Mutex::new(tx));
    let host = TestHost::new(move |pi: &Extension| {
        let tx = tx.clone();
        pi.on(ToolCall, move |_, ctx| async move {
            let answer = ctx.ui().confirm("?", "");
            tx.lock().unwrap().send(()).unwrap();
            let answer = answer.await?;
            let late = ctx.ui().confirm("?", "").await.unwrap_err();
            let pi = ctx.pi().get_active_tools().unwrap_err();
            Ok(Some(block(format!("{answer} {} {}", late.is_stale(), pi.is_stale()))))
        });
        Ok(())
    });
    host.leave_dialogs_open();
    let mut step = begin!(host.fire(ToolCall, bash("ls")), rx);
    while host.record().dialogs.is_empty() {
        std::thread::yield_now();
    }
    host.fence();
    let result = loop {
        if let Poll::Ready(r) = step.as_mut().poll(&mut Cx::from_waker(Waker::noop())) {
            break r;
        }
        std::thread::yield_now();
    };
    assert_eq!(result.blocked.as_deref(), Some("false true true"));
}

#[test]
fn a_spawned_task_ends_with_its_instance_and_its_drop_runs() {
    let (started, has_started) = mpsc::channel();
    let (ended, has_ended) = mpsc::channel();
    let channels = Arc::new(Mutex::new((started, ended)));
    let host = TestHost::new(move |pi: &Extension| {
        let (started, ended) = channels.lock().unwrap().clone();
        let started = Mutex::new(started);
        pi.spawn(async move {
            let _end = OnDrop(move || ended.send(()).unwrap());
            started.lock().unwrap().send(()).unwrap();
            std::future::pending().await
        });
        Ok(())
    });
    has_started.recv().unwrap();
    let (_, report) = host.close(Duration::from_secs(10)).wait();
    has_ended.recv().unwrap();
    assert!(report.clean, "{report:?}");
}

#[test]
fn a_task_can_be_ended_earlier() {
    let (ended, has_ended) = mpsc::channel();
    let ended = Mutex::new(Some(ended));
    let host = TestHost::new(move |pi: &Extension| {
        let ended = ended.lock().unwrap().take().unwrap();
        let end = OnDrop(move || ended.send(()).unwrap());
        let task = pi.spawn(async move {
            let _end = end;
            std::future::pending().await
        });
        task.abort();
        Ok(())
    });
    has_ended.recv().unwrap();
    assert!(host.close(Duration::from_secs(10)).wait().1.clean);
}

#[test]
fn a_worker_that_is_blocked_is_reported_not_waited_for() {
    let (tx, rx) = mpsc::channel();
    let tx = Arc::new(Mutex::new(tx));
    let release = Arc::new(AtomicBool::new(false));
    let blocked = release.clone();
    let host = TestHost::new(move |pi: &Extension| {
        let (tx, blocked) = (tx.clone(), blocked.clone());
        pi.on(ToolCall, move |_, _| async move {
            tx.lock().unwrap().send(()).unwrap();
            while !blocked.load(Ordering::SeqCst) {
                std::thread::park_timeout(Duration::from_millis(1));
            }
            Ok(None)
        });
        Ok(())
    });
    drop(begin!(host.fire(ToolCall, bash("ls")), rx));
    let (_, report) = host.close(Duration::from_millis(50)).wait();
    assert!(!report.clean);
    assert_eq!((report.threads, report.tasks), (1, 1));
    release.store(true, Ordering::SeqCst);
}

#[test]
fn a_thread_that_does_not_end_is_counted() {
    let (release, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(Some(wait));
    let host = TestHost::new(move |pi: &Extension| {
        let wait = wait.lock().unwrap().take().unwrap();
        pi.spawn_thread("waits", move || {
            let _ = wait.recv();
        })
    });
    let (_, report) = host.close(Duration::from_millis(20)).wait();
    assert_eq!((report.clean, report.threads), (false, 1));
    drop(release);
}

#[test]
fn an_extension_that_never_waited_has_no_runtime_and_ends_at_once() {
    let host = TestHost::new(|pi: &Extension| {
        pi.on_sync(SessionShutdown, |event, ctx| ctx.ui().notify(event.reason.as_str(), Level::Info));
        Ok(())
    });
    let (told, report) = host.close(Duration::ZERO).wait();
    assert!(told.errors.is_empty() && report.clean);
}

#[test]
fn two_instances_of_one_extension_share_nothing() {
    fn activate(pi: &Extension) -> Result<()> {
        let count = Arc::new(Mutex::new(0));
        pi.on(TurnStart, move |_, ctx| async move {
            *count.lock().unwrap() += 1;
            let n = *count.lock().unwrap();
            tokio::time::sleep(Duration::from_millis(1)).await;
            ctx.ui().set_title(n.to_string())
        });
        Ok(())
    }
    let (a, b) = (TestHost::new(activate), TestHost::new(activate));
    a.fire(TurnStart, json!({})).wait().ok();
    a.fire(TurnStart, json!({})).wait().ok();
    drop(a);
    b.fire(TurnStart, json!({})).wait().ok();
    assert_eq!(b.record().title.as_deref(), Some("1"));
}

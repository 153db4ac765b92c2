//! The order of the end, and every way in which it goes wrong.

use super::fake::{Door, Fake, live, nothing, staged};
use crate::{
    generation::{
        CallEnd, CarrierEnd, Generation, RetirePlan, RetireReport, ShutdownReport,
        Step::{self, *},
    },
    graveyard::{Left, Totals},
};
use std::{future::pending, sync::Arc, time::Duration};
use tokio::{
    task::{JoinHandle, yield_now},
    time::{Instant, advance, sleep},
};

const CLEAN: [Step; 7] = [Fence, Detach, Drain, Carrier, Shutdown, Drop, Graveyard];

fn retire(generation: &Arc<Generation>, carrier: Option<u64>) -> JoinHandle<RetireReport> {
    tokio::spawn(generation.clone().retire(RetirePlan::new(carrier), nothing()))
}

/// A handler that runs until told otherwise; gives its call id.
async fn handler(generation: &Arc<Generation>) -> (u64, JoinHandle<CallEnd<()>>) {
    let call = generation.enter_async(0).unwrap();
    (call.id(), tokio::spawn(call.run(pending())))
}

#[tokio::test(start_paused = true)]
async fn a_quiet_generation_ends_in_the_stated_order_and_is_freed() {
    let fake = Arc::new(Fake::default());
    let (generation, yard) = live(&fake);
    let before = Instant::now();
    let report = generation.retire(RetirePlan::default(), nothing()).await;
    assert_eq!(report.trace, CLEAN);
    assert!(report.clean);
    assert_eq!(fake.said(), ["shutdown", "drop"]);
    assert_eq!(yard.graves(), []);
    assert_eq!(before.elapsed(), Duration::ZERO, "nothing was waited for");
}

#[tokio::test(start_paused = true)]
async fn a_candidate_that_is_not_wanted_ends_like_any_other() {
    let fake = Arc::new(Fake::default());
    let (generation, _) = staged(&fake);
    generation.discard();
    let report = generation.retire(RetirePlan::default(), nothing()).await;
    assert!(report.clean);
    assert_eq!(fake.said(), ["shutdown", "drop"]);
}

#[tokio::test(start_paused = true)]
async fn registrations_are_taken_back_after_the_fence_and_before_anything_is_waited_for() {
    let (generation, _) = live(&Arc::default());
    let (_, _running) = handler(&generation).await;
    let (seen, detached) = tokio::sync::oneshot::channel();
    let me = generation.clone();
    let before = Instant::now();
    let on_detach = Box::new(move || seen.send((me.fenced(), me.trace())).unwrap());
    tokio::spawn(generation.clone().retire(RetirePlan::default(), on_detach));
    assert_eq!(detached.await.unwrap(), (true, vec![Fence]));
    assert_eq!(before.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn handlers_have_two_seconds_and_are_then_cancelled() {
    let fake = Arc::new(Fake::default());
    let (generation, yard) = live(&fake);
    let (id, gate) = handler(&generation).await;
    let before = Instant::now();
    let report = retire(&generation, None).await.unwrap();
    assert_eq!(gate.await.unwrap(), CallEnd::Cancelled);
    assert_eq!(before.elapsed(), Duration::from_secs(2));
    assert_eq!(report.cancelled, [id]);
    assert_eq!(report.trace, [Fence, Detach, Drain, Cancel, Carrier, Shutdown, Drop, Graveyard]);
    assert_eq!(fake.said(), [format!("Drop {id}"), "shutdown".into(), "drop".into()]);
    assert_eq!(yard.graves(), []);
}

// boundary-dry-run 2.8: a provider blocked in a table call is leaked, never freed under the caller
#[tokio::test(start_paused = true)]
async fn a_table_call_that_does_not_return_leaks_its_provider() {
    let fake = Arc::new(Fake::default());
    let (generation, yard) = live(&fake);
    let blocked = generation.cell().enter(generation.number()).unwrap();
    let report = retire(&generation, None).await.unwrap();
    assert_eq!((report.clean, report.blocked), (false, 1));
    assert_eq!(fake.said(), ["shutdown"]);
    assert_eq!(yard.totals(), Totals { instances: 1, ..Totals::default() });
    assert_eq!(yard.graves()[0].why, "1 call(s) into it never returned");
    drop(blocked);
}

#[tokio::test(start_paused = true)]
async fn a_table_call_that_returns_in_time_is_noticed_although_its_caller_can_wake_nobody() {
    let fake = Arc::new(Fake::default());
    let (generation, _) = live(&fake);
    let call = generation.cell().enter(generation.number()).unwrap();
    let retired = retire(&generation, None);
    sleep(Duration::from_secs(1)).await;
    assert!(!retired.is_finished());
    drop(call);
    let report = retired.await.unwrap();
    assert!(report.clean);
    assert_eq!(report.trace, CLEAN);
}

#[tokio::test(start_paused = true)]
async fn the_carrier_is_neither_drained_nor_cancelled_and_its_instance_waits_for_it() {
    let fake = Arc::new(Fake::default());
    let (generation, _) = live(&fake);
    let carrier = generation.enter_async(0).unwrap();
    let id = carrier.id();
    let command = tokio::spawn(carrier.run(async { sleep(Duration::from_millis(4500)).await }));
    let report = retire(&generation, Some(id)).await.unwrap();
    assert_eq!(command.await.unwrap(), CallEnd::Answered(()));
    assert_eq!(report.carrier, CarrierEnd::Returned);
    assert_eq!(report.trace, CLEAN);
    assert_eq!(fake.said(), ["shutdown", "drop"]);
}

#[tokio::test(start_paused = true)]
async fn a_carrier_that_asks_the_host_for_nothing_is_given_up_after_five_seconds() {
    let fake = Arc::new(Fake::default());
    let (generation, _) = live(&fake);
    let (id, command) = handler(&generation).await;
    let before = Instant::now();
    let report = retire(&generation, Some(id)).await.unwrap();
    assert_eq!(before.elapsed(), Duration::from_secs(5));
    assert_eq!(report.carrier, CarrierEnd::GivenUp);
    assert_eq!(command.await.unwrap(), CallEnd::Cancelled);
    assert_eq!(fake.said(), [format!("Drop {id}"), "shutdown".into(), "drop".into()]);
}

// boundary-dry-run 2.4
#[tokio::test(start_paused = true)]
async fn with_session_may_take_longer_than_five_seconds() {
    let fake = Arc::new(Fake::default());
    let (old, _) = live(&fake);
    let (new, _) = live(&Arc::default());
    let carrier = old.enter_async(0).unwrap();
    let id = carrier.id();
    let replaced = old.request(id, true).unwrap();
    let command = tokio::spawn(carrier.run(async move {
        sleep(Duration::from_secs(3)).await;
        drop(replaced);
        // The handle of with_session: the new generation, the old call.
        for _ in 0..3 {
            let exec = new.request(id, false).unwrap();
            sleep(Duration::from_secs(7)).await;
            drop(exec);
            sleep(Duration::from_secs(3)).await;
        }
    }));
    let report = retire(&old, Some(id)).await.unwrap();
    assert_eq!(command.await.unwrap(), CallEnd::Answered(()));
    assert_eq!(report.carrier, CarrierEnd::Returned);
    assert!(report.clean);
}

#[tokio::test(start_paused = true)]
async fn the_carrier_of_one_extension_is_no_excuse_for_another() {
    let (mine, _) = live(&Arc::default());
    let other = Arc::new(Fake::default());
    let (theirs, _) = live(&other);
    let (id, _command) = handler(&mine).await;
    let (theirs_id, gate) = handler(&theirs).await;
    let report = retire(&theirs, Some(id)).await.unwrap();
    assert_eq!(report.carrier, CarrierEnd::None);
    assert_eq!(report.cancelled, [theirs_id]);
    assert_eq!(gate.await.unwrap(), CallEnd::Cancelled);
}

// boundary-dry-run 2.2 (b): the instance's worker is blocked, so nothing in it ever ends
#[tokio::test(start_paused = true)]
async fn an_instance_whose_shutdown_hangs_is_leaked_and_its_thread_counted_until_it_returns() {
    let door = Door::default();
    let fake = Arc::new(Fake { shutdown_door: Some(door.clone()), ..Fake::default() });
    let (generation, yard) = live(&fake);
    let report = retire(&generation, None).await.unwrap();
    assert_eq!((report.clean, report.shutdown), (false, None));
    assert_eq!(report.trace, [Fence, Detach, Drain, Carrier, Shutdown, Graveyard]);
    assert_eq!(yard.totals(), Totals { instances: 1, threads: 1, ..Totals::default() });
    // When it comes back after all, what was declared leaked is not freed.
    door.open();
    while yard.totals().threads > 0 {
        tokio::task::spawn_blocking(std::thread::yield_now).await.unwrap();
    }
    assert_eq!(fake.said(), ["shutdown"]);
}

// boundary-dry-run 2.9, 2.10: only a shutdown that says "clean" is followed by the drop
#[tokio::test(start_paused = true)]
async fn an_instance_that_reports_threads_or_tasks_left_is_leaked() {
    let fake = Arc::new(Fake::default());
    *fake.report.lock().unwrap() =
        Some(ShutdownReport { clean: false, threads_left: 2, tasks_left: 1, note: None });
    let (generation, yard) = live(&fake);
    let report = retire(&generation, None).await.unwrap();
    assert!(!report.clean);
    assert_eq!(fake.said(), ["shutdown"]);
    assert_eq!(yard.graves()[0].left, Left::Instance { threads: 2, tasks: 1 });
    assert_eq!(yard.graves()[0].why, "2 thread(s) and 1 task(s) would not end");
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_shutdown_leaks_the_instance_and_is_told() {
    let fake = Arc::new(Fake { panics: true, ..Fake::default() });
    let (generation, yard) = live(&fake);
    let report = retire(&generation, None).await.unwrap();
    assert!(!report.clean);
    assert_eq!(yard.graves()[0].why, "it panicked: shutdown panics");
}

#[tokio::test(start_paused = true)]
async fn a_detach_that_hangs_does_not_hold_the_rest_up() {
    let fake = Arc::new(Fake::default());
    let (generation, yard) = live(&fake);
    let door = Door::default();
    let stuck = door.clone();
    let report = generation.retire(RetirePlan::default(), Box::new(move || stuck.wait())).await;
    assert!(!report.clean);
    assert_eq!(report.trace, CLEAN);
    assert_eq!(yard.totals().threads, 1);
    door.open();
}

#[tokio::test(start_paused = true)]
async fn a_second_retirement_waits_for_the_first_and_detaches_nothing() {
    let (generation, _) = live(&Arc::default());
    let (_, _gate) = handler(&generation).await;
    let first = retire(&generation, None);
    yield_now().await;
    let second = generation.clone().retire(RetirePlan::default(), Box::new(|| panic!("already detached")));
    advance(Duration::from_millis(1)).await;
    assert_eq!(second.await, first.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn what_registers_while_the_fence_falls_is_over_before_the_detach() {
    let (generation, _) = live(&Arc::default());
    let (inside, entered) = std::sync::mpsc::channel();
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let (told, seen) = (Arc::new(std::sync::Mutex::new(Vec::new())), generation.clone());
    let by_registration = told.clone();
    let registering = std::thread::spawn(move || {
        seen.stage(Box::new(move || {
            inside.send(()).unwrap();
            wait.recv().unwrap();
            by_registration.lock().unwrap().push("registered");
        }))
    });
    entered.recv().unwrap();
    let by_detach = told.clone();
    let on_detach = Box::new(move || by_detach.lock().unwrap().push("detached"));
    let retired = tokio::spawn(generation.clone().retire(RetirePlan::default(), on_detach));
    generation.until_fenced().await;
    yield_now().await;
    assert!(told.lock().unwrap().is_empty());
    go.send(()).unwrap();
    retired.await.unwrap();
    registering.join().unwrap().unwrap();
    assert_eq!(*told.lock().unwrap(), ["registered", "detached"]);
}

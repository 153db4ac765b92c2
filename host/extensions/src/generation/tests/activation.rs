//! Activation under a deadline.

use super::fake::{Door, Fake};
use crate::{
    generation::{
        ActivationError, Body, Generation, Phase, RetirePlan, ShutdownReport, activate_on_thread, find,
        next_owner,
    },
    graveyard::{Graveyard, Left},
};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::Instant;

const LIMIT: Duration = Duration::from_secs(30);

fn candidate() -> (Arc<Generation>, Arc<Graveyard>) {
    let yard = Arc::new(Graveyard::default());
    (Generation::new(next_owner(), "greet", yard.clone()), yard)
}

async fn until(what: impl Fn() -> bool) {
    while !what() {
        tokio::task::spawn_blocking(std::thread::yield_now).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn an_activated_generation_has_its_instance_and_stays_staged() {
    let (generation, yard) = candidate();
    let fake: Arc<dyn Body> = Arc::new(Fake::default());
    let given = fake.clone();
    let body = activate_on_thread(&generation, LIMIT, move || Ok(given)).await.unwrap();
    assert!(Arc::ptr_eq(&body, &fake) && generation.body().is_some());
    assert_eq!(generation.phase(), Phase::Staged);
    assert_eq!(yard.graves(), []);
}

#[tokio::test(start_paused = true)]
async fn a_failing_activation_shows_nothing_of_what_it_staged_and_is_over() {
    let (generation, _) = candidate();
    let staged = Arc::new(());
    let (me, kept) = (generation.clone(), staged.clone());
    let failed = activate_on_thread(&generation, LIMIT, move || {
        me.stage(Box::new(move || drop(kept))).unwrap();
        Err("no such file".into())
    })
    .await;
    let expected = ActivationError::Failed { extension: "greet".into(), message: "no such file".into() };
    assert_eq!(failed.err(), Some(expected));
    assert_eq!(Arc::strong_count(&staged), 1);
    assert!(find(generation.number()).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_a_failed_activation() {
    let (generation, _) = candidate();
    let failed = activate_on_thread(&generation, LIMIT, || panic!("boom")).await.err().unwrap();
    assert_eq!(failed.to_string(), "greet could not be activated: it panicked: boom");
    assert_eq!(failed.code(), "extension::init_failed");
}

// boundary-dry-run 2.11
#[tokio::test(start_paused = true)]
async fn an_instance_that_arrives_after_the_deadline_is_ended_by_its_own_thread() {
    let (generation, yard) = candidate();
    let (door, fake) = (Door::default(), Arc::new(Fake::default()));
    let (stuck, given, threads) = (door.clone(), fake.clone(), Arc::new(Mutex::new(None)));
    let activating = threads.clone();
    let before = Instant::now();
    let failed = activate_on_thread(&generation, LIMIT, move || {
        *activating.lock().unwrap() = Some(std::thread::current().id());
        stuck.wait();
        Ok(given)
    })
    .await
    .err()
    .unwrap();
    assert_eq!(failed.code(), "extension::init_timeout");
    assert_eq!(before.elapsed(), LIMIT);
    assert!(generation.fenced() && generation.commit().is_err());
    assert_eq!(yard.graves()[0].left, Left::HostThread);
    assert!(yard.over_budget().is_some());
    // Another one activates meanwhile, on another thread.
    let (next, _) = candidate();
    let second = Arc::new(Mutex::new(None));
    let noted = second.clone();
    activate_on_thread(&next, LIMIT, move || {
        *noted.lock().unwrap() = Some(std::thread::current().id());
        Ok(Arc::new(Fake::default()))
    })
    .await
    .unwrap();
    assert_ne!(*second.lock().unwrap(), *threads.lock().unwrap());
    // Then the first returns after all.
    door.open();
    until(|| yard.graves().is_empty()).await;
    assert_eq!(fake.said(), ["shutdown", "drop"]);
    assert!(generation.body().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_late_instance_that_does_not_shut_down_is_leaked() {
    let (generation, yard) = candidate();
    let (door, fake) = (Door::default(), Arc::new(Fake::default()));
    *fake.report.lock().unwrap() = Some(ShutdownReport { threads_left: 1, ..Default::default() });
    let (stuck, given) = (door.clone(), fake.clone());
    let late = activate_on_thread(&generation, LIMIT, move || {
        stuck.wait();
        Ok(given)
    });
    assert!(late.await.is_err());
    door.open();
    until(|| yard.graves().iter().all(|g| g.left != Left::HostThread)).await;
    assert_eq!(fake.said(), ["shutdown"]);
    assert_eq!(yard.graves()[0].left, Left::Instance { threads: 1, tasks: 0 });
}

#[tokio::test(start_paused = true)]
async fn a_candidate_that_is_retired_while_it_activates_is_ended_when_it_arrives() {
    let (generation, yard) = candidate();
    let fake = Arc::new(Fake::default());
    let (me, given) = (generation.clone(), fake.clone());
    let failed = activate_on_thread(&generation, LIMIT, move || {
        me.fence(None);
        Ok(given)
    })
    .await;
    assert_eq!(failed.err(), Some(ActivationError::Fenced { extension: "greet".into() }));
    assert_eq!(fake.said(), ["shutdown", "drop"]);
    let report = generation.retire(RetirePlan::default(), Box::new(|| {})).await;
    assert_eq!(fake.said(), ["shutdown", "drop"], "only once");
    assert!(report.clean);
    assert_eq!(yard.graves(), []);
}

//! Staging, calls and requests, one rule a test.

use super::fake::{Fake, live, nothing, staged};
use crate::generation::{
    CallEnd, Cancel, Phase, RetirePlan, StaleContext, find, find_usable, pending_requests,
};
use futures_util::FutureExt;
use std::sync::{Arc, Mutex};

type Seen = Arc<Mutex<Vec<u32>>>;

fn mark(seen: &Seen, what: u32) -> Box<dyn FnOnce() + Send> {
    let seen = seen.clone();
    Box::new(move || seen.lock().unwrap().push(what))
}

#[test]
fn what_is_staged_becomes_visible_at_commit_in_order_and_later_registrations_at_once() {
    let (generation, _) = staged(&Arc::default());
    let seen = Seen::default();
    generation.stage(mark(&seen, 1)).unwrap();
    generation.stage(mark(&seen, 2)).unwrap();
    assert!(seen.lock().unwrap().is_empty());
    generation.commit().unwrap();
    assert_eq!(*seen.lock().unwrap(), [1, 2]);
    generation.stage(mark(&seen, 3)).unwrap();
    assert_eq!(*seen.lock().unwrap(), [1, 2, 3]);
}

#[test]
fn a_registration_made_by_a_staged_one_comes_after_all_that_was_staged() {
    let (generation, _) = staged(&Arc::default());
    let seen = Seen::default();
    let (again, inner) = (generation.clone(), mark(&seen, 9));
    generation.stage(Box::new(move || again.stage(inner).unwrap())).unwrap();
    generation.stage(mark(&seen, 1)).unwrap();
    generation.commit().unwrap();
    assert_eq!(*seen.lock().unwrap(), [1, 9]);
}

#[test]
fn a_discarded_candidate_shows_nothing_frees_what_it_staged_and_cannot_be_committed() {
    let (generation, _) = staged(&Arc::default());
    let seen = Seen::default();
    generation.stage(mark(&seen, 1)).unwrap();
    generation.discard();
    assert_eq!(Arc::strong_count(&seen), 1, "the staged closure was dropped");
    assert!(generation.commit().is_err());
    assert!(generation.stage(mark(&seen, 2)).is_err());
    assert!(seen.lock().unwrap().is_empty());
}

#[test]
fn a_fence_in_the_middle_of_a_commit_keeps_the_rest_invisible() {
    let (generation, _) = staged(&Arc::default());
    let seen = Seen::default();
    generation.stage(mark(&seen, 1)).unwrap();
    let again = generation.clone();
    generation
        .stage(Box::new(move || {
            again.fence(None);
        }))
        .unwrap();
    generation.stage(mark(&seen, 2)).unwrap();
    assert!(generation.commit().is_err());
    assert_eq!(*seen.lock().unwrap(), [1]);
}

#[test]
fn nobody_comes_in_before_commit_or_after_the_fence() {
    let (generation, _) = staged(&Arc::default());
    assert!(generation.enter(0).is_none());
    generation.commit().unwrap();
    assert!(generation.live() && !generation.fenced());
    let inside = generation.enter(0).unwrap();
    assert_eq!(generation.in_flight(), 1);
    generation.fence(None);
    assert!(generation.enter(0).is_none() && generation.enter_async(0).is_none());
    assert!(generation.cell().enter(generation.number()).is_none());
    assert_eq!(generation.in_flight(), 1, "who was refused is not counted");
    drop(inside);
    assert_eq!(generation.in_flight(), 0);
}

#[test]
fn every_call_has_an_id_of_its_own() {
    let (a, _) = live(&Arc::default());
    let (b, _) = live(&Arc::default());
    let ids = [a.enter(0).unwrap().id(), a.enter_async(0).unwrap().id(), b.enter(0).unwrap().id()];
    assert!(ids[0] != 0 && ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2]);
}

#[test]
fn a_handle_is_usable_only_for_its_owner_and_until_the_fence() {
    let (generation, _) = live(&Arc::default());
    let number = generation.number();
    assert!(find_usable(generation.owner(), number).is_ok());
    assert!(find_usable(generation.owner() + 1, number).is_err());
    generation.fence(None);
    assert_eq!(find_usable(generation.owner(), number).unwrap_err(), StaleContext { generation: number });
}

// boundary-dry-run 2.3
#[test]
fn the_fence_ends_every_pending_request_but_the_one_that_caused_it() {
    let (generation, _) = live(&Arc::default());
    let (carrier, other) = (generation.enter_async(0).unwrap(), generation.enter_async(0).unwrap());
    let reload = generation.request(carrier.id(), true).unwrap();
    let dialog = generation.request(other.id(), false).unwrap();
    let carriers_dialog = generation.request(carrier.id(), false).unwrap();
    let second_reload = generation.request(other.id(), true).unwrap();
    let no_handler = generation.request(0, true).unwrap();
    for request in [&reload, &dialog, &carriers_dialog, &second_reload, &no_handler] {
        assert_eq!(request.fenced().now_or_never(), None);
    }
    generation.fence(Some(carrier.id()));
    assert_eq!(reload.fenced().now_or_never(), None);
    for request in [&dialog, &carriers_dialog, &second_reload, &no_handler] {
        assert_eq!(request.fenced().now_or_never(), Some(()));
    }
    assert!(generation.request(other.id(), false).is_err(), "a new one is stale");
}

#[test]
fn pending_requests_are_counted_by_call_over_all_generations() {
    let (old, _) = live(&Arc::default());
    let (new, _) = live(&Arc::default());
    let call = old.enter_async(0).unwrap();
    let first = old.request(call.id(), true).unwrap();
    let second = new.request(call.id(), false).unwrap();
    assert_eq!(pending_requests(call.id()), 2);
    old.fence(None);
    assert!(old.request(call.id(), false).is_err());
    assert_eq!(pending_requests(call.id()), 2, "a refused request is not pending");
    drop((first, second));
    assert_eq!(pending_requests(call.id()), 0);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_comes_after_the_fence_but_within_the_drain_counts() {
    let (generation, _) = live(&Arc::default());
    let (answer, asked) = tokio::sync::oneshot::channel();
    let gate = tokio::spawn({
        let generation = generation.clone();
        async move { generation.ask(|_| asked).await }
    });
    tokio::task::yield_now().await;
    let retired = tokio::spawn(generation.clone().retire(RetirePlan::default(), nothing()));
    generation.until_fenced().await;
    answer.send("block").unwrap();
    assert_eq!(gate.await.unwrap(), CallEnd::Answered(Ok("block")));
    assert!(retired.await.unwrap().cancelled.is_empty());
}

// boundary-dry-run 2.1
#[tokio::test(start_paused = true)]
async fn a_gate_learns_that_its_handler_was_cancelled_or_never_asked() {
    let (generation, _) = live(&Arc::default());
    let gate = tokio::spawn({
        let generation = generation.clone();
        async move { generation.ask(|_| std::future::pending::<()>()).await }
    });
    tokio::task::yield_now().await;
    generation.clone().retire(RetirePlan::default(), nothing()).await;
    assert_eq!(gate.await.unwrap(), CallEnd::Cancelled);
    let next = generation.ask(|_| async {}).await;
    assert_eq!(next, CallEnd::Fenced);
    assert_eq!(next.answered(), Err("reloaded while it was asked"));
}

#[tokio::test(start_paused = true)]
async fn an_abandoned_call_is_dropped_in_the_instance_once_and_an_answered_one_is_not() {
    let fake = Arc::new(Fake::default());
    let (generation, _) = live(&fake);
    let abandoned = generation.enter_async(0).unwrap();
    let id = abandoned.id();
    drop(abandoned);
    assert_eq!(generation.ask(|_| async { 1 }).await, CallEnd::Answered(1));
    assert_eq!(fake.said(), [format!("{:?} {id}", Cancel::Drop)]);
    assert_eq!(generation.in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_retired_generation_is_found_no_more() {
    let (generation, _) = live(&Arc::default());
    assert!(find(generation.number()).is_some());
    generation.clone().retire(RetirePlan::default(), nothing()).await;
    assert!(find(generation.number()).is_none());
    assert_eq!(generation.phase(), Phase::Retired);
}

//! Random interleavings against a plain model: what was promised holds in every
//! order in which calls, requests, fences and retirements can meet.

use super::fake::{Fake, nothing, staged};
use crate::{
    generation::{
        AsyncCall, CarrierEnd, Generation, PendingRequest, Phase, RetirePlan, RetireReport, Step, TableCall,
        pending_requests,
    },
    graveyard::Graveyard,
};
use futures_util::FutureExt;
use proptest::prelude::*;
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::task::JoinHandle;

#[derive(Clone, Debug)]
enum Op {
    Stage,
    Commit,
    Enter,
    EnterAsync,
    EnterTable,
    LeaveAsync(usize),
    LeaveTable(usize),
    Request { call: usize, cause: bool },
    Answer(usize),
    Fence { carrier: Option<usize> },
    Retire { carrier: Option<usize> },
    Advance(u64),
}

fn op() -> impl Strategy<Value = Op> {
    let which = 0..6usize;
    prop_oneof![
        3 => Just(Op::Stage),
        3 => Just(Op::Commit),
        2 => Just(Op::Enter),
        4 => Just(Op::EnterAsync),
        1 => Just(Op::EnterTable),
        3 => which.clone().prop_map(Op::LeaveAsync),
        2 => which.clone().prop_map(Op::LeaveTable),
        3 => (which.clone(), any::<bool>()).prop_map(|(call, cause)| Op::Request { call, cause }),
        2 => which.clone().prop_map(Op::Answer),
        1 => proptest::option::of(which.clone()).prop_map(|carrier| Op::Fence { carrier }),
        1 => proptest::option::of(which).prop_map(|carrier| Op::Retire { carrier }),
        2 => (0..6000u64).prop_map(Op::Advance),
    ]
}

/// A call as the dispatcher would hold it: let go of as soon as it is cancelled.
struct Held {
    id: u64,
    call: Option<AsyncCall>,
}

struct World {
    generation: Arc<Generation>,
    yard: Arc<Graveyard>,
    fake: Arc<Fake>,
    applied: Arc<Mutex<Vec<u32>>>,
    /// What may have been applied, in order.
    expected: Vec<u32>,
    staged: Vec<u32>,
    next: u32,
    calls: Vec<Held>,
    tables: Vec<TableCall>,
    tables_entered: bool,
    requests: Vec<PendingRequest>,
    fenced: Option<Option<u64>>,
    retiring: Option<JoinHandle<RetireReport>>,
}

impl World {
    fn new() -> Self {
        let fake = Arc::new(Fake::default());
        let (generation, yard) = staged(&fake);
        Self {
            generation,
            yard,
            fake,
            applied: Arc::default(),
            expected: Vec::new(),
            staged: Vec::new(),
            next: 0,
            calls: Vec::new(),
            tables: Vec::new(),
            tables_entered: false,
            requests: Vec::new(),
            fenced: None,
            retiring: None,
        }
    }

    fn call_id(&self, which: usize) -> u64 {
        self.calls.get(which).map_or(0, |held| held.id)
    }

    async fn step(&mut self, op: Op) {
        let live = self.generation.live();
        match op {
            Op::Stage => {
                let (what, applied) = (self.next, self.applied.clone());
                self.next += 1;
                let ok = self.generation.stage(Box::new(move || applied.lock().unwrap().push(what))).is_ok();
                assert_eq!(ok, self.fenced.is_none());
                match (ok, live) {
                    (true, true) => self.expected.push(what),
                    (true, false) => self.staged.push(what),
                    (false, _) => {}
                }
            }
            Op::Commit => {
                let first = self.generation.phase() == Phase::Staged;
                assert_eq!(self.generation.commit().is_ok(), first);
                if first {
                    self.expected.append(&mut self.staged);
                }
            }
            Op::Enter => {
                let before = self.generation.in_flight();
                let inside = self.generation.enter(0);
                assert_eq!(inside.is_some(), live);
                assert_eq!(self.generation.in_flight(), before + u64::from(live));
                drop(inside);
                assert_eq!(self.generation.in_flight(), before);
            }
            Op::EnterAsync => {
                let call = self.generation.enter_async(0);
                assert_eq!(call.is_some(), live);
                self.calls.extend(call.map(|call| Held { id: call.id(), call: Some(call) }));
            }
            Op::EnterTable => {
                let call = self.generation.cell().enter(self.generation.number());
                assert_eq!(call.is_some(), live);
                self.tables_entered |= call.is_some();
                self.tables.extend(call);
            }
            Op::LeaveAsync(which) => {
                if let Some(call) = self.calls.get_mut(which).and_then(|held| held.call.take()) {
                    let _ = call.answer(());
                }
            }
            Op::LeaveTable(which) => {
                if which < self.tables.len() {
                    self.tables.swap_remove(which);
                }
            }
            Op::Request { call, cause } => {
                let call = self.call_id(call);
                let before = pending_requests(call);
                let request = self.generation.request(call, cause);
                assert_eq!(request.is_ok(), self.fenced.is_none());
                let counted = usize::from(request.is_ok() && call != 0);
                assert_eq!(pending_requests(call), before + counted);
                self.requests.extend(request);
            }
            Op::Answer(which) => {
                if which < self.requests.len() {
                    self.requests.swap_remove(which);
                }
            }
            Op::Fence { carrier } => {
                let carrier = carrier.map(|which| self.call_id(which));
                assert_eq!(self.generation.fence(carrier), self.fenced.is_none());
                self.fenced.get_or_insert(carrier);
                self.staged.clear();
            }
            Op::Retire { carrier } if self.retiring.is_none() => {
                let carrier = carrier.map(|which| self.call_id(which));
                self.fenced.get_or_insert(carrier);
                self.staged.clear();
                let retire = self.generation.clone().retire(RetirePlan::new(carrier), nothing());
                self.retiring = Some(tokio::spawn(retire));
                tokio::task::yield_now().await;
            }
            Op::Retire { .. } => {}
            Op::Advance(ms) => self.pass(Duration::from_millis(ms)).await,
        }
        self.let_go();
        self.check();
    }

    /// Lets time pass as a dispatcher would: a cancelled call is let go of at once.
    async fn pass(&mut self, time: Duration) {
        let until = tokio::time::Instant::now() + time;
        while tokio::time::Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(50)).await;
            self.let_go();
            self.check();
        }
    }

    fn let_go(&mut self) {
        for held in &mut self.calls {
            if held.call.as_ref().is_some_and(|call| call.cancelled().now_or_never().is_some()) {
                assert!(self.fenced.is_some(), "only a retirement cancels");
                held.call = None;
            }
        }
    }

    fn check(&self) {
        let generation = &self.generation;
        let inside = self.calls.iter().filter(|held| held.call.is_some()).count() + self.tables.len();
        assert_eq!(generation.in_flight(), inside as u64);
        assert_eq!(generation.fenced(), self.fenced.is_some());
        assert_eq!(*self.applied.lock().unwrap(), self.expected);
        for request in &self.requests {
            let exempt = request.caused_the_fence() && self.fenced == Some(Some(request.call()));
            let resolved = request.fenced().now_or_never().is_some();
            assert_eq!(resolved, self.fenced.is_some() && !exempt);
        }
        let said = self.fake.said();
        assert!(said.iter().filter(|s| *s == "shutdown").count() <= 1);
        assert!(!said.iter().any(|s| s.starts_with("drop with")), "freed with somebody inside: {said:?}");
        if let Some(at) = said.iter().position(|s| s == "drop") {
            assert_eq!((said[at - 1].as_str(), said.len()), ("shutdown", at + 1));
        }
        let trace = generation.trace();
        assert!(trace.is_sorted() && trace.windows(2).all(|w| w[0] != w[1]), "{trace:?}");
    }

    /// Whatever happened, the end comes, and says the truth.
    async fn finish(mut self) {
        self.step(Op::Retire { carrier: None }).await;
        let mut waited = Duration::ZERO;
        while self.retiring.as_ref().is_some_and(|r| !r.is_finished()) {
            self.pass(Duration::from_secs(1)).await;
            waited += Duration::from_secs(1);
            if waited > Duration::from_secs(20) {
                // Only one thing may hold a retirement up: requests of the carrier.
                let carrier = self.generation.carrier().unwrap();
                assert!(pending_requests(carrier) > 0);
                self.requests.clear();
                waited = Duration::ZERO;
            }
        }
        let report = self.retiring.take().unwrap().await.unwrap();
        assert_eq!(self.generation.phase(), Phase::Retired);
        // Table calls may have left after the retirement had given them up.
        assert!(report.blocked >= self.tables.len() as u64);
        assert!(report.blocked == 0 || !report.clean);
        assert!(report.clean || self.tables_entered, "nothing else goes wrong here");
        assert_eq!(report.clean, self.fake.said().last().is_some_and(|said| said == "drop"));
        assert_eq!(report.clean, self.yard.graves().is_empty());
        assert_eq!(report.trace.contains(&Step::Drop), report.clean);
        assert!(report.cancelled.is_empty() || report.trace.contains(&Step::Cancel));
        if let Some(carrier) = self.fenced.flatten() {
            assert!(!report.cancelled.contains(&carrier), "the carrier is never drained");
        } else {
            assert_eq!(report.carrier, CarrierEnd::None);
        }
        assert!(self.calls.iter().all(|held| held.call.is_none()), "nobody waits for a retired generation");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn what_was_promised_holds_in_every_order(ops in prop::collection::vec(op(), 1..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let mut world = World::new();
            for op in ops {
                world.step(op).await;
            }
            world.finish().await;
        });
    }
}

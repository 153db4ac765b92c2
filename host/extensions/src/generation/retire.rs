//! The order in which a generation ends (boundary.md 8, steps 2 to 8). Step 1,
//! `session_shutdown`, is an event: the dispatcher fires it before.

use super::{
    Cancel, Generation, ShutdownReport, Step::*, activate::bury_instance, activate::panic_text, helper, lock,
    request::Watched,
};
use crate::graveyard::Left;
use std::{
    future::pending,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};
use tokio::time::{sleep, timeout};

/// How long each step of a retirement may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetirePlan {
    /// The call whose request caused it. A fence before the retirement has decided this already.
    pub carrier: Option<u64>,
    /// For handlers and table calls in flight to end by themselves.
    pub drain: Duration,
    /// For those that were cancelled to be out.
    pub cancel_grace: Duration,
    /// For the carrier to return while none of its host requests is pending.
    pub carrier_grace: Duration,
    /// Given to the instance's `shutdown`, which is waited for a second longer.
    pub shutdown_deadline: Duration,
}

impl RetirePlan {
    /// The limits of boundary.md.
    pub fn new(carrier: Option<u64>) -> Self {
        Self { carrier, ..Self::default() }
    }
}

impl Default for RetirePlan {
    fn default() -> Self {
        Self {
            carrier: None,
            drain: Duration::from_secs(2),
            cancel_grace: Duration::from_millis(500),
            carrier_grace: Duration::from_secs(5),
            shutdown_deadline: Duration::from_secs(2),
        }
    }
}

/// What is waited beyond the deadline that the instance was given.
const BEYOND: Duration = Duration::from_secs(1);

/// A step of a retirement, as traces show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    Fence,
    Detach,
    Drain,
    /// Only when the drain took too long.
    Cancel,
    Carrier,
    Shutdown,
    /// Only when everything before was clean.
    Drop,
    Graveyard,
}

/// What became of the handler that caused the retirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CarrierEnd {
    /// There is none, or it runs in another generation.
    None,
    Returned,
    /// It neither returned nor asked the host for anything: cancelled.
    GivenUp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetireReport {
    pub generation: u64,
    pub extension: String,
    /// The instance is freed and nothing of it runs; its mapping may be activated again.
    pub clean: bool,
    /// Calls that did not end within the drain.
    pub cancelled: Vec<u64>,
    /// Calls still inside after the instance was shut down: it is leaked.
    pub blocked: u64,
    pub carrier: CarrierEnd,
    /// None when there was no instance, or its shutdown did not return.
    pub shutdown: Option<ShutdownReport>,
    pub trace: Vec<Step>,
}

impl Generation {
    /// Ends this generation. `on_detach` takes its registrations out of the
    /// registries; it runs once nobody can register any more, on a thread of its own.
    ///
    /// Never await it inside the request that caused it: the carrier is waited
    /// for as long as that request is pending. A second call waits for the first
    /// and drops its `on_detach` unrun.
    pub async fn retire(
        self: Arc<Self>,
        plan: RetirePlan,
        on_detach: Box<dyn FnOnce() + Send>,
    ) -> RetireReport {
        self.fence(plan.carrier);
        if self.retiring.swap(true, SeqCst) {
            drop(on_detach);
            loop {
                self.until(|| self.report.get().is_some()).await;
                if let Some(report) = self.report.get() {
                    return report.clone();
                }
            }
        }
        self.until(|| self.settled()).await;
        let detached = self.elsewhere(plan.drain, on_detach).await.is_some();
        self.note(Detach);
        let drained = timeout(plan.drain, self.until(|| self.quiet())).await.is_ok();
        self.note(Drain);
        let mut cancelled = Vec::new();
        if !drained {
            let carrier = self.carrier();
            cancelled = self.cancel_calls(&plan, |id| Some(id) != carrier).await;
            self.note(Cancel);
        }
        let carrier = self.carrier_end(&plan).await;
        self.note(Carrier);
        let (shutdown, dropped) = self.shut_down(&plan).await;
        let blocked = self.in_flight();
        self.note(Shutdown);
        if dropped {
            self.note(Drop);
        }
        let clean = detached && (dropped || self.body.get().is_none());
        if !clean {
            self.bury(&plan, detached, blocked, shutdown.as_ref());
        }
        self.note(Graveyard);
        let report = RetireReport {
            generation: self.number,
            extension: self.name().to_owned(),
            clean,
            cancelled,
            blocked,
            carrier,
            shutdown,
            trace: self.trace(),
        };
        let _ = self.report.set(report.clone());
        self.retired();
        report
    }

    /// Nobody is inside but the carrier.
    fn quiet(&self) -> bool {
        let carrier = self.carrier().is_some_and(|call| self.is_running(call));
        self.in_flight() <= u64::from(carrier)
    }

    /// Gives up the waiting for these calls, tells the instance, and lets them get out.
    async fn cancel_calls(self: &Arc<Self>, plan: &RetirePlan, which: impl Fn(u64) -> bool) -> Vec<u64> {
        let calls: Vec<_> = lock(&self.calls).iter().filter(|c| which(c.id)).cloned().collect();
        let tell: Vec<u64> = calls.iter().filter(|c| c.tell()).map(|c| c.id).collect();
        for call in &calls {
            call.cancel();
        }
        if let Some(body) = self.body.get().cloned() {
            // Its answer is not needed: an instance that blocks here will not shut down either.
            let _ = self
                .elsewhere(plan.cancel_grace, move || {
                    tell.into_iter().for_each(|id| body.cancel(id, Cancel::Drop))
                })
                .await;
        }
        let out = self.until(|| calls.iter().all(|c| !self.is_running(c.id)));
        let _ = timeout(plan.cancel_grace, out).await;
        calls.iter().map(|c| c.id).collect()
    }

    /// Waits until the carrier returned, or for the grace in which it asked the host for nothing.
    async fn carrier_end(self: &Arc<Self>, plan: &RetirePlan) -> CarrierEnd {
        let Some(call) = self.carrier().filter(|call| self.is_running(*call)) else {
            return CarrierEnd::None;
        };
        let mut requests = Watched::new(call);
        loop {
            let asking = *requests.pending.borrow_and_update() > 0;
            let idle = async {
                match asking {
                    true => pending().await,
                    false => sleep(plan.carrier_grace).await,
                }
            };
            tokio::select! {
                biased;
                () = self.until(|| !self.is_running(call)) => return CarrierEnd::Returned,
                _ = requests.pending.changed() => {}
                () = idle => break,
            }
        }
        self.cancel_calls(plan, |id| id == call).await;
        CarrierEnd::GivenUp
    }

    /// Shutdown and drop on a helper thread. The second value: freed.
    async fn shut_down(self: &Arc<Self>, plan: &RetirePlan) -> (Option<ShutdownReport>, bool) {
        let Some(body) = self.body.get().cloned() else { return (None, false) };
        let given_up = Arc::new(AtomicBool::new(false));
        let deadline = plan.shutdown_deadline;
        let done = self
            .elsewhere(deadline + BEYOND, {
                let (me, given_up) = (self.clone(), given_up.clone());
                move || {
                    let report =
                        catch_unwind(AssertUnwindSafe(|| body.shutdown(deadline))).unwrap_or_else(|panic| {
                            ShutdownReport { note: Some(panic_text(&*panic)), ..ShutdownReport::default() }
                        });
                    // Asked after the shutdown, and not freed behind the back of who gave up:
                    // what was declared leaked stays leaked.
                    let free = report.clean && me.in_flight() == 0 && !given_up.swap(true, SeqCst);
                    let dropped = free && catch_unwind(AssertUnwindSafe(|| body.drop_instance())).is_ok();
                    (report, dropped)
                }
            })
            .await;
        match done {
            Some((report, dropped)) => (Some(report), dropped),
            None => {
                given_up.store(true, SeqCst);
                (None, false)
            }
        }
    }

    fn bury(&self, plan: &RetirePlan, detached: bool, blocked: u64, shutdown: Option<&ShutdownReport>) {
        let (threads, tasks) = shutdown.map_or((0, 0), |r| (r.threads_left, r.tasks_left));
        let why = match shutdown {
            _ if blocked > 0 => format!("{blocked} call(s) into it never returned"),
            Some(ShutdownReport { note: Some(note), .. }) => note.clone(),
            Some(ShutdownReport { clean: false, .. }) => {
                format!("{threads} thread(s) and {tasks} task(s) would not end")
            }
            Some(_) if !detached => "its registrations could not be taken back".to_owned(),
            Some(_) => "it could not be freed".to_owned(),
            None => format!(
                "its shutdown did not return within {} s",
                (plan.shutdown_deadline + BEYOND).as_secs()
            ),
        };
        bury_instance(&self.graveyard, self, Left::Instance { threads, tasks }, why);
    }

    /// Runs what may hang on a thread of its own. None: it did not come back in
    /// time (its thread counts as lost until it does), or panicked.
    async fn elsewhere<T: Send + 'static>(
        self: &Arc<Self>,
        limit: Duration,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let decided = Arc::new(AtomicBool::new(false));
        let mut result = helper::run({
            let (me, decided) = (self.clone(), decided.clone());
            move || {
                let result = catch_unwind(AssertUnwindSafe(job)).ok();
                if decided.swap(true, SeqCst) {
                    me.graveyard.thread_came_back(me.number);
                }
                result
            }
        });
        let answer = tokio::select! {
            biased;
            answer = &mut result => answer,
            () = sleep(limit) => {
                // Counted first: the thread takes its grave away when it comes back after we decided.
                let why = format!("it did not give a host thread back within {} ms", limit.as_millis());
                bury_instance(&self.graveyard, self, Left::HostThread, why);
                if !decided.swap(true, SeqCst) {
                    return None;
                }
                self.graveyard.thread_came_back(self.number);
                result.await
            }
        };
        answer.ok().flatten()
    }
}

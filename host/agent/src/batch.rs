//! Runs the calls of a batch that passed the gate: beside each other where their tools
//! allow it, each in a task of its own, so that one that blocks or panics is only its own loss.

use crate::{
    event::Event,
    hooks::Notice,
    message::{Content, ToolCall},
    run::Run,
    tool::{Concurrency, PartialResult, Tool, ToolError, ToolInvocation, ToolOutput, ToolSource},
    turn::{ABORTED, Answered},
};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};
use tokio::{
    sync::Notify,
    task::{Id, JoinSet},
};

/// Validated and through all gates.
pub(crate) struct ReadyCall {
    pub index: usize,
    pub call: ToolCall,
    pub tool: Arc<dyn Tool>,
    pub input: Value,
    /// The input, when a gate changed it.
    pub effective: Option<Value>,
}

struct Running {
    task: Id,
    place: Concurrency,
    call: ReadyCall,
}

type Finished = (Result<ToolOutput, ToolError>, Duration);

/// The newest partial result of each call. They are whole, not increments, so a tool that is
/// faster than its listeners costs one of them and not a queue.
#[derive(Default)]
struct Updates {
    newest: Mutex<BTreeMap<usize, PartialResult>>,
    changed: Notify,
}

impl Updates {
    fn put(&self, index: usize, partial: PartialResult) {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner).insert(index, partial);
        self.changed.notify_one();
    }
    fn take(&self) -> BTreeMap<usize, PartialResult> {
        std::mem::take(&mut *self.newest.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Run<'_> {
    /// All of them, in completion order.
    pub(crate) async fn execute(&self, calls: Vec<ReadyCall>) -> Vec<Answered> {
        let mut answered = Vec::new();
        let mut waiting: Vec<(Concurrency, ReadyCall)> =
            calls.into_iter().map(|c| (c.tool.concurrency(&c.input), c)).collect();
        let mut running: Vec<Running> = Vec::new();
        let mut tasks: JoinSet<Finished> = JoinSet::new();
        let updates = Arc::new(Updates::default());
        let overdue = self.overdue();
        tokio::pin!(overdue);
        loop {
            let aborted = self.cancel.is_cancelled();
            if aborted {
                for (_, call) in waiting.drain(..) {
                    answered.push(self.refuse(call).await);
                }
            }
            self.start_what_may(&mut waiting, &mut running, &mut tasks, &updates);
            if running.is_empty() {
                return answered;
            }
            tokio::select! {
                // Updates last: a tool that floods them must not hide an end.
                biased;
                () = self.cancel.cancelled(), if !aborted => {}
                () = &mut overdue => {
                    tasks.abort_all();
                    for Running { call, .. } in running.drain(..) {
                        let whose = match &call.tool.spec().source {
                            ToolSource::Builtin => String::new(),
                            ToolSource::Extension { id, .. } => format!(" of the extension {id}"),
                        };
                        let text = format!("{ABORTED}; the tool{whose} did not stop when it was told to");
                        let finished = (Err(ToolError(text)), Duration::ZERO);
                        answered.push(self.finish(call, finished).await);
                    }
                    return answered;
                }
                Some(done) = tasks.join_next_with_id() => {
                    let (task, finished) = match done {
                        Ok((task, finished)) => (task, finished),
                        Err(e) => (e.id(), (Err(ToolError(fault(e))), Duration::ZERO)),
                    };
                    let Some(at) = running.iter().position(|r| r.task == task) else { continue };
                    // Its last updates came before its result.
                    self.tell_updates(&updates, &running).await;
                    let call = running.remove(at).call;
                    answered.push(self.finish(call, finished).await);
                }
                () = updates.changed.notified() => self.tell_updates(&updates, &running).await,
            }
        }
    }

    /// A call waits for those before it that it must not run beside, running or waiting.
    fn start_what_may(
        &self,
        waiting: &mut Vec<(Concurrency, ReadyCall)>,
        running: &mut Vec<Running>,
        tasks: &mut JoinSet<Finished>,
        updates: &Arc<Updates>,
    ) {
        let mut held: Vec<(Concurrency, ReadyCall)> = Vec::new();
        for (place, call) in waiting.drain(..) {
            let blocked = running.iter().map(|r| &r.place).chain(held.iter().map(|h| &h.0));
            if blocked.into_iter().any(|other| conflict(other, &place)) {
                held.push((place, call));
                continue;
            }
            let (updates, index, tool) = (updates.clone(), call.index, call.tool.clone());
            let invocation = ToolInvocation {
                tool_call_id: call.call.id.clone(),
                args: call.input.clone(),
                cwd: self.core.cwd(),
                cancel: self.cancel.child_token(),
                update: Arc::new(move |partial| updates.put(index, partial)),
            };
            let task = tasks.spawn(async move {
                let started = Instant::now();
                let result = tool.execute(invocation).await;
                (result, started.elapsed())
            });
            running.push(Running { task: task.id(), place, call });
        }
        *waiting = held;
    }

    /// Those of calls that have ended are nobody's.
    async fn tell_updates(&self, updates: &Updates, running: &[Running]) {
        for (index, partial) in updates.take() {
            let Some(running) = running.iter().find(|r| r.call.index == index) else { continue };
            let call = &running.call.call;
            self.tell(Notice::ToolExecutionUpdate {
                tool_call_id: &call.id,
                tool_name: &call.name,
                args: &call.arguments,
                partial: &partial,
            })
            .await;
            self.core.handle.emit(Event::ToolExecutionUpdate {
                tool_call_id: call.id.clone(),
                tool_name: call.name.clone(),
                args: call.arguments.clone(),
                partial_result: partial,
            });
        }
    }

    async fn finish(&self, ready: ReadyCall, (result, took): Finished) -> Answered {
        let output = result.unwrap_or_else(|e| ToolOutput::error(e.0));
        let output = self.through_result_hooks(&ready, output).await;
        let output = self.fit_images(output).await;
        let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        self.answer(ready.index, ready.call, output, ms, ready.effective).await
    }

    /// After the hooks, which see an image as it was made; what fails leaves it so.
    async fn fit_images(&self, mut output: ToolOutput) -> ToolOutput {
        let Some(fit) = self.core.fit_images.get() else { return output };
        if !output.content.iter().any(|c| matches!(c, Content::Image(_))) {
            return output;
        }
        let (fit, content) = (fit.clone(), output.content.clone());
        let fitted = tokio::task::spawn_blocking(move || {
            let one = |block: Content| match &block {
                Content::Image(image) => match fit.fit(image) {
                    Some((image, note)) => vec![Content::text(note), Content::Image(image)],
                    None => vec![block],
                },
                _ => vec![block],
            };
            content.into_iter().flat_map(one).collect()
        });
        if let Ok(content) = fitted.await {
            output.content = content;
        }
        output
    }

    async fn refuse(&self, ready: ReadyCall) -> Answered {
        self.answer(ready.index, ready.call, ToolOutput::error(ABORTED), 0, None).await
    }
}

fn conflict(a: &Concurrency, b: &Concurrency) -> bool {
    match (a, b) {
        (Concurrency::Exclusive, _) | (_, Concurrency::Exclusive) => true,
        (Concurrency::ExclusiveKey(a), Concurrency::ExclusiveKey(b)) => a == b,
        _ => false,
    }
}

fn fault(e: tokio::task::JoinError) -> String {
    match e.try_into_panic() {
        Ok(panic) => {
            let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
            format!("The tool panicked: {}", text.unwrap_or_default())
        }
        Err(_) => ABORTED.to_owned(),
    }
}

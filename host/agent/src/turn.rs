//! One turn: a request, its answer, and the tool calls of the answer. This is where a
//! tool call is looked up, validated, gated ([`Run::ask_the_gate`]) and answered.

use crate::{
    admission::admit_all,
    arguments,
    batch::ReadyCall,
    boundary::Boundary,
    budget, chronology,
    event::Event,
    hooks::{Notice, ToolCallOutcome, ToolCallRequest, ToolExecutionEnd, ToolResultRequest, TurnEnd},
    message::{AssistantMessage, Extra, Message, StopReason, ToolCall, ToolResultMessage, now_ms},
    model::{ModelRequest, ToolDeclaration},
    pairing, prompt,
    run::{Outcome, Run},
    session::{SessionError, fold_system},
    stream::{Listener, shell},
    tool::{ExecutionMode, Tool, ToolOutput},
};
use serde_json::{Map, Value, json};
use std::{sync::Arc, time::Duration};

pub(crate) const ABORTED: &str = "Operation aborted";
const BLOCKED: &str = "Tool execution was blocked";
const TRUNCATED: &str = "This call was not executed: the message ran into the output limit, so its arguments may be \
incomplete. Make the call again, in smaller parts if it is large.";
/// A model or a tool that does not stop when told is given up after this.
pub(crate) const GRACE: Duration = Duration::from_secs(2);

pub(crate) struct TurnDone {
    pub outcome: Outcome,
    /// Tools ran, and not all of them ended the run.
    pub goes_on: bool,
    /// What a boundary hook goes on with.
    pub continued: Option<Vec<Message>>,
}

/// A call that has its answer.
pub(crate) struct Answered {
    pub index: usize,
    pub call: ToolCall,
    pub output: ToolOutput,
}

impl Run<'_> {
    pub(crate) async fn turn(&mut self, index: usize) -> Result<TurnDone, SessionError> {
        let answer = self.ask_model().await;
        let (message, entry) = self.message_end(Message::Assistant(answer)).await?;
        let Message::Assistant(message) = message else {
            return Ok(TurnDone { outcome: Outcome::Failed, goes_on: false, continued: None });
        };
        self.answered(&message, &entry);
        let outcome = match message.stop_reason {
            Some(StopReason::Aborted) => Outcome::Aborted,
            Some(StopReason::Error) => Outcome::Failed,
            _ => Outcome::Completed,
        };
        let calls: Vec<ToolCall> = match outcome {
            Outcome::Completed => message.tool_calls().cloned().collect(),
            _ => Vec::new(),
        };
        let mut results = Vec::new();
        let mut entries = Vec::new();
        let mut goes_on = false;
        if !calls.is_empty() {
            let truncated = message.stop_reason == Some(StopReason::Length);
            let batch = self.tool_batch(calls, truncated, &mut results, &mut entries).await?;
            goes_on = !batch.all_terminate && !self.recovery.gives_up_truncated();
        }
        let end = Boundary::TurnEnd(TurnEnd {
            turn_index: index,
            message: &message,
            tool_results: &results,
            message_entry_id: Some(&entry),
            tool_result_entry_ids: &entries,
            outcome: outcome.name(),
        });
        let continued = self.boundary(end, outcome).await?;
        self.core.handle.emit(Event::TurnEnd { message: Box::new(message), tool_results: results });
        Ok(TurnDone { outcome, goes_on, continued })
    }

    /// The assistant's message, its start already told.
    async fn ask_model(&mut self) -> AssistantMessage {
        admit_all(self.core, &self.cancel).await;
        self.catch_up().await;
        let (whole, messages) = self.context().await;
        let (system_prompt, messages) = chronology::place(self.chronological(), whole, messages);
        let (session_id, thinking) = self.core.handle.view(|v| (v.session_id.clone(), v.thinking));
        let request = ModelRequest {
            system_prompt,
            messages,
            tools: self.tools.iter().map(|t| declaration(&**t)).collect(),
            thinking,
            max_tokens: self.recovery.max_tokens,
            session_id,
        };
        let model = self.model.clone();
        let copy = self.core.warming.copy(model.info(), &request);
        let (mut message, started) = {
            let mut listener = Listener::new(self);
            let answer = tokio::select! {
                message = model.stream(request, &mut listener, &self.cancel) => Some(message),
                () = self.overdue() => None,
            };
            (answer.unwrap_or_else(|| listener.aborted()), listener.started)
        };
        if message.stop_reason == Some(StopReason::Aborted)
            && let Some(text) = self.core.state().abort_text.take()
        {
            message.error_message = Some(text);
        }
        pairing::make_ids_unique(&mut message);
        if let Some(request) = copy {
            self.core.warming.keep(model, request, &message);
        }
        if !started {
            self.message_start(&Message::Assistant(shell(self.model.info()))).await;
        }
        message
    }

    /// Prompt and messages of the next request, as both context hooks leave them. Who leaves the
    /// system messages alone leaves the prompt alone.
    async fn context(&self) -> (String, Vec<Message>) {
        let is_system = |m: &&Message| matches!(m, Message::System(_));
        let mut full = pairing::pair(self.core.session().transcript());
        let plain: Vec<Message> = full.iter().filter(|m| !is_system(m)).cloned().collect();
        let plain = Arc::new(plain);
        let Some(changed) = self.dispatch(self.core.hooks.context(plain.clone())).await else {
            return Default::default();
        };
        if !Arc::ptr_eq(&plain, &changed) {
            let systems = full.iter().filter_map(|m| match m {
                Message::System(m) => Some(m),
                _ => None,
            });
            let head = fold_system(systems).map(Message::System);
            full = head.into_iter().chain(changed.iter().cloned()).collect();
        }
        let full = Arc::new(full);
        let Some(sent) = self.dispatch(self.core.hooks.context_with_system(full.clone())).await else {
            return Default::default();
        };
        let prompt = match Arc::ptr_eq(&full, &sent)
            || full.iter().filter(is_system).eq(sent.iter().filter(is_system))
        {
            true => self.system_prompt.clone(),
            false => prompt::of_messages(&sent),
        };
        (prompt, Arc::try_unwrap(sent).unwrap_or_else(|shared| (*shared).clone()))
    }

    /// The user aborted, and the time to react is over.
    pub(crate) async fn overdue(&self) {
        self.cancel.cancelled().await;
        tokio::time::sleep(GRACE).await;
    }

    async fn tool_batch(
        &mut self,
        calls: Vec<ToolCall>,
        truncated: bool,
        results: &mut Vec<ToolResultMessage>,
        entries: &mut Vec<String>,
    ) -> Result<Batch, SessionError> {
        let total = calls.len();
        let sequential = calls.iter().any(|c| {
            self.find_tool(&c.name).is_some_and(|t| t.spec().execution_mode == ExecutionMode::Sequential)
        });
        let mut answered = Vec::new();
        let mut ready = Vec::new();
        let mut terminating = 0;
        for (index, call) in calls.into_iter().enumerate() {
            if self.cancel.is_cancelled() {
                // No further call is started; pairing answers them in what the model is sent.
                break;
            }
            self.tell(Notice::ToolExecutionStart {
                tool_call_id: &call.id,
                tool_name: &call.name,
                args: &call.arguments,
            })
            .await;
            self.core.handle.emit(Event::ToolExecutionStart {
                tool_call_id: call.id.clone(),
                tool_name: call.name.clone(),
                args: call.arguments.clone(),
            });
            match self.preflight(index, &call, truncated).await {
                Err(output) => answered.push(self.answer(index, call, output, 0, None).await),
                Ok(call) => ready.push(call),
            }
            if sequential {
                answered.extend(self.execute(std::mem::take(&mut ready)).await);
                terminating += self.record_results(&mut answered, results, entries).await?;
            }
        }
        answered.extend(self.execute(ready).await);
        terminating += self.record_results(&mut answered, results, entries).await?;
        Ok(Batch { all_terminate: terminating == total })
    }

    /// Lookup, compatibility, schema, gate.
    async fn preflight(
        &mut self,
        index: usize,
        call: &ToolCall,
        truncated: bool,
    ) -> Result<ReadyCall, ToolOutput> {
        if truncated {
            return Err(ToolOutput::error(TRUNCATED));
        }
        // Exactly this name: a look-alike must not reach what a guard watches by name.
        let Some(tool) = self.find_tool(&call.name) else {
            let name: String = call.name.chars().take(200).collect();
            return Err(ToolOutput::error(format!("Tool \"{name}\" not found")));
        };
        let args = match &call.arguments {
            Value::Null => Value::Object(Map::new()),
            args => args.clone(),
        };
        let prepared = tool.prepare_arguments(args).map_err(|e| ToolOutput::error(e.0))?;
        let args = match arguments::validate(&call.name, &tool.spec().parameters, prepared) {
            Ok(args) => args,
            Err(text) => return Err(ToolOutput::error(text)),
        };
        let input = self.ask_the_gate(call, args.clone()).await?;
        let effective = (input != args).then(|| input.clone());
        Ok(ReadyCall { index, call: call.clone(), tool, input, effective })
    }

    /// Asks the `tool_call` handlers whether this call may run, and with which arguments.
    /// A call runs only if they were asked and said so: a block, an abort, and a question that
    /// was abandoned all refuse it.
    async fn ask_the_gate(&mut self, call: &ToolCall, input: Value) -> Result<Value, ToolOutput> {
        admit_all(self.core, &self.cancel).await;
        self.catch_up().await;
        let request = ToolCallRequest { tool_name: call.name.clone(), tool_call_id: call.id.clone(), input };
        let verdict = self.core.dispatch(&self.cancel, self.core.hooks.tool_call(request)).await;
        match verdict {
            Some(ToolCallOutcome::Block { reason, terminate, by }) => {
                let reason = if reason.trim().is_empty() { BLOCKED.to_owned() } else { reason };
                let details = Some(json!({"blockedBy": by}));
                Err(ToolOutput { terminate, details, ..ToolOutput::error(reason) })
            }
            Some(ToolCallOutcome::Proceed { input }) if !self.cancel.is_cancelled() => Ok(input),
            Some(ToolCallOutcome::Proceed { .. }) | None => Err(ToolOutput::error(ABORTED)),
        }
    }

    fn find_tool(&self, name: &str) -> Option<Arc<dyn Tool>> {
        self.tools.iter().find(|t| t.spec().name == name).cloned()
    }

    /// The chain of `tool_result`, for calls that ran. `terminate` is not theirs to change.
    pub(crate) async fn through_result_hooks(&self, call: &ReadyCall, output: ToolOutput) -> ToolOutput {
        let request = ToolResultRequest {
            tool_name: call.call.name.clone(),
            tool_call_id: call.call.id.clone(),
            input: call.input.clone(),
            content: output.content.clone(),
            details: output.details.clone(),
            is_error: output.is_error,
        };
        match self.dispatch(self.core.hooks.tool_result(request)).await {
            None => output,
            Some(r) => ToolOutput { content: r.content, details: r.details, is_error: r.is_error, ..output },
        }
    }

    /// Cuts the answer to its budget and tells that the call has ended.
    pub(crate) async fn answer(
        &self,
        index: usize,
        call: ToolCall,
        mut output: ToolOutput,
        duration_ms: u64,
        effective_args: Option<Value>,
    ) -> Answered {
        let limit = self.find_tool(&call.name).and_then(|t| t.spec().max_result_size_chars);
        let dir = self.core.handle.view(|v| v.session_dir.clone());
        output.content = budget::redirect_oversize(output.content, limit, &dir, &call.id);
        self.tell(Notice::ToolExecutionEnd(ToolExecutionEnd {
            tool_call_id: &call.id,
            tool_name: &call.name,
            result: &output,
            is_error: output.is_error,
            duration_ms,
            effective_args: effective_args.as_ref(),
        }))
        .await;
        self.core.handle.emit(Event::ToolExecutionEnd {
            tool_call_id: call.id.clone(),
            tool_name: call.name.clone(),
            result: output.clone(),
            is_error: output.is_error,
            duration_ms,
            effective_args,
        });
        Answered { index, call, output }
    }

    /// Result messages in the order of the calls. Answers how many end the run.
    async fn record_results(
        &mut self,
        answered: &mut Vec<Answered>,
        results: &mut Vec<ToolResultMessage>,
        entries: &mut Vec<String>,
    ) -> Result<usize, SessionError> {
        answered.sort_by_key(|a| a.index);
        let mut terminating = 0;
        for Answered { call, output, .. } in answered.drain(..) {
            terminating += usize::from(output.terminate);
            let message = ToolResultMessage {
                tool_call_id: call.id,
                tool_name: call.name,
                content: output.content,
                details: output.details,
                is_error: output.is_error,
                timestamp: now_ms(),
                extra: Extra::new(),
            };
            let (message, entry) = self.record(Message::ToolResult(message)).await?;
            entries.push(entry);
            if let Message::ToolResult(message) = message {
                results.push(message);
            }
        }
        Ok(terminating)
    }
}

struct Batch {
    all_terminate: bool,
}

fn declaration(tool: &dyn Tool) -> ToolDeclaration {
    let spec = tool.spec();
    ToolDeclaration {
        name: spec.name.clone(),
        description: spec.description.clone(),
        parameters: spec.parameters.clone(),
    }
}

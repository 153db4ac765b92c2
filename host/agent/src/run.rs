//! A run: from accepted input to `agent_settled`, in the order of events.md A.4.2. One
//! [`Run`] is one agent_start … agent_end; what was queued meanwhile makes another.

use crate::{
    admission::{Entered, Entry, admit_all, leave, tell_idle, through_input, user_message},
    boundary::Boundary,
    compact::Preflight,
    core::{Core, today},
    event::Event,
    hooks::{BeforeAgentStart, BeforeAgentStartOutcome, Notice, SystemPromptOptions},
    jobs::RunJob,
    message::{CustomMessage, Message, now_ms},
    model::Model,
    op::OpError,
    prompt,
    queue::Queued,
    recovery::{Next, Recovery},
    session::SessionError,
    tool::Tool,
};
use serde_json::{Value, json};
use std::{future::Future, sync::Arc};
use tokio_util::sync::CancellationToken;

const NO_MODEL: &str =
    "No model is selected. Set up a provider (its API key, or models.json), or start with --offline.";

/// How a low-level run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Completed,
    Aborted,
    Failed,
}

impl Outcome {
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Completed => "completed",
            Outcome::Aborted => "aborted",
            Outcome::Failed => "error",
        }
    }
}

/// One agent_start … agent_end.
pub(crate) struct Run<'c> {
    pub core: &'c Arc<Core>,
    /// The user's abort.
    pub cancel: CancellationToken,
    /// What is left to tell after an abort, cut short by the next one.
    pub closing: CancellationToken,
    pub model: Arc<dyn Model>,
    pub tools: Vec<Arc<dyn Tool>>,
    pub system_prompt: String,
    plan: PromptPlan,
    produced: Vec<Message>,
    pub recovery: Recovery,
    /// How often boundary hooks went on.
    pub continuations: usize,
}

/// The prompt as before_agent_start left it.
struct PromptPlan {
    /// Fixed for the run: midnight must not cost the provider's cache.
    today: String,
    options: SystemPromptOptions,
    /// Tools of this run alone, when a handler chose them.
    selected: Option<Vec<String>>,
}

/// The whole chain of one accepted input.
pub(crate) async fn run(core: &Arc<Core>, job: RunJob) {
    let RunJob { id, cancel, start, reply } = job;
    let closing = CancellationToken::new();
    {
        let mut state = core.state();
        state.closing = closing.clone();
        state.abort_text = None;
    }

    let somebody_waits = reply.wanted();
    let mut reply = Some(reply);
    let mut answer = |answer: Result<Value, OpError>| {
        if let Some(reply) = reply.take() {
            reply.send(answer);
        }
    };
    let start = match through_input(core, start, &cancel).await {
        Entered::Start(start) => Some(*start),
        Entered::Handled => {
            answer(Ok(json!({"disposition": "handled"})));
            leave(core, id, false).await
        }
        Entered::Aborted => {
            answer(Err(OpError::new("aborted", "aborted before the run began")));
            leave(core, id, true).await
        }
    };
    let Some(start) = start else { return };
    core.restore_primary();
    let Some(model) = core.state().model.clone() else {
        if !somebody_waits {
            core.notify("error", NO_MODEL);
        }
        answer(Err(OpError::new("no_model", NO_MODEL)));
        leave(core, id, true).await;
        return;
    };
    answer(Ok(json!({"disposition": "started"})));

    let mut run = Run {
        core,
        cancel,
        closing,
        model,
        tools: Vec::new(),
        system_prompt: String::new(),
        plan: PromptPlan { today: today(), options: SystemPromptOptions::default(), selected: None },
        produced: Vec::new(),
        recovery: Recovery::default(),
        continuations: 0,
    };
    let mut messages = run.begin(start).await;
    loop {
        let (outcome, next) = run.agent(messages).await;
        let outcome = match run.recover(next, outcome).await {
            Ok(more) => {
                messages = more;
                continue;
            }
            Err(outcome) => outcome,
        };
        run.compact_after_run(outcome).await;
        let mut asked = false;
        messages = loop {
            admit_all(core, &run.closing).await;
            match run.after_end(id, outcome, asked) {
                AfterEnd::Admit => {}
                AfterEnd::Again(queued) => break queued,
                AfterEnd::Ask => {
                    asked = true;
                    if let Some(messages) = run.before_settle(outcome).await {
                        break messages;
                    }
                }
                AfterEnd::Idle => return run.settle(outcome).await,
            }
        };
        core.queue_changed();
    }
}

enum AfterEnd {
    /// More input came.
    Admit,
    /// What was queued starts another run.
    Again(Vec<Message>),
    /// Nothing more would happen by itself: the hooks may want more.
    Ask,
    Idle,
}

impl Run<'_> {
    /// Calls hooks until the user aborts; after that, what is told about the end.
    pub async fn dispatch<T>(&self, call: impl Future<Output = T>) -> Option<T> {
        let until = if self.cancel.is_cancelled() { &self.closing } else { &self.cancel };
        self.core.dispatch(until, call).await
    }

    pub async fn tell(&self, notice: Notice<'_>) {
        if self.core.hooks.hears(&notice) {
            self.dispatch(self.core.hooks.notify(notice)).await;
        }
    }

    /// Everything up to agent_start; the messages the run begins with.
    async fn begin(&mut self, start: Entry) -> Vec<Message> {
        let core = self.core;
        self.flush_user_bash();
        core.refresh_tools();
        let (active, names) = {
            let state = core.state();
            (state.tools.named(state.tools.active()), state.tools.active().to_vec())
        };
        let options = core.prompt_options(&active);
        let prompt = prompt::build(&options, &self.plan.today);
        core.handle.update_view(|v| v.system_prompt = prompt.text.clone());

        let (first, event) = match start {
            Entry::Custom(custom) => (
                Message::Custom(custom.clone()),
                BeforeAgentStart {
                    prompt: None,
                    message: Some(custom),
                    images: Vec::new(),
                    system_prompt: prompt.text,
                    options: options.clone(),
                },
            ),
            Entry::User { text, images } => (
                Message::User(user_message(text.clone(), images.clone())),
                BeforeAgentStart {
                    prompt: Some(text),
                    message: None,
                    images,
                    system_prompt: prompt.text,
                    options: options.clone(),
                },
            ),
        };
        self.compact_before_prompt(&first).await;
        let outcome = self.dispatch(core.hooks.before_agent_start(event)).await.unwrap_or_default();
        let BeforeAgentStartOutcome { messages: injected, system_prompt, options: changed } = outcome;
        let mut options = changed.unwrap_or(options);
        let chosen = options.selected_tools.clone().unwrap_or_default();
        self.plan.selected = (chosen != names).then_some(chosen);
        if let Some(text) = system_prompt {
            options.force_system_prompt = Some(text);
        }
        self.plan.options = options;

        let held: Vec<CustomMessage> = match first {
            Message::User(_) => std::mem::take(&mut core.state().next_turn),
            _ => Vec::new(),
        };
        let customs = held.into_iter().chain(injected).map(Message::Custom);
        std::iter::once(first).chain(customs).collect()
    }

    /// What the user ran beside the last run comes before what is said now.
    fn flush_user_bash(&self) {
        let pending = std::mem::take(&mut self.core.state().pending_bash);
        for message in pending {
            if let Err(e) = self.core.append_message(&Message::BashExecution(message), false) {
                self.core.notify("error", e.to_string());
            }
        }
    }

    /// Under the one lock that makes the engine idle, so that nothing queued is left behind.
    fn after_end(&self, id: u64, outcome: Outcome, asked: bool) -> AfterEnd {
        let mut state = self.core.state();
        if !state.admissions.is_empty() {
            return AfterEnd::Admit;
        }
        let mut queued = Vec::new();
        if outcome == Outcome::Completed && !self.cancel.is_cancelled() {
            queued = state.queue.poll_steering();
            if queued.is_empty() {
                queued = state.queue.poll_follow_up();
            }
        }
        if !queued.is_empty() {
            return AfterEnd::Again(queued.into_iter().map(Queued::into_message).collect());
        }
        if !asked {
            return AfterEnd::Ask;
        }
        state.runs.retain(|(run, _)| *run != id);
        state.settling = true;
        self.core.show_run(&state);
        AfterEnd::Idle
    }

    /// `Some`: another low-level run begins with these.
    async fn before_settle(&mut self, outcome: Outcome) -> Option<Vec<Message>> {
        match self.boundary(Boundary::BeforeSettle { outcome: outcome.name() }, outcome).await {
            Ok(more) => more,
            Err(e) => {
                self.core.notify("error", e.to_string());
                None
            }
        }
    }

    /// agent_start … agent_end.
    async fn agent(&mut self, messages: Vec<Message>) -> (Outcome, Next) {
        self.tell(Notice::AgentStart).await;
        self.core.handle.emit(Event::AgentStart);
        let outcome = match self.turns(messages).await {
            Ok(outcome) => outcome,
            // What cannot be written must not be built upon.
            Err(e) => {
                self.core.notify("error", format!("The run was ended: {e}"));
                self.recovery.forget_answer();
                Outcome::Failed
            }
        };
        let messages = std::mem::take(&mut self.produced);
        let next = self.next(outcome);
        let will_retry = next.is_more();
        self.tell(Notice::AgentEnd { messages: &messages, will_retry }).await;
        self.core.handle.emit(Event::AgentEnd { messages, will_retry });
        (outcome, next)
    }

    async fn turns(&mut self, first: Vec<Message>) -> Result<Outcome, SessionError> {
        let mut index = 0;
        let mut incoming = first;
        loop {
            self.tell(Notice::TurnStart { turn_index: index, timestamp: now_ms() }).await;
            self.core.handle.emit(Event::TurnStart);
            self.settle_prompt().await?;
            for message in std::mem::take(&mut incoming) {
                self.record(message).await?;
            }
            if index == 0 {
                for message in self.steering().await {
                    self.record(message).await?;
                }
            }
            let turn = self.turn(index).await?;
            if turn.outcome != Outcome::Completed {
                return Ok(turn.outcome);
            }
            if self.cancel.is_cancelled() {
                return Ok(Outcome::Aborted);
            }
            if turn.goes_on
                && let Preflight::End(outcome) = self.before_next_request().await?
            {
                return Ok(outcome);
            }
            index += 1;
            incoming = self.steering().await;
            if let Some(more) = turn.continued {
                incoming.splice(0..0, more);
            } else if incoming.is_empty() && !turn.goes_on {
                incoming = self.polled(|state| state.queue.poll_follow_up());
                if incoming.is_empty() {
                    return Ok(Outcome::Completed);
                }
            }
        }
    }

    async fn steering(&mut self) -> Vec<Message> {
        admit_all(self.core, &self.cancel).await;
        self.polled(|state| state.queue.poll_steering())
    }

    fn polled(&self, poll: impl FnOnce(&mut crate::core::State) -> Vec<Queued>) -> Vec<Message> {
        let queued = poll(&mut self.core.state());
        if !queued.is_empty() {
            self.core.queue_changed();
        }
        queued.into_iter().map(Queued::into_message).collect()
    }

    /// Tools and prompt of the next request as they are now; what changed is recorded.
    async fn settle_prompt(&mut self) -> Result<(), SessionError> {
        self.core.refresh_tools();
        let (tools, model) = {
            let state = self.core.state();
            let names = self.plan.selected.as_deref().unwrap_or(state.tools.active());
            (state.tools.named(names), state.model.clone())
        };
        if let Some(model) = model {
            self.model = model;
        }
        let specs: Vec<_> = tools.iter().map(|t| t.spec()).collect();
        let names: Vec<String> = specs.iter().map(|s| s.name.clone()).collect();
        self.plan.options = prompt::with_tools(std::mem::take(&mut self.plan.options), &specs);
        let prompt = prompt::build(&self.plan.options, &self.plan.today);
        let known = self.core.session().recorded_prompt();
        let change = prompt::transition(&known, &prompt, &names);
        self.core.handle.update_view(|v| v.system_prompt = prompt.text.clone());
        self.system_prompt = prompt.text;
        self.tools = tools;
        if let Some(message) = change {
            self.record(Message::System(message)).await?;
        }
        Ok(())
    }

    /// Changes of the prompt are sent as messages. A forced prompt is sent whole: it is not recorded.
    pub fn chronological(&self) -> bool {
        self.model.info().mid_conversation_system && self.plan.options.force_system_prompt.is_none()
    }

    /// A whole message enters the run. Answers its entry id.
    pub async fn record(&mut self, message: Message) -> Result<(Message, String), SessionError> {
        self.message_start(&message).await;
        self.message_end(message).await
    }

    pub async fn message_start(&self, message: &Message) {
        self.tell(Notice::MessageStart { message }).await;
        self.core.handle.emit(Event::MessageStart { message: Box::new(message.clone()) });
    }

    /// The message as the hooks leave it is what listeners see, the file keeps, and the model gets.
    pub async fn message_end(&mut self, message: Message) -> Result<(Message, String), SessionError> {
        let replaced = self.dispatch(self.core.hooks.message_end(message.clone())).await;
        let message = replaced.filter(|r| r.role() == message.role()).unwrap_or(message);
        self.core.handle.emit(Event::MessageEnd { message: Box::new(message.clone()) });
        let entry = self.core.append_message(&message, false)?;
        self.produced.push(message.clone());
        Ok((message, entry))
    }

    async fn settle(&mut self, outcome: Outcome) {
        let aborted = outcome == Outcome::Aborted;
        self.tell(Notice::AgentSettled { aborted }).await;
        self.core.handle.emit(Event::AgentSettled);
        self.core.state().settling = false;
        self.core.sync_session();
        tell_idle(self.core);
    }
}

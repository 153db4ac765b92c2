//! The op loop: takes what front ends and extensions ask while the session thread works.
//! Nothing here waits: an op changes state under a short lock, or becomes a job of the
//! session thread or a task of its own, and the next op is taken.

use crate::{
    core::{Admission, Core, Reply, State},
    engine::{clamp, thinking_fields},
    event::Event,
    handle::OpRequest,
    hooks::{InputSource, ModelSource, ShutdownReason, StreamingBehavior},
    jobs::{Job, RunJob, RunStart},
    lifecycle::{self, Navigation, Successor},
    message::{ImageContent, MessageContent},
    model::ThinkingLevel,
    op::{Op, OpError},
    queue::Queue,
    session::SessionError,
    told::Told,
    user_bash,
};
use serde_json::{Map, Value, json};
use std::{sync::Arc, time::Duration};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// All of a shutdown together.
const SHUTDOWN: Duration = Duration::from_secs(5);
/// Of it, what the last hooks of an aborted run may take.
const SETTLE: Duration = Duration::from_secs(2);

pub(crate) async fn serve(core: Arc<Core>, mut ops: mpsc::UnboundedReceiver<OpRequest>) {
    loop {
        let request = tokio::select! {
            biased;
            () = core.stopped.cancelled() => return,
            request = ops.recv() => request,
        };
        let Some(OpRequest { op, reply }) = request else { return };
        core.accept(op, Reply(reply));
    }
}

impl Core {
    fn accept(self: &Arc<Self>, op: Op, reply: Reply) {
        match op {
            Op::Abort => self.abort(reply),
            Op::AbortRun => {
                cancel_runs(&self.state());
                reply.ok(Value::Null);
            }
            Op::ClearQueue => self.clear_queue(reply),
            Op::Answer { id, answer } => {
                self.handle.answer(id, answer);
                reply.ok(Value::Null);
            }
            Op::Shutdown { from_signal } => self.shut_down(ShutdownReason::Quit, from_signal, reply),
            Op::HandOver => self.shut_down(ShutdownReason::Reload, false, reply),
            _ if self.state().stopping => reply.err("engine_stopped", "the engine is stopping"),
            Op::Prompt { text, images, streaming_behavior, source } => {
                self.prompt(text, images, streaming_behavior, source, reply);
            }
            Op::SendUserMessage { content, deliver_as, expand } => {
                self.send_user_message(content, deliver_as, expand, reply);
            }
            Op::SendMessage { message, options } => self.send_message(message, options, reply),
            Op::SendMessages { messages, options } => self.send_messages(messages, options, reply),
            Op::PauseQueue { paused } => self.pause_queue(paused, reply),
            Op::SetSteeringMode { mode } => self.set_queue(reply, |q| q.steering_mode = mode),
            Op::SetFollowUpMode { mode } => self.set_queue(reply, |q| q.follow_up_mode = mode),
            Op::SetAutoRetry { enabled } => {
                let mut state = self.state();
                state.auto_retry = enabled;
                self.show_run(&state);
                drop(state);
                reply.ok(Value::Null);
            }
            Op::AbortRetry => {
                if let Some(waiting) = &self.state().retry {
                    waiting.cancel();
                }
                reply.ok(Value::Null);
            }
            Op::Compact { custom_instructions, mut options } => {
                options.query = options.query.or(custom_instructions);
                self.compact(options, reply);
            }
            Op::AbortCompaction => self.abort_compaction(reply),
            Op::SetAutoCompaction { enabled } => self.set_auto_compaction(enabled, reply),
            Op::GetSystemPromptOptions => {
                let active = {
                    let tools = &self.state().tools;
                    tools.named(tools.active())
                };
                let options = self.prompt_options(&active);
                reply
                    .send(serde_json::to_value(options).map_err(|e| OpError::new("internal", e.to_string())));
            }
            Op::GetCommands => {
                let of_extensions = self.hooks.commands();
                let of_extensions = of_extensions.iter().map(|c| {
                    let from = json!({"path": c.path.to_string_lossy(), "source": c.extension});
                    json!({"name": c.name, "description": c.description, "source": "extension", "sourceInfo": from})
                });
                let lent = self.handle.view(|v| v.lent.clone());
                let lent = lent.iter().map(|c| json!(c));
                reply.ok(json!({"commands": of_extensions.chain(lent).collect::<Vec<_>>()}));
            }
            Op::UserBash { command, exclude_from_context } => {
                user_bash::start(self, command, exclude_from_context, reply);
            }
            Op::Reload { names, now, origin } => {
                self.before_replacement("The reload", now);
                self.job(Job::Reload { names, origin, reply });
            }
            Op::NewSession { parent_session: parent, origin, setup } => {
                self.replace_session(Successor::New { parent, setup }, origin, reply);
            }
            Op::SwitchSession { path, origin } => {
                self.replace_session(Successor::Resume { path }, origin, reply);
            }
            Op::ImportSession { path, origin } => {
                self.replace_session(Successor::Import { path }, origin, reply);
            }
            Op::Fork { entry_id, position, origin } => {
                self.replace_session(Successor::Fork { entry_id, position }, origin, reply);
            }
            Op::Clone { origin } => self.replace_session(Successor::Clone, origin, reply),
            Op::NavigateTree { target_id, summarize, custom_instructions, replace_instructions, label } => {
                let to =
                    Navigation { target_id, summarize, custom_instructions, replace_instructions, label };
                self.navigate_tree(to, reply);
            }
            query @ (Op::SessionTree
            | Op::SessionEntries { .. }
            | Op::SessionMessages
            | Op::ForkMessages
            | Op::ListSessions { .. }
            | Op::SessionStats) => lifecycle::query(self, query, reply),
            Op::AppendEntry { custom_type, data } => {
                let mut fields = Map::new();
                fields.insert("customType".into(), custom_type.into());
                if let Some(data) = data {
                    fields.insert("data".into(), data);
                }
                let entry = self.append_shown("custom", fields);
                reply.send(entry.map(|e| json!({"entryId": e["id"]})).map_err(Into::into));
            }
            Op::SetSessionName { name } => self.set_session_name(name, reply),
            Op::SetLabel { entry_id, label } => self.set_label(entry_id, label, reply),
            Op::SetModel { provider, model } => self.set_model(&provider, &model, reply),
            Op::ListModels => self.list_models(reply),
            Op::ChooseModel { pattern } => self.choose_model(&pattern, reply),
            Op::CycleModel { backward } => self.cycle_model(backward, reply),
            Op::CycleThinkingLevel => self.cycle_thinking(reply),
            Op::RefreshModels => reply.ok(json!({"problems": self.models.refresh()})),
            Op::SetThinkingLevel { level } => self.set_thinking(level, reply),
            Op::SetActiveTools { names } => {
                self.refresh_tools();
                let mut state = self.state();
                state.tools.set_active(&names);
                self.show_tools(&state);
                drop(state);
                reply.ok(Value::Null);
            }
            Op::HostCommand { name, args } => {
                if let Some(answer) = self.switching_command(&name, &args) {
                    return reply.send(answer.map(|text| json!({"text": text})));
                }
                let core = self.clone();
                tokio::spawn(async move {
                    match core.hooks.host_command(&name, &args).await {
                        Some(Ok(text)) => reply.ok(json!({"text": text})),
                        Some(Err(why)) => reply.err("command_failed", why),
                        None => reply.err("unknown_command", format!("There is no command /{name}.")),
                    }
                });
            }
            Op::WaitForIdle => {
                let mut state = self.state();
                match state.at_rest() && !state.settling {
                    true => reply.ok(Value::Null),
                    false => state.idle_waiters.push(reply),
                }
            }
        }
    }

    /// A first abort ends what runs; a second the hooks that are told so.
    fn abort(&self, reply: Reply) {
        cancel_runs(&self.state());
        let mut state = self.state();
        if let Some(bash) = &state.bash {
            bash.cancel();
        }
        if state.compacting.is_asked_for() && !state.compacting.abort() {
            state.closing.cancel();
        }
        if let Some(navigation) = &state.navigation {
            navigation.cancel();
        }
        std::mem::take(&mut state.commands).cancel();
        drop(state);
        reply.ok(Value::Null);
    }

    fn clear_queue(&self, reply: Reply) {
        let (steering, follow_up) = {
            let mut state = self.state();
            let texts = state.queue.texts();
            state.queue.clear();
            texts
        };
        if !(steering.is_empty() && follow_up.is_empty()) {
            self.queue_changed();
        }
        reply.ok(json!({"steering": steering, "followUp": follow_up}));
    }

    fn set_queue(&self, reply: Reply, change: impl FnOnce(&mut Queue)) {
        let mut state = self.state();
        change(&mut state.queue);
        self.show_run(&state);
        drop(state);
        reply.ok(Value::Null);
    }

    pub(crate) fn before_replacement(&self, what: &str, now: bool) {
        if now {
            cancel_runs(&self.state());
            self.state().compacting.abort();
        } else if !self.state().at_rest() {
            self.notify("info", format!("{what} waits for the run to end."));
        }
    }

    /// Where the session is may not change under a run, nor under another such walk.
    fn navigate_tree(&self, to: Navigation, reply: Reply) {
        let cancel = {
            let mut state = self.state();
            if !state.at_rest() || state.navigation.is_some() {
                return reply
                    .err("busy", "The session is at work: it can be gone back in when it has settled.");
            }
            state.navigation.insert(CancellationToken::new()).clone()
        };
        self.job(Job::Navigate { to, cancel, reply });
    }

    /// Accepts a run: from here on the engine is not idle. Takes the lock that saw it idle, since
    /// a run that settles in between would leave what was queued for it behind.
    pub(crate) fn accept_run(&self, state: &mut State, start: RunStart, reply: Reply) {
        let cancel = CancellationToken::new();
        state.next_run += 1;
        let id = state.next_run;
        state.runs.push_back((id, cancel.clone()));
        self.show_run(state);
        self.job(Job::Run(RunJob { id, cancel, start, reply }));
    }

    fn prompt(
        self: &Arc<Self>,
        text: String,
        images: Vec<ImageContent>,
        behavior: Option<StreamingBehavior>,
        source: InputSource,
        reply: Reply,
    ) {
        if let Some((name, args)) = self.extension_command(&text) {
            return self.command(name, args, reply);
        }
        let mut state = self.state();
        if state.idle() {
            return self.accept_run(&mut state, RunStart::Text { text, images, source }, reply);
        }
        match behavior {
            Some(place) => {
                self.admit(&mut state, Admission { text, images, source, place, expand: true, reply });
            }
            None => reply.err(
                "streaming_behavior_required",
                "The agent is working: send this with streamingBehavior \"steer\" or \"followUp\".",
            ),
        }
    }

    fn admit(&self, state: &mut State, admission: Admission) {
        state.admissions.push_back(admission);
        self.show_run(state);
        self.admitted.notify_one();
    }

    fn extension_command(&self, text: &str) -> Option<(String, String)> {
        let (name, args) = text.strip_prefix('/').map(|t| t.split_once(' ').unwrap_or((t, "")))?;
        let name = name.trim_end();
        self.hooks.commands().iter().any(|c| c.name == name).then(|| (name.to_owned(), args.to_owned()))
    }

    /// In a task of its own, also during a run: it may ask for what the session thread does.
    /// Answered when it has ended, or was aborted.
    fn command(self: &Arc<Self>, name: String, args: String, reply: Reply) {
        let core = self.clone();
        let cancel = self.state().commands.clone();
        tokio::spawn(async move {
            let outcome = tokio::select! {
                biased;
                outcome = core.hooks.command(&name, &args) => outcome,
                // Dropping the call is what tells the extension.
                () = cancel.cancelled() => Some(Err("aborted".to_owned())),
            };
            core.refresh_tools();
            match outcome {
                Some(Ok(())) => reply.ok(json!({"disposition": "handled"})),
                // The hooks have made a diagnostic of it; whoever asked is told as well.
                Some(Err(error)) => reply.ok(json!({"disposition": "handled", "error": error})),
                None => reply.err("unknown_command", format!("There is no command /{name} any more.")),
            }
        });
    }

    fn send_user_message(
        self: &Arc<Self>,
        content: MessageContent,
        place: Option<StreamingBehavior>,
        expand: bool,
        reply: Reply,
    ) {
        let text = content.plain_text();
        if expand && let Some((name, args)) = self.extension_command(&text) {
            self.command(name, args, Reply(None));
            return reply.ok(Value::Null);
        }
        let mut state = self.state();
        if state.idle() {
            self.accept_run(&mut state, RunStart::Blocks(content, expand), Reply(None));
            return reply.ok(Value::Null);
        }
        let Some(place) = place else {
            return reply.err(
                "deliver_as_required",
                "The agent is working: send the message with deliverAs \"steer\" or \"followUp\".",
            );
        };
        let images = images(&content);
        let source = InputSource::Extension;
        self.admit(&mut state, Admission { text, images, source, place, expand, reply: Reply(None) });
        reply.ok(Value::Null);
    }

    fn set_session_name(&self, name: Option<String>, reply: Reply) {
        let name = name.map(|n| n.trim().to_owned()).filter(|n| !n.is_empty());
        let mut fields = Map::new();
        if let Some(name) = &name {
            fields.insert("name".into(), name.clone().into());
        }
        match self.append_shown("session_info", fields) {
            Err(e) => reply.send(Err(e.into())),
            Ok(_) => {
                self.handle.update_view(|v| v.session_name = name.clone());
                self.emit_after_dispatch(Event::SessionInfoChanged { name: name.clone() });
                self.tell(Told::SessionInfoChanged(name));
                reply.ok(Value::Null);
            }
        }
    }

    fn set_label(&self, entry_id: String, label: Option<String>, reply: Reply) {
        if !self.session().has_entry(&entry_id) {
            return reply.send(Err(SessionError::UnknownEntry(entry_id).into()));
        }
        let mut fields = Map::new();
        fields.insert("targetId".into(), entry_id.into());
        if let Some(label) = label {
            fields.insert("label".into(), label.into());
        }
        reply.send(self.append_shown("label", fields).map(|_| Value::Null).map_err(Into::into));
    }

    fn set_model(&self, provider: &str, id: &str, reply: Reply) {
        let Some(model) = self.models.get(provider, id) else { return reply.ok(false) };
        let written = self.switch(model, None, ModelSource::Set);
        reply.send(written.map(|()| Value::Bool(true)).map_err(Into::into));
    }

    fn set_thinking(&self, level: ThinkingLevel, reply: Reply) {
        let level = {
            let state = self.state();
            let level = clamp(level, state.model.as_deref().map(|m| m.info()));
            (level != state.thinking).then_some(level)
        };
        let written = level.map_or(Ok(()), |level| self.apply_thinking(level));
        reply.send(written.map(|()| Value::Null).map_err(Into::into));
    }

    pub(crate) fn apply_thinking(&self, level: ThinkingLevel) -> Result<(), SessionError> {
        let previous = std::mem::replace(&mut self.state().thinking, level);
        self.handle.update_view(|v| v.thinking = level);
        self.emit_after_dispatch(Event::ThinkingLevelChanged { level });
        let written = self.append_shown("thinking_level_change", thinking_fields(level)).map(drop);
        self.tell(Told::ThinkingLevelSelect { level, previous });
        written
    }

    /// Aborts, settles, tells the hooks; after five seconds it is over whatever they do.
    fn shut_down(self: &Arc<Self>, reason: ShutdownReason, from_signal: bool, reply: Reply) {
        if std::mem::replace(&mut self.state().stopping, true) {
            return reply.ok(Value::Null);
        }
        self.abort(Reply(None));
        // Nobody answers any more: what waits for an answer goes on without one.
        self.handle.close_dialogs();
        let (done, ended) = oneshot::channel();
        self.job(Job::Shutdown { reason, from_signal, done });
        let core = self.clone();
        tokio::spawn(async move {
            let closing = core.state().closing.clone();
            let ended = tokio::time::timeout(SHUTDOWN, async {
                tokio::pin!(ended);
                if tokio::time::timeout(SETTLE, &mut ended).await.is_err() {
                    closing.cancel();
                    cancel_runs(&core.state());
                    let _ = ended.await;
                }
            });
            let _ = ended.await;
            // Whoever waits for the end may open the file next.
            let news = {
                let mut session = core.session();
                session.close();
                session.take_news()
            };
            for news in news {
                core.notify(news.level, news.message);
            }
            core.handle.emit(Event::Stopped);
            core.stopped.cancel();
            reply.ok(Value::Null);
        });
    }
}

pub(crate) fn cancel_runs(state: &State) {
    if state.runs.front().is_some_and(|(_, token)| token.is_cancelled()) {
        state.closing.cancel();
    }
    for (_, token) in &state.runs {
        token.cancel();
    }
}

pub(crate) fn images(content: &MessageContent) -> Vec<ImageContent> {
    let blocks = match content {
        MessageContent::Text(_) => return Vec::new(),
        MessageContent::Blocks(blocks) => blocks,
    };
    blocks
        .iter()
        .filter_map(|b| match b {
            crate::message::Content::Image(image) => Some(image.clone()),
            _ => None,
        })
        .collect()
}

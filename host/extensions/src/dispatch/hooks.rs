//! The core's hooks, each handed to its class. A hook nobody subscribed to costs one
//! relaxed load: nothing is serialised, nothing allocated.

use super::{
    BEFORE_AGENT_START, BEFORE_PROVIDER_HEADERS, BEFORE_PROVIDER_REQUEST, CONTEXT, CONTEXT_WITH_SYSTEM,
    INPUT, MESSAGE_END, RESOURCES_DISCOVER, SESSION_BEFORE_COMPACT, SESSION_BEFORE_FORK,
    SESSION_BEFORE_SWITCH, SESSION_BEFORE_TREE, SESSION_SHUTDOWN, TOOL_CALL, TOOL_RESULT, USER_BASH,
    boundary, chain::Step, invoke::event_name,
};
use crate::{convert, host::Extensions};
use async_trait::async_trait;
use atomic_agent::{
    boundary::{Board, Boundary},
    decisions::{
        BeforeEvent, ReplayDecisions, RestoreReason, SessionBefore, UserBash, UserBashOutcome, Veto,
        WarmingAction, WarmingDecision,
    },
    hooks::{
        BeforeAgentStart, BeforeAgentStartOutcome, Bootstrap, CommandInfo, Hooks, Input, InputOutcome,
        Notice, Replace, ReplaceReport, Resources, ShutdownReason, StartReason, Swap, SystemPromptOptions,
        ToolCallOutcome, ToolCallRequest, ToolResultOutcome, ToolResultRequest,
    },
    message::{Content, CustomMessage, ImageContent, Message, MessageContent, now_ms},
    model::ModelInfo,
    tool::Tool,
};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Keys of an answer of `session_before_tree`.
const TREE: &[&str] = &["cancel", "summary", "customInstructions", "replaceInstructions", "label"];

#[async_trait]
impl Hooks for Extensions {
    async fn notify(&self, notice: Notice<'_>) {
        let event = convert::index(&notice);
        let Some(subs) = self.subs(event) else { return };
        self.notify_all(event, &subs, &convert::notice(&notice)).await;
    }

    async fn resources_discover(&self, reason: StartReason) -> Resources {
        let mut found = Resources::default();
        let Some(subs) = self.subs(RESOURCES_DISCOVER) else {
            self.found(&found);
            return found;
        };
        let cwd = self.cwd();
        let event = convert::resources_discover(&cwd, reason);
        self.chain(
            RESOURCES_DISCOVER,
            &subs,
            &mut found,
            |_| event.clone(),
            |found, answer, sub| {
                let Some(o) = answer.known(&["skillPaths", "promptPaths", "themePaths"])? else {
                    return Ok(Step::Unchanged);
                };
                // A relative path is the session's; each keeps who contributed it.
                let take = |key: &str, into: &mut Vec<(PathBuf, PathBuf)>| -> Result<(), String> {
                    let paths: Vec<PathBuf> = convert::read(o, key)?.unwrap_or_default();
                    into.extend(paths.into_iter().map(|p| (cwd.join(p), sub.registered.path.clone())));
                    Ok(())
                };
                take("skillPaths", &mut found.skills)?;
                take("promptPaths", &mut found.prompts)?;
                take("themePaths", &mut found.themes)?;
                Ok(Step::Unchanged)
            },
        )
        .await;
        self.found(&found);
        found
    }

    fn resources(&self) -> Resources {
        self.last_found()
    }

    async fn input(&self, input: Input) -> InputOutcome {
        let mut value = (input, false);
        if let Some(subs) = self.subs(INPUT) {
            self.chain(
                INPUT,
                &subs,
                &mut value,
                |(i, _)| convert::input(i),
                |(input, handled), answer, _| {
                    let Some(o) = answer.known(&["action"])? else { return Ok(Step::Unchanged) };
                    match o.get("action").and_then(Value::as_str) {
                        Some("continue") => Ok(Step::Unchanged),
                        Some("handled") => {
                            *handled = true;
                            Ok(Step::Stop)
                        }
                        Some("transform") => {
                            let text: String = convert::read(o, "text")?
                                .ok_or("malformed result: transform without a text")?;
                            if let Some(images) = convert::read::<Vec<ImageContent>>(o, "images")? {
                                input.images = images;
                            }
                            input.text = text;
                            Ok(Step::Changed)
                        }
                        _ => Err(format!(
                            "malformed result: unknown action {}",
                            o.get("action").unwrap_or(&Value::Null)
                        )),
                    }
                },
            )
            .await;
        }
        match value {
            (_, true) => InputOutcome::Handled,
            (input, false) => InputOutcome::Continue { text: input.text, images: input.images },
        }
    }

    async fn before_agent_start(&self, event: BeforeAgentStart) -> BeforeAgentStartOutcome {
        let mut value = (event, BeforeAgentStartOutcome::default());
        let Some(subs) = self.subs(BEFORE_AGENT_START) else { return value.1 };
        self.chain(
            BEFORE_AGENT_START,
            &subs,
            &mut value,
            |(e, _)| convert::before_agent_start(e),
            |(event, out), mut answer, _| {
                let mut step = Step::Unchanged;
                if let Some(patch) = answer.patched("systemPromptOptions") {
                    let options = SystemPromptOptions::deserialize(patch)
                        .map_err(|e| format!("malformed patch: systemPromptOptions: {e}"))?;
                    event.options = options.clone();
                    out.options = Some(options);
                    step = Step::Changed;
                }
                let Some(o) = answer.known(&["message", "systemPrompt"])? else { return Ok(step) };
                if let Some(prompt) = convert::read::<String>(o, "systemPrompt")? {
                    event.system_prompt.clone_from(&prompt);
                    out.system_prompt = Some(prompt);
                    step = Step::Changed;
                }
                if let Some(message) = convert::read::<Map<String, Value>>(o, "message")? {
                    out.messages.push(custom_message(&message)?);
                }
                Ok(step)
            },
        )
        .await;
        value.1
    }

    async fn message_end(&self, message: Message) -> Message {
        let Some(subs) = self.subs(MESSAGE_END) else { return message };
        let mut value = message;
        self.chain(MESSAGE_END, &subs, &mut value, convert::message_end, |message, answer, _| {
            let Some(o) = answer.known(&["message"])? else { return Ok(Step::Unchanged) };
            let Some(new) = convert::read::<Message>(o, "message")? else { return Ok(Step::Unchanged) };
            if new.role() != message.role() {
                return Err(format!(
                    "the replacement has role {:?}, the message {:?}: ignored",
                    new.role(),
                    message.role()
                ));
            }
            if matches!(new, Message::Other(_)) && !matches!(message, Message::Other(_)) {
                return Err(format!(
                    "malformed result: this is no message of role {:?}: ignored",
                    new.role()
                ));
            }
            convert::no_unknown_block(&convert::blocks(&new), &convert::blocks(message))?;
            *message = new;
            Ok(Step::Changed)
        })
        .await;
        value
    }

    async fn context(&self, messages: Arc<Vec<Message>>) -> Arc<Vec<Message>> {
        self.through(CONTEXT, messages).await
    }

    async fn context_with_system(&self, messages: Arc<Vec<Message>>) -> Arc<Vec<Message>> {
        self.through(CONTEXT_WITH_SYSTEM, messages).await
    }

    async fn boundary(&self, boundary: Boundary<'_>, board: &mut Board) {
        let Some(subs) = self.subs(boundary::index(&boundary)) else { return };
        self.at_boundary(&subs, &boundary, board).await;
    }

    fn hears_boundary(&self, boundary: &Boundary<'_>) -> bool {
        self.wants(boundary::index(boundary))
    }

    async fn session_before(&self, before: SessionBefore) -> Veto {
        let (event, known) = match before.event {
            BeforeEvent::Switch => (SESSION_BEFORE_SWITCH, &["cancel"][..]),
            BeforeEvent::Fork => (SESSION_BEFORE_FORK, &["cancel", "skipConversationRestore"][..]),
            BeforeEvent::Compact => (SESSION_BEFORE_COMPACT, &["cancel", "compactedText"][..]),
            BeforeEvent::Tree => (SESSION_BEFORE_TREE, TREE),
        };
        let Some(subs) = self.subs(event) else { return Veto::default() };
        self.veto(event, &subs, &convert::of_a_room(event_name(event), before.fields), known).await
    }

    fn hears_before(&self, event: BeforeEvent) -> bool {
        self.wants(match event {
            BeforeEvent::Switch => SESSION_BEFORE_SWITCH,
            BeforeEvent::Fork => SESSION_BEFORE_FORK,
            BeforeEvent::Compact => SESSION_BEFORE_COMPACT,
            BeforeEvent::Tree => SESSION_BEFORE_TREE,
        })
    }

    async fn session_recovery_restore(&self, reason: RestoreReason) -> Vec<String> {
        self.restored(reason).await
    }

    async fn session_recovery_replay(&self, pending: Vec<Value>) -> ReplayDecisions {
        self.replayed(pending).await
    }

    async fn cache_warming_decision(&self, decision: WarmingDecision) -> WarmingAction {
        self.warming(decision).await
    }

    async fn user_bash(&self, asked: UserBash) -> UserBashOutcome {
        match self.subs(USER_BASH) {
            Some(subs) => self.first_wins(&subs, asked).await,
            None => UserBashOutcome::Local,
        }
    }

    async fn before_provider_headers(
        &self,
        headers: &mut BTreeMap<String, Option<String>>,
        model: &ModelInfo,
    ) {
        let Some(subs) = self.subs(BEFORE_PROVIDER_HEADERS) else { return };
        self.chain(
            BEFORE_PROVIDER_HEADERS,
            &subs,
            headers,
            |h| convert::headers(h, model),
            |headers, mut answer, _| {
                let Some(patch) = answer.patched("headers") else { return Ok(Step::Unchanged) };
                *headers =
                    BTreeMap::deserialize(patch).map_err(|e| format!("malformed patch: headers: {e}"))?;
                Ok(Step::Changed)
            },
        )
        .await;
    }

    async fn before_provider_request(&self, payload: &mut Value) {
        let Some(subs) = self.subs(BEFORE_PROVIDER_REQUEST) else { return };
        self.chain(
            BEFORE_PROVIDER_REQUEST,
            &subs,
            payload,
            convert::provider_request,
            |payload, mut answer, _| {
                // Any value may replace the body, so that only an explicit envelope does (N3).
                let Some(Value::Object(mut o)) = answer.result.take() else { return Ok(Step::Unchanged) };
                if o.get("replace") != Some(&Value::Bool(true)) {
                    return Ok(Step::Unchanged);
                }
                *payload = o.shift_remove("payload").ok_or("malformed result: replace without a payload")?;
                Ok(Step::Changed)
            },
        )
        .await;
    }

    async fn tool_call(&self, call: ToolCallRequest) -> ToolCallOutcome {
        match self.subs(TOOL_CALL) {
            Some(subs) => self.gate(&subs, call).await,
            None => ToolCallOutcome::Proceed { input: call.input },
        }
    }

    async fn tool_result(&self, result: ToolResultRequest) -> ToolResultOutcome {
        let mut value = result;
        if let Some(subs) = self.subs(TOOL_RESULT) {
            self.chain(TOOL_RESULT, &subs, &mut value, convert::tool_result, |r, answer, _| {
                let Some(o) = answer.known(&["content", "details", "isError"])? else {
                    return Ok(Step::Unchanged);
                };
                // All of a patch or nothing of it.
                let content = convert::read::<Vec<Content>>(o, "content")?;
                convert::no_unknown_block(content.as_deref().unwrap_or_default(), &r.content)?;
                let is_error = convert::read::<bool>(o, "isError")?;
                if let Some(details) = o.get("details") {
                    r.details = Some(details.clone());
                }
                r.content = content.unwrap_or_else(|| std::mem::take(&mut r.content));
                r.is_error = is_error.unwrap_or(r.is_error);
                Ok(Step::Changed)
            })
            .await;
        }
        ToolResultOutcome { content: value.content, details: value.details, is_error: value.is_error }
    }

    async fn session_shutdown(&self, reason: ShutdownReason, from_signal: bool) {
        if self.subs(SESSION_SHUTDOWN).is_some() {
            let event = convert::session_shutdown(reason, None, from_signal);
            self.shut_down(|_| true, &event, self.config().shutdown_grace).await;
        }
    }

    async fn replace(&self, request: Replace, swap: Swap) -> Result<ReplaceReport, String> {
        self.replace_generations(request, swap).await
    }

    async fn bootstrap(&self) -> Option<Bootstrap> {
        self.bring_projects_in().await
    }

    async fn enter(&self, cwd: &Path) -> Result<bool, String> {
        Ok(self.enter_project(cwd).await)
    }

    async fn host_command(&self, name: &str, args: &str) -> Option<Result<String, String>> {
        self.run_host_command(name, args).await
    }

    fn hears(&self, notice: &Notice<'_>) -> bool {
        self.wants(convert::index(notice))
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.published_tools()
    }

    fn commands(&self) -> Vec<CommandInfo> {
        self.command_list()
    }

    async fn command(&self, name: &str, args: &str) -> Option<Result<(), String>> {
        self.run_command(name, args).await
    }
}

fn custom_message(m: &Map<String, Value>) -> Result<CustomMessage, String> {
    let custom_type: String = convert::read(m, "customType")?
        .filter(|t: &String| !t.is_empty())
        .ok_or("malformed result: message without customType")?;
    let content: MessageContent =
        convert::read(m, "content")?.ok_or("malformed result: message without content")?;
    Ok(CustomMessage {
        custom_type,
        content,
        display: convert::read(m, "display")?.unwrap_or(false),
        details: m.get("details").cloned(),
        timestamp: now_ms(),
        extra: Map::new(),
    })
}

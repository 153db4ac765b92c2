//! The seam between the loop and whoever extends it. The loop calls these in the
//! order of events.md A.4.2; `atomic-extensions` implements them, tests may too.
//!
//! No method fails: what a handler did wrong is a diagnostic, and a gate that
//! could not answer has blocked its call.

use crate::{
    boundary::{Board, Boundary},
    decisions::{
        BeforeEvent, ReplayDecisions, RestoreReason, RoomEvent, SessionBefore, UserBash, UserBashOutcome,
        Veto, WarmingAction, WarmingDecision,
    },
    message::{
        AssistantEvent, AssistantMessage, Content, CustomMessage, ImageContent, Message, ToolResultMessage,
    },
    model::{ModelInfo, ThinkingLevel},
    prompt::lent::Skill,
    tool::{PartialResult, Tool, ToolOutput},
};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Why a session started (events.md A.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StartReason {
    Startup,
    Reload,
    New,
    Resume,
    Fork,
}

/// Why a session's extensions are told to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ShutdownReason {
    Quit,
    Reload,
    New,
    Resume,
    Fork,
}

/// Another session, by both names it goes by; no file when it was never written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionRef {
    pub id: String,
    pub file: Option<PathBuf>,
}

/// What only informs. Handlers run one after another and change nothing.
#[derive(Clone, Debug)]
pub enum Notice<'a> {
    SessionStart {
        reason: StartReason,
        previous: Option<&'a SessionRef>,
    },
    AgentStart,
    AgentEnd {
        messages: &'a [Message],
        will_retry: bool,
    },
    AgentSettled {
        aborted: bool,
    },
    TurnStart {
        turn_index: usize,
        timestamp: i64,
    },
    MessageStart {
        message: &'a Message,
    },
    MessageUpdate {
        event: &'a AssistantEvent,
    },
    ToolExecutionStart {
        tool_call_id: &'a str,
        tool_name: &'a str,
        args: &'a Value,
    },
    ToolExecutionUpdate {
        tool_call_id: &'a str,
        tool_name: &'a str,
        args: &'a Value,
        partial: &'a PartialResult,
    },
    ToolExecutionEnd(ToolExecutionEnd<'a>),
    AfterProviderResponse {
        status: u16,
        headers: &'a BTreeMap<String, String>,
    },
    /// As the provider sent it, before it is normalised.
    ProviderStreamEvent {
        model: &'a ModelInfo,
        data: &'a Value,
    },
    /// An entry that is no message of a run.
    EntryAppended {
        entry: &'a Value,
    },
    /// `None`: it has no name any more.
    SessionInfoChanged {
        name: Option<&'a str>,
    },
    ModelSelect {
        model: &'a ModelInfo,
        previous: Option<&'a ModelInfo>,
        source: ModelSource,
    },
    ThinkingLevelSelect {
        level: ThinkingLevel,
        previous: ThinkingLevel,
    },
    /// What another room tells of its own.
    Room {
        event: RoomEvent,
        fields: &'a Map<String, Value>,
    },
}

/// How a model came to be the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModelSource {
    Set,
    Cycle,
    Restore,
    Fallback,
}

#[derive(Clone, Debug)]
pub struct TurnEnd<'a> {
    pub turn_index: usize,
    pub message: &'a AssistantMessage,
    pub tool_results: &'a [ToolResultMessage],
    pub message_entry_id: Option<&'a str>,
    pub tool_result_entry_ids: &'a [String],
    /// `completed`, `aborted`, `error`.
    pub outcome: &'a str,
}

#[derive(Clone, Debug)]
pub struct ToolExecutionEnd<'a> {
    pub tool_call_id: &'a str,
    pub tool_name: &'a str,
    pub result: &'a ToolOutput,
    pub is_error: bool,
    /// Wall time of the execution alone; 0 when it never ran.
    pub duration_ms: u64,
    /// The arguments that ran, when a gate changed them.
    pub effective_args: Option<&'a Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InputSource {
    Interactive,
    Rpc,
    Extension,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StreamingBehavior {
    Steer,
    FollowUp,
}

#[derive(Clone, Debug)]
pub struct Input {
    pub text: String,
    pub images: Vec<ImageContent>,
    pub source: InputSource,
    pub streaming_behavior: Option<StreamingBehavior>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum InputOutcome {
    /// Unchanged, or as the handlers left it.
    Continue { text: String, images: Vec<ImageContent> },
    /// A handler took it: no run.
    Handled,
}

/// events.md A.4.1.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SystemPromptOptions {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_prompt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub force_system_prompt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selected_tools: Option<Vec<String>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tool_snippets: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tool_guidelines: BTreeMap<String, Vec<String>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub sections: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub prompt_guidelines: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub append_system_prompt: Option<String>,
    pub cwd: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub context_files: Vec<ContextFile>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<Skill>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ContextFile {
    pub path: String,
    pub content: String,
}

#[derive(Clone, Debug)]
pub struct BeforeAgentStart {
    /// The expanded text; absent for a run a custom message starts.
    pub prompt: Option<String>,
    pub message: Option<CustomMessage>,
    pub images: Vec<ImageContent>,
    pub system_prompt: String,
    pub options: SystemPromptOptions,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct BeforeAgentStartOutcome {
    /// Injected in order, after the user message.
    pub messages: Vec<CustomMessage>,
    /// The last replacement, when one was returned.
    pub system_prompt: Option<String>,
    /// The options, when a handler changed them.
    pub options: Option<SystemPromptOptions>,
}

#[derive(Clone, Debug)]
pub struct ToolCallRequest {
    pub tool_name: String,
    pub tool_call_id: String,
    pub input: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ToolCallOutcome {
    /// Runs, with these arguments.
    Proceed { input: Value },
    /// Does not run; `reason` is what the model reads, `by` names who blocked it.
    Block { reason: String, terminate: bool, by: String },
}

#[derive(Clone, Debug)]
pub struct ToolResultRequest {
    pub tool_name: String,
    pub tool_call_id: String,
    pub input: Value,
    pub content: Vec<Content>,
    pub details: Option<Value>,
    pub is_error: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ToolResultOutcome {
    pub content: Vec<Content>,
    pub details: Option<Value>,
    pub is_error: bool,
}

/// Paths that extensions contribute, each with who did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resources {
    pub skills: Vec<(PathBuf, PathBuf)>,
    pub prompts: Vec<(PathBuf, PathBuf)>,
    pub themes: Vec<(PathBuf, PathBuf)>,
}

/// The handler that caused a request: owner, generation and call are unique in the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Origin {
    pub owner: u64,
    pub generation: u64,
    pub call: u64,
}

/// Why generations are replaced.
#[derive(Clone, Debug)]
pub enum Replace {
    /// Look at the disk again. `names` empty: all.
    Reload { names: Vec<String>, origin: Option<Origin> },
    /// Another session. In the same directory: the loaded set, activated anew, no disk. In another
    /// one (`cwd`, which was entered before): what is found there.
    Session {
        reason: StartReason,
        target: SessionRef,
        previous: SessionRef,
        origin: Option<Origin>,
        cwd: Option<PathBuf>,
    },
}

/// What a replacement did, one line an extension, in load order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplaceReport {
    pub extensions: Vec<ReplacedExtension>,
    /// Warnings and refusals, ready to be shown.
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplacedExtension {
    pub name: String,
    pub change: ExtensionChange,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub from_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub to_version: Option<String>,
    /// Why it was kept, or what went wrong.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ExtensionChange {
    Added,
    /// New code.
    Reloaded,
    /// The same code under a new generation.
    Unchanged,
    /// The candidate failed; the old generation goes on.
    Kept,
    Removed,
}

/// Done between the fence of the old generations and the start of the new: swaps the session.
pub type Swap = Box<dyn FnOnce() -> Result<(), String> + Send>;

/// What came of a start that had something to ask first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bootstrap {
    pub project_trusted: bool,
}

/// A command of an extension, as lists and completions show it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandInfo {
    /// With its `:n` suffix, if two extensions use one name.
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub description: Option<String>,
    /// Declared name of the extension.
    pub extension: String,
    #[serde(with = "crate::lossy_path")]
    pub path: PathBuf,
}

/// One implementation for a session; dropping a returned future abandons the dispatch:
/// its handlers are cancelled and their edits discarded.
#[async_trait]
pub trait Hooks: Send + Sync {
    async fn notify(&self, notice: Notice<'_>);
    /// `startup` or `reload`.
    async fn resources_discover(&self, reason: StartReason) -> Resources;
    /// What the last `resources_discover` brought, whoever asked for it.
    fn resources(&self) -> Resources {
        Resources::default()
    }
    async fn input(&self, input: Input) -> InputOutcome;
    async fn before_agent_start(&self, event: BeforeAgentStart) -> BeforeAgentStartOutcome;
    /// The message as it will be shown, stored and sent.
    async fn message_end(&self, message: Message) -> Message;
    /// Messages without the system ones, before each request. Never persisted. Answers the same
    /// `Arc` when nobody changed them.
    async fn context(&self, messages: Arc<Vec<Message>>) -> Arc<Vec<Message>>;
    /// The output of `context` with the system messages; likewise, and used as it is returned.
    async fn context_with_system(&self, messages: Arc<Vec<Message>>) -> Arc<Vec<Message>> {
        messages
    }
    /// `turn_end` and `agent_before_settle`: what the handlers propose is left on the board.
    async fn boundary(&self, _: Boundary<'_>, _: &mut Board) {}
    /// As `hears`, for a boundary.
    fn hears_boundary(&self, _: &Boundary<'_>) -> bool {
        false
    }
    /// One of the four `session_before_*`.
    async fn session_before(&self, _: SessionBefore) -> Veto {
        Veto::default()
    }
    /// As `hears`, for one of them: its fields are dear.
    fn hears_before(&self, _: BeforeEvent) -> bool {
        true
    }
    /// `session_recovery_restore`: lines to be shown.
    async fn session_recovery_restore(&self, _: RestoreReason) -> Vec<String> {
        Vec::new()
    }
    /// `session_recovery_replay`; `pending` as events.md A.3 has it.
    async fn session_recovery_replay(&self, _pending: Vec<Value>) -> ReplayDecisions {
        ReplayDecisions::new()
    }
    async fn cache_warming_decision(&self, decision: WarmingDecision) -> WarmingAction {
        decision.action
    }
    async fn user_bash(&self, _: UserBash) -> UserBashOutcome {
        UserBashOutcome::Local
    }
    async fn before_provider_headers(
        &self,
        headers: &mut BTreeMap<String, Option<String>>,
        model: &ModelInfo,
    );
    async fn before_provider_request(&self, payload: &mut Value);
    async fn tool_call(&self, call: ToolCallRequest) -> ToolCallOutcome;
    async fn tool_result(&self, result: ToolResultRequest) -> ToolResultOutcome;
    /// To all, at the end of the program or of the session; bounded by the implementation.
    async fn session_shutdown(&self, reason: ShutdownReason, from_signal: bool);
    /// See boundary.md 8 and decisions.md `/reload`. Fires session_shutdown, session_start and
    /// resources_discover itself, in the order stated there.
    async fn replace(&self, request: Replace, swap: Swap) -> Result<ReplaceReport, String>;
    /// Once, after the first resources_discover and before the session is ready: decides what needs
    /// a person, takes in what was decided for, and tells it (events.md B.5). `None`: nothing was open.
    async fn bootstrap(&self) -> Option<Bootstrap> {
        None
    }
    /// A session of another directory is about to take this one's place: decides whether what that
    /// directory brings is trusted, while this session is still there to ask in (events.md B.7).
    /// Nothing of it is loaded before `replace`. Answers whether it is trusted.
    async fn enter(&self, _cwd: &Path) -> Result<bool, String> {
        Ok(false)
    }
    /// A command of the program that is neither the engine's nor an extension's, as `/trust`.
    /// Answers what is shown; `None`: no such command.
    async fn host_command(&self, _name: &str, _args: &str) -> Option<Result<String, String>> {
        None
    }
    /// Whether somebody hears this: a relaxed load, asked before each `notify`, so that an event
    /// without a handler allocates nothing.
    fn hears(&self, notice: &Notice<'_>) -> bool;
    /// Tools registered now, names settled, in load order. Extension tools replace built-in ones.
    fn tools(&self) -> Vec<Arc<dyn Tool>>;
    fn commands(&self) -> Vec<CommandInfo>;
    /// `None`: no such command.
    async fn command(&self, name: &str, args: &str) -> Option<Result<(), String>>;
}

/// No extensions at all.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHooks;

#[async_trait]
impl Hooks for NoHooks {
    async fn notify(&self, _: Notice<'_>) {}
    async fn resources_discover(&self, _: StartReason) -> Resources {
        Resources::default()
    }
    async fn input(&self, input: Input) -> InputOutcome {
        InputOutcome::Continue { text: input.text, images: input.images }
    }
    async fn before_agent_start(&self, _: BeforeAgentStart) -> BeforeAgentStartOutcome {
        BeforeAgentStartOutcome::default()
    }
    async fn message_end(&self, message: Message) -> Message {
        message
    }
    async fn context(&self, messages: Arc<Vec<Message>>) -> Arc<Vec<Message>> {
        messages
    }
    fn hears_before(&self, _: BeforeEvent) -> bool {
        false
    }
    async fn before_provider_headers(&self, _: &mut BTreeMap<String, Option<String>>, _: &ModelInfo) {}
    async fn before_provider_request(&self, _: &mut Value) {}
    async fn tool_call(&self, call: ToolCallRequest) -> ToolCallOutcome {
        ToolCallOutcome::Proceed { input: call.input }
    }
    async fn tool_result(&self, r: ToolResultRequest) -> ToolResultOutcome {
        ToolResultOutcome { content: r.content, details: r.details, is_error: r.is_error }
    }
    async fn session_shutdown(&self, _: ShutdownReason, _: bool) {}
    async fn replace(&self, _: Replace, swap: Swap) -> Result<ReplaceReport, String> {
        swap().map(|()| ReplaceReport::default())
    }
    fn hears(&self, _: &Notice<'_>) -> bool {
        false
    }
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        Vec::new()
    }
    fn commands(&self) -> Vec<CommandInfo> {
        Vec::new()
    }
    async fn command(&self, _: &str, _: &str) -> Option<Result<(), String>> {
        None
    }
}

//! What a handler can ask and do: `ctx`. Every member fails with `stale_context` once its
//! generation has been replaced (events.md C.2, E.3). What would make a handler wait for
//! its own end exists on [`CommandContext`] alone (events.md U9).

use crate::{
    abi::instance::Call,
    call::Empty,
    error::Result,
    extension::Extension,
    models::ModelRegistry,
    protocol::{
        context::{CompactOptions, CtxGet, Mode, OrchestrationContext, SubagentPolicy},
        provider::{ContextUsage, Model, ScopedModel, ThinkingLevel},
    },
    session::SessionManager,
    signal::CancelSignal,
    ui::Ui,
};
use serde::de::DeserializeOwned;
use std::path::PathBuf;

/// The context of one call of one handler. Cheap to clone; every getter is live.
#[derive(Clone)]
pub struct Context {
    pub(crate) call: Call,
}

impl Context {
    pub(crate) fn new(call: Call) -> Self {
        Context { call }
    }
    fn member<R: DeserializeOwned>(&self, member: &str) -> Result<R> {
        self.call.get("ctx.get", &CtxGet { member })
    }

    /// The extension's handle, speaking for this call: what it asks for is known to come
    /// from this handler.
    pub fn pi(&self) -> Extension {
        Extension::of(self.call.clone())
    }
    /// Dialogs, notices, status.
    pub fn ui(&self) -> Ui {
        Ui::new(self.call.clone())
    }
    /// How the program runs.
    ///
    /// # Errors
    /// `stale_context`, here and below.
    pub fn mode(&self) -> Result<Mode> {
        self.member("mode")
    }
    /// Somebody can answer a dialog: true in tui and rpc.
    ///
    /// # Errors
    /// `stale_context`.
    pub fn has_ui(&self) -> Result<bool> {
        self.member("hasUI")
    }
    /// The session's directory.
    ///
    /// # Errors
    /// `stale_context`.
    pub fn cwd(&self) -> Result<PathBuf> {
        self.member("cwd")
    }
    /// The session, to be read.
    pub fn session_manager(&self) -> SessionManager {
        SessionManager::new(self.call.clone())
    }
    /// The model of the next request.
    ///
    /// # Errors
    /// `stale_context`.
    pub fn model(&self) -> Result<Option<Model>> {
        self.member("model")
    }
    /// How much it thinks.
    ///
    /// # Errors
    /// `stale_context`.
    pub fn thinking_level(&self) -> Result<Option<ThinkingLevel>> {
        self.member("thinkingLevel")
    }
    /// The models there are, and asking one beside the session.
    pub fn model_registry(&self) -> ModelRegistry {
        ModelRegistry::new(self.call.clone())
    }
    /// The models the user chose to switch between.
    ///
    /// # Errors
    /// `stale_context`.
    pub fn scoped_models(&self) -> Result<Vec<ScopedModel>> {
        self.member("scopedModels")
    }
    /// How full the context is; `None` without a model.
    ///
    /// # Errors
    /// `stale_context`.
    pub fn get_context_usage(&self) -> Result<Option<ContextUsage>> {
        self.member("contextUsage")
    }
    /// Set while the session is a stage of a workflow.
    ///
    /// # Errors
    /// `stale_context`.
    pub fn orchestration_context(&self) -> Result<Option<OrchestrationContext>> {
        self.member("orchestrationContext")
    }
    /// Set while the session is a subagent's.
    ///
    /// # Errors
    /// `stale_context`.
    pub fn subagent_policy(&self) -> Result<Option<SubagentPolicy>> {
        self.member("subagentPolicy")
    }
    /// Asks for a compaction and returns; `session_compact` or `session_compact_failed` tells
    /// how it went.
    ///
    /// # Errors
    /// `stale_context`; `unsupported` from a host that does not compact.
    pub fn compact(&self, options: &CompactOptions) -> Result<()> {
        self.call.tell("ctx.compact", options)
    }
    /// No run, retry or compaction is going on; true inside `agent_settled`.
    ///
    /// # Errors
    /// `stale_context`.
    pub fn is_idle(&self) -> Result<bool> {
        self.member("isIdle")
    }
    /// The user trusts the project.
    ///
    /// # Errors
    /// `stale_context`.
    pub fn is_project_trusted(&self) -> Result<bool> {
        self.member("isProjectTrusted")
    }
    /// Something is queued for the model.
    ///
    /// # Errors
    /// `stale_context`.
    pub fn has_pending_messages(&self) -> Result<bool> {
        self.member("hasPendingMessages")
    }
    /// The system prompt; inside `before_agent_start` as far as the chain has come.
    ///
    /// # Errors
    /// `stale_context`.
    pub fn get_system_prompt(&self) -> Result<String> {
        self.member("systemPrompt")
    }
    /// Raised when the user stops the run; see [`CancelSignal`].
    pub fn signal(&self) -> CancelSignal {
        CancelSignal::new(&self.call)
    }
    /// Stops the run; does not wait for it.
    ///
    /// # Errors
    /// `stale_context`.
    pub fn abort(&self) -> Result<()> {
        self.call.tell("ctx.abort", &Empty {})
    }
    /// Ends the program: when idle (tui), after the current command (rpc), not at all (print, json).
    ///
    /// # Errors
    /// `stale_context`.
    pub fn shutdown(&self) -> Result<()> {
        self.call.tell("ctx.shutdown", &Empty {})
    }
}

#[cfg(feature = "tokio")]
mod asynchronous {
    use super::{Call, Context, Empty, Result};
    use crate::{
        SessionSetup,
        call::Request,
        protocol::{
            agent::SystemPromptOptions,
            context::ForkPosition,
            exec::{Exec, ExecResult},
            session::{ReplaceReport, SessionChange},
        },
    };
    use std::{future::Future, ops::Deref, path::PathBuf, pin::Pin, time::Duration};

    impl Context {
        /// Runs a program, without a shell. See `pi.exec`.
        pub fn exec<I: IntoIterator<Item = S>, S: Into<String>>(
            &self,
            command: impl Into<String>,
            args: I,
        ) -> Request<ExecResult> {
            self.pi().exec(command, args)
        }
        /// The same, with options.
        pub fn exec_with(&self, exec: Exec) -> Request<ExecResult> {
            self.pi().exec_with(exec)
        }
        /// Waits, by the host's clock; ends with `stale_context` when the generation does.
        pub fn sleep(&self, time: Duration) -> Request<()> {
            self.pi().sleep(time)
        }
    }

    /// The context of a command, and of what `with_session` runs: all of [`Context`], and
    /// what may wait for a run or replace the session (events.md E.3).
    #[derive(Clone)]
    pub struct CommandContext(Context);

    impl Deref for CommandContext {
        type Target = Context;
        fn deref(&self) -> &Context {
            &self.0
        }
    }

    #[derive(serde::Serialize)]
    struct Names<'a> {
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        names: &'a [String],
    }

    impl CommandContext {
        pub(crate) fn new(call: Call) -> Self {
            CommandContext(Context::new(call))
        }
        /// Waits until nothing runs.
        pub fn wait_for_idle(&self) -> Request<()> {
            self.0.call.ask_done("waitForIdle", &Empty {})
        }
        /// Reloads all extensions. Resolves after `session_start` of the new generations.
        ///
        /// Treat it as the end of the command: afterwards this context is stale, and what
        /// still runs is the old code.
        pub fn reload(&self) -> Request<ReplaceReport> {
            self.0.call.ask("reload", &Names { names: &[] })
        }
        /// Reloads these extensions only.
        pub fn reload_named<I: IntoIterator<Item = S>, S: Into<String>>(
            &self,
            names: I,
        ) -> Request<ReplaceReport> {
            let names: Vec<String> = names.into_iter().map(Into::into).collect();
            self.0.call.ask("reload", &Names { names: &names })
        }
        /// What the next system prompt is made of.
        pub fn get_system_prompt_options(&self) -> Request<SystemPromptOptions> {
            self.0.call.ask("getSystemPromptOptions", &Empty {})
        }
        /// Another session that begins as this one until an entry: before it, or at it. Answered
        /// as [`CommandContext::new_session`] is.
        ///
        /// # Errors
        /// `invalid_fork_entry`: not there, or (before) no message of the user; `session_unsaved`:
        /// nothing was said yet. The session stays as it is.
        pub fn fork(&self, entry_id: &str, at: ForkPosition, options: NewSession) -> Request<SessionChange> {
            let body = Fork { entry_id, position: at };
            self.replaced("fork", &body, options)
        }
        /// Goes on with the session of this file. The one that is open already is no change.
        ///
        /// # Errors
        /// `session_io`, `session_foreign`, `session_too_new`, `session_locked`: it cannot be
        /// opened, and the session stays as it is.
        pub fn switch_session(
            &self,
            file: impl Into<PathBuf>,
            options: NewSession,
        ) -> Request<SessionChange> {
            self.replaced("switchSession", &Switch { path: file.into() }, options)
        }
        /// Goes to another place of this session's tree; the context stays valid.
        ///
        /// # Errors
        /// `busy` while anything runs, `unknown_entry`, `summary_failed`.
        pub fn navigate_tree(&self, target_id: &str, options: &NavigateTree) -> Request<SessionChange> {
            self.0.call.ask("navigateTree", &Navigate { target_id, options })
        }
        fn replaced(
            &self,
            op: &'static str,
            body: &impl serde::Serialize,
            options: NewSession,
        ) -> Request<SessionChange> {
            let asked: Request<SessionChange> = self.0.call.ask(op, body);
            let call = self.0.call.clone();
            Request::new(async move {
                let change = asked.await?;
                if let (false, Some(with)) = (change.cancelled, options.with_session) {
                    with(CommandContext::new(call.for_generation(change.generation))).await?;
                }
                Ok(change)
            })
        }
        /// Starts another session. Resolves when `with_session` has returned; afterwards
        /// this context is stale.
        pub fn new_session(&self, mut options: NewSession) -> Request<SessionChange> {
            let parent_session = options.parent_session.clone();
            let setup = std::mem::take(&mut options.setup);
            self.replaced("newSession", &New { parent_session, setup }, options)
        }
    }

    #[derive(serde::Serialize)]
    #[serde(rename_all = "camelCase")]
    struct New {
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_session: Option<PathBuf>,
        #[serde(skip_serializing_if = "SessionSetup::is_empty")]
        setup: SessionSetup,
    }

    #[derive(serde::Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Fork<'a> {
        entry_id: &'a str,
        position: ForkPosition,
    }

    #[derive(serde::Serialize)]
    struct Switch {
        path: PathBuf,
    }

    #[derive(serde::Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Navigate<'a> {
        target_id: &'a str,
        #[serde(flatten)]
        options: &'a NavigateTree,
    }

    /// How to go to another place of the tree.
    #[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
    #[serde(rename_all = "camelCase")]
    pub struct NavigateTree {
        /// The branch that is left is kept in short.
        pub summarize: bool,
        /// More for whoever writes that.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub custom_instructions: Option<String>,
        /// Instead of the usual instructions.
        pub replace_instructions: bool,
        /// For the entry that is left.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub label: Option<String>,
    }

    type WithSession =
        Box<dyn FnOnce(CommandContext) -> Pin<Box<dyn Future<Output = Result<()>> + Send>> + Send>;

    /// How a new session begins.
    #[derive(Default)]
    pub struct NewSession {
        parent_session: Option<PathBuf>,
        setup: SessionSetup,
        with_session: Option<WithSession>,
    }

    impl NewSession {
        /// An empty one.
        pub fn new() -> Self {
            Self::default()
        }
        /// The file it is said to come from.
        #[must_use]
        pub fn parent_session(mut self, file: impl Into<PathBuf>) -> Self {
            self.parent_session = Some(file.into());
            self
        }
        /// What the new session holds before its `session_start`. For `new_session` only: a
        /// session that is forked or gone on with has its entries.
        #[must_use]
        pub fn setup(mut self, write: impl FnOnce(&mut SessionSetup)) -> Self {
            write(&mut self.setup);
            self
        }
        /// Runs in the new session, once its `session_start` and `resources_discover` are
        /// through. The closure is still the old code: use only the context it is given and
        /// plain data. Its error becomes the error of `new_session`; the session stays.
        #[must_use]
        pub fn with_session<F, Fut>(mut self, f: F) -> Self
        where
            F: FnOnce(CommandContext) -> Fut + Send + 'static,
            Fut: Future<Output = Result<()>> + Send + 'static,
        {
            self.with_session = Some(Box::new(|ctx| Box::pin(f(ctx))));
            self
        }
    }
}

#[cfg(feature = "tokio")]
pub use asynchronous::{CommandContext, NavigateTree, NewSession};

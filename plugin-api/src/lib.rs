//! All that the author of an Atomic extension depends on.
//!
//! An extension is a shared library (`crate-type = ["cdylib", "rlib"]`) with one function
//! that registers: event handlers, tools for the model, commands for the user. Names are
//! those of the TypeScript API in snake_case: `pi.on`, `pi.register_tool`, `ctx.ui().confirm`.
//!
//! References such as "events.md A.4" in the documentation of an item name the section of the
//! contract it implements; what an author needs of it is said at the item itself.
//!
//! ```
//! #![forbid(unsafe_code)]
//! use atomic_plugin_api::prelude::*;
//! use std::sync::{Arc, atomic::{AtomicU32, Ordering}};
//!
//! export_extension!(activate, events: ["session_start", "tool_call"]);
//!
//! fn activate(pi: &Extension) -> Result<()> {
//!     // A gate: what is blocked, fails or panics does not run.
//!     let asked = Arc::new(AtomicU32::new(0));
//!     let count = asked.clone();
//!     pi.on(ToolCall, move |event, ctx| async move {
//!         let Some(mut bash) = event.input_as::<BashInput>() else { return Ok(None) };
//!         if bash.command.contains("rm -rf") {
//!             count.fetch_add(1, Ordering::Relaxed);
//!             if !ctx.ui().confirm("Really?", &bash.command).await? {
//!                 return Ok(Some(block("the user does not want that")));
//!             }
//!         }
//!         bash.timeout.get_or_insert(60.0); // what is changed here is what runs
//!         Ok(None)
//!     });
//!     pi.on(SessionStart, |event, ctx| async move {
//!         ctx.ui().notify(format!("hello, {} session", event.reason), Level::Info)
//!     });
//!     pi.register_tool(greet());
//!     pi.register_command("asked", move |_args, ctx| async move {
//!         ctx.ui().notify(format!("asked {} times", asked.load(Ordering::Relaxed)), Level::Info)
//!     });
//!     Ok(())
//! }
//!
//! #[params]
//! struct GreetParams {
//!     /// Whom to greet.
//!     name: String,
//! }
//!
//! /// Greets someone by name.
//! #[tool(label = "Greeting")]
//! async fn greet(params: GreetParams, ctx: ToolContext) -> Result<ToolResult> {
//!     ctx.update("thinking of something nice")?;
//!     Ok(ToolResult::text(format!("Hello {}!", params.name)).details(params))
//! }
//!
//! // And its unit test, with the feature `testing`, without a model and without a terminal:
//! # #[cfg(feature = "testing")]
//! # fn main() {
//! use atomic_plugin_api::testing::TestHost;
//! use atomic_plugin_api::json;
//!
//! let host = TestHost::new(activate);
//! let call = |command| json!({"toolName": "bash", "toolCallId": "1", "input": {"command": command}});
//!
//! // Nobody answers the dialog: that is no yes.
//! let refused = host.fire(ToolCall, call("rm -rf /")).wait();
//! assert_eq!(refused.blocked.as_deref(), Some("the user does not want that"));
//!
//! host.answer_next(true);
//! let allowed = host.fire(ToolCall, call("rm -rf target")).wait();
//! assert_eq!(allowed.input(), &json!({"command": "rm -rf target", "timeout": 60.0}));
//!
//! let said = host.call_tool("greet", json!({"name": "Ada"})).wait().unwrap();
//! assert_eq!(said.plain_text(), "Hello Ada!");
//!
//! host.command("asked", "").wait().unwrap();
//! assert_eq!(host.record().notices[0].message, "asked 2 times");
//! # }
//! # #[cfg(not(feature = "testing"))]
//! # fn main() {}
//! ```
//!
//! # What to know
//! - **`activate` only registers.** It may run beside the generation it replaces: ports,
//!   locks and files belong to `session_start` and `session_shutdown`. A plain `fn` has no
//!   runtime; `pi.spawn` and `async fn activate` make one.
//! - **State lives in closures**, not in statics: after a reload statics may survive, what
//!   a closure holds does not, and two sessions in one process share statics.
//! - **Every member can fail** with `stale_context` once the generation was replaced;
//!   [`Error::is_stale`] tells. Tasks made with `pi.spawn` end with it.
//! - **A panic ends the handler**, not the program. It must be built with unwinding panics.
//! - Closures are cloned for each event: capture an `Arc`, as `asked` above.
//! - With `default-features = false` there is no runtime: `on_sync`, `run_sync` and the
//!   members that answer at once remain.

// What the macros name, in this crate's own tests.
#[cfg(test)]
extern crate self as atomic_plugin_api;

#[doc(hidden)]
#[allow(missing_docs)]
pub mod abi;
pub mod background_work;
#[cfg(feature = "tokio")]
mod bash;
mod bus;
mod call;
#[cfg(feature = "tokio")]
mod command;
#[cfg(all(doctest, feature = "tokio"))]
mod command_only;
mod context;
mod error;
mod event;
mod extension;
mod handler;
#[cfg(feature = "tokio")]
mod local_bash;
pub mod manifest;
mod models;
pub mod protocol;
mod provider;
mod render;
mod service;
mod session;
mod signal;
mod state;
mod surface;
#[cfg(feature = "testing")]
pub mod testing;
#[cfg(feature = "tokio")]
mod timer;
mod tool;
mod ui;
mod workflow;

#[cfg(feature = "tokio")]
pub use bash::BashExec;
pub use bus::{EventBus, Subscription};
#[cfg(feature = "tokio")]
pub use call::Request;
#[cfg(feature = "tokio")]
pub use command::Command;
pub use context::Context;
#[cfg(feature = "tokio")]
pub use context::{CommandContext, NavigateTree, NewSession};
pub use error::{Error, Result};
pub use event::{Edit, Event};
pub use extension::Extension;
#[cfg(feature = "tokio")]
pub use extension::Task;
#[cfg(feature = "tokio")]
pub use local_bash::{FileTurn, LocalBash};
pub use models::ModelRegistry;
pub use protocol::context::ForkPosition;
#[cfg(feature = "tokio")]
pub use provider::{ProviderStream, StreamingProvider};
pub use render::Shortcut;
pub use service::{Service, ServiceHandle, ServiceToken, ServiceWatch};
pub use session::{SessionManager, SessionSetup};
pub use signal::CancelSignal;
pub use state::{KeepAlive, SessionState};
pub use surface::Placement;
pub use tool::{Tool, ToolBuilder, ToolCallCtx, ToolContext};
pub use ui::Ui;
pub use workflow::{WorkflowActivityObserver, WorkflowActivityPublisher};

#[cfg(feature = "macros")]
pub use atomic_plugin_derive::{params, tool};
pub use schemars;
pub use serde_json::{self, Value, json};

/// For `export_extension!` only.
#[doc(hidden)]
pub mod __private {
    pub use crate::abi::{
        abi_stable::library::RootModuleResult,
        entry::{activate, root},
        frozen::{Header, HostApiRef, Instance, header},
    };
    pub use crate::extension::run;
    pub use crate::manifest::{Parts, encode, encoded_len};
    pub use schemars;
    pub use serde;
    /// What `activate` answers across the boundary.
    pub type ActivateResult = abi_stable::std_types::RResult<Instance, abi_stable::std_types::RVec<u8>>;
}

/// What every extension imports.
pub mod prelude {
    pub use crate::{
        CancelSignal, Context, Edit, Error, Event, Extension, Result, Service, SessionManager, Shortcut,
        Tool, ToolCallCtx, ToolContext, Ui, export_extension,
        protocol::{
            AfterProviderResponse, AgentBeforeSettle, AgentEnd, AgentSettled, AgentStart, BeforeAgentStart,
            BeforeProviderHeaders, BeforeProviderRequest, CacheWarmingDecision, CompactionEnd,
            CompactionStart, Context, ContextEvent, ContextWithSystem, EntryAppended, EventKind, Input,
            MessageEnd, MessageStart, MessageUpdate, ModelSelect, ProjectTrust, ProviderStreamEvent, Raw,
            ResourcesDiscover, SessionBeforeCompact, SessionBeforeFork, SessionBeforeSwitch,
            SessionBeforeTree, SessionCompact, SessionCompactFailed, SessionInfoChanged,
            SessionRecoveryReplay, SessionRecoveryRestore, SessionShutdown, SessionStart, SessionTree,
            ThinkingLevelSelect, ToolCall, ToolExecutionEnd, ToolExecutionStart, ToolExecutionUpdate,
            ToolResult, ToolResultEvent, TurnEnd, TurnStart, UiPromptEnd, UiPromptStart, UserBash,
            WorkflowActivityChanged, WorkflowHeartbeat, WorkflowLifecycle, WorkflowStageCompleted,
            agent::BeforeAgentStartAnswer,
            bash::UserBashAnswer,
            before::{CancelAnswer, ForkAnswer, TreeAnswer},
            boundary::{BoundaryAnswer, EntryDraft},
            builtin::{
                BashDetails, BashInput, EditDetails, EditInput, FindInput, LsInput, ReadInput, SearchInput,
                WriteInput,
            },
            command::Completion,
            compaction::CompactAnswer,
            context::{ContextAnswer, Mode},
            delivery::{DeliverAs, SendOptions, UserMessageOptions},
            exec::{Exec, ExecResult, LocalBashResult, Truncated, Truncation},
            input::InputAnswer,
            message::{AgentMessage, Content, CustomMessage, MessageContent, MessageEndAnswer},
            provider::{
                Model, ModelRequest, ProviderConfig, ProviderModel, ReplacePayload, ThinkingLevel,
                WarmingAnswer,
            },
            recovery::{ReplayAnswer, RestoreAnswer},
            registry::{Flag, FlagValue, Phase},
            render::{Line, MarkdownOptions, RenderOptions, Rendering, Span, ToolView},
            session::{ResourcesAnswer, SessionEntry},
            system::current_system_message,
            tool::{ToolCallAnswer, ToolDetails, ToolInput, ToolResult, ToolResultPatch, block},
            trust::ProjectTrustAnswer,
            ui::Level,
        },
        schemars::JsonSchema,
    };
    #[cfg(feature = "tokio")]
    pub use crate::{Command, CommandContext, NewSession, Request};
    #[cfg(feature = "macros")]
    pub use atomic_plugin_derive::{params, tool};
    pub use serde::{Deserialize, Serialize};
    pub use serde_json::{Value, json};
}

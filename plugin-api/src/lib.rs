//! All that the author of an Atomic extension depends on.

#[doc(hidden)]
#[allow(missing_docs)]
pub mod abi;
mod bus;
mod call;
#[cfg(feature = "tokio")]
mod command;
mod context;
mod error;
mod event;
mod extension;
mod handler;
pub mod manifest;
pub mod protocol;
mod service;
mod session;
mod signal;
mod tool;
mod ui;

pub use bus::{EventBus, Subscription};
#[cfg(feature = "tokio")]
pub use call::Request;
#[cfg(feature = "tokio")]
pub use command::Command;
pub use context::Context;
#[cfg(feature = "tokio")]
pub use context::{CommandContext, NewSession};
pub use error::{Error, Result};
pub use event::{Edit, Event};
pub use extension::Extension;
#[cfg(feature = "tokio")]
pub use extension::TaskOutput;
pub use service::{Service, ServiceHandle, ServiceToken};
pub use session::SessionManager;
pub use signal::CancelSignal;
pub use tool::{Tool, ToolBuilder, ToolCallCtx, ToolContext};
pub use ui::Ui;

#[cfg(feature = "macros")]
pub use atomic_plugin_derive::{params, tool};
pub use schemars;

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
        CancelSignal, Context, Edit, Error, Event, Extension, Result, Service, SessionManager, Tool,
        ToolCallCtx, ToolContext, Ui, export_extension,
        protocol::{
            AfterProviderResponse, AgentEnd, AgentSettled, AgentStart, BeforeAgentStart,
            BeforeProviderHeaders, BeforeProviderRequest, Context, ContextEvent, EventKind, Input,
            MessageEnd, MessageStart, MessageUpdate, Raw, ResourcesDiscover, SessionShutdown, SessionStart,
            ToolCall, ToolExecutionEnd, ToolExecutionStart, ToolExecutionUpdate, ToolResult, ToolResultEvent,
            TurnEnd, TurnStart,
            agent::BeforeAgentStartAnswer,
            builtin::{
                BashDetails, BashInput, EditDetails, EditInput, FindInput, LsInput, ReadInput, SearchInput,
                WriteInput,
            },
            command::Completion,
            context::{ContextAnswer, Mode},
            exec::{Exec, ExecResult},
            input::InputAnswer,
            message::{
                AgentMessage, Content, CustomMessage, DeliverAs, MessageContent, MessageEndAnswer,
                SendOptions, UserMessageOptions,
            },
            provider::{Model, ReplacePayload, ThinkingLevel},
            registry::{Flag, FlagValue, Phase},
            session::{ResourcesAnswer, SessionEntry},
            tool::{ToolCallAnswer, ToolDetails, ToolInput, ToolResult, ToolResultPatch, block},
            ui::Level,
        },
        schemars::JsonSchema,
    };
    #[cfg(feature = "tokio")]
    pub use crate::{Command, CommandContext, NewSession, Request};
    #[cfg(feature = "macros")]
    pub use atomic_plugin_derive::{params, tool};
    pub use serde::{Deserialize, Serialize};
}

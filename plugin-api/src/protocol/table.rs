//! The one table of events. A row is what everybody else is made from: the type that `pi.on`
//! names, the host's dispatch, `docs/events.md`, and the test that each event is fired.

use super::{
    Class, EventKind, NoPayload,
    agent::{AgentEndPayload, AgentSettledPayload, BeforeAgentStartAnswer, BeforeAgentStartPayload},
    bash::{UserBashAnswer, UserBashPayload},
    before::{
        CancelAnswer, ForkAnswer, SessionBeforeForkPayload, SessionBeforeSwitchPayload,
        SessionBeforeTreePayload, SessionTreePayload, TreeAnswer,
    },
    boundary::{AgentBeforeSettlePayload, BoundaryAnswer},
    compaction::{
        CompactAnswer, CompactionEndPayload, CompactionStartPayload, SessionBeforeCompactPayload,
        SessionCompactFailedPayload, SessionCompactPayload,
    },
    context::ContextAnswer,
    input::{InputAnswer, InputPayload},
    message::{MessageEndAnswer, MessageUpdatePayload},
    provider::{
        AfterProviderResponsePayload, BeforeProviderHeadersPayload, CacheWarmingDecisionPayload,
        ModelSelectPayload, ProviderStreamEventPayload, ReplacePayload, ThinkingLevelSelectPayload,
        WarmingAnswer,
    },
    recovery::{ReplayAnswer, RestoreAnswer, SessionRecoveryReplayPayload, SessionRecoveryRestorePayload},
    session::{
        EntryAppendedPayload, ResourcesAnswer, ResourcesDiscoverPayload, SessionInfoChangedPayload,
        SessionShutdownPayload, SessionStartPayload,
    },
    tool::{ToolCallAnswer, ToolExecutionEndPayload, ToolPayload, ToolResultPatch, ToolResultPayload},
    trust::{ProjectTrustAnswer, ProjectTrustPayload, UiPromptPayload},
    turn::{TurnEndPayload, TurnStartPayload},
    workflow_events::{WorkflowActivityChangedPayload, WorkflowHeartbeatPayload, WorkflowLifecyclePayload},
};

/// Where an event comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fired {
    /// This file of the repository.
    In(&'static str),
    /// Nothing fires it yet; the room that will.
    Later(&'static str),
}

/// One event: all that differs between events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventRow {
    /// As `pi.on` names it in the TypeScript API.
    pub name: &'static str,
    /// The type that `pi.on` takes here.
    pub kind: &'static str,
    /// How answers are merged.
    pub class: Class,
    /// Its small fields.
    pub payload: &'static str,
    /// What a handler returns.
    pub answer: &'static str,
    /// The member that handlers change in place; empty: none.
    pub patch: &'static str,
    /// Comes many times a second: skipped for an instance that overran.
    pub high_rate: bool,
    /// In which modes of the program.
    pub modes: &'static str,
    /// What its answers do, beyond the rule of its class.
    pub rule: &'static str,
    /// See the type.
    pub fired: Fired,
}

macro_rules! events {
    ($($(#[doc = $rule:literal])* $kind:ident $name:literal $class:ident $payload:ident => $answer:ty
        $(, patch $patch:literal)? $(, rate $rate:ident)?, $modes:literal, $fired:ident $place:literal;)*) => {
        $(
            #[doc = concat!("The event `", $name, "`: fields in [`", stringify!($payload), "`], handlers return `", stringify!($answer), "`.")]
            $(#[doc = $rule])*
            #[derive(Clone, Copy, Debug, Default)]
            pub struct $kind;
            impl EventKind for $kind {
                const NAME: &'static str = $name;
                $(const PATCH: &'static str = $patch;)?
                type Payload = $payload;
                type Answer = $answer;
            }
        )*
        /// Every event of this version; the order is that of their numbers in the host.
        pub const EVENT_NAMES: &[&str] = &[$($name),*];
        /// The table.
        pub const EVENTS: &[EventRow] = &[$(EventRow {
            name: $name,
            kind: stringify!($kind),
            class: Class::$class,
            payload: stringify!($payload),
            answer: stringify!($answer),
            patch: concat!("" $(, $patch)?),
            high_rate: events!(@rate $($rate)?),
            modes: $modes,
            rule: concat!("" $(, $rule)*),
            fired: Fired::$fired($place),
        }),*];
    };
    (@rate high_rate) => { true };
    (@rate) => { false };
}

events! {
    /// Only extensions that need no trust are asked.
    ProjectTrust "project_trust" Decision ProjectTrustPayload => Option<ProjectTrustAnswer>,
        "all; dialogs in tui and rpc", In "host/extensions/src/dispatch/decision.rs";
    SessionStart "session_start" Notify SessionStartPayload => (),
        "all", In "host/agent/src/jobs.rs";
    /// Relative paths are those of `cwd`; each keeps who contributed it.
    ResourcesDiscover "resources_discover" Collect ResourcesDiscoverPayload => Option<ResourcesAnswer>,
        "all", In "host/agent/src/jobs.rs";
    /// The lines are shown, neither stored nor sent to a model.
    SessionRecoveryRestore "session_recovery_restore" Collect SessionRecoveryRestorePayload => Option<RestoreAnswer>,
        "all; seen in tui and rpc", In "host/agent/src/lifecycle/recovery.rs";
    /// Entry by entry the last decision counts; who is not named is delivered. An unknown entry or action is a diagnostic.
    SessionRecoveryReplay "session_recovery_replay" Collect SessionRecoveryReplayPayload => Option<ReplayAnswer>,
        "all", In "host/agent/src/lifecycle/recovery.rs";
    SessionInfoChanged "session_info_changed" Notify SessionInfoChangedPayload => (),
        "all", In "host/agent/src/ops.rs";
    SessionBeforeSwitch "session_before_switch" Veto SessionBeforeSwitchPayload => Option<CancelAnswer>,
        "all", In "host/agent/src/lifecycle/mod.rs";
    SessionBeforeFork "session_before_fork" Veto SessionBeforeForkPayload => Option<ForkAnswer>,
        "all", In "host/agent/src/lifecycle/mod.rs";
    SessionBeforeCompact "session_before_compact" Veto SessionBeforeCompactPayload => Option<CompactAnswer>,
        "all", In "host/agent/src/compact/perform.rs";
    SessionCompact "session_compact" Notify SessionCompactPayload => (),
        "all", In "host/agent/src/compact/perform.rs";
    SessionCompactFailed "session_compact_failed" Notify SessionCompactFailedPayload => (),
        "all", In "host/agent/src/compact/perform.rs";
    CompactionStart "compaction_start" Notify CompactionStartPayload => (),
        "all", In "host/agent/src/compact/perform.rs";
    CompactionEnd "compaction_end" Notify CompactionEndPayload => (),
        "all", In "host/agent/src/compact/perform.rs";
    SessionBeforeTree "session_before_tree" Veto SessionBeforeTreePayload => Option<TreeAnswer>,
        "all", In "host/agent/src/lifecycle/tree.rs";
    SessionTree "session_tree" Notify SessionTreePayload => (),
        "all", In "host/agent/src/lifecycle/tree.rs";
    /// All handlers of all extensions together have 2 s at a reload and 5 s at the end of the program.
    SessionShutdown "session_shutdown" Notify SessionShutdownPayload => (),
        "all", In "host/agent/src/jobs.rs";
    /// A transform without images keeps them; the first `handled` ends it all, and no run begins.
    Input "input" Chain InputPayload => Option<InputAnswer>,
        "all", In "host/agent/src/run.rs";
    /// All messages are injected in order; the last `systemPrompt` counts.
    BeforeAgentStart "before_agent_start" Chain BeforeAgentStartPayload => Option<BeforeAgentStartAnswer>,
        patch "systemPromptOptions", "all", In "host/agent/src/run.rs";
    AgentStart "agent_start" Notify NoPayload => (),
        "all", In "host/agent/src/run.rs";
    AgentEnd "agent_end" Notify AgentEndPayload => (),
        "all", In "host/agent/src/run.rs";
    /// An abort while it is asked keeps what was proposed and begins nothing.
    AgentBeforeSettle "agent_before_settle" Boundary AgentBeforeSettlePayload => Option<BoundaryAnswer>,
        "all", In "host/agent/src/run.rs";
    AgentSettled "agent_settled" Notify AgentSettledPayload => (),
        "all", In "host/agent/src/run.rs";
    UiPromptStart "ui_prompt_start" Concurrent UiPromptPayload => (),
        "tui, rpc", In "host/extensions/src/dispatch/prompts.rs";
    UiPromptEnd "ui_prompt_end" Concurrent UiPromptPayload => (),
        "tui, rpc", In "host/extensions/src/dispatch/prompts.rs";
    TurnStart "turn_start" Notify TurnStartPayload => (),
        "all", In "host/agent/src/run.rs";
    TurnEnd "turn_end" Boundary TurnEndPayload => Option<BoundaryAnswer>,
        "all", In "host/agent/src/turn.rs";
    MessageStart "message_start" Notify NoPayload => (),
        "all", In "host/agent/src/run.rs";
    MessageUpdate "message_update" Notify MessageUpdatePayload => (),
        rate high_rate, "all", In "host/agent/src/stream.rs";
    /// A message of another role is a diagnostic and ignored.
    MessageEnd "message_end" Chain NoPayload => Option<MessageEndAnswer>,
        "all", In "host/agent/src/run.rs";
    ToolExecutionStart "tool_execution_start" Notify ToolPayload => (),
        "all", In "host/agent/src/turn.rs";
    ToolExecutionUpdate "tool_execution_update" Notify ToolPayload => (),
        rate high_rate, "all", In "host/agent/src/batch.rs";
    ToolExecutionEnd "tool_execution_end" Notify ToolExecutionEndPayload => (),
        "all", In "host/agent/src/turn.rs";
    /// Messages without system messages; changed, they get the folded system message back at their head.
    ContextEvent "context" Chain NoPayload => Option<ContextAnswer>,
        patch "messages", "all", In "host/agent/src/turn.rs";
    /// Used exactly as returned; a transcript without its leading system message is a diagnostic, and honoured.
    ContextWithSystem "context_with_system" Chain NoPayload => Option<ContextAnswer>,
        patch "messages", "all", In "host/agent/src/turn.rs";
    BeforeProviderHeaders "before_provider_headers" Chain BeforeProviderHeadersPayload => (),
        patch "headers", "all", In "host/agent/src/stream.rs";
    BeforeProviderRequest "before_provider_request" Chain NoPayload => Option<ReplacePayload>,
        "all", In "host/agent/src/stream.rs";
    AfterProviderResponse "after_provider_response" Notify AfterProviderResponsePayload => (),
        "all", In "host/agent/src/stream.rs";
    ProviderStreamEvent "provider_stream_event" Notify ProviderStreamEventPayload => (),
        rate high_rate, "all", In "host/agent/src/stream.rs";
    ModelSelect "model_select" Notify ModelSelectPayload => (),
        "all", In "host/agent/src/ops.rs";
    ThinkingLevelSelect "thinking_level_select" Notify ThinkingLevelSelectPayload => (),
        "all", In "host/agent/src/ops.rs";
    /// The last valid action counts.
    CacheWarmingDecision "cache_warming_decision" Chain CacheWarmingDecisionPayload => Option<WarmingAnswer>,
        "all, while idle only those that last", In "host/agent/src/warming.rs";
    ToolCall "tool_call" Gate ToolPayload => Option<ToolCallAnswer>,
        patch "input", "all", In "host/agent/src/turn.rs";
    /// Only for calls that ran. A key that is not returned keeps its value; all of an answer counts, or nothing of it.
    ToolResultEvent "tool_result" Chain ToolResultPayload => Option<ToolResultPatch>,
        "all", In "host/agent/src/turn.rs";
    UserBash "user_bash" FirstWins UserBashPayload => Option<UserBashAnswer>,
        "tui, rpc", In "host/agent/src/user_bash.rs";
    EntryAppended "entry_appended" Notify EntryAppendedPayload => (),
        "all", In "host/agent/src/core.rs";
    WorkflowLifecycle "workflow_lifecycle" Notify WorkflowLifecyclePayload => (),
        "all", In "host/extensions/src/workflow_hub/mod.rs";
    WorkflowActivityChanged "workflow_activity_changed" Notify WorkflowActivityChangedPayload => (),
        "all", In "host/extensions/src/workflow_hub/mod.rs";
    WorkflowStageCompleted "workflow_stage_completed" Notify WorkflowLifecyclePayload => (),
        "all", In "host/extensions/src/workflow_hub/mod.rs";
    WorkflowHeartbeat "workflow_heartbeat" Notify WorkflowHeartbeatPayload => (),
        "all", In "host/extensions/src/workflow_hub/mod.rs";
}

// Two names are both a type and an event; the type namespace and that of values do not meet.

/// The event `context`, for `pi.on`; its type is [`ContextEvent`].
#[allow(non_upper_case_globals)]
pub const Context: ContextEvent = ContextEvent;

/// The event `tool_result`, for `pi.on`; its type is [`ToolResultEvent`].
#[allow(non_upper_case_globals)]
pub const ToolResult: ToolResultEvent = ToolResultEvent;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_rows_of_the_table_share_a_name() {
        let mut names = EVENT_NAMES.to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), EVENT_NAMES.len());
    }

    #[test]
    fn only_an_event_whose_answers_count_has_an_answer() {
        for row in EVENTS {
            let counts = !matches!(row.class, Class::Notify | Class::Concurrent);
            assert_eq!(row.answer != "()" || !row.patch.is_empty(), counts, "{}", row.name);
        }
    }
}

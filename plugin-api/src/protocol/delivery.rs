//! How messages of an extension reach the session (events.md E.1, E.4).

use serde::{Deserialize, Serialize};

/// Where a message of an extension goes while a run is going on (events.md E.4).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct SendOptions {
    /// Starts a run when none is going on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger_turn: Option<bool>,
    /// See [`DeliverAs`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deliver_as: Option<DeliverAs>,
    /// Shown and stored, never sent to the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exclude_from_context: Option<bool>,
    /// With a run going on: written at once. With `trigger_turn` the message is protected: a
    /// crash before a run took it does not lose it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persist_when_streaming: Option<bool>,
    /// For workflow stages; kept on the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage_admission_key: Option<String>,
    /// With `interrupt`: what the run that it ends says instead of its usual text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupt_abort_message: Option<String>,
}

wire_enum! {
    /// How it is delivered: after the current tools, after the run, with the next message of
    /// the user, or by stopping the run.
    DeliverAs { Steer = "steer", FollowUp = "followUp", NextTurn = "nextTurn", Interrupt = "interrupt" }
}

impl SendOptions {
    /// Whether it starts a run.
    #[must_use]
    pub fn trigger_turn(mut self, yes: bool) -> Self {
        self.trigger_turn = Some(yes);
        self
    }
    /// How it is delivered.
    #[must_use]
    pub fn deliver_as(mut self, how: DeliverAs) -> Self {
        self.deliver_as = Some(how);
        self
    }
    /// Written at once when a run is going on.
    #[must_use]
    pub fn persist_when_streaming(mut self, yes: bool) -> Self {
        self.persist_when_streaming = Some(yes);
        self
    }
    /// For workflow stages.
    #[must_use]
    pub fn stage_admission_key(mut self, key: impl Into<String>) -> Self {
        self.stage_admission_key = Some(key.into());
        self
    }
    /// What an interrupted run says.
    #[must_use]
    pub fn interrupt_abort_message(mut self, text: impl Into<String>) -> Self {
        self.interrupt_abort_message = Some(text.into());
        self
    }
    /// Keeps it from the model.
    #[must_use]
    pub fn exclude_from_context(mut self, yes: bool) -> Self {
        self.exclude_from_context = Some(yes);
        self
    }
}

/// Options of `send_user_message` (events.md E.1).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct UserMessageOptions {
    /// Needed while a run is going on: `Steer` or `FollowUp`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deliver_as: Option<DeliverAs>,
    /// Templates, skills and commands in the text are expanded; default no.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expand_prompt_templates: Option<bool>,
}

impl UserMessageOptions {
    /// How it is delivered.
    #[must_use]
    pub fn deliver_as(mut self, how: DeliverAs) -> Self {
        self.deliver_as = Some(how);
        self
    }
    /// Whether templates in it are expanded.
    #[must_use]
    pub fn expand_prompt_templates(mut self, yes: bool) -> Self {
        self.expand_prompt_templates = Some(yes);
        self
    }
}

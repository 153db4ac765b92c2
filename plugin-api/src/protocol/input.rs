//! What the user typed, before anything is made of it (events.md A.4).

use super::message::ImageContent;
use serde::{Deserialize, Serialize};

wire_enum! {
    /// Where an input comes from.
    InputSource { Interactive = "interactive", Rpc = "rpc", Extension = "extension" }
}

wire_enum! {
    /// How an input joins a run that is going on.
    StreamingBehavior { Steer = "steer", FollowUp = "followUp" }
}

/// `input`: after extension commands, before skills and templates are expanded; also for
/// `pi.send_user_message`. Transforms chain, the first `handled` ends it all. (events.md A.4)
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct InputPayload {
    /// As typed.
    pub text: String,
    /// What is attached.
    pub images: Vec<ImageContent>,
    /// Where it comes from.
    pub source: InputSource,
    /// Set while a run is going on.
    pub streaming_behavior: Option<StreamingBehavior>,
}

/// What becomes of an input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "camelCase")]
#[non_exhaustive]
pub enum InputAnswer {
    /// As it is.
    Continue,
    /// Goes on with another text.
    Transform {
        /// The new text.
        text: String,
        /// The new attachments; `None` keeps those there are.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        images: Option<Vec<ImageContent>>,
    },
    /// The extension took it: no run.
    Handled,
}

impl InputAnswer {
    /// Another text, the same attachments.
    pub fn transform(text: impl Into<String>) -> Self {
        InputAnswer::Transform { text: text.into(), images: None }
    }
    /// The extension took it: no run.
    pub fn handled() -> Self {
        InputAnswer::Handled
    }
}

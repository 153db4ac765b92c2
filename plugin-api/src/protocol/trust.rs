//! The question whether what a project brings may be loaded (events.md A.2, B.4).

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

wire_enum! {
    /// An answer to `project_trust`. Any other word is a fault, and no answer.
    Trusted { Undecided = "undecided", Yes = "yes", No = "no" }
}

/// `project_trust`: before anything of a project is read or loaded, and before what was
/// decided earlier is looked at; only extensions that need no trust hear it. The first yes
/// or no decides. A handler that fails is reported and decides nothing.
///
/// The context of this call has `cwd`, `mode`, `has_ui` and, of `ui()`, `select`, `confirm`,
/// `input` and `notify`; all else fails with `not_available`. Before there is a session
/// dialogs answer their default. (events.md A.2)
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ProjectTrustPayload {
    /// The project's directory, or a directory of `-e` that brings more than its library.
    pub cwd: PathBuf,
}

/// What a handler of `project_trust` decides.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ProjectTrustAnswer {
    /// Yes, no, or no opinion.
    pub trusted: Trusted,
    /// Saves a yes or no for the next start; a yes pins the libraries as they are.
    pub remember: bool,
}

impl ProjectTrustAnswer {
    /// What the project brings may be loaded.
    pub fn yes() -> Self {
        ProjectTrustAnswer { trusted: Trusted::Yes, remember: false }
    }
    /// It may not.
    pub fn no() -> Self {
        ProjectTrustAnswer { trusted: Trusted::No, remember: false }
    }
    /// Saved for the next start.
    #[must_use]
    pub fn remember(mut self) -> Self {
        self.remember = true;
        self
    }
}

wire_enum! {
    /// Why a question is on the screen.
    PromptReason { UiPrompt = "ui_prompt", ProjectTrust = "project_trust" }
}

wire_enum! {
    /// What kind of question.
    PromptKind { Select = "select", Confirm = "confirm", Input = "input", Editor = "editor", Custom = "custom" }
}

/// `ui_prompt_start`, `ui_prompt_end`: a question to the person is there, and gone. Told
/// beside it and never before it; all handlers at once. Of nested questions the first start
/// and the last end, which repeats what the start said. (events.md A.7)
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct UiPromptPayload {
    /// Why.
    pub reason: PromptReason,
    /// Of the first question.
    pub kind: PromptKind,
    /// Of the first question.
    pub title: Option<String>,
}

//! Arguments and details of the tools the host brings (events.md H.1, decisions.md
//! "Tools"). Keys this version does not know stay in `extra` and are written back.

use super::{
    message::Extra,
    tool::{ToolDetails, ToolInput},
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

macro_rules! tool_type {
    ($trait:ident $tool:literal $(#[$meta:meta])* $name:ident { $($(#[$field_meta:meta])* $field:ident: $ty:ty,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase")]
        #[non_exhaustive]
        pub struct $name {
            $($(#[$field_meta])* pub $field: $ty,)*
            /// See [`Extra`].
            #[serde(flatten)]
            pub extra: Extra,
        }
        impl $trait for $name {
            const TOOL: &'static str = $tool;
        }
    };
}

tool_type! {
    ToolInput "read"
    /// Arguments of `read`.
    ReadInput {
        /// Relative to the session's directory.
        path: String,
        /// First line, from 1.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        offset: Option<u64>,
        /// Lines.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        limit: Option<u64>,
    }
}

tool_type! {
    ToolInput "write"
    /// Arguments of `write`.
    WriteInput {
        /// Relative to the session's directory.
        path: String,
        /// The whole file.
        content: String,
    }
}

/// One replacement of `edit`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct EditStep {
    /// Must be in the file exactly once.
    pub old_text: String,
    /// What stands there afterwards.
    pub new_text: String,
}

tool_type! {
    ToolInput "edit"
    /// Arguments of `edit`: all replacements, or none.
    EditInput {
        /// Relative to the session's directory.
        path: String,
        /// In the file as it is before.
        #[serde(default)]
        edits: Vec<EditStep>,
    }
}

tool_type! {
    ToolInput "bash"
    /// Arguments of `bash`.
    BashInput {
        /// For the shell.
        command: String,
        /// Seconds.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        timeout: Option<f64>,
        /// Relative to the session's directory.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        cwd: Option<String>,
        /// Added to the environment.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        env: Option<BTreeMap<String, String>>,
    }
}

/// One string, or several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OneOrMany {
    /// One.
    One(String),
    /// Several.
    Many(Vec<String>),
}

impl Default for OneOrMany {
    fn default() -> Self {
        OneOrMany::Many(Vec::new())
    }
}

impl OneOrMany {
    /// Either way.
    pub fn as_slice(&self) -> &[String] {
        match self {
            OneOrMany::One(s) => std::slice::from_ref(s),
            OneOrMany::Many(v) => v,
        }
    }
}

tool_type! {
    ToolInput "find"
    /// Arguments of `find`.
    FindInput {
        /// Globs, at least one.
        #[serde(default)]
        paths: OneOrMany,
        /// Hidden files too.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        hidden: Option<bool>,
        /// Leaves out what git ignores.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        gitignore: Option<bool>,
        /// Results.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        limit: Option<u64>,
        /// Seconds.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        timeout: Option<f64>,
    }
}

tool_type! {
    ToolInput "search"
    /// Arguments of `search`.
    SearchInput {
        /// A regular expression.
        pattern: String,
        /// Where; default the session's directory.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        paths: Option<OneOrMany>,
        /// Ignores case.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        i: Option<bool>,
        /// Minds case.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        case: Option<bool>,
        /// Leaves out what git ignores.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        gitignore: Option<bool>,
        /// Files to skip, for the next page.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        skip: Option<u64>,
    }
}

tool_type! {
    ToolInput "ls"
    /// Arguments of `ls`.
    LsInput {
        /// Default the session's directory.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        path: Option<String>,
        /// Entries.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        limit: Option<u64>,
    }
}

/// What was cut from a result (events.md H.3).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Truncation {
    /// Something was.
    pub truncated: bool,
    /// `lines` or `bytes`.
    pub truncated_by: Option<String>,
    /// Before.
    pub total_lines: u64,
    /// Before.
    pub total_bytes: u64,
    /// What is left.
    pub output_lines: u64,
    /// What is left.
    pub output_bytes: u64,
    /// See [`Extra`].
    #[serde(flatten)]
    pub extra: Extra,
}

tool_type! {
    ToolDetails "bash"
    /// Details of `bash`.
    BashDetails {
        /// Absent when a signal ended it.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        exit_code: Option<i32>,
        /// The whole output, when it was cut.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        full_output_path: Option<String>,
        /// What was cut.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        truncation: Option<Truncation>,
        /// Seconds it was given.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        timeout_seconds: Option<f64>,
        /// Milliseconds it took.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        wall_time_ms: Option<u64>,
    }
}

tool_type! {
    ToolDetails "edit"
    /// Details of `edit`.
    EditDetails {
        /// For people.
        #[serde(default)]
        diff: String,
    }
}

tool_type! {
    ToolDetails "write"
    /// Details of `write`.
    WriteDetails {
        /// Where it went.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        resolved_path: Option<String>,
    }
}

tool_type! {
    ToolDetails "read"
    /// Details of `read`.
    ReadDetails {
        /// What was cut.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        truncation: Option<Truncation>,
    }
}

tool_type! {
    ToolDetails "find"
    /// Details of `find`.
    FindDetails {
        /// What was cut.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        truncation: Option<Truncation>,
    }
}

tool_type! {
    ToolDetails "search"
    /// Details of `search`.
    SearchDetails {
        /// What was cut.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        truncation: Option<Truncation>,
    }
}

tool_type! {
    ToolDetails "ls"
    /// Details of `ls`.
    LsDetails {
        /// What was cut.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        truncation: Option<Truncation>,
    }
}

//! The script file of the offline model.

use super::no_arguments;
use atomic_agent::message::StopReason;
use serde::Deserialize;
use serde_json::Value;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object: {\"turns\": […]}")]
pub struct Script {
    pub turns: Vec<Turn>,
}

/// One answer. A key that is not known is an error: a typo would be a turn that does nothing.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default, expecting = "an object: {\"text\": \"…\"}")]
pub struct Turn {
    pub text: Option<String>,
    pub thinking: Option<String>,
    pub tool_calls: Option<Vec<TurnCall>>,
    /// Absent: `toolUse` with calls, `error` with an error, else `stop`.
    pub stop_reason: Option<StopReason>,
    /// Milliseconds between the response and the first delta.
    pub delay_ms: u64,
    /// What was streamed before it stays in the message.
    pub error: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object: {\"name\": …, \"arguments\": …}")]
pub struct TurnCall {
    pub name: String,
    #[serde(default = "no_arguments")]
    pub arguments: Value,
}

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ScriptError {
    #[error("cannot read the script {}: {reason}", path.display())]
    Unreadable { path: PathBuf, reason: String },
    #[error("{}:{line}:{column}: {reason}\n  a script is {{\"turns\": [{{\"text\"?, \"thinking\"?, \"toolCalls\"?: [{{\"name\", \"arguments\"}}], \"stopReason\"?, \"delayMs\"?, \"error\"?}}]}}", path.display())]
    Syntax { path: PathBuf, line: usize, column: usize, reason: String },
}

impl ScriptError {
    /// Stable; `atomic explain` knows it.
    pub fn code(&self) -> &'static str {
        match self {
            ScriptError::Unreadable { .. } => "models::script_unreadable",
            ScriptError::Syntax { .. } => "models::script_syntax",
        }
    }
}

impl Script {
    pub fn read(path: &Path) -> Result<Self, ScriptError> {
        let unreadable = |reason: String| ScriptError::Unreadable { path: path.to_owned(), reason };
        let bytes = crate::file::read(path).map_err(|error| unreadable(error.to_string()))?;
        let text = String::from_utf8(bytes).map_err(|_| unreadable("it is not UTF-8 text".to_owned()))?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        serde_json::from_str(text).map_err(|error| ScriptError::Syntax {
            path: path.to_owned(),
            line: error.line(),
            column: error.column(),
            reason: crate::config::reason(&error),
        })
    }

    /// What is left of it after so many answers.
    #[must_use]
    pub fn from(mut self, answers: usize) -> Self {
        self.turns.drain(..answers.min(self.turns.len()));
        self
    }

    pub(super) fn over(&self, n: usize) -> Turn {
        let turns = self.turns.len();
        Turn {
            text: Some(format!(
                "The script is over: it has {turns} turn{}, and this is request {}.",
                if turns == 1 { "" } else { "s" },
                n + 1
            )),
            ..Turn::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_script_is_named_with_line_and_column() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("demo.json");
        for (text, line, words) in [
            ("{\n\"turns\": [\n{\"text\": oops}]}", 3, "expected value"),
            ("{\"turns\": [{}, \n{\"txt\": \"hi\"}]}", 2, "unknown field `txt`"),
            ("{\"turns\": [{\"toolCalls\": [{}]}]}", 1, "missing field `name`"),
            ("[]", 1, "turns"),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = Script::read(&path).unwrap_err();
            assert_eq!(error.code(), "models::script_syntax", "{error}");
            assert!(error.to_string().contains(&format!("demo.json:{line}:")), "{error}");
            assert!(error.to_string().contains(words), "{error}");
        }
        assert_eq!(
            Script::read(&dir.path().join("none.json")).unwrap_err().code(),
            "models::script_unreadable"
        );
    }
}

//! A command that prints a key, as `"apiKey": "!pass show work/key"` asks for. Run when the first
//! request needs it, at most once at a time, and again after its key was refused.

use crate::credential::{Credential, Secret};
use std::{process::Stdio, sync::Arc, time::Duration};
use tokio::{process::Command, sync::Mutex};

/// A person may have to unlock something.
const LONGEST: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct KeyCommand {
    line: String,
    /// What it printed.
    key: Mutex<Option<Secret>>,
}

/// Why there is no key; never what was printed on stdout.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) enum KeyCommandError {
    #[error("it cannot be started: {0}")]
    NotStarted(String),
    #[error("it did not end within {} seconds", LONGEST.as_secs())]
    TooLong,
    #[error("it ended with {status}{}", said(stderr))]
    Failed { status: String, stderr: String },
    #[error("it printed nothing")]
    Nothing,
}

fn said(stderr: &str) -> String {
    if stderr.is_empty() { String::new() } else { format!(": {stderr}") }
}

impl KeyCommand {
    pub fn new(line: &str) -> Arc<Self> {
        Arc::new(KeyCommand { line: line.to_owned(), key: Mutex::default() })
    }

    async fn key(&self) -> Result<Secret, KeyCommandError> {
        let mut key = self.key.lock().await;
        if let Some(known) = &*key {
            return Ok(known.clone());
        }
        let mut command = shell(&self.line);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let output = tokio::time::timeout(LONGEST, command.output()).await;
        let output = output
            .map_err(|_| KeyCommandError::TooLong)?
            .map_err(|e| KeyCommandError::NotStarted(e.to_string()))?;
        if !output.status.success() {
            let stderr = crate::excerpt::shorten(&String::from_utf8_lossy(&output.stderr));
            return Err(KeyCommandError::Failed { status: output.status.to_string(), stderr });
        }
        let printed = String::from_utf8_lossy(&output.stdout);
        let printed = printed.trim();
        if printed.is_empty() {
            return Err(KeyCommandError::Nothing);
        }
        Ok(key.insert(Secret::new(printed)).clone())
    }

    /// The next request runs it again.
    pub async fn forget(&self) {
        self.key.lock().await.take();
    }
}

#[cfg(not(windows))]
fn shell(line: &str) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(line);
    command
}

#[cfg(windows)]
fn shell(line: &str) -> Command {
    let mut command = Command::new("cmd");
    command.arg("/C").arg(line);
    command
}

impl Credential {
    pub async fn resolve(&self) -> Result<Secret, KeyCommandError> {
        match self {
            Credential::Known(secret) => Ok(secret.clone()),
            Credential::Command(command) => command.key().await,
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_a_command_prints_is_the_key_until_it_is_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let counter = dir.path().join("runs");
        let line = format!("echo x >> '{0}'; echo key-$(wc -l < '{0}' | tr -d ' ')", counter.display());
        let command = KeyCommand::new(&line);
        assert_eq!(command.key().await.unwrap().expose(), "key-1");
        assert_eq!(command.key().await.unwrap().expose(), "key-1", "it ran twice");
        command.forget().await;
        assert_eq!(command.key().await.unwrap().expose(), "key-2");
    }

    #[tokio::test]
    async fn b80_a_command_that_ends_at_once_with_a_failure_or_prints_nothing_says_so() {
        let at_once = KeyCommand::new("exit 1").key().await.unwrap_err().to_string();
        assert!(at_once.contains("exit status: 1"), "{at_once}");
        assert_eq!(KeyCommand::new("true").key().await, Err(KeyCommandError::Nothing));
        let failed = KeyCommand::new("echo locked >&2; exit 3").key().await.unwrap_err().to_string();
        assert!(failed.contains('3') && failed.ends_with(": locked"), "{failed}");
    }
}

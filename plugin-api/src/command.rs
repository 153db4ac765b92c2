//! Slash commands (events.md E.1 `registerCommand`).

use crate::{
    abi::instance::{Handler, Outcome},
    context::CommandContext,
    error::Result,
    extension::Extension,
    protocol::{
        command::{CommandCall, Completion, CompletionsCall},
        registry::RegisterCommand,
    },
};
use std::sync::Arc;

/// A command with more than a handler. [`Command::new`] begins one, `run` ends it.
#[must_use = "a command ends with `.run(..)`"]
pub struct Command {
    name: String,
    description: Option<String>,
    completions: Option<Handler>,
    run: Option<Handler>,
}

fn completed<C: Into<Completion>>(list: Option<Vec<C>>) -> Outcome {
    #[derive(serde::Serialize)]
    struct Out {
        result: Option<Vec<Completion>>,
    }
    let result = list.map(|l| l.into_iter().map(Into::into).collect());
    Ok(serde_json::to_vec(&Out { result })?)
}

impl Command {
    /// `/name`.
    pub fn new(name: impl Into<String>) -> Self {
        Command { name: name.into(), description: None, completions: None, run: None }
    }
    /// For lists.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }
    /// Suggests arguments for what is typed so far; `None`: no suggestions.
    pub fn completions<F, Fut, C>(mut self, f: F) -> Self
    where
        F: FnOnce(String) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Result<Option<Vec<C>>>> + Send + 'static,
        C: Into<Completion>,
    {
        self.completions = Some(Handler::Async(Arc::new(move |event, _| {
            let f = f.clone();
            Box::pin(async move {
                let typed: CompletionsCall = serde_json::from_slice(event.json())?;
                completed(f(typed.prefix).await?)
            })
        })));
        self
    }
    /// What it does. `args` is everything after the first space, unparsed. An error is
    /// shown to the user; the input counts as handled all the same.
    pub fn run<F, Fut>(mut self, f: F) -> Self
    where
        F: FnOnce(String, CommandContext) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        self.run = Some(Handler::Async(Arc::new(move |event, call| {
            let f = f.clone();
            Box::pin(async move {
                let typed: CommandCall = serde_json::from_slice(event.json())?;
                f(typed.args, CommandContext::new(call)).await.map(|()| Vec::new())
            })
        })));
        self
    }
}

impl Extension {
    /// Offers `/name` to the user. The same name again replaces it; of two extensions with
    /// one name both are kept and renamed `name:1`, `name:2`. (events.md E.1, I.5)
    pub fn register_command<F, Fut>(&self, name: &str, f: F)
    where
        F: FnOnce(String, CommandContext) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        self.register_command_with(Command::new(name).run(f));
    }

    /// The same, with a description and completions.
    pub fn register_command_with(&self, command: Command) {
        let Some(run) = command.run else {
            return self.registered(Err(crate::Error::new(
                "bad_request",
                format!("command `{}` has no `.run(..)`", command.name),
            )));
        };
        let handler = self.add(run);
        let completions = command.completions.map(|c| self.add(c));
        let body = RegisterCommand {
            name: &command.name,
            description: command.description.as_deref(),
            handler,
            completions,
        };
        self.registered(self.call.tell("commands.register", &body));
    }
}

//! First wins: `user_bash` (events.md A.8). The first answer counts. Fails closed: a handler
//! that panics, errs, overruns, answers what cannot be read, or was fenced has not said that
//! the local shell may run the command.

use super::{
    USER_BASH,
    invoke::{Asked, FirstPoll, ask},
    outcome::Answer,
};
use crate::{
    convert,
    diagnostics::seconds,
    host::Extensions,
    registry::{PublishedTool, Sub, ToolEntry},
    tools::ExtensionTool,
};
use atomic_agent::{
    decisions::{UserBash, UserBashOutcome, UserBashResult},
    tool::{ExecutionMode, ToolSource, ToolSpec},
};
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

impl Extensions {
    pub(super) async fn first_wins(&self, subs: &[Sub], asked: UserBash) -> UserBashOutcome {
        let state = convert::user_bash(&asked);
        for sub in subs {
            let by = sub.registered.name.clone();
            if sub.suspended() {
                let why = "it has not answered an earlier event".to_owned();
                return UserBashOutcome::Failed { by, why };
            }
            let limit = Some(self.config().handler_timeout);
            let answered = match ask(sub, USER_BASH, &state, FirstPoll::There, limit, self.watchdog()).await {
                Asked::Answered(bytes) => Answer::decode(&bytes).and_then(|a| taken(&a)),
                Asked::Failed(e) => Err(e.message),
                Asked::Reloaded => Err("reloaded while it was asked".to_owned()),
                Asked::Overran(t) => Err(format!("no answer within {}", seconds(t))),
            };
            match answered {
                Ok(None) => {}
                Ok(Some(Taken::Done(done))) => return UserBashOutcome::Done(done),
                Ok(Some(Taken::There(handler))) => {
                    return UserBashOutcome::Backend(Arc::new(ExtensionTool(backend(sub, handler))));
                }
                Err(why) => {
                    self.diagnose(sub.generation.owner(), "user_bash", &why);
                    return UserBashOutcome::Failed { by, why };
                }
            }
        }
        UserBashOutcome::Local
    }
}

/// What an answer says.
#[derive(Debug, PartialEq)]
enum Taken {
    Done(UserBashResult),
    /// The handler that runs it.
    There(u64),
}

fn taken(answer: &Answer) -> Result<Option<Taken>, String> {
    #[derive(Deserialize)]
    struct Operations {
        handler: u64,
    }
    let Some(o) = answer.known(&["result", "operations"])? else { return Ok(None) };
    match (convert::read(o, "result")?, convert::read::<Operations>(o, "operations")?) {
        (Some(done), None) => Ok(Some(Taken::Done(done))),
        (None, Some(there)) => Ok(Some(Taken::There(there.handler))),
        (None, None) => Err("malformed result: neither a result nor operations".into()),
        (Some(_), Some(_)) => Err("malformed result: a result and operations".into()),
    }
}

/// A tool that nobody offered to the model: it runs one kind of command.
fn backend(sub: &Sub, handler: u64) -> PublishedTool {
    let spec = ToolSpec {
        name: "bash".into(),
        label: "bash".into(),
        description: String::new(),
        parameters: json!({"type": "object"}),
        prompt_snippet: None,
        prompt_guidelines: Vec::new(),
        execution_mode: ExecutionMode::default(),
        max_result_size_chars: None,
        output_schema: None,
        constrained_sampling: None,
        structured_output: false,
        render_shell: None,
        source: ToolSource::Extension { id: sub.registered.name.clone(), path: sub.registered.path.clone() },
    };
    PublishedTool {
        entry: ToolEntry {
            spec,
            handler,
            exclusive: false,
            prepare: None,
            concurrency: None,
            render_call: None,
            render_result: None,
        },
        generation: sub.generation.clone(),
        live: sub.live.clone(),
        registered: sub.registered.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(json: &str) -> Result<Option<Taken>, String> {
        taken(&Answer::decode(json.as_bytes()).unwrap())
    }

    #[test]
    fn a_result_is_whole_or_a_fault_and_anything_else_no_answer() {
        assert_eq!(of(""), Ok(None));
        assert_eq!(of(r#"{"result":{"other":1}}"#), Ok(None));
        let done =
            of(r#"{"result":{"result":{"output":"x","exitCode":3,"cancelled":false,"truncated":false}}}"#);
        let Ok(Some(Taken::Done(done))) = done else { panic!("{done:?}") };
        assert_eq!(done.exit_code, Some(3));
        assert_eq!(of(r#"{"result":{"operations":{"handler":4}}}"#), Ok(Some(Taken::There(4))));
        for bad in
            [r#"{"result":7}"#, r#"{"result":{"result":{"output":7}}}"#, r#"{"result":{"operations":{}}}"#]
        {
            assert!(of(bad).is_err(), "{bad}");
        }
    }
}

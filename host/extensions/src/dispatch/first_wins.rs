//! First wins: `user_bash` (events.md A.8). The first answer counts. Fails closed: a handler
//! that panics, errs, overruns, answers what cannot be read, or was fenced has not said that
//! the local shell may run the command.

use super::{
    USER_BASH,
    invoke::{Asked, FirstPoll, ask},
    outcome::Answer,
};
use crate::{convert, diagnostics::seconds, host::Extensions, registry::Sub};
use atomic_agent::decisions::{UserBash, UserBashOutcome, UserBashResult};

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
                Asked::Answered(bytes) => Answer::decode(&bytes).and_then(|a| result(&a)),
                Asked::Failed(e) => Err(e.message),
                Asked::Reloaded => Err("reloaded while it was asked".to_owned()),
                Asked::Overran(t) => Err(format!("no answer within {}", seconds(t))),
            };
            match answered {
                Ok(None) => {}
                Ok(Some(done)) => return UserBashOutcome::Done(done),
                Err(why) => {
                    self.diagnose(sub.generation.owner(), "user_bash", &why);
                    return UserBashOutcome::Failed { by, why };
                }
            }
        }
        UserBashOutcome::Local
    }
}

fn result(answer: &Answer) -> Result<Option<UserBashResult>, String> {
    let Some(o) = answer.known(&["result", "operations"])? else { return Ok(None) };
    if o.get("operations").is_some_and(|v| !v.is_null()) {
        return Err("malformed result: this host takes a result, not operations".into());
    }
    convert::read(o, "result")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(json: &str) -> Result<Option<UserBashResult>, String> {
        result(&Answer::decode(json.as_bytes()).unwrap())
    }

    #[test]
    fn a_result_is_whole_or_a_fault_and_anything_else_no_answer() {
        assert_eq!(of(""), Ok(None));
        assert_eq!(of(r#"{"result":{"other":1}}"#), Ok(None));
        let done =
            of(r#"{"result":{"result":{"output":"x","exitCode":3,"cancelled":false,"truncated":false}}}"#);
        assert_eq!(done.unwrap().unwrap().exit_code, Some(3));
        for bad in
            [r#"{"result":7}"#, r#"{"result":{"result":{"output":7}}}"#, r#"{"result":{"operations":{}}}"#]
        {
            assert!(of(bad).is_err(), "{bad}");
        }
    }
}

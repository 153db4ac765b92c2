//! `project_trust` (events.md A.2): extensions that need no trust are asked in order; the first
//! yes or no ends it. Whatever is neither changes nothing: a fault, an unknown word, silence.

use super::{
    PROJECT_TRUST,
    invoke::{Asked, FirstPoll, ask},
    outcome::Answer,
};
use crate::{convert, host::Extensions, load::EventState, registry::Sub, trust::HookAnswer};
use serde_json::Value;
use std::{path::Path, pin::pin, sync::Arc};

impl Extensions {
    pub(crate) async fn ask_project_trust(&self, dir: &Path) -> Option<HookAnswer> {
        let subs = self.subs(PROJECT_TRUST)?;
        let state = convert::project_trust(dir);
        for sub in subs.iter() {
            let asked = self.ask_patiently(sub, &state).await;
            let Asked::Answered(bytes) = &asked else {
                self.note_fault(sub, PROJECT_TRUST, &asked);
                continue;
            };
            match Answer::decode(bytes).and_then(|a| verdict(&a)) {
                Ok(Some((trusted, remember))) => {
                    return Some(HookAnswer { trusted, remember, extension: sub.registered.name.clone() });
                }
                Ok(None) => {}
                Err(why) => self.diagnose(sub.generation.owner(), "project_trust", &why),
            }
        }
        None
    }

    /// The limit of a handler, as often as it takes while a question of it is on the screen: a
    /// person may think as long as they like.
    async fn ask_patiently(&self, sub: &Sub, state: &Arc<EventState>) -> Asked {
        let limit = self.config().handler_timeout;
        let mut asked = pin!(ask(sub, PROJECT_TRUST, state, FirstPoll::There, None, self.watchdog()));
        loop {
            tokio::select! {
                biased;
                end = &mut asked => return end,
                () = tokio::time::sleep(limit) => {}
            }
            if !self.prompt_is_open() {
                return Asked::Overran(limit);
            }
        }
    }
}

/// Trusted, and whether to remember it. Only the exact words decide.
fn verdict(answer: &Answer) -> Result<Option<(bool, bool)>, String> {
    let Some(o) = answer.known(&["trusted"])? else { return Ok(None) };
    let remember = match o.get("remember") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(remember)) => *remember,
        Some(other) => return Err(format!("malformed result: remember is {other}")),
    };
    match o.get("trusted").and_then(Value::as_str) {
        Some("yes") => Ok(Some((true, remember))),
        Some("no") => Ok(Some((false, remember))),
        Some("undecided") => Ok(None),
        _ => Err(format!(
            "malformed result: trusted is {}, not \"yes\", \"no\" or \"undecided\"",
            o.get("trusted").unwrap_or(&Value::Null)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(result: &str) -> Result<Option<(bool, bool)>, String> {
        verdict(&Answer::decode(format!("{{\"result\":{result}}}").as_bytes()).unwrap())
    }

    #[test]
    fn only_the_exact_words_decide() {
        assert_eq!(of(r#"{"trusted":"yes"}"#), Ok(Some((true, false))));
        assert_eq!(of(r#"{"trusted":"no","remember":true}"#), Ok(Some((false, true))));
        for undecided in [r#"{"trusted":"undecided","remember":true}"#, "{}", "null"] {
            assert_eq!(of(undecided), Ok(None), "{undecided}");
        }
        for fault in
            [r#"{"trusted":"YES"}"#, r#"{"trusted":true}"#, r#"{"trusted":"yes","remember":"x"}"#, "\"yes\""]
        {
            assert!(of(fault).is_err(), "{fault}");
        }
    }
}

//! Gate: `tool_call`. Fails closed (decisions.md "tool_call gate"): a handler that panics,
//! errs, overruns, answers what cannot be read, or is cancelled or skipped because its
//! generation was fenced has blocked the call. The first block ends the chain.

use super::{
    TOOL_CALL,
    invoke::{Asked, FirstPoll, ask},
    outcome::Answer,
};
use crate::{convert, diagnostics::seconds, host::Extensions, registry::Sub};
use atomic_agent::hooks::{ToolCallOutcome, ToolCallRequest};
use serde_json::Value;

/// What the model reads when a block gives no reason.
const BLOCKED: &str = "Tool execution was blocked";

impl Extensions {
    pub(super) async fn gate(&self, subs: &[Sub], call: ToolCallRequest) -> ToolCallOutcome {
        let mut input = call.input.clone();
        let mut state = convert::tool_call(&call, &input);
        for sub in subs {
            let by = sub.registered.name.clone();
            if sub.suspended() {
                // Told when it overran. It cannot decide, and nobody decides for it.
                let reason = format!(
                    "{BLOCKED}: extension {by} could not decide: it has not answered an earlier event"
                );
                return ToolCallOutcome::Block { reason, terminate: false, by };
            }
            let answered = match ask(
                sub,
                TOOL_CALL,
                &state,
                FirstPoll::There,
                self.config().gate_timeout,
                self.watchdog(),
            )
            .await
            {
                Asked::Answered(bytes) => Answer::decode(&bytes),
                Asked::Failed(e) => Err(e.message),
                Asked::Reloaded => Err("reloaded while it was asked".to_owned()),
                Asked::Overran(t) => Err(format!("no answer within {}", seconds(t))),
            };
            let read = answered.and_then(|mut a| {
                let patch = a.patched("input");
                verdict(&a).map(|v| (v, patch))
            });
            match read {
                Err(why) => {
                    self.diagnose(sub.generation.owner(), "tool_call", &why);
                    let reason = format!("{BLOCKED}: extension {by} could not decide: {why}");
                    return ToolCallOutcome::Block { reason, terminate: false, by };
                }
                Ok((Some((reason, terminate)), _)) => {
                    return ToolCallOutcome::Block { reason, terminate, by };
                }
                Ok((None, Some(changed))) if changed != input => {
                    input = changed;
                    state = convert::tool_call(&call, &input);
                }
                Ok((None, _)) => {}
            }
        }
        ToolCallOutcome::Proceed { input }
    }
}

/// `Some((reason, terminate))` blocks. What cannot be read is an error, and so a block.
fn verdict(answer: &Answer) -> Result<Option<(String, bool)>, String> {
    let Some(o) = answer.known(&["block", "reason", "terminate"])? else { return Ok(None) };
    match o.get("block") {
        None | Some(Value::Null | Value::Bool(false)) => Ok(None),
        Some(Value::Bool(true)) => {
            let reason = match o.get("reason") {
                None | Some(Value::Null) => BLOCKED.to_owned(),
                Some(Value::String(s)) if s.is_empty() => BLOCKED.to_owned(),
                Some(Value::String(s)) => s.clone(),
                Some(other) => return Err(format!("malformed result: reason is {other}")),
            };
            Ok(Some((reason, o.get("terminate") == Some(&Value::Bool(true)))))
        }
        Some(other) => Err(format!("malformed result: block is {other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(json: &str) -> Result<Option<(String, bool)>, String> {
        verdict(&Answer::decode(json.as_bytes()).unwrap())
    }

    #[test]
    fn only_a_true_block_blocks_and_anything_unreadable_is_an_error() {
        assert_eq!(of(""), Ok(None));
        assert_eq!(of(r#"{"result":{"block":false,"reason":"x"}}"#), Ok(None));
        assert_eq!(
            of(r#"{"result":{"block":true,"reason":"no","terminate":true}}"#),
            Ok(Some(("no".into(), true)))
        );
        assert_eq!(of(r#"{"result":{"block":true}}"#), Ok(Some((BLOCKED.into(), false))));
        for bad in
            [r#"{"result":{"block":"yes"}}"#, r#"{"result":7}"#, r#"{"result":{"block":true,"reason":7}}"#]
        {
            assert!(of(bad).is_err(), "{bad}");
        }
    }
}

//! Asks before `bash` runs a command that destroys, escalates or fetches code to run.
//!
//! Only an explicit yes lets it run: without a user to ask, after a timeout, an escape or a
//! reload the call is blocked. This catches what a model writes in good faith; it is no
//! sandbox, and a command that wants to hide from it can.

mod danger;
mod fork_bomb;
mod shell;

use atomic_plugin_api::prelude::*;

export_extension!(activate, events: ["tool_call"]);

fn activate(pi: &Extension) -> Result<()> {
    pi.on(ToolCall, |event, ctx| async move {
        let Some(bash) = event.input_as::<BashInput>() else { return Ok(None) };
        let Some(danger) = danger::of(&bash.command) else { return Ok(None) };
        if !ctx.has_ui()? {
            return Ok(Some(block(format!(
                "Blocked by permission-gate: the command {danger}, and there is no user to ask. \
                 Find a way that does not need it, or tell the user what to run."
            ))));
        }
        let question = format!("The command {danger}:\n\n{}", bash.command);
        if ctx.ui().confirm("Run this command?", question).await? {
            return Ok(None);
        }
        Ok(Some(block(format!(
            "Blocked by permission-gate: the user did not allow a command that {danger}."
        ))))
    });
    Ok(())
}

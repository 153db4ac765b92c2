//! The extension `{{name}}`: a tool, a gate and a command. Change it, install it with
//! `atomic extension install .`, and say `/reload {{name}}` in a running session.

use atomic_plugin_api::prelude::*;

// The events named here are shown by `atomic extension inspect` before any code runs.
export_extension!(activate, events: ["tool_call"]);

/// What the model gives to the tool `{{crate}}_greet`.
#[params]
struct GreetParams {
    /// Whom to greet.
    name: String,
}

fn activate(pi: &Extension) -> Result<()> {
    pi.register_tool(
        Tool::new("{{crate}}_greet", "Greet someone by name")
            .params::<GreetParams>()
            .run(|call, _ctx| async move { Ok(format!("Hello, {}!", call.params.name)) }),
    );

    // A gate: it is asked before each call of a tool, and blocks by its answer.
    pi.on(ToolCall, |event, ctx| async move {
        let Some(bash) = event.input_as::<BashInput>() else { return Ok(None) };
        if !bash.command.contains("sudo ") || ctx.ui().confirm("Use sudo?", &bash.command).await? {
            return Ok(None);
        }
        Ok(Some(block("sudo was not approved")))
    });

    pi.register_command_with(
        Command::new("{{name}}")
            .description("Say what it hears")
            .run(|args, ctx| async move { ctx.ui().notify(format!("{{name}} hears: {args}"), Level::Info) }),
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use atomic_plugin_api::testing::TestHost;
    use serde_json::json;

    #[test]
    fn it_greets_and_asks_before_sudo() {
        let host = TestHost::new(activate);
        let greeting = host.call_tool("{{crate}}_greet", json!({"name": "you"})).wait();
        assert!(format!("{greeting:?}").contains("Hello, you!"));

        host.on_confirm(|_| false);
        let call = json!({"toolName": "bash", "toolCallId": "1", "input": {"command": "sudo ls"}});
        let answer = host.fire(ToolCall, call).wait();
        assert_eq!(answer.blocked.as_deref(), Some("sudo was not approved"));
    }
}

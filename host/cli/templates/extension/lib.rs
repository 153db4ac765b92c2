//! The extension `{{name}}`: a tool, a gate and a command. Change it, install it with
//! `atomic extension install .`, and say `/reload {{name}}` in a running session.

use atomic_plugin_api::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

export_extension!(activate);

/// What the model gives to `{{crate}}_greet`.
#[derive(Serialize, Deserialize, JsonSchema)]
struct GreetParams {
    /// Who to greet.
    name: String,
}

fn activate(pi: &Extension) -> Result<()> {
    pi.register_tool(
        Tool::new("{{crate}}_greet", "Greet someone by name")
            .params::<GreetParams>()
            .run(|params: GreetParams, _ctx| async move { Ok(format!("Hello, {}!", params.name)) }),
    );

    pi.on(ToolCall, |event, ctx| async move {
        let Some(bash) = event.input_as::<BashInput>() else { return Ok(None) };
        if bash.command.contains("sudo ") && !ctx.ui().confirm("Use sudo?", &bash.command).await? {
            return Ok(Some(block("sudo was not approved")));
        }
        Ok(None)
    });

    pi.register_command("{{name}}", |args, ctx| async move {
        ctx.ui().notify(format!("{{name}} hears: {args}"));
        Ok(())
    });
    Ok(())
}

//! The smallest extension worth loading: a command, a tool and a handler that does nothing.
//! Everything in it is synchronous but the command, so that loading it starts no runtime:
//! the benches load fifty of it.

use atomic_plugin_api::prelude::*;

export_extension!(activate, events: ["message_update"]);

/// What the model gives to `greet`.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(crate = "atomic_plugin_api::schemars")]
pub struct GreetParams {
    /// Whom to greet.
    pub name: String,
}

fn activate(pi: &Extension) -> Result<()> {
    // Every token of an answer comes through here. Nothing is decoded unless it is read.
    pi.on_sync(MessageUpdate, |_event, _ctx| Ok(()));

    pi.register_tool(
        Tool::new("greet", "Greet someone by name")
            .prompt_snippet("Greet someone by name")
            .params::<GreetParams>()
            .run_sync(|call, _ctx| Ok(ToolResult::text(format!("Hello, {}!", call.params.name)))),
    );

    pi.register_command("hello", |args, ctx| async move {
        let whom = if args.trim().is_empty() { "world" } else { args.trim() };
        ctx.ui().notify(format!("Hello, {whom}!"), Level::Info)
    });
    Ok(())
}

//! An extension as its author wrote it for api 1.0. Its build beside this file is never made
//! again: every later host of the major must load it and answer it.

use atomic_plugin_api::prelude::*;

export_extension!(activate, events: ["tool_call", "session_start"]);

#[cfg(not(newer))]
const AGE: &str = "1.0";
// The same source against an api with one more operation in every table.
#[cfg(newer)]
const AGE: &str = "newer";

fn activate(pi: &Extension) -> Result<()> {
    pi.register_flag("golden-flag", Flag::string().default("golden"));
    pi.on_sync(SessionStart, |event, ctx| {
        ctx.ui().notify(format!("golden {AGE} session_start {}", event.reason), Level::Info)
    });
    pi.on(ToolCall, |event, ctx| async move {
        let Some(mut bash) = event.input_as::<BashInput>() else { return Ok(None) };
        if bash.command.contains("forbidden") {
            return Ok(Some(block(format!("golden {AGE} forbids it"))));
        }
        let said = ctx.exec("echo", ["hosted"]).await?;
        bash.command = format!("echo golden {}", said.stdout.trim());
        Ok(None)
    });
    pi.register_tool(
        Tool::new("golden_tool", "Answers as it did in api 1.0")
            .run_sync(|_, _| Ok(ToolResult::text(format!("golden {AGE} answers")))),
    );
    pi.register_command("golden", |args, ctx| async move {
        tokio_free_wait(&ctx).await?;
        ctx.ui().notify(format!("golden {AGE} hears {args}"), Level::Info)
    });
    Ok(())
}

async fn tokio_free_wait(ctx: &CommandContext) -> Result<()> {
    ctx.sleep(std::time::Duration::from_millis(1)).await
}

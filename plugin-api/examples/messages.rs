//! Messages, entries and names of a session, and what can be known of it.

use atomic_plugin_api::prelude::*;
use std::{future::Future, task::Poll};

export_extension!(activate);

fn activate(pi: &Extension) -> Result<()> {
    pi.register_command("batch", |args, ctx| async move {
        let all = args.split(' ').map(|t| CustomMessage::new("batch", t)).collect();
        ctx.pi().send_messages(all, SendOptions::default().trigger_turn(true)).await
    });
    pi.register_command("protect", |args, ctx| async move {
        let options =
            SendOptions::default().trigger_turn(true).persist_when_streaming(true).stage_admission_key("k");
        ctx.pi().send_message(CustomMessage::new("kept", args), options).await
    });
    pi.register_command("interrupt", |args, ctx| async move {
        let options = SendOptions::default()
            .trigger_turn(true)
            .deliver_as(DeliverAs::Interrupt)
            .interrupt_abort_message("something came up");
        ctx.pi().send_message(CustomMessage::new("urgent", args), options).await
    });
    pi.register_command("known", |_, ctx| async move {
        let session = ctx.session_manager();
        let options = ctx.get_system_prompt_options().await?;
        let usage = ctx.get_context_usage()?.ok_or_else(|| Error::msg("no model"))?;
        let commands = ctx.pi().get_commands()?;
        let own = commands.iter().find(|c| c.name == "known").ok_or_else(|| Error::msg("not listed"))?;
        let said = json!({
            "name": session.get_session_name_state()?,
            "defaultDir": session.uses_default_session_dir()?,
            "roots": session.get_tree()?.len(),
            "tools": options.selected_tools.unwrap_or_default().len() + options.tool_snippets.len(),
            "window": usage.context_window,
            "scope": own.source_info.scope,
            "origin": own.source_info.origin,
            "source": own.source,
            "scoped": ctx.scoped_models()?.len(),
            "stage": ctx.orchestration_context()?.map(|c| c.workflow_stage_name),
            "subagent": ctx.subagent_policy()?.map(|p| p.management_actions),
        });
        ctx.ui().notify(said.to_string(), Level::Info)
    });
    // Works on beside the run, and stops with it.
    pi.on(AgentStart, |_, ctx| async move {
        let (pi, signal, ui) = (ctx.pi(), ctx.signal(), ctx.ui());
        pi.spawn(async move {
            let mut stopped = std::pin::pin!(signal.cancelled());
            // Polled once: from here on it is this run's.
            let now = std::future::poll_fn(|cx| Poll::Ready(stopped.as_mut().poll(cx).is_ready())).await;
            ui.notify("beside the run", Level::Info)?;
            if !now {
                stopped.await;
            }
            ui.notify("the run was stopped", Level::Info)
        });
        Ok(())
    });
    Ok(())
}

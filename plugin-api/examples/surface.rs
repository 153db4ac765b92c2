//! What an extension draws, and the keys it takes.

use atomic_plugin_api::{Placement, prelude::*};

export_extension!(activate);

fn activate(pi: &Extension) -> Result<()> {
    pi.register_message_renderer("note", |message, options| {
        if message.content.plain_text() == "secret" {
            return Ok(Rendering::Hidden);
        }
        if message.content.plain_text() == "broken" {
            return Err(Error::msg("cannot draw that"));
        }
        let text = Span::new(message.content.plain_text()).fg("accent").bold();
        let more = if options.expanded { "all of it" } else { "…" };
        Ok(Rendering::lines([Line(vec![text]), Line::from(more)]))
    });
    pi.register_entry_renderer("mark", |entry, _| {
        let mark: Option<String> = entry.data_as("mark");
        Ok(Rendering::lines([mark.unwrap_or_default()]))
    });
    pi.register_markdown_transformer(|markdown, options| {
        if markdown.contains("broken") {
            return Err(Error::msg("cannot change that"));
        }
        Ok(format!("{markdown} ({})", options.message_type))
    });
    pi.register_shortcut_with(
        Shortcut::new("Ctrl+Shift+K")
            .description("Says hello")
            .prefer_editor()
            .keybinding("example.hello")
            .run(|ctx| async move { ctx.ui().notify("hello from a key", Level::Info) }),
    );
    // The program's own: told, and not taken.
    pi.register_shortcut("ctrl+c", |_| async move { Ok(()) });
    pi.register_command("draw", |_, ctx| async move {
        let ui = ctx.ui();
        ui.set_widget_at("work", ["one line"], Placement::BelowEditor)?;
        ui.set_footer([Span::new("at the bottom").dim()])?;
        ui.set_header(["at the top"])?;
        ui.set_working_message(Some("counting stars"))?;
        ui.set_working_visible(true)?;
        ui.set_working_indicator(Some(vec!["*".into()]), Some(80))?;
        ui.set_hidden_thinking_label(Some("…"))?;
        ui.set_tools_expanded(true)?;
        ui.set_title("a title")?;
        ui.set_editor_text("typed for you")?;
        ui.paste_to_editor("pasted")?;
        ui.request_render()?;
        ui.notify(format!("{:?} {}", ui.get_editor_text()?, ui.get_tools_expanded()?), Level::Info)
    });
    Ok(())
}

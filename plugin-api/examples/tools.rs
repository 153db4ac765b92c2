//! A tool with everything: arguments brought into form, one call at a time where it matters, and
//! an answer that is data.

use atomic_plugin_api::prelude::*;

export_extension!(activate);

fn activate(pi: &Extension) -> Result<()> {
    pi.register_tool(
        Tool::new("tally", "Counts words")
            .label("Tally")
            .schema(json!({"type": "object", "properties": {"words": {"type": "array", "items": {"type": "string"}}}, "required": ["words"]}))
            .prompt_snippet("tally: counts words")
            .prompt_guideline("Use tally for more than ten words.")
            // Models also send one string.
            .prepare_arguments(|mut args| {
                if args["words"] == "refuse" {
                    return Err(Error::msg("these words are not counted"));
                }
                if let Some(text) = args["words"].as_str().map(str::to_owned) {
                    args["words"] = text.split(' ').collect();
                }
                Ok(args)
            })
            // What writes must be alone; an error counts as yes.
            .exclusive_if(|args| match args["words"][0].as_str() {
                Some("alone") => Ok(true),
                Some("odd") => Err(Error::msg("who knows")),
                _ => Ok(false),
            })
            .constrained_sampling(json!({"type": "json_schema", "strict": "prefer"}))
            .output_schema(json!({"type": "object", "properties": {"count": {"type": "integer"}}}))
            .structured_output()
            .render_call(|view, _| Ok(Rendering::lines([format!("counting {}", view.args["words"])])))
            .render_result(|view, options| {
                let result = view.result.as_ref().map(ToolResult::plain_text).unwrap_or_default();
                Ok(if options.expanded { Rendering::lines([result]) } else { Rendering::Hidden })
            })
            .run(|call, ctx| async move {
                let words = call.params["words"].as_array().map_or(0, Vec::len);
                ctx.update(format!("{words} so far"))?;
                Ok(ToolResult::text(format!("{words} words")).structured(json!({"count": words})).terminate())
            }),
    );
    // Waits until it is told to stop.
    pi.register_tool(Tool::new("linger", "Waits for the end").run(|_call, ctx| async move {
        ctx.ui().notify("lingering", Level::Info)?;
        ctx.signal().cancelled().await;
        Ok("stopped in time")
    }));
    Ok(())
}

//! The extension that `atomic demo` changes while it is loaded.

use atomic_plugin_api::prelude::*;

export_extension!(activate);

#[params]
struct GreetParams {
    /// Whom to greet.
    name: String,
}

fn activate(pi: &Extension) -> Result<()> {
    pi.register_tool(
        Tool::new("greet", "Greet someone by name")
            .params::<GreetParams>()
            .run(|call, _ctx| async move { Ok(format!("greet v1 says: hello, {}", call.params.name)) }),
    );
    Ok(())
}

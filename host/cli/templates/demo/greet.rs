//! The extension that `atomic demo` changes while it is loaded.

use atomic_plugin_api::prelude::*;
use schemars::JsonSchema;
use serde::Deserialize;

export_extension!(activate);

#[derive(Deserialize, JsonSchema)]
struct GreetParams {
    /// Who to greet.
    name: String,
}

fn activate(pi: &Extension) -> Result<()> {
    pi.register_tool(
        Tool::new("greet", "Greet someone by name")
            .params::<GreetParams>()
            .run(|params: GreetParams, _ctx| async move { Ok(format!("greet v1 says: hello, {}", params.name)) }),
    );
    Ok(())
}

//! Extensions that talk with each other: channels, and questions with an answer.

use atomic_plugin_api::prelude::*;
use std::time::Duration;

export_extension!(activate);

fn activate(pi: &Extension) -> Result<()> {
    pi.events().serve("example:double", |data: Value| async move {
        let n = data.as_i64().ok_or_else(|| Error::new("bad_request", "no number"))?;
        Ok(n * 2)
    })?;
    // Its error is logged; the others hear the value all the same.
    pi.events().on("example:said", |_| async move { Err(Error::msg("the first one fails")) })?;
    pi.events().on_sync("example:said", |_| panic!("the second one panics"))?;
    pi.on(SessionStart, |_, ctx| async move {
        let ui = ctx.ui();
        ctx.pi()
            .events()
            .on_sync("example:said", move |data| {
                if data.as_i64().is_some_and(|n| n % 25 == 0) {
                    ui.notify(format!("said {data}"), Level::Info)?;
                }
                Ok(())
            })
            .map(drop)
    });
    pi.register_command("say", |args, ctx| async move {
        let n: i64 = args.parse().unwrap_or_default();
        (1..=n).try_for_each(|n| ctx.pi().events().emit("example:said", &n))
    });
    pi.register_command("double", |args, ctx| async move {
        let n: Value = args.parse::<i64>().map_or(Value::Null, Value::from);
        let answer = ctx.pi().events().request("example:double", &n, Duration::from_secs(20)).await?;
        ctx.ui().notify(format!("double {answer}"), Level::Info)
    });
    pi.register_command("nobody", |_, ctx| async move {
        let answer = ctx.pi().events().request("example:nobody", &1, Duration::from_millis(5)).await;
        ctx.ui().notify(format!("nobody {}", answer.map_or_else(|e| e.code, |v| v.to_string())), Level::Info)
    });
    Ok(())
}

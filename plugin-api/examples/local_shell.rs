//! The host's own tools, for an extension's use: the local shell with live output, a file's turn,
//! and text cut as a tool's result is.

use atomic_plugin_api::{protocol::exec::Truncation, prelude::*};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

export_extension!(activate, events: ["user_bash"]);

fn activate(pi: &Extension) -> Result<()> {
    // `/sh COMMAND`: says each stretch as it comes, then how it ended.
    let shell = pi.clone();
    pi.register_command("sh", move |command, ctx| async move {
        let ui = ctx.ui();
        let heard = Arc::new(Mutex::new(String::new()));
        let into = heard.clone();
        let done = shell
            .local_bash(command)
            .env("WHO", "an extension")
            .timeout(Duration::from_secs(600))
            .on_data(move |new| {
                into.lock().unwrap_or_else(PoisonError::into_inner).push_str(new);
                let _ = ui.notify(format!("heard {new}"), Level::Info);
            })
            .run()
            .await?;
        let heard = heard.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let same = heard == done.output;
        let text = format!("ended {:?}, timed out {}, all heard {same}", done.exit_code, done.timed_out);
        ctx.ui().notify(text, Level::Info)
    });
    // Gives up after 50 ms: a shell that was waited for is killed.
    let impatient = pi.clone();
    pi.register_command("hurry", move |command, ctx| async move {
        let run = impatient.local_bash(command).timeout(Duration::from_millis(50)).run().await?;
        ctx.ui().notify(format!("hurried {}", run.timed_out), Level::Info)
    });
    // Nobody else changes the file while it is read and written.
    let files = pi.clone();
    pi.register_command("append", move |line, ctx| async move {
        let path = ctx.cwd()?.join("list.txt");
        let _mine = files.file_turn("list.txt").await?;
        let before = std::fs::read_to_string(&path).unwrap_or_default();
        ctx.sleep(Duration::from_millis(20)).await?;
        std::fs::write(&path, format!("{before}{line}\n")).map_err(Error::msg)
    });
    let cut = pi.clone();
    pi.register_command("cut", move |text, ctx| async move {
        let limits = Truncation { max_lines: Some(2), max_bytes: None };
        let text = text.replace(' ', "\n");
        let (head, tail) = (cut.truncate_head(&text, limits)?, cut.truncate_tail(&text, limits)?);
        let line = format!("{:?} … {:?} of {}", head.content, tail.content, head.total_lines);
        ctx.ui().notify(line, Level::Info)
    });
    // `!command` of the user: the local shell, with something around it.
    let around = pi.clone();
    let there = pi.bash_operations(move |exec, _| async move {
        let into = exec.clone();
        let run = around.local_bash(format!("echo before; {}", exec.command())).cwd(exec.cwd());
        Ok(run.on_data(move |new| drop(into.on_data(new))).run().await?.exit_code)
    });
    pi.on_sync(UserBash, move |_, _| Ok(Some(UserBashAnswer::operations(there))));
    Ok(())
}

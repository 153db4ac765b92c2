//! What outlives a generation: state of the session, and a reason to keep the engine. And what
//! does not: timers.

use atomic_plugin_api::{KeepAlive, prelude::*};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

export_extension!(activate);

fn activate(pi: &Extension) -> Result<()> {
    let count = pi.session_scoped_extension_state("example.count", || 0_u64)?;
    pi.on(SessionStart, move |_, ctx| {
        let count = count.clone();
        async move {
            let lives = count.update(|n| {
                *n += 1;
                *n
            })?;
            ctx.ui().notify(format!("life {lives}"), Level::Info)
        }
    });
    let held: Arc<Mutex<Option<KeepAlive>>> = Arc::default();
    pi.register_command("hold", move |args, ctx| {
        let held = held.clone();
        async move {
            let guard = if args.is_empty() { None } else { Some(ctx.pi().keep_alive(&args)?) };
            *held.lock().map_err(|_| Error::msg("poisoned"))? = guard;
            Ok(())
        }
    });
    // Many at once: no step is lost.
    pi.register_command("count", |_, ctx| async move {
        let state = ctx.pi().session_scoped_extension_state("example.many", || 0_u64)?;
        let tasks: Vec<_> = (0..8)
            .map(|_| {
                let state = state.clone();
                std::thread::spawn(move || (0..50).try_for_each(|_| state.update(|n| *n += 1)))
            })
            .collect();
        for task in tasks {
            task.join().map_err(|_| Error::msg("a thread failed"))??;
        }
        ctx.ui().notify(format!("counted {}", state.get()?), Level::Info)
    });
    pi.register_command("timers", |_, ctx| async move {
        let (pi, ui) = (ctx.pi(), ctx.ui());
        let once = ui.clone();
        pi.set_timeout(Duration::from_millis(1), async move { once.notify("timeout", Level::Info) });
        let mut n = 0;
        pi.set_interval(Duration::from_millis(1), move || {
            n += 1;
            let ui = ui.clone();
            async move { if n <= 2 { ui.notify(format!("interval {n}"), Level::Info) } else { Ok(()) } }
        });
        Ok(())
    });
    Ok(())
}

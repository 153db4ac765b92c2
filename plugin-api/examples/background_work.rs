//! Work that a session should wait for, offered in the shared table of background work.

use atomic_plugin_api::{
    background_work::{BackgroundWork, WorkItem},
    prelude::*,
};
use std::sync::{Arc, Mutex};

export_extension!(activate);

fn activate(pi: &Extension) -> Result<()> {
    let items: Arc<Mutex<Vec<WorkItem>>> = Arc::default();
    let offer = {
        let items = items.clone();
        move |ctx: &CommandContext, name: &str| {
            let (items, ui) = (items.clone(), ctx.ui());
            let work = BackgroundWork::new(name, move || {
                let items = items.lock().map_err(|_| Error::msg("poisoned"))?.clone();
                match items.first().map(|i| i.id.as_str()) {
                    Some("panic") => panic!("listing went wrong"),
                    // Nobody should; whoever asks waits with it.
                    Some("hang") => {
                        ui.notify("hanging", Level::Info)?;
                        loop {
                            std::thread::park();
                        }
                    }
                    Some("error") => Err(Error::msg("nobody knows")),
                    _ => Ok(items),
                }
            })
            .wake_channel(format!("{name}:done"));
            ctx.pi().provide_background_work(work)
        }
    };
    // Where two of this library run, each stands beside the other under its own name.
    pi.provide_policy("example.ceiling", 1, "", &json!({"max": 3}))?;
    let tokens: Arc<Mutex<Vec<atomic_plugin_api::ServiceToken>>> = Arc::default();
    let kept = tokens.clone();
    pi.register_command("offer", move |name, ctx| {
        let (offer, kept) = (offer.clone(), kept.clone());
        async move {
            let said = match offer(&ctx, &name) {
                Ok(token) => {
                    kept.lock().map_err(|_| Error::msg("poisoned"))?.push(token);
                    "offered".to_owned()
                }
                Err(e) => format!("refused {}", e.code),
            };
            ctx.ui().notify(said, Level::Info)
        }
    });
    pi.register_command("withdraw-first", move |_, ctx| {
        let tokens = tokens.clone();
        async move {
            let first = tokens.lock().map_err(|_| Error::msg("poisoned"))?.remove(0);
            ctx.ui().notify(format!("withdrew {}", first.withdraw()?), Level::Info)
        }
    });
    // `ID…`: what is going on in this session now.
    pi.register_command("busy", move |ids, ctx| {
        let items = items.clone();
        async move {
            let session = ctx.session_manager().get_session_id()?;
            let mut all: Vec<WorkItem> =
                ids.split_whitespace().map(|id| WorkItem::new(id, session.clone())).collect();
            all.push(WorkItem::new("of another session", "elsewhere"));
            *items.lock().map_err(|_| Error::msg("poisoned"))? = all;
            Ok(())
        }
    });
    Ok(())
}

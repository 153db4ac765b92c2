//! Reads the shared table of background work, which others fill.

use atomic_plugin_api::{ServiceHandle, background_work, prelude::*};
use std::sync::{Arc, Mutex};

export_extension!(activate);

fn activate(pi: &Extension) -> Result<()> {
    pi.register_command("list", |_, ctx| async move {
        let session = ctx.session_manager().get_session_id()?;
        let said = match ctx.pi().background_work_snapshot(&session, 0) {
            Ok(snapshot) => {
                let items: Vec<String> =
                    snapshot.items.iter().map(|i| format!("{}/{}", i.provider, i.id)).collect();
                format!("{} providers, {}", snapshot.providers.len(), items.join(" "))
            }
            Err(e) => format!("{}: {}", e.code, e.message),
        };
        ctx.ui().notify(said, Level::Info)
    });
    pi.register_command("channels", |_, ctx| async move {
        ctx.ui().notify(ctx.pi().list_wake_channels()?.join(" "), Level::Info)
    });
    pi.register_command("watch", |_, ctx| async move {
        let ui = ctx.ui();
        ctx.pi()
            .watch_services(background_work::TABLE, background_work::VERSION, move |rows| {
                let names: Vec<String> = rows.into_iter().map(|r| r.scope).collect();
                ui.notify(format!("watched [{}]", names.join(" ")), Level::Info)
            })
            .map(drop)
    });
    pi.register_command("other-version", |name, ctx| async move {
        let error = ctx.pi().lookup_in(&name, background_work::TABLE, 2).err();
        ctx.ui().notify(error.map_or("found".into(), |e| format!("{}: {}", e.code, e.message)), Level::Info)
    });
    pi.register_command("ceilings", |_, ctx| async move {
        let all = ctx.pi().policies("example.ceiling", 1)?;
        ctx.ui().notify(format!("ceilings {}", all.len()), Level::Info)
    });
    let kept: Arc<Mutex<Option<ServiceHandle>>> = Arc::default();
    pi.register_command("keep", {
        let kept = kept.clone();
        move |name, ctx| {
            let kept = kept.clone();
            async move {
                let found = ctx.pi().lookup_in(&name, background_work::TABLE, background_work::VERSION)?;
                *kept.lock().map_err(|_| Error::msg("poisoned"))? = Some(found);
                Ok(())
            }
        }
    });
    pi.register_command("kept", move |_, ctx| {
        let kept = kept.clone();
        async move {
            let kept = kept.lock().map_err(|_| Error::msg("poisoned"))?.clone();
            let kept = kept.ok_or_else(|| Error::msg("nothing kept"))?;
            let answer: Result<Vec<String>> = kept.call("wakeChannels", &());
            let said = answer.map_or_else(|e| e.code, |c| c.join(" "));
            ctx.ui().notify(format!("live {} says {said}", kept.is_live()), Level::Info)
        }
    });
    // From many threads at once.
    pi.register_command("stress", |name, ctx| async move {
        let found = ctx.pi().lookup_in(&name, background_work::TABLE, background_work::VERSION)?;
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let (found, pi) = (found.clone(), ctx.pi());
                std::thread::spawn(move || {
                    let mut answered = 0;
                    for _ in 0..200 {
                        let answer: Result<Vec<String>> = found.call("wakeChannels", &());
                        match answer {
                            Ok(_) => answered += 1,
                            Err(e) if e.code == "retired" => {}
                            Err(e) => return Err(e),
                        }
                        pi.list_services(background_work::TABLE, background_work::VERSION)?;
                    }
                    Ok(answered)
                })
            })
            .collect();
        let mut answered = 0;
        for thread in threads {
            answered += thread.join().map_err(|_| Error::msg("a thread failed"))??;
        }
        ctx.ui().notify(format!("stress {answered}"), Level::Info)
    });
    Ok(())
}

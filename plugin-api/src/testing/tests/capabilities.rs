//! What `pi` and `ctx` can do.

use crate::{ServiceToken, prelude::*, protocol::exec::ExecResult, testing::TestHost};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};

fn command<F, Fut>(f: F) -> TestHost
where
    F: FnOnce(String, CommandContext) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<()>> + Send + 'static,
{
    TestHost::new(move |pi: &Extension| {
        pi.register_command("do", f.clone());
        Ok(())
    })
}

#[test]
fn a_command_has_a_description_completions_and_a_context_of_its_own() {
    let host = TestHost::new(|pi: &Extension| {
        pi.register_command_with(
            Command::new("greet")
                .description("Say hello")
                .completions(|prefix| async move {
                    let names = ["ada", "bob"].into_iter().filter(|n| n.starts_with(&prefix));
                    Ok(Some(names.map(|n| Completion::new(n).description("friend")).collect()))
                })
                .run(|args, ctx| async move {
                    ctx.wait_for_idle().await?;
                    ctx.ui().notify(format!("hello {args}"), Level::Warning)
                }),
        );
        Ok(())
    });
    host.command("greet", "ada and bob").wait().unwrap();
    assert_eq!(host.record().notices[0].message, "hello ada and bob");
    let offered = host.completions("greet", "b").wait().unwrap().unwrap();
    assert_eq!((offered[0].value.as_str(), offered.len()), ("bob", 1));
    assert_eq!(host.registered_command("greet").unwrap()["description"], "Say hello");
}

#[test]
fn inside_activate_there_is_no_session() {
    TestHost::new(|pi: &Extension| {
        assert_eq!(pi.get_active_tools().unwrap_err().code, "not_available");
        assert_eq!(pi.get_session_name().unwrap_err().code, "not_available");
        Ok(())
    });
    async fn activate(pi: &Extension) -> Result<()> {
        let error = pi.append_entry("x", &1).await.unwrap_err();
        assert_eq!(error.code, "not_available");
        Ok(())
    }
    TestHost::new(activate);
}

#[test]
fn entries_are_appended_read_back_as_their_type_and_labelled() {
    let host = command(|_, ctx| async move {
        let id = ctx.pi().append_entry("todo", &json!({"items": ["a"]})).await?;
        ctx.pi().set_label(&id, Some("start")).await?;
        let session = ctx.session_manager();
        assert_eq!(session.get_leaf_id()?.as_deref(), Some(id.as_str()));
        assert_eq!(session.get_label(&id)?.as_deref(), Some("start"));
        let items: Vec<Value> =
            session.get_branch()?.iter().filter_map(|e| e.data_as::<Value>("todo")).collect();
        assert_eq!(items, [json!({"items": ["a"]})]);
        assert!(ctx.pi().set_label("nothing", None).await.is_err());
        assert!(session.get_entry("nothing")?.is_none());
        Ok(())
    });
    host.add_entry(json!({"type": "custom", "id": "00000000", "parentId": null, "timestamp": "",
        "customType": "other", "data": 1}));
    host.command("do", "").wait().unwrap();
    assert_eq!(host.entries().len(), 2);
    assert_eq!(host.entries()[1].parent_id.as_deref(), Some("00000000"));
}

#[test]
fn dialogs_are_answered_by_the_queue_then_by_the_closure_then_by_their_default() {
    let host = command(|_, ctx| async move {
        let ui = ctx.ui();
        let answers = (
            ui.confirm("a", "").await?,
            ui.confirm("b", "").await?,
            ui.select("c", ["x", "y"]).await?,
            ui.timeout(Duration::from_secs(2)).input("d", Some("hint")).await?,
            ui.editor("e", None).await?,
        );
        ui.set_title(format!("{answers:?}"))
    });
    host.answer_next(true);
    host.on_confirm(|d| d.title == "never");
    host.on_select(|d| d.options.last().cloned());
    host.command("do", "").wait().unwrap();
    let record = host.record();
    assert_eq!(record.title.as_deref(), Some("(true, false, Some(\"y\"), None, None)"));
    assert_eq!(record.dialogs[3].timeout_ms, Some(2000));
    assert_eq!(record.dialogs[3].placeholder.as_deref(), Some("hint"));
}

#[test]
fn messages_carry_their_options() {
    let host = command(|_, ctx| async move {
        let message = CustomMessage::new("note", "read this").display(false).details(1);
        let options = SendOptions::default().trigger_turn(true).deliver_as(DeliverAs::FollowUp);
        ctx.pi().send_message(message, options).await?;
        ctx.pi().send_user_message("go on").await?;
        ctx.pi()
            .send_user_message_with("now", UserMessageOptions::default().deliver_as(DeliverAs::Steer))
            .await
    });
    host.command("do", "").wait().unwrap();
    let record = host.record();
    assert_eq!(record.messages[0].message.custom_type, "note");
    assert!(!record.messages[0].message.display);
    assert_eq!(record.messages[0].options.trigger_turn, Some(true));
    assert_eq!(record.user_messages[0].content, MessageContent::from("go on"));
    assert_eq!(record.user_messages[1].options.deliver_as, Some(DeliverAs::Steer));
}

#[test]
fn a_program_runs_by_script_and_one_that_cannot_start_is_code_1() {
    let host = command(|args, ctx| async move {
        let result = ctx.exec("git", args.split(' ')).await?;
        ctx.ui().set_title(format!("{} {}", result.code, result.stdout))
    });
    host.command("do", "status").wait().unwrap();
    assert_eq!(host.record().title.as_deref(), Some("1 "));
    host.on_exec(|e| ExecResult::new(e.args.join("+"), 0));
    host.command("do", "log --oneline").wait().unwrap();
    assert_eq!(host.record().title.as_deref(), Some("0 log+--oneline"));
    assert_eq!(host.record().execs[1].command, "git");
}

#[test]
fn a_flag_has_its_default_until_it_is_given() {
    let host = TestHost::new(|pi: &Extension| {
        pi.register_flag("plan", Flag::boolean().description("Only plan").default(true));
        pi.register_flag("out", Flag::string());
        let me = pi.clone();
        pi.register_command("show", move |_, ctx| async move {
            let plan = me.get_flag("plan")?.and_then(|f| f.as_bool());
            let out = me.get_flag("out")?.and_then(|f| f.as_str().map(str::to_owned));
            ctx.ui().set_title(format!("{plan:?} {out:?} {:?}", me.get_flag("unknown")?))
        });
        Ok(())
    });
    host.command("show", "").wait().unwrap();
    assert_eq!(host.record().title.as_deref(), Some("Some(true) None None"));
    host.set_flag("plan", false);
    host.set_flag("out", "x.log");
    host.command("show", "").wait().unwrap();
    assert_eq!(host.record().title.as_deref(), Some("Some(false) Some(\"x.log\") None"));
}

#[test]
fn the_context_is_read_live() {
    let host = command(|_, ctx| async move {
        let model = ctx.model()?.map(|m| m.id);
        ctx.ui().set_title(format!(
            "{} {} {} {:?} {:?} {}",
            ctx.mode()?,
            ctx.has_ui()?,
            ctx.is_idle()?,
            model,
            ctx.pi().get_thinking_level()?,
            ctx.get_system_prompt()?,
        ))
    });
    host.set("mode", "print");
    host.set("hasUI", false);
    host.set("isIdle", false);
    host.set("systemPrompt", "You are");
    host.set("model", json!({"id": "m", "provider": "p"}));
    host.command("do", "").wait().unwrap();
    assert_eq!(host.record().title.as_deref(), Some("print false false Some(\"m\") Off You are"));
}

#[test]
fn the_bus_delivers_in_order_until_the_subscription_is_off() {
    let host = TestHost::new(|pi: &Extension| {
        let me = pi.clone();
        pi.events().on("ping", move |data| async move { me.events().emit("pong", &data) })?;
        let me = pi.clone();
        let subscription = pi.events().on_sync("pong", move |data| {
            me.log(Level::Info, data.to_string());
            Ok(())
        })?;
        let subscription = Arc::new(std::sync::Mutex::new(Some(subscription)));
        pi.register_command("off", move |_, _| async move {
            let subscription = subscription.lock().unwrap().take();
            subscription.map_or(Ok(()), |s| s.off())
        });
        Ok(())
    });
    host.emit("ping", &1).wait();
    host.emit("ping", &2).wait();
    host.command("off", "").wait().unwrap();
    host.emit("ping", &3).wait();
    let logs: Vec<_> = host.record().logs.into_iter().map(|l| l.message).collect();
    assert_eq!(logs, ["1", "2"]);
    assert_eq!(host.record().emitted.len(), 6);
}

#[test]
fn a_service_is_called_by_type_described_and_withdrawn() {
    let host = TestHost::new(|pi: &Extension| {
        let token = pi.provide(
            Service::new("math", 2)
                .version("2.1.0")
                .op("add", |n: Vec<i64>| Ok(n.iter().sum::<i64>()))
                .op("fail", |(): ()| -> Result<()> { Err(Error::new("odd", "no")) })
                .op("panic", |(): ()| -> Result<()> { panic!("in a service") }),
        )?;
        let token = Arc::new(std::sync::Mutex::new(Some(token)));
        pi.register_command("use", move |_, ctx| async move {
            let pi = ctx.pi();
            let math = pi.lookup("math", 2)?;
            assert_eq!(math.call::<_, i64>("add", &[40, 2])?, 42);
            assert_eq!(math.call::<_, ()>("fail", &()).unwrap_err().code, "odd");
            assert_eq!(math.call::<_, ()>("panic", &()).unwrap_err().code, "panic");
            assert_eq!(math.call::<_, ()>("sub", &()).unwrap_err().code, "unsupported");
            assert!(math.is_live());
            assert_eq!(math.describe().version, "2.1.0");
            assert!(pi.lookup("math", 1).err().unwrap().message.contains("2.1.0"));
            let token = token.lock().unwrap().take().unwrap();
            assert!(token.withdraw()?);
            assert!(pi.lookup("math", 2).is_err());
            assert_eq!(math.call::<_, i64>("add", &[1]).unwrap_err().code, "unsupported");
            Ok(())
        });
        Ok(())
    });
    host.command("use", "").wait().unwrap();
}

/// The call runs in what the service holds: that must outlive it, and not the instance.
#[test]
fn a_service_withdrawn_from_within_its_own_call_finishes_it_and_goes_with_the_instance() {
    let held = Arc::new("held".to_owned());
    let seen = Arc::downgrade(&held);
    let host = TestHost::new(move |pi: &Extension| {
        let slot: Arc<std::sync::Mutex<Option<ServiceToken>>> = Arc::default();
        // It holds its own instance too.
        let (held, me, token) = (held.clone(), pi.clone(), slot.clone());
        let leave = move |(): ()| {
            let token = token.lock().unwrap().take();
            let gone = token.map(ServiceToken::withdraw).transpose()?;
            Ok(format!("{held} {gone:?} {}", me.lookup("leaver", 1).is_err()))
        };
        *slot.lock().unwrap() = Some(pi.provide(Service::new("leaver", 1).op("leave", leave))?);
        pi.register_command("use", |_, ctx| async move {
            let leaver = ctx.pi().lookup("leaver", 1)?;
            assert_eq!(leaver.call::<_, String>("leave", &())?, "held Some(true) true");
            assert_eq!(leaver.call::<_, String>("leave", &()).unwrap_err().code, "unsupported");
            Ok(())
        });
        Ok(())
    });
    host.command("use", "").wait().unwrap();
    assert!(seen.upgrade().is_some(), "a call could still be inside");
    drop(host);
    assert!(seen.upgrade().is_none(), "gone with the instance");
}

#[test]
fn with_session_speaks_for_the_new_session_while_the_old_context_is_stale() {
    let host = command(|_, ctx| async move {
        let old = ctx.clone();
        let change = ctx
            .new_session(NewSession::new().with_session(move |session| async move {
                assert!(old.cwd().unwrap_err().is_stale());
                session.pi().send_user_message("hello there").await?;
                session.wait_for_idle().await
            }))
            .await?;
        assert!(!change.cancelled);
        assert!(ctx.ui().confirm("still me?", "").await.unwrap_err().is_stale());
        Ok(())
    });
    host.command("do", "").wait().unwrap();
    assert_eq!(host.record().user_messages[0].content, MessageContent::from("hello there"));
    assert_eq!(host.record().new_sessions, 1);
}

#[test]
fn reload_names_what_it_reloads() {
    let host = command(|args, ctx| async move {
        match args.as_str() {
            "" => ctx.reload().await?,
            name => ctx.reload_named([name]).await?,
        };
        Ok(())
    });
    host.command("do", "").wait().unwrap();
    host.command("do", "me").wait().unwrap();
    assert_eq!(host.record().reloads, [vec![], vec!["me".to_owned()]]);
}

#[test]
fn an_extension_can_be_a_program() {
    let host = TestHost::new(|pi: &Extension| {
        pi.main(|args, _| async move { Ok(i32::try_from(args.len())?) });
        Ok(())
    });
    assert_eq!(host.main(&["a", "b"]).wait().unwrap(), 2);
}

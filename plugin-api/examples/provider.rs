//! A provider that makes the answers itself, and asking a model beside the session.

use atomic_plugin_api::{StreamingProvider, prelude::*, protocol::message::AssistantMessageEvent};
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

export_extension!(activate);

fn activate(pi: &Extension) -> Result<()> {
    pi.register_streaming_provider(
        StreamingProvider::new("echo").model(ProviderModel::new("parrot").limits(1000, 100)).run(
            |request, stream| async move {
                let last = request.messages.last().map(AgentMessage::plain_text).unwrap_or_default();
                let body = stream.payload(&json!({"say": last})).await?;
                let said = body["say"].as_str().unwrap_or_default().to_owned();
                if said == "fail" {
                    return Err(Error::msg("the parrot is asleep"));
                }
                if said == "wait" {
                    stream.text("waiting")?;
                    stream.signal().cancelled().await;
                }
                stream.response(200, &Default::default()).await?;
                for word in said.split_inclusive(' ') {
                    stream.text(word)?;
                }
                stream.done()
            },
        ),
    );
    // One that speaks a wire format of the program, and one that is a mistake.
    pi.register_provider(
        "local",
        &ProviderConfig::new()
            .endpoint("http://127.0.0.1:9/v1", "openai-completions")
            .api_key("none")
            .model(ProviderModel::new("tiny")),
    );
    pi.register_provider(
        "wrong",
        &ProviderConfig::new()
            .endpoint("http://127.0.0.1:9", "smoke-signals")
            .api_key("none")
            .model(ProviderModel::new("fire")),
    );

    // One whose models are known only when it is asked.
    let asked = Arc::new(AtomicUsize::new(0));
    pi.register_refreshing_provider(
        "shelf",
        &ProviderConfig::new().endpoint("http://127.0.0.1:9/v1", "openai-completions").api_key("none"),
        move || async move {
            let n = asked.fetch_add(1, Ordering::SeqCst);
            Ok((0..=n).map(|i| ProviderModel::new(format!("book-{i}"))).collect())
        },
    );

    pi.register_command("models", |_, ctx| async move {
        let names =
            ctx.model_registry().get_available()?.into_iter().map(|m| format!("{}/{}", m.provider, m.id));
        let mut names: Vec<String> = names.collect();
        names.sort();
        ctx.ui().notify(names.join(" "), Level::Info)
    });
    pi.register_command("forget", |name, ctx| async move { ctx.pi().unregister_provider(&name) });
    pi.register_command("use", |_, ctx| async move {
        let model = ctx.model_registry().find("echo", "parrot")?.ok_or_else(|| Error::msg("no parrot"))?;
        let set = ctx.pi().set_model(&model).await?;
        ctx.ui().notify(format!("set {set}"), Level::Info)
    });
    pi.register_command("ask", |text, ctx| async move {
        let registry = ctx.model_registry();
        let model = registry.find("echo", "parrot")?.ok_or_else(|| Error::msg("no parrot"))?;
        let deltas: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = deltas.clone();
        let answer = registry
            .stream(&model, ModelRequest::user(text), move |event| {
                if let (AssistantMessageEvent::TextDelta { delta, .. }, Ok(mut seen)) = (event, seen.lock()) {
                    seen.push(delta);
                }
                Ok(())
            })
            .await?;
        let whole = AgentMessage::Assistant(answer.clone()).plain_text();
        let deltas = deltas.lock().map(|d| d.join("|")).unwrap_or_default();
        let error = answer.error_message.unwrap_or_default();
        ctx.ui().notify(format!("{whole} [{deltas}] {error}"), Level::Info)
    });
    Ok(())
}

//! Providers that say which models they have when they are asked (events.md E.5, `refreshModels`):
//! a local server has others today than yesterday. Asked when the provider is registered, and
//! whenever somebody looks at the list.

use super::{Asker, NOTHING, Outcome, body};
use crate::{
    breadcrumb::kind,
    dispatch::{Asked, ask_entry},
    generation::Generation,
    host::{Extensions, lock},
    load::{EventState, Live},
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

/// Who does not answer until then keeps the list that it had.
const LONGEST: Duration = Duration::from_secs(10);

#[derive(Clone)]
struct Asks {
    provider: String,
    config: Value,
    handler: u64,
    generation: Arc<Generation>,
}

#[derive(Default)]
pub(crate) struct ModelLists {
    all: Mutex<Vec<Asks>>,
    /// One at a time, in their order: of two answers the later one stays.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Deserialize)]
struct Refreshing {
    name: String,
    config: Value,
    handler: u64,
}

/// `providers.registerRefreshing`
pub(super) fn register(a: &Asker, op: &str, bytes: &[u8]) -> Outcome {
    let Refreshing { name, config, handler } = body(op, bytes)?;
    let provider = super::providers::named(name)?;
    let asks = Asks { provider, config, handler, generation: a.generation.clone() };
    super::providers::stage(
        a,
        Box::new(move |host, providers| {
            // What it has until it was asked.
            if asks.config.get("models").and_then(Value::as_array).is_some_and(|m| !m.is_empty())
                && let Err(e) = providers.configure(&asks.provider, asks.generation.number(), &asks.config)
            {
                let text = format!("provider {}: {e}", asks.provider);
                return host.diagnose(asks.generation.owner(), "register_provider", &text);
            }
            let mut all = lock(&host.model_lists().all);
            all.retain(|other| other.provider != asks.provider);
            all.push(asks.clone());
            drop(all);
            if let Some(me) = host.weak().upgrade() {
                host.runtime().spawn(async move { me.ask_for_models(asks).await });
            }
        }),
    )?;
    Ok(NOTHING)
}

impl Extensions {
    /// Asks all.
    pub(crate) async fn refresh_model_lists(&self) {
        let all: Vec<Asks> = lock(&self.model_lists().all).clone();
        for asks in all {
            self.ask_for_models(asks).await;
        }
    }

    async fn ask_for_models(&self, asks: Asks) {
        let Asks { provider, mut config, handler, generation } = asks;
        let _turn = self.model_lists().turn.lock().await;
        let Some(live) = Live::of(&generation) else {
            return lock(&self.model_lists().all).retain(|a| !Arc::ptr_eq(&a.generation, &generation));
        };
        let event = json!({"type": "refresh_models", "provider": provider});
        let state = EventState::ready(serde_json::to_vec(&event).unwrap_or_default());
        let asked = ask_entry(&generation, &live, handler, kind::TASK, &state, |_| ());
        let wrong = |why: String| {
            let text = format!("the models of provider {provider}: {why}");
            self.diagnose(generation.owner(), "refresh_models", &text);
        };
        #[derive(Deserialize)]
        struct Wire {
            result: Vec<Value>,
        }
        let models = match tokio::time::timeout(LONGEST, asked).await {
            Err(_) => return wrong(format!("no answer for {} seconds", LONGEST.as_secs())),
            Ok(Asked::Reloaded | Asked::Overran(_)) => return,
            Ok(Asked::Failed(e)) => return wrong(e.message),
            Ok(Asked::Answered(bytes)) => match serde_json::from_slice::<Wire>(&bytes) {
                Ok(wire) => wire.result,
                Err(e) => return wrong(e.to_string()),
            },
        };
        config["models"] = models.into();
        let providers = self.engine("providers").ok().and_then(|e| e.models().cloned());
        if let Some(providers) = providers
            && let Err(e) = providers.configure(&provider, generation.number(), &config)
        {
            wrong(e);
        }
    }
}

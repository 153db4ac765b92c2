//! `ctx.model_registry()`: the models there are, and asking one beside the session
//! (events.md E.3).

use crate::{abi::instance::Call, call::Empty, error::Result, protocol::provider::Model};
use serde::Serialize;

/// All models whose provider has what it needs. Cheap to clone, live.
#[derive(Clone)]
pub struct ModelRegistry {
    call: Call,
}

#[derive(Serialize)]
struct Find<'a> {
    provider: &'a str,
    model: &'a str,
}

impl ModelRegistry {
    pub(crate) fn new(call: Call) -> Self {
        ModelRegistry { call }
    }
    /// All of them.
    ///
    /// # Errors
    /// `stale_context`, `not_available` before there is a session.
    pub fn get_available(&self) -> Result<Vec<Model>> {
        self.call.get("models.list", &Empty {})
    }
    /// One; `None` when it is not known or its provider has no key.
    ///
    /// # Errors
    /// As above.
    pub fn find(&self, provider: &str, id: &str) -> Result<Option<Model>> {
        self.call.get("models.find", &Find { provider, model: id })
    }
}

#[cfg(feature = "tokio")]
mod asking {
    use super::{Model, ModelRegistry, Result, Serialize};
    use crate::{
        abi::instance::{Call, Handler},
        call::Request,
        protocol::{
            message::{AssistantMessage, AssistantMessageEvent},
            provider::ModelRequest,
        },
    };
    use std::sync::Arc;

    #[derive(Serialize)]
    struct Ask<'a> {
        provider: &'a str,
        model: &'a str,
        request: ModelRequest,
        #[serde(skip_serializing_if = "Option::is_none")]
        handler: Option<u64>,
    }

    /// The listener goes with the request, however that ends.
    struct Listening(Call, u64);

    impl Drop for Listening {
        fn drop(&mut self) {
            self.0.state.drop_handler(self.1);
        }
    }

    impl ModelRegistry {
        /// Asks a model, out of the session. A failed answer is an answer: see `stop_reason`.
        /// Dropping the request ends it.
        pub fn complete(&self, model: &Model, request: ModelRequest) -> Request<AssistantMessage> {
            let ask = Ask { provider: &model.provider, model: &model.id, request, handler: None };
            self.call.ask("models.complete", &ask)
        }
        /// The same, told step by step, in order; `f` must not wait.
        pub fn stream(
            &self,
            model: &Model,
            request: ModelRequest,
            f: impl Fn(AssistantMessageEvent) -> Result<()> + Send + Sync + 'static,
        ) -> Request<AssistantMessage> {
            let handler = self.call.state.add_handler(Handler::Sync(Arc::new(move |event, _| {
                f(serde_json::from_slice(event.json())?).map(|()| Vec::new())
            })));
            let listening = Listening(self.call.clone(), handler);
            let ask = Ask { provider: &model.provider, model: &model.id, request, handler: Some(handler) };
            let asked: Request<AssistantMessage> = self.call.ask("models.complete", &ask);
            Request::new(async move {
                let _listening = listening;
                asked.await
            })
        }
    }
}

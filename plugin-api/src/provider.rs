//! Providers of models (events.md E.5): one that speaks a wire format of the program, or one
//! that makes the answers itself.

use crate::{error::Result, extension::Extension, protocol::provider::ProviderConfig};
use serde::Serialize;

#[derive(Serialize)]
struct Named<'a> {
    name: &'a str,
}

#[derive(Serialize)]
struct Configured<'a> {
    name: &'a str,
    config: &'a ProviderConfig,
}

impl Extension {
    /// Adds a provider, or changes one of the program's own. The last registration of a name
    /// counts; it goes with this generation. A mistake in it is reported, not an error here.
    pub fn register_provider(&self, name: &str, config: &ProviderConfig) {
        self.registered(self.call.tell("providers.register", &Configured { name, config }));
    }
    /// Takes it back: the program's own models of that name are there again.
    ///
    /// # Errors
    /// `stale_context`.
    pub fn unregister_provider(&self, name: &str) -> Result<()> {
        self.call.tell("providers.unregister", &Named { name })
    }
}

#[cfg(feature = "tokio")]
mod streaming {
    use super::{Extension, ProviderConfig, Result, Serialize};
    use crate::{
        abi::instance::{Call, Handler},
        call::Request,
        protocol::{
            message::{AssistantMessage, AssistantMessageEvent, Content, StopReason},
            provider::{ModelRequest, ProviderModel},
        },
        signal::CancelSignal,
    };
    use serde_json::Value;
    use std::{
        collections::BTreeMap,
        sync::{Arc, Mutex, PoisonError},
    };

    /// A provider whose answers this extension makes. `run` ends it.
    #[must_use = "give it to `pi.register_streaming_provider`"]
    pub struct StreamingProvider {
        name: String,
        models: Vec<ProviderModel>,
        run: Option<Handler>,
    }

    /// Where an answer is told while it is made. Cheap to clone.
    #[derive(Clone)]
    pub struct ProviderStream {
        call: Call,
        text: Arc<Mutex<Option<String>>>,
    }

    #[derive(Serialize)]
    struct Answered<'a> {
        status: u16,
        headers: &'a BTreeMap<String, String>,
    }

    impl ProviderStream {
        /// One step. The first (`Start`) and the last are the host's.
        ///
        /// # Errors
        /// `stale_context`.
        pub fn emit(&self, event: &AssistantMessageEvent) -> Result<()> {
            self.call.tell("provider.emit", event)
        }
        /// More text.
        ///
        /// # Errors
        /// `stale_context`.
        pub fn text(&self, delta: impl Into<String>) -> Result<()> {
            let delta = delta.into();
            let first = {
                let mut text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
                let first = text.is_none();
                text.get_or_insert_default().push_str(&delta);
                first
            };
            if first {
                self.emit(&AssistantMessageEvent::TextStart { content_index: 0 })?;
            }
            self.emit(&AssistantMessageEvent::TextDelta { content_index: 0, delta })
        }
        /// The answer that `text` has made.
        ///
        /// # Errors
        /// `stale_context`.
        #[allow(clippy::field_reassign_with_default)] // its role tag is nobody's business
        pub fn done(&self) -> Result<AssistantMessage> {
            let text = self.text.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let mut message = AssistantMessage::default();
            message.stop_reason = Some(StopReason::Stop);
            if let Some(content) = text {
                self.emit(&AssistantMessageEvent::TextEnd { content_index: 0, content: content.clone() })?;
                message.content.push(Content::text(content));
            }
            Ok(message)
        }
        /// `before_provider_headers`: what goes out after all handlers.
        pub fn headers(
            &self,
            headers: &BTreeMap<String, Option<String>>,
        ) -> Request<BTreeMap<String, Option<String>>> {
            self.call.ask("provider.headers", headers)
        }
        /// `before_provider_request`: the body after all handlers.
        pub fn payload(&self, payload: &Value) -> Request<Value> {
            self.call.ask("provider.payload", payload)
        }
        /// `after_provider_response`.
        pub fn response(&self, status: u16, headers: &BTreeMap<String, String>) -> Request<()> {
            self.call.ask_done("provider.response", &Answered { status, headers })
        }
        /// `provider_stream_event`.
        pub fn provider_event(&self, data: &Value) -> Request<()> {
            self.call.ask_done("provider.event", data)
        }
        /// Raised when the user stops the run; the future may be dropped at any `.await`.
        pub fn signal(&self) -> CancelSignal {
            CancelSignal::new(&self.call)
        }
    }

    #[derive(Serialize)]
    struct Register<'a> {
        name: &'a str,
        models: &'a [ProviderModel],
        handler: u64,
    }

    impl StreamingProvider {
        /// Without models so far.
        pub fn new(name: impl Into<String>) -> Self {
            StreamingProvider { name: name.into(), models: Vec::new(), run: None }
        }
        /// One model more.
        pub fn model(mut self, model: ProviderModel) -> Self {
            self.models.push(model);
            self
        }
        /// Makes an answer. An `Err` is a failed answer with its text; `Ok` is the whole message,
        /// whatever was told before.
        pub fn run<F, Fut>(mut self, f: F) -> Self
        where
            F: FnOnce(ModelRequest, ProviderStream) -> Fut + Clone + Send + Sync + 'static,
            Fut: Future<Output = Result<AssistantMessage>> + Send + 'static,
        {
            #[derive(serde::Deserialize)]
            struct Asked {
                request: ModelRequest,
            }
            #[derive(Serialize)]
            struct Out {
                result: AssistantMessage,
            }
            self.run = Some(Handler::Async(Arc::new(move |event, call| {
                let f = f.clone();
                Box::pin(async move {
                    let asked: Asked = serde_json::from_slice(event.json())?;
                    let stream = ProviderStream { call, text: Arc::default() };
                    Ok(serde_json::to_vec(&Out { result: f(asked.request, stream).await? })?)
                })
            })));
            self
        }
    }

    impl Extension {
        /// Adds a provider whose models are known only when it is asked: `models` runs when it is
        /// registered and whenever somebody looks at the list, and replaces those of `config`. An
        /// `Err`, or no answer within ten seconds, keeps the list as it was.
        pub fn register_refreshing_provider<F, Fut>(&self, name: &str, config: &ProviderConfig, models: F)
        where
            F: FnOnce() -> Fut + Clone + Send + Sync + 'static,
            Fut: Future<Output = Result<Vec<ProviderModel>>> + Send + 'static,
        {
            #[derive(Serialize)]
            struct Out {
                result: Vec<ProviderModel>,
            }
            #[derive(Serialize)]
            struct Refreshing<'a> {
                name: &'a str,
                config: &'a ProviderConfig,
                handler: u64,
            }
            let handler = self.add(Handler::Async(Arc::new(move |_event, _call| {
                let models = models.clone();
                Box::pin(async move { Ok(serde_json::to_vec(&Out { result: models().await? })?) })
            })));
            let body = Refreshing { name, config, handler };
            self.registered(self.call.tell("providers.registerRefreshing", &body));
        }

        /// Adds a provider whose answers this extension makes.
        pub fn register_streaming_provider(&self, provider: StreamingProvider) {
            let Some(run) = provider.run else {
                return self.registered(Err(crate::Error::new(
                    "bad_request",
                    format!("provider `{}` has no `.run(..)`", provider.name),
                )));
            };
            let handler = self.add(run);
            let body = Register { name: &provider.name, models: &provider.models, handler };
            self.registered(self.call.tell("providers.registerStreaming", &body));
        }
    }
}

#[cfg(feature = "tokio")]
pub use streaming::{ProviderStream, StreamingProvider};

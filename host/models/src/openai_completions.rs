//! `openai-completions`: POST {baseUrl}/chat/completions, streamed. Spoken by OpenAI and
//! by most servers that are not OpenAI; `compat` says where those differ.

mod request;
mod stream;

use crate::exchange::{Endpoint, Reader, Wire};
use atomic_agent::model::ModelRequest;
use serde_json::Value;
use std::collections::BTreeMap;

pub(crate) struct OpenAiCompletions;

impl Wire for OpenAiCompletions {
    fn url(&self, endpoint: &Endpoint) -> String {
        format!("{}/chat/completions", endpoint.info.base_url.trim_end_matches('/'))
    }

    fn headers(&self, _: &Endpoint, key: Option<&str>, _: &ModelRequest) -> BTreeMap<String, String> {
        key.map(|key| ("authorization".to_owned(), format!("Bearer {key}"))).into_iter().collect()
    }

    fn payload(&self, endpoint: &Endpoint, request: &ModelRequest) -> Value {
        request::body(&endpoint.info, &endpoint.compat, request)
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::<stream::Chunks>::default()
    }
}

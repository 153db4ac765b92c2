//! `openai-responses`: POST {baseUrl}/responses, streamed, nothing kept by the server. Reasoning
//! comes back encrypted and is sent again as it came.

mod request;
mod stream;

use crate::exchange::{Endpoint, Reader, Wire};
use atomic_agent::model::ModelRequest;
use serde_json::Value;
use std::collections::BTreeMap;

/// Between a call's own id and the id of its item, in the id that a session keeps.
const JOINT: char = '|';
/// Key of a text block: the id of the message item it came in.
const TEXT_ITEM: &str = "textSignature";

pub(crate) struct OpenAiResponses;

impl Wire for OpenAiResponses {
    fn url(&self, endpoint: &Endpoint) -> String {
        format!("{}/responses", endpoint.info.base_url.trim_end_matches('/'))
    }

    fn headers(&self, _: &Endpoint, key: Option<&str>, _: &ModelRequest) -> BTreeMap<String, String> {
        key.map(|key| ("authorization".to_owned(), format!("Bearer {key}"))).into_iter().collect()
    }

    fn payload(&self, endpoint: &Endpoint, request: &ModelRequest) -> Value {
        request::body(&endpoint.info, &endpoint.compat, request)
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::<stream::Events>::default()
    }
}
